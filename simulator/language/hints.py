"""Hints to a compiler. They change no value; the model needs none of them, since it sees addresses as they are."""

from __future__ import annotations

from typing import Any

from ..ir.building.promotion import KernelError, Operand
from ..ir.building.registry import Builder, builtin
from ..ir.program import Value


@builtin
def multiple_of(b: Builder, input: Any, values: Any) -> Any:
    """`input`; says that its elements are multiples of `values`. Without effect in the model."""
    return input


@builtin
def max_contiguous(b: Builder, input: Any, values: Any) -> Any:
    """`input`; says that runs of `values` elements follow each other. Without effect in the model."""
    return input


@builtin
def max_constancy(b: Builder, input: Any, values: Any) -> Any:
    """`input`; says that runs of `values` elements are equal. Without effect in the model."""
    return input


@builtin
def assume(b: Builder, cond: Any) -> None:
    """Says that `cond` holds; refused where it is known not to."""
    if not isinstance(cond, Value) and not cond:
        raise KernelError("assume: the condition is false at compile time")


@builtin
def debug_barrier(b: Builder) -> None:
    """Without effect: a program here is one core, whose instructions wait for the data they need."""


@builtin
def condition(b: Builder, arg0: Operand, disable_licm: bool = False) -> Operand:
    """The condition of a `while`, as it is; the hint is accepted, without effect."""
    return arg0


@builtin
def inline_asm_elementwise(b: Builder, *args: Any, **kwargs: Any) -> None:
    """Refused: assembly of another device says nothing about this one."""
    raise KernelError(
        "inline_asm_elementwise is assembly of one GPU and cannot run on Ascend; write it with builtins of tl, or take "
        "a function of libdevice"
    )

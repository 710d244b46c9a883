"""Hints to a compiler, which change no value (the model needs none of them, since it sees addresses as they are), and
builtins for debugging.
"""

from __future__ import annotations

from typing import Any

from ..ir.building.promotion import KernelError, Operand, describe, is_number
from ..ir.building.registry import OF_PYTHON, Builder, builtin
from ..ir.operations import RECORDED, Operation, define
from ..ir.program import Value

__all__ = [
    "assume", "condition", "debug_barrier", "device_assert", "device_print", "max_constancy",
    "max_contiguous", "multiple_of", "static_assert", "static_print",
]  # fmt: skip


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
def static_assert(b: Builder, cond: Any, msg: str = "") -> None:
    """Refuse to compile unless `cond`, a compile-time value, holds."""
    if isinstance(cond, Value):
        raise KernelError("static_assert needs a compile-time condition; use an `assert` statement")
    if not cond:
        raise KernelError(f"static_assert failed{': ' + msg if msg else ''}")


@builtin
def static_print(
    b: Builder, *values: Any, sep: str = " ", end: str = "\n", file: Any = None, flush: bool = False
) -> None:
    """Print compile-time values while the kernel is compiled; of values of the program, their type and shape."""
    print(*values, sep=sep, end=end, file=file, flush=flush)


@builtin
@define(Operation(RECORDED, effect=True), name="print")
def device_print(b: Builder, prefix: str, *args: Any, hex: bool = False) -> None:
    """Print values of the program while it runs, a row on a line, as Ascend does; before it the program and which row it is.

        pid (0, 0, 0) prefix: [1.500000,-2.000000]
        pid (0, 0, 0) idx (3, :) rows: [T,F]

    hex: integers in hexadecimal. Numbers below 0.001 have an exponent. A launch prints MOST_PRINTED lines of each print at
    most, and as many elements of a row, and says when it leaves the rest out. A run for time only prints nothing.
    """
    if not isinstance(prefix, str):
        raise KernelError(
            f"device_print, and `print` in a kernel: the first argument is the text to print before the values, got "
            f'{describe(prefix)}; print("x", x), or tl.static_print for compile-time values'
        )
    for x in args:
        if not isinstance(x, Value) and not is_number(x):
            raise KernelError(f"device_print prints tiles, scalars and numbers, got {x!r}")
    values = [b.to_value(x) for x in args]
    b.emit("print", values, (), prefix=prefix, hex=bool(hex))


OF_PYTHON[print] = device_print  # while the kernel runs; static_print is for compile time


@builtin
def device_assert(b: Builder, cond: Any, msg: str = "", mask: Any = None) -> None:
    """End the run with `msg`, program, element and line unless `cond` holds wherever `mask` (broadcast to it) does."""
    if not isinstance(cond, Value):
        if not cond:
            raise KernelError(f"device_assert fails always: {msg}")
        return
    truth = b.to_bool(cond)
    if mask is not None:
        truth = b.to_value(b.binary("or", truth, b.binary("xor", b.to_bool(mask), True)))
    b.emit("assert", (truth, None), (), text=str(msg))

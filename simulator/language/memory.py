"""Loads, stores and atomics on global memory."""

from __future__ import annotations

from ..frontend.program import Value
from ..frontend.rules import Operand
from ..frontend.words import Builder, word


@word
def load(
    b: Builder,
    pointer: Value,
    mask: Operand | None = None,
    other: Operand | None = None,
    cache_modifier: str = "",
    eviction_policy: str = "",
    volatile: bool = False,
) -> Value:
    """Elements at `pointer`.

    pointer: a pointer scalar, or a tile of pointers (`ptr + offsets`, offsets in elements).
    mask: boolean, broadcastable to the pointers; elements where it is False are not read.
    other: value of masked-out elements (0 if not given); needs a mask.
    cache_modifier, eviction_policy, volatile: accepted, without effect in the model.
    Reading outside of the tensor is an `OutOfBoundsError` with tensor, index, program and line.
    """
    return b.load(pointer, mask, other)


@word
def store(
    b: Builder,
    pointer: Value,
    value: Operand,
    mask: Operand | None = None,
    cache_modifier: str = "",
    eviction_policy: str = "",
) -> None:
    """Write `value`, cast to the pointer's element type, where `mask` is True. Shapes as in `load`."""
    b.store(pointer, value, mask)


@word
def atomic_add(
    b: Builder,
    pointer: Value,
    val: Operand,
    mask: Operand | None = None,
    sem: str | None = None,
    scope: str | None = None,
) -> Value:
    """Add `val` to memory, once per element, rounded in the element type; gives the old values.

    Programs add in the order of their numbers (on the device the order is not defined). `sem` and `scope` are accepted,
    without effect, as on Ascend.
    """
    return b.atomic("add", pointer, val, mask)

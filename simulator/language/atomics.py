"""Atomic operations on global memory.

Programs combine in the order of their numbers, elements of one tile in row-major order (on the device neither order is
defined). `sem` and `scope` are accepted, without effect, as on Ascend. Each gives the values that memory held before.
"""

from __future__ import annotations

from ..ir.building.promotion import Operand
from ..ir.building.registry import Builder, builtin
from ..ir.program import Value


@builtin
def atomic_add(
    b: Builder,
    pointer: Value,
    val: Operand,
    mask: Operand | None = None,
    sem: str | None = None,
    scope: str | None = None,
) -> Value:
    """Add `val` to memory, once per element, rounded in the element type."""
    return b.atomic("add", pointer, val, mask)


@builtin
def atomic_max(
    b: Builder,
    pointer: Value,
    val: Operand,
    mask: Operand | None = None,
    sem: str | None = None,
    scope: str | None = None,
) -> Value:
    """Put the larger of memory and `val` into memory; a NaN in either gives way to the number."""
    return b.atomic("max", pointer, val, mask)


@builtin
def atomic_min(
    b: Builder,
    pointer: Value,
    val: Operand,
    mask: Operand | None = None,
    sem: str | None = None,
    scope: str | None = None,
) -> Value:
    """Put the smaller of memory and `val` into memory; a NaN in either gives way to the number."""
    return b.atomic("min", pointer, val, mask)


@builtin
def atomic_and(
    b: Builder,
    pointer: Value,
    val: Operand,
    mask: Operand | None = None,
    sem: str | None = None,
    scope: str | None = None,
) -> Value:
    """Bitwise and of memory and `val`; integers and booleans."""
    return b.atomic("and", pointer, val, mask)


@builtin
def atomic_or(
    b: Builder,
    pointer: Value,
    val: Operand,
    mask: Operand | None = None,
    sem: str | None = None,
    scope: str | None = None,
) -> Value:
    """Bitwise or of memory and `val`; integers and booleans."""
    return b.atomic("or", pointer, val, mask)


@builtin
def atomic_xor(
    b: Builder,
    pointer: Value,
    val: Operand,
    mask: Operand | None = None,
    sem: str | None = None,
    scope: str | None = None,
) -> Value:
    """Bitwise exclusive or of memory and `val`; integers and booleans."""
    return b.atomic("xor", pointer, val, mask)


@builtin
def atomic_xchg(
    b: Builder,
    pointer: Value,
    val: Operand,
    mask: Operand | None = None,
    sem: str | None = None,
    scope: str | None = None,
) -> Value:
    """Put `val` into memory."""
    return b.atomic("xchg", pointer, val, mask)


@builtin
def atomic_cas(
    b: Builder, pointer: Value, cmp: Operand, val: Operand, sem: str | None = None, scope: str | None = None
) -> Value:
    """Put `val` into memory where it holds `cmp`; bit patterns are compared."""
    return b.compare_and_swap(pointer, cmp, val)

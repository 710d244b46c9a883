"""Atomic operations on global memory.

Programs combine in the order of their numbers, elements of one tile in row-major order (on the device neither order is
defined). `sem` and `scope` are accepted, without effect, as on Ascend. Each gives the values that memory held before.
"""

from __future__ import annotations

from ..ir.building.promotion import Operand
from ..ir.building.registry import Builder, Builtin, builtin, named
from ..ir.program import Value


def _atomic(name: str, says: str) -> Builtin:
    def build(
        b: Builder,
        pointer: Value,
        val: Operand,
        mask: Operand | None = None,
        sem: str | None = None,
        scope: str | None = None,
    ) -> Value:
        return b.atomic(name, pointer, val, mask)

    return named(f"atomic_{name}", build, says)


atomic_add = _atomic("add", "Add `val` to memory, once per element, rounded in the element type.")
atomic_max = _atomic(
    "max", "Put the larger of memory and `val` into memory; a NaN in either gives way to the number."
)
atomic_min = _atomic(
    "min", "Put the smaller of memory and `val` into memory; a NaN in either gives way to the number."
)
atomic_and = _atomic("and", "Bitwise and of memory and `val`; integers and booleans.")
atomic_or = _atomic("or", "Bitwise or of memory and `val`; integers and booleans.")
atomic_xor = _atomic("xor", "Bitwise exclusive or of memory and `val`; integers and booleans.")
atomic_xchg = _atomic("xchg", "Put `val` into memory.")


@builtin
def atomic_cas(
    b: Builder, pointer: Value, cmp: Operand, val: Operand, sem: str | None = None, scope: str | None = None
) -> Value:
    """Put `val` into memory where it holds `cmp`; bit patterns are compared."""
    return b.compare_and_swap(pointer, cmp, val)

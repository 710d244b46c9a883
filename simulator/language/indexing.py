"""Choosing between elements."""

from __future__ import annotations

from ..ir.building.promotion import Operand
from ..ir.building.registry import Builder, builtin
from ..ir.program import Value


@builtin
def where(b: Builder, condition: Operand, x: Operand, y: Operand) -> Value:
    """`x` where `condition` holds, else `y`; the three are broadcast together. Both sides are computed."""
    return b.select(condition, x, y)

"""Choosing between elements."""

from __future__ import annotations

from ..frontend.program import Value
from ..frontend.rules import Operand
from ..frontend.words import Builder, word


@word
def where(b: Builder, condition: Operand, x: Operand, y: Operand) -> Value:
    """`x` where `condition` holds, else `y`; the three are broadcast together. Both sides are computed."""
    return b.select(condition, x, y)

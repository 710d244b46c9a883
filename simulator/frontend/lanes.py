"""A condition for each element: both sides are computed, and each element takes the side that its condition says.

So are compiled the functions that `tl.map_elementwise` applies to tiles: they are written for one element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.building.aggregate import children, rebuild, same_structure
from ..ir.building.builder import Builder
from ..ir.building.promotion import KernelError, describe, is_number
from ..ir.program import Op, Value

_REFUSED = ("load", "store", "atomic", "for", "while", "assert", "print")


def check_sides(made: Sequence[Op]) -> None:
    """Refuse what one side must not do for the elements of the other."""
    for op in made:
        if op.kind in _REFUSED:
            raise KernelError(
                f"{op.kind} under a condition on an element is not supported in map_elementwise: both sides are computed "
                "for all elements"
            )


def chosen(b: Builder, condition: Value, name: str, a: Any, c: Any) -> Any:
    """`a` where the condition holds, else `c`, part by part."""
    if a is c:
        return a
    mine, others = children(a), children(c)
    if mine is not None and others is not None and same_structure(a, c):
        return rebuild(a, tuple(chosen(b, condition, name, x, y) for x, y in zip(mine, others, strict=True)))
    if not all(isinstance(x, Value) or is_number(x) for x in (a, c)):
        raise KernelError(f"{name} is {describe(a)} on one side and {describe(c)} on the other")
    return b.select(condition, a, c)

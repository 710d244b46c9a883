"""Which program of the grid this is."""

from __future__ import annotations

from ..ir.building.registry import Builder, builtin
from ..ir.program import Value


@builtin
def program_id(b: Builder, axis: int) -> Value:
    """Number of this program along `axis` (0, 1 or 2) of the grid: an int32 scalar from 0."""
    return b.program_id(axis)


@builtin
def num_programs(b: Builder, axis: int) -> Value:
    """Size of the grid along `axis` (0, 1 or 2): an int32 scalar."""
    return b.num_programs(axis)

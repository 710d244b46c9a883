"""Which program this is, and loops: `range` (a loop of the program) and `static_range` (unrolled at compile time)."""

from __future__ import annotations

from typing import Any

from ..ir.building.ranges import DynamicRange, StaticRange
from ..ir.building.registry import OF_PYTHON, Builder, builtin
from ..ir.program import Value

__all__ = ["num_programs", "program_id", "static_range"]


@builtin(name="range")
def range_builtin(
    b: Builder,
    arg1: Any,
    arg2: Any = None,
    step: Any = None,
    num_stages: int | None = None,
    loop_unroll_factor: int | None = None,
    disallow_acc_multi_buffer: bool | None = None,
    flatten: bool | None = None,
    warp_specialize: bool | None = None,
    disable_licm: bool | None = None,
) -> DynamicRange:
    """A loop `for i in range(...)`. Bounds are integer scalars; hints are kept with the loop.

    num_stages: buffers per loaded tile (1 = no overlap with the next iteration); without it the launch decides.
    """
    bounds = [x for x in (arg1, arg2, step) if x is not None]
    if arg2 is None and step is not None:
        bounds = [0, arg1, step]
    return DynamicRange(
        *bounds,
        num_stages=num_stages,
        loop_unroll_factor=loop_unroll_factor,
        disallow_acc_multi_buffer=disallow_acc_multi_buffer,
        flatten=flatten,
        warp_specialize=warp_specialize,
        disable_licm=disable_licm,
    )


OF_PYTHON[range] = range_builtin


@builtin
def static_range(b: Builder, arg1: int, arg2: int | None = None, step: int | None = None) -> StaticRange:
    """A loop that is unrolled: its variable is a compile-time integer in each copy of the body.

    arg1: the end; with arg2, which is the end then, the begin.
    """
    first, end = (0, arg1) if arg2 is None else (arg1, arg2)
    return StaticRange(first, end, 1 if step is None else step)


@builtin
def program_id(b: Builder, axis: int) -> Value:
    """Number of this program along `axis` (0, 1 or 2) of the grid: an int32 scalar from 0."""
    return b.program_id(axis)


@builtin
def num_programs(b: Builder, axis: int) -> Value:
    """Size of the grid along `axis` (0, 1 or 2): an int32 scalar."""
    return b.num_programs(axis)

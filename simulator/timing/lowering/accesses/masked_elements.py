"""Accesses that are no strided copy of a box, as Triton-Ascend makes them.

Regular addresses under a mask of elements (DiscreteMaskAccessConversion): all elements move and a select takes those of the
mask; a store first loads what is there. Addresses without a pattern (UnstructureConversion): a loop of the scalar unit over
the elements, or rows, that a mask of a box leaves.
The lock that a compiler of 2026 puts around such a store is not modelled.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....interpreter._numbers import find_outside
from ....interpreter.flat_pointers import FlatMemory
from ....interpreter.regions import AccessRegion
from ....interpreter.values import Affine, Box, Pointers
from ....ir.program import Op, Value
from ....record.slowing import DISCRETE as DISCRETE_ACCESS
from ... import cures
from ...costs.provenance import grade_of
from ...costs.transfers import boxed, traffic
from ...trace.tree import GlobalAccess
from ..context import PathRates
from ..records import LoweringContext

DISCRETE = "scalar.discrete_element_cycles"


def selects(context: LoweringContext, pointer: Pointers, mask: Any) -> bool:
    """Whether a regular access has a mask of elements, and the vendor's compiler makes the code."""
    regular = isinstance(pointer.offsets, Affine) and not isinstance(pointer.tensor, FlatMemory)
    return context.plan.compiled and regular and not boxed(mask)


def move_all(
    context: LoweringContext,
    op: Op,
    pointer: Pointers,
    v: Value,
    where: tuple[int, tuple[int, int], PathRates],
    stores: bool = False,
    **what: Any,
) -> None:
    """All elements of a tile from or to global memory. where: pipe, its channels (see `load_box`), rates of the path."""
    pipe, channels, rates = where
    region = _inside(pointer, len(context.active))
    amount, bursts, _ = traffic(pointer.offsets, v.number.itemsize, region)
    moved = context.moved(v, pipe, pointer.offsets, amount, bursts)
    many = 1.0 if stores else context.cores_alike(region)
    cycles = context.plan.least_cycles(rates, moved.bursts, moved.amount, many)
    target: Any = channels[0]
    if _outside(pointer, region) < 0:
        target = context.target_of(op, pipe, channels, GlobalAccess(pointer.tensor, region, stores))
    context.add(pipe, op.loc, channel=target, amount=moved.amount, half=moved.half, occupancy=cycles, **what)


def select(
    context: LoweringContext, op: Op, v: Value, reads: tuple[int, ...], writes: tuple[int, ...]
) -> None:
    """The Vector unit takes the elements of the mask, in place."""
    text = f"{op.kind} under a mask of elements: all {v.numel} move, and a select takes those of the mask"
    context.plan.slow(op, DISCRETE_ACCESS, text, cures.MASK)
    context.computed(op, context.plan.costs.selected(v), reads, writes, ())


def scalar_loop(context: LoweringContext, op: Op, pointer: Pointers) -> bool:
    """Whether the scalar unit moves each element: the compiler makes the code, and no row of neighbours is known."""
    regular = isinstance(pointer.offsets, Affine)
    return context.plan.compiled and not regular and op.kind != "atomic" and op.attrs.get("run", 1) == 1


def one_by_one(
    context: LoweringContext, op: Op, v: Value, mask: Any, where: tuple[int, int, float], **more: Any
) -> None:
    """Elements at addresses without a pattern: the scalar unit moves each. Where the elements of a row are neighbours it
    works out where each row lies, and a transfer moves that. where: pipe, channel and interval of these; more: of the
    instruction that moves."""
    plan, (pipe, channel, interval) = context.plan, where
    run, half = plan.one_by_one.rows.get(op.id, 1), plan.is_shared(v, pipe)
    times = v.numel // run
    things = f"{times} elements, one by one" if run == 1 else f"{times} rows of {run} elements, row by row"
    cure = cures.DISCRETE if run == 1 else cures.ROWS
    plan.slow(op, DISCRETE_ACCESS, f"discrete {op.kind}: {things} on the scalar unit", cure)
    plan.assume(DISCRETE)
    n: Any = visited(mask, v.shape, run)
    n = (n + 1) // 2 if half else n
    most = int(np.max(n))
    looped: dict[str, Any] = {"occupancy": n * plan.product.number(DISCRETE), "instructions": most}
    looped["grade"] = grade_of(plan.product, (DISCRETE,))
    context.add(plan.scalar, op.loc, **looped, **(more if run == 1 else {}))
    if run > 1:
        moved = {"occupancy": n * interval, "amount": n * run * v.number.itemsize, "instructions": most}
        context.add(pipe, op.loc, channel=channel, half=half, **moved, **more)


def visited(mask: Any, shape: tuple[int, ...], run: int) -> Any:
    """How many elements, or rows of `run` elements, a loop goes through: those in the mask's box, where it has one."""
    counts = mask.counts() if isinstance(mask, Box) else shape
    times, outer = prod(shape) // run, 1
    found: Any = 1
    for n, count in zip(shape, counts, strict=True):
        if outer == times:  # the axes of a row
            break
        outer, found = outer * n, found * count
    return found


def without_gaps(pointer: Pointers, mask: Any) -> tuple[Pointers, Any]:
    """An access to every second element of rows, and its box, as one to rows from the first to the last of these."""
    a = pointer.offsets
    shape = (*a.shape[:-1], 2 * a.shape[-1] - 1)
    if isinstance(mask, Box):
        mask = Box(mask.lows, (*mask.highs[:-1], shape[-1]), shape)
    return Pointers(pointer.tensor, Affine(a.base, (*a.strides[:-1], 1), shape)), mask


def _inside(pointer: Pointers, programs: int) -> AccessRegion:
    """The whole tile of each program, moved into its tensor where elements of the mask alone are in it, if it has room."""
    region = AccessRegion(pointer.tensor, pointer.offsets, None, programs)
    if _outside(pointer, region) < 0:
        return region
    steps = region.strides * (region.highs - 1)
    below, above = np.minimum(steps, 0).sum(axis=1), np.maximum(steps, 0).sum(axis=1)
    last = np.maximum(pointer.tensor.elements - 1 - above, -below)
    region.starts = np.ascontiguousarray(np.clip(region.starts, -below, last), np.int64)
    return region


def _outside(pointer: Pointers, region: AccessRegion) -> int:
    """The first program whose tile leaves its tensor, or -1."""
    return find_outside(region.starts, region.strides, region.lows, region.highs, pointer.tensor.elements)

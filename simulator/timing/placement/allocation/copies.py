"""Copies of tiles that are loaded or stored in a loop, so that a transfer overlaps the work of another iteration."""

from __future__ import annotations

from ....ir.program import Op, Region, Value
from ..memory_spaces import L0C, UB
from ..needs import LOOPS
from ..slots import Slot
from .context import Allocation


def give_copies(a: Allocation, region: Region, loop: Op | None = None) -> None:
    """Copies for the tiles of a region. loop: the innermost one around it."""
    every = a.needs.program.copies or (loop is not None and a.stages(loop.id))
    for op in region.ops if every else a.needs.acting[id(region)]:
        for inner in op.regions:
            give_copies(a, inner, op if op.kind in LOOPS else loop)
        if loop is not None:
            _copies_of(a, op, loop)


def _copies_of(a: Allocation, op: Op, loop: Op) -> None:
    asked, stages = a.needs.program.copies, a.stages(loop.id)
    for r in op.results if asked or stages else ():
        if r.id in asked:
            _copy(a, r, loop, asked[r.id])
        elif stages and r.id in stages.kept:
            _copy(a, r, loop, a.choice.tiles)
        elif stages and op.kind == "dot":
            _ping_pong(a, r, stages.spans[op.id])
    if a.copies(loop) < 2:
        return
    if op.kind == "load":
        _copy(a, op.results[0], loop)
    elif op.kind == "store" and op.id not in a.spread_of:
        _copy(a, op.args[1], loop)


def _copy(a: Allocation, v: Value | None, loop: Op, asked: int = 0) -> None:
    root = None if v is None or not v.shape else a.definitions.root(v)
    slot = None if root is None else a.slot_of.get(root.id)
    begin, end = a.lives.spans[loop.id]
    if slot is None or slot.label or slot.start <= begin:
        return
    if any(a.definitions.of(x) is None for x in slot.values):
        return  # carried, or made before the loop: one buffer
    copies = asked or min(a.copies(loop), a.choice.most_in(slot.space))
    if slot.copies > 1 or copies < 2:
        return
    a.iteration[id(slot)] = slot.start, slot.end
    slot.copies, slot.start, slot.end = copies, begin, end


def _ping_pong(a: Allocation, v: Value, span: tuple[int, int]) -> None:
    """Copies of a product, so that it leaves L0C while the next one is summed; other stages may have the room after it.

    span: operations that its stage begins and ends with.
    """
    root = a.definitions.root(v)
    slot = None if root is None else a.slot_of.get(root.id)
    copies = min(a.choice.copies, a.choice.most_in(L0C))
    if slot is None or slot.space != L0C or slot.copies > 1 or copies < 2 or len(slot.values) > 1:
        return
    begin, end = (a.lives.at[op] for op in span)
    slot.copies, slot.start, slot.end = copies, min(begin, slot.start), max(end, slot.end)


def share_with_stores(a: Allocation) -> None:
    """Temporaries of an iteration that are gone before a stored tile is made take its buffer, both copies in turn.

    (triton-ascend #302, a maintainer: the peak of the buffers alive at one time, times two.)
    """
    doubled = [s for s in a.slots if id(s) in a.iteration and s.space == UB]
    plain = [s for s in a.slots if s.copies == 1 and s.space == UB and s.values]
    for t in sorted(plain, key=lambda s: -s.size):
        into = next((s for s in doubled if _fits_before(a, t, s)), None)
        if into is not None:
            first, last = a.iteration[id(into)]
            a.iteration[id(into)] = min(first, t.start), last
            into.values = [*t.values, *into.values]
            a.slot_of.update({v.id: into for v in t.values})


def _fits_before(a: Allocation, t: Slot, s: Slot) -> bool:
    if t.size > s.size or s.start >= t.start or t.end >= a.iteration[id(s)][0]:
        return False
    loops = {a.loop_of.get(v.id, -1) for v in (*t.values, *s.values)}
    return len(loops) == 1 and -1 not in loops

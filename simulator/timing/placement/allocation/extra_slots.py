"""Slots beside those of values: scratch, blocks of strided stores, and tiles on their way between the Cube and UB."""

from __future__ import annotations

from ....ir.program import Op, Value
from ..layouts import TABLES, align, tile_bytes
from ..memory_spaces import L1, UB
from ..scratch import scratch_name
from ..slots import Slot
from .context import Allocation

BIAS_IN_L1 = -1  # in place of the number of an operand


def scratch(a: Allocation, op: Op) -> None:
    """What an operation needs in UB while it runs."""
    if size := a.needs.scratch.get(op.id):
        at, label = a.lives.at[op.id], scratch_name(op, a.definitions)
        size = align(size, a.alignment[UB])
        a.scratch_of[op.id] = Slot(list(op.results[:1]), at, at, size, label=label, why="scratch")


def spread(a: Allocation, op: Op) -> None:
    """The buffer over which the elements of a strided store are spread, unless they lie so already."""
    blocks = a.choice.blocks
    if op.id not in blocks.leaving:
        return
    v, at = op.args[1], a.lives.at[op.id]
    root = None if v is None else a.definitions.root(v)
    if root is not None and (root.id in blocks.landing or _from_cube(a, root)):
        return
    size = blocks.leaving[op.id] if v is None else a.of_one_core(v, blocks.leaving[op.id])
    size = align(size, a.alignment[UB])
    slot = a.spread_of[op.id] = Slot(
        [], at, at, size, label=f"blocks of strided {op.kind}", why="stride padding"
    )
    slot.values = [v] if v is not None else []
    copies = min(a.copies(a.loops[-1]), a.choice.most_in(UB)) if a.loops else 1
    if copies > 1:
        slot.copies, slot.loop = copies, a.loop
        slot.start, slot.end = a.lives.spans[slot.loop]


def _from_cube(a: Allocation, root: Value) -> bool:
    return a.spaces.space_of(root) != UB and root.id not in a.ub_copy


def cross(a: Allocation, op: Op) -> None:
    """Places for values that pass between the Cube's buffers and UB."""
    if not a.spaces.has_dot:
        return
    for r in op.results:
        if r.id in a.spaces.copied_to_ub:
            at = a.lives.spans.get(op.id, (0, a.lives.at[op.id]))[1]
            name = f"{r.name or 'product'} in UB"
            slot = Slot([r], at, _end(a, r, at), a.size(r, UB), label=name, why="product in UB")
            a.ub_copy[r.id] = _in_turn(a, slot, r)
    if op.kind == "load" and a.spaces.space_of(op.results[0]) in TABLES:
        _row(a, op)
    if op.kind == "dot":
        _operands(a, op)


def _in_turn(a: Allocation, slot: Slot, v: Value) -> Slot:
    """With copies for the iterations of a loop that are under way at once."""
    stages, asked = a.stages(a.loop), a.needs.program.copies.get(v.id, 1)
    if asked > 1 and a.loops:  # the author's wish holds for each of its places
        slot.copies, slot.loop, (slot.start, slot.end) = asked, a.loop, a.lives.spans[a.loop]
    elif stages is not None:
        kept = a.choice.tiles if v.id in stages.kept else 1
        copies = max(kept, min(a.copies(a.loops[-1]), a.choice.most_in(slot.space)))
        slot.copies, slot.loop, (slot.start, slot.end) = copies, a.loop, a.lives.spans[a.loop]
    return slot


def _end(a: Allocation, v: Value, at: int) -> int:
    return max(at, a.lives.last.get(v.id, at))


def _row(a: Allocation, op: Op) -> None:
    """It stays to the end of the row's life, so that operands of the sum need not wait for its place."""
    r, at = op.results[0], a.lives.at[op.id]
    size, name = align(tile_bytes(r), a.alignment[L1]), f"{r.name or 'bias'} in L1"
    end = _end(a, r, at)
    a.l1_copy[(op.id, BIAS_IN_L1)] = Slot([r], at, end, size, label=name, space=L1, why="operand in L1")


def _operands(a: Allocation, op: Op) -> None:
    at = a.lives.at[op.id]
    for i, v in enumerate(a.spaces.operands(op)):
        source = a.spaces.source(v)
        if source.id in a.spaces.staged:
            name = f"{source.name or 'operand'} in L1"
            size = a.size(source, L1)
            slot = Slot([source], at, at, size, label=name, space=L1, why="operand in L1")
            a.l1_copy[(op.id, i)] = _in_turn(a, slot, source)

"""What loads, stores, atomics and products become (3.11, 5.7, 5.8, 8.1), and tiles on their way between the cores."""

from __future__ import annotations

from ....ir.program import Op, Value
from ..allocation.extra_slots import BIAS_IN_L1
from ..layouts import TABLES
from ..memory_spaces import FIXP, L0C, L1, UB, VIEW
from . import scratch
from .building import StepBuilder
from .tiles import CHOSEN, FOR_CUBE, FROM_CUBE, TILE, PlannedTile
from .types import element_of


def load(b: StepBuilder, op: Op) -> None:
    """Filled by MTE2; a mask of elements is a select afterwards (8.1)."""
    r = op.results[0]
    space = b.spaces.space_of(r)
    if not r.shape or space in (FIXP, VIEW):
        return
    t = _loaded(b, op, r, space)
    mask = b.tile_of(op.args[1])
    t.masked |= op.args[1] is not None
    b.step(op, [], [t])
    if mask is not None and space == UB:
        b.step(op, [t, mask], [t], extra=scratch.BLOCK_BITS)


def _loaded(b: StepBuilder, op: Op, r: Value, space: str) -> PlannedTile:
    if r.id not in b.of:
        b.of[r.id] = b.tile(b.shape(r) if space == UB else r.shape, element_of(r), TILE, op, r, space)
    t = b.of[r.id]
    t.loaded, t.pieces = True, b.rules.pieces.of_operand(r)
    if r.id in b.rules.blocks.landing:
        t.spread |= {len(t.shape) - 1}
    if r.id in b.rules.blocks.woven and space == UB:  # a row without gaps, of which a half is taken
        whole = b.tile((*t.shape[:-1], 2 * t.shape[-1]), t.element, TILE, op)
        whole.loaded = True
        b.step(op, [], [whole])
        b.step(op, [whole], [t])
    if space in TABLES:
        row = b.l1[op.id, BIAS_IN_L1] = b.tile(r.shape, element_of(r), FOR_CUBE, op, r, UB)
        row.space = L1
        b.step(op, [], [row])
        b.step(op, [row], [t])
    return t


def store(b: StepBuilder, op: Op) -> None:
    """Emptied by MTE3; a formula is written out first. What an atomic gives back is loaded; of 64 bits it is always, and
    combined with what is given."""
    v, mask = op.args[1], b.tile_of(op.args[2]) if len(op.args) > 2 else None
    t = b.tile_of(v)
    if v is not None and v.shape and t is None:
        t = b.filled(op, v)
    if t is not None and mask is not None:
        t = _chosen(b, op, mask, t)
    if t is not None and t.space == UB:
        t.stored = True
        t.masked |= len(op.args) > 2 and op.args[2] is not None
        if op.id in b.rules.blocks.leaving:
            _leaves_in_blocks(b, op, t)
    if op.attrs.get("locked"):
        t = _combined(b, op, t)
    others = [b.tile_of(x) for x in op.args[3:]]
    b.step(op, [t, mask, *others], [])
    if op.attrs.get("result_used") and not op.attrs["locked"] and op.results[0].shape:
        r = b.result(op, op.results[0])
        r.loaded = True
        b.step(op, [], [r])


def _combined(b: StepBuilder, op: Op, t: PlannedTile | None) -> PlannedTile | None:
    """What a locked atomic stores: what lies there is loaded, and both go into a tile of their own."""
    if t is None:
        return None
    old = b.result(op, op.results[0])
    old.loaded = True
    b.step(op, [], [old])
    total = b.tile(t.shape, t.element, TILE, op)
    total.stored = True
    b.step(op, [t, old], [total])
    return total


def _chosen(b: StepBuilder, op: Op, mask: PlannedTile, t: PlannedTile) -> PlannedTile:
    """Under a mask of elements all are stored: a select takes the new ones or what lies there, which is loaded; of an
    atomic, what changes nothing (8.1; Triton-Ascend, third_party/ascend/lib/DiscreteMaskAccessConversion).
    """
    chosen = b.tile(t.shape, t.element, CHOSEN, op)
    there = [b.tile(t.shape, t.element, CHOSEN, op)] if op.kind == "store" else []
    for old in there:
        old.loaded = True
        b.step(op, [], [old])
    b.step(
        op, [mask, t, *there], [chosen], extra=scratch.BLOCK_BITS
    )  # not in place because of its scratch (3.11)
    return chosen


def _leaves_in_blocks(b: StepBuilder, op: Op, t: PlannedTile) -> None:
    """9.4, 9.5: elements that lie apart in GM leave from a block each; the Vector unit spreads those that came in rows."""
    t.spread |= {len(t.shape) - 1}
    landed = b.rules.blocks.landing
    if not any(v.id in landed for v in t.values):
        b.spread_of[op.id] = t


def dot(b: StepBuilder, op: Op) -> None:
    """Operands in L1, the sum in L0C, which keeps what it starts from if that lies there (5.8)."""
    operands = [_operand(b, op, i, v) for i, v in enumerate(b.spaces.operands(op))]
    r, start = op.results[0], b.tile_of(op.args[2])
    if r.id in b.spaces.added:
        acc = b.l0c[r.id] = _in_l0c(b, op, r)
        b.step(op, operands, [acc])
        _added(b, op, r, start)
        return
    if start is not None and start.space == L0C:
        b.of[r.id] = start
        b.step(op, [*operands, start], [start])
    else:
        acc = b.of[r.id] if r.id in b.of else _in_l0c(b, op, r)
        b.of[r.id] = acc
        b.step(op, [*operands, start], [acc])
    if r.id in b.spaces.copied_to_ub:
        from_l0c(b, op, r)


def _in_l0c(b: StepBuilder, op: Op, r: Value) -> PlannedTile:
    acc = b.tile(r.shape, "fp32", TILE, op, r, L0C)
    acc.pieces = b.rules.pieces.of_product(op)
    return acc


def _operand(b: StepBuilder, op: Op, i: int, v: Value) -> PlannedTile | None:
    """What the Cube reads; a tile of the Vector unit goes to L1 first."""
    source = b.spaces.source(v)
    t = b.tile_of(source)
    if source.id not in b.spaces.staged:
        return t
    t = t or b.filled(op, source)
    t.stored = True
    b.step(op, [t], [])
    staged = b.l1[op.id, i] = b.tile(source.shape, element_of(source), FOR_CUBE, op, source, L1)
    staged.loaded, staged.pieces = True, b.rules.pieces.of_operand(source)
    b.step(op, [], [staged])
    return staged


def _added(b: StepBuilder, op: Op, r: Value, start: PlannedTile | None) -> None:
    """A sum that starts from a tile of UB: the product comes there by way of GM and is added (5.7)."""
    fresh = _in_ub(b, op, r)
    b.step(op, [], [fresh])
    total = b.tile(b.shape(r), element_of(r), TILE, op, r)
    b.step(op, [start, fresh], [total], over=[start, fresh])
    b.of[r.id] = b.sums[r.id] = total


def from_l0c(b: StepBuilder, op: Op, r: Value) -> None:
    """A product that the Vector unit reads: a buffer of UB like any other (5.7)."""
    fresh = _in_ub(b, op, r)
    if r.id in b.of:
        b.l0c[r.id] = b.of[r.id]
    b.step(op, [b.of.get(r.id)], [fresh])
    b.of[r.id] = fresh


def _in_ub(b: StepBuilder, op: Op, r: Value) -> PlannedTile:
    fresh = b.to_ub[r.id] = b.tile(b.shape(r, sent=True), element_of(r), FROM_CUBE, op, r)
    fresh.loaded = True
    return fresh

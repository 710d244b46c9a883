"""Buffers of a plan as the slots that lowering asks for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ....ir.program import Program, Value
from ..memory_spaces import UB
from ..slots import Slot
from .building import arguments
from .plan import BufferPlan
from .tiles import SPREAD, TILE, PlannedTile


class Slots(NamedTuple):
    """by_tile: slot of each buffer, by identity. The others as in `Placement`."""

    every: list[Slot]
    by_tile: dict[int, Slot]
    slot_of: dict[int, Slot]
    scratch_of: dict[int, Slot]
    spread_of: dict[int, Slot]
    ub_copy: dict[int, Slot]
    l1_copy: dict[tuple[int, int], Slot]
    sum_of: dict[int, Slot]


def slots_of(plan: BufferPlan) -> Slots:
    """A slot for each buffer, and one without bytes for what lowering asks for and the compiler has no buffer for."""
    x = plan.x
    by_tile = {id(t): _slot(t) for t in plan.entries}
    every = list(by_tile.values())

    def of(t: PlannedTile) -> Slot:
        return by_tile[id(plan.root(t))]

    slot_of = {i: of(t) for i, t in {**x.of, **x.l0c}.items() if id(plan.root(t)) in by_tile}
    for v, space in _without_bytes(plan):
        if v.id not in slot_of:
            slot_of[v.id] = Slot([v], 0, 0, 0, space=space)
            every.append(slot_of[v.id])
    scratch_of = {i: of(t) for i, t in x.scratch_of.items()}
    for i in x.needs.scratch.keys() - scratch_of.keys():
        scratch_of[i] = Slot([], 0, 0, 0, label="scratch")
        every.append(scratch_of[i])
    ub_copy = {i: of(t) for i, t in x.to_ub.items()}
    sum_of = {i: of(t) for i, t in x.sums.items() if of(t) is not ub_copy[i]}
    spread_of = {i: of(t) for i, t in x.spread_of.items()}
    l1_copy = {k: of(t) for k, t in x.l1.items()}
    return Slots(every, by_tile, slot_of, scratch_of, spread_of, ub_copy, l1_copy, sum_of)


def _slot(t: PlannedTile) -> Slot:
    why = "second copy" if t.slots > 1 and t.why == TILE else SPREAD if t.spread else t.why
    label = t.label or ("" if t.values else f"{t.why} of {t.op.name or t.op.kind}")
    slot = Slot(
        list(t.values), t.first, t.last, t.size, t.slots, label=label, space=t.space, depth=len(t.loops)
    )
    slot.why, slot.line = why, t.op.loc.line
    return slot


def _without_bytes(plan: BufferPlan) -> Iterator[tuple[Value, str]]:
    """Values that an operation makes or a loop carries and that lowering gives a slot."""
    needs = plan.x.needs
    for made in needs.made.values():
        yield from ((m.value, m.space) for m in made)
    yield from ((v, UB) for v in _carried(needs.program))


def _carried(program: Program) -> Iterator[Value]:
    for op in program.walk():
        for k, r in enumerate(op.results if op.regions else ()):
            formula = r.static.kind != "dense" and (r.shape or r.dtype.is_int())
            if not r.is_pointer and not formula:
                yield from (r, *arguments(op, k))

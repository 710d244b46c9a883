"""Places of explicit buffers: one each, from its `alloc` to the last use of what it holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...ir.building.buffers import moved
from ...ir.program import Op, Value
from .slots import Slot

if TYPE_CHECKING:
    from .allocate import Placer


def explicit_slots(placer: Placer) -> dict[int, Slot]:
    """The slot of each value that lies in an explicit buffer. A slot with a label is nobody else's while it lives."""
    program = placer.program
    buffers = {op.id: _slot(placer, op) for op in program.walk() if op.kind == "alloc"}
    out = {}
    for v, alloc in _inside(placer):
        slot = out[v.id] = buffers[alloc.id]
        slot.values.insert(0, v)  # what names it comes last
        slot.size = max(slot.size, placer.size(v, slot.space))  # what lands block by block needs more
        slot.copies = max(slot.copies, program.copies.get(v.id, 1))
        slot.end = max(slot.end, placer.last.get(v.id, placer.birth(v)))
    return out


def _slot(placer: Placer, alloc: Op) -> Slot:
    v, at, space = alloc.results[0], placer.at[alloc.id], alloc.attrs["space"]
    first, last = (0, placer.position - 1) if alloc.attrs["unique"] else (at, at)
    return Slot([], first, last, placer.size(v, space), label=v.name, space=space)


def _inside(placer: Placer) -> Iterator[tuple[Value, Op]]:
    """Values with the `alloc` of the buffer that they lie in."""
    buffers = placer.program.buffers
    for op in placer.program.walk():
        for v in (*op.results, *(a for r in op.regions for a in r.args)):
            if v.id in buffers:
                yield v, buffers[v.id]
        if op.id in placer.homes.in_place:
            yield moved(op), buffers[op.results[0].id]

"""Places of explicit buffers: one each, from its `alloc` to the last use of what it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ....ir.building.buffers import moved
from ....ir.program import Op, Program, Value
from ..lifetimes import Lifetimes
from ..memory_spaces import MemorySpaces
from ..slots import Slot

Size = Callable[[Value, str], int]  # bytes of a value in a buffer


def explicit_slots(program: Program, spaces: MemorySpaces, lives: Lifetimes, size: Size) -> dict[int, Slot]:
    """The slot of each value that lies in an explicit buffer. A slot with a label shares no bytes while it lives."""
    buffers = {op.id: _slot(op, lives, size) for op in program.of_kind("alloc")}
    out: dict[int, Slot] = {}
    if not buffers:
        return out
    for v, alloc in values_inside(program, spaces):
        slot = out[v.id] = buffers[alloc.id]
        slot.values.insert(0, v)  # what names it comes last
        slot.size = max(slot.size, size(v, slot.space))  # what lands block by block needs more
        slot.copies = max(slot.copies, program.copies.get(v.id, 1))
        slot.end = max(slot.end, lives.last.get(v.id, lives.birth(v)))
    return out


def _slot(alloc: Op, lives: Lifetimes, size: Size) -> Slot:
    v, at, space = alloc.results[0], lives.at[alloc.id], alloc.attrs["space"]
    first, last = (0, len(lives.lines) - 1) if alloc.attrs["unique"] else (at, at)
    return Slot([], first, last, size(v, space), label=v.name, space=space, why="buffer")


def values_inside(program: Program, spaces: MemorySpaces) -> Iterator[tuple[Value, Op]]:
    """Values with the `alloc` of the buffer that they lie in."""
    buffers = program.buffers
    for op in program.walk():
        for v in (*op.results, *(a for r in op.regions for a in r.args)):
            if v.id in buffers:
                yield v, buffers[v.id]
        if op.id in spaces.in_place:
            yield moved(op), buffers[op.results[0].id]

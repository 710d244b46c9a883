"""Writes to explicit buffers in vain: overwritten before anything reads them, or never read. Found without running them.

A write makes new contents of its buffer (see `ir/building/buffers.py`), so who reads it is who uses these contents. Only
what no path reads is told: a first value that a loop of no iteration would leave is read behind the loop.
"""

from __future__ import annotations

from math import prod

from ...interpreter.faults import place
from ...ir.building.buffers import moved
from ...ir.passes.core_parts import carried_groups
from ...ir.program import Op, Program, Region, Value
from ...messages import Message, fault, time_hint
from ..access import Watcher

Part = tuple[range, ...] | None  # the elements of a buffer along each axis; None where only the program knows


class DeadMoves(Watcher):
    """Has a message for each write to an explicit buffer that nothing reads."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def found(self) -> tuple[Message, ...]:
        if not self.program.buffers:
            return ()
        contents = _Contents(self.program)
        return tuple(m for op in self.program.of_kind("move") if (m := contents.message(op)) is not None)


def _part(op: Op) -> Part:
    """What a write to a buffer covers."""
    if op.attrs["offsets"] is None:
        return tuple(range(n) for n in op.results[0].shape)
    if None in op.attrs["offsets"]:
        return None
    return tuple(range(o, o + n) for o, n in zip(op.attrs["offsets"], op.attrs["sizes"], strict=True))


def _covers(outer: Part, inner: Part) -> bool:
    if outer is None or inner is None:
        return False
    return all(a.start <= b.start and b.stop <= a.stop for a, b in zip(outer, inner, strict=True))


class _Contents:
    """Who uses what a buffer holds. goes: contents that become others where a loop or a branch begins or ends."""

    def __init__(self, program: Program) -> None:
        self.buffers = program.buffers
        self.moves = list(program.of_kind("move"))
        self.uses: dict[int, list[tuple[Op, int]]] = {}
        self.goes: dict[int, list[Value]] = {}
        self._region(program.body)

    def _region(self, region: Region) -> None:
        for op in region.ops:
            for inner in op.regions:
                self._region(inner)
            handed = {v.id for g in carried_groups(op) for v in g} if op.regions else set()
            for i, v in enumerate(op.args):
                if v is not None and v.id not in handed:
                    self.uses.setdefault(v.id, []).append((op, i))
            for group in carried_groups(op) if op.regions else ():
                arguments = {a.id for inner in op.regions for a in inner.args}
                into = [v for v in group if v.id in arguments or v is group[0]]
                for v in group[1:]:
                    self.goes.setdefault(v.id, []).extend(x for x in into if x is not v)

    def message(self, op: Op) -> Message | None:
        part = _part(op)
        over: list[Op] = []
        if self._read(op.results[0], part, over, set()):
            return None
        name, size = op.results[0].name, moved(op).shape
        what = f"the {prod(size)} elements that are written to {name} here"
        if not over:
            over = [o for o in self.moves if self._same(o, op) and _covers(_part(o), part)]
        if over:
            return fault(
                f"{what} are overwritten at line {over[0].loc.line} before anything reads them; read them before, or leave "
                "this write out",
                place(op),
            )
        return time_hint(f"{what} are read by nothing; leave this write out", place(op))

    def _same(self, other: Op, op: Op) -> bool:
        """Whether another write, behind this one in the program, is to the same buffer."""
        alloc = self.buffers.get(op.results[0].id)
        behind = self.moves.index(other) > self.moves.index(op)
        return behind and alloc is not None and self.buffers.get(other.results[0].id) is alloc

    def _read(self, v: Value, part: Part, over: list[Op], seen: set[int]) -> bool:
        """Whether anything may read that part of the contents. over: is told the writes that cover it."""
        if v.id in seen:
            return False
        seen.add(v.id)
        for op, i in self.uses.get(v.id, ()):
            if op.kind != "move" or i != 0 or op.attrs["offsets"] is None:
                return True
            if _covers(_part(op), part):
                over.append(op)
            elif self._read(op.results[0], part, over, seen):
                return True
        return any([self._read(x, part, over, seen) for x in self.goes.get(v.id, ())])

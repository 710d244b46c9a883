"""Writes to explicit buffers in vain: overwritten before anything reads them, or never read. Found without running them.

A write makes new contents of its buffer (see `ir/building/buffers.py`), so who reads it is who uses these contents. Only
what no path reads is told: a first value that a loop of no iteration would leave is read behind the loop. A fault is a write
that one other write covers. What is legal and costs time: a write that is overwritten in part, or by several together, as
one that first fills the buffer with zeros; in a loop, a write of which only that of the last iteration is read.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ...interpreter.faults import place
from ...ir.building.buffers import moved
from ...ir.definitions import makers
from ...ir.program import Op, Program, Region
from ...messages import Message, fault, time_hint
from ..access import Watcher
from .contents import ContentsFlow, Reached, part_of

MOST_LINES = 3  # that one message names


class DeadMoves(Watcher):
    """Has a message for each write to an explicit buffer that nothing reads."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def found(self) -> tuple[Message, ...]:
        if not self.program.buffers:
            return ()
        found = _Found(self.program)
        return tuple(m for op, loops in found.moves if (m := found.message(op, loops)) is not None)


class _Found:
    """moves: the writes in their order, each with the loops around it, the innermost first."""

    def __init__(self, program: Program) -> None:
        self.buffers = program.buffers
        self.flow = ContentsFlow(program)
        self.made, _ = makers(program.walk())
        self.moves: list[tuple[Op, tuple[Op, ...]]] = []
        self._region(program.body, ())

    def _region(self, region: Region, loops: tuple[Op, ...]) -> None:
        for op in region.ops:
            if op.kind == "move":
                self.moves.append((op, loops))
            for inner in op.regions:
                self._region(inner, loops if op.kind == "if" else (op, *loops))

    def message(self, op: Op, loops: tuple[Op, ...]) -> Message | None:
        written = self._written(op)
        fate = self.flow.fate({op.results[0].id: written})
        what = f"the {prod(moved(op).shape)} elements that are written to {op.results[0].name} here"
        unread = 0 if part_of(op) is None else int((fate.overwritten & ~fate.read & written).sum())
        read = bool((fate.read & written).any())
        over = [] if read else [o for o in fate.over or self._behind(op) if self._covers(o, op)]
        if over:
            return fault(
                f"{what} are overwritten at line {over[0].loc.line} before anything reads them; read them before, or leave "
                "this write out",
                place(op),
            )
        if unread:
            return time_hint(_in_part(what, unread, fate), place(op))
        if read:
            return self._in_loop(op, loops, what, written)
        return time_hint(f"{what} are read by nothing; leave this write out", place(op))

    def _in_loop(self, op: Op, loops: tuple[Op, ...], what: str, written: np.ndarray) -> Message | None:
        """Of a write whose contents are read: whether the next iteration overwrites them before that."""
        for loop in loops:
            first = self.flow.fate({op.results[0].id: written}, within=loop)
            if first.read.any() or not first.goes_on or self._once(loop):
                continue
            if not self.flow.fate(first.goes_on).read.any():
                text = (
                    f"{what} are overwritten in the next iteration of the loop at line {loop.loc.line} before anything "
                    "reads them: only those of the last one are read, behind it; write them there, or read them in the loop"
                )
                return time_hint(text, place(op))
        return None

    def _once(self, loop: Op) -> bool:
        """Whether a loop is known to have one iteration at most."""
        if loop.kind != "for":
            return False
        ends = [self.made.get(v.id) if v is not None else None for v in loop.args[:3]]
        if not all(x is not None and x.kind == "const" for x in ends):
            return False
        low, high, step = (x.attrs["value"] for x in ends if x is not None)
        return len(range(low, high, step)) < 2 if step else False

    def _written(self, op: Op) -> np.ndarray:
        """The elements of its buffer that a write may write to."""
        out = np.zeros(op.results[0].shape, bool)
        part = part_of(op)
        out[... if part is None else part] = True
        return out

    def _behind(self, op: Op) -> list[Op]:
        """Writes to the same buffer that come behind this one in the program."""
        ops, alloc = [o for o, _ in self.moves], self.buffers.get(op.results[0].id)
        behind = ops[ops.index(op) + 1 :] if alloc is not None else []
        return [o for o in behind if self.buffers.get(o.results[0].id) is alloc]

    def _covers(self, other: Op, op: Op) -> bool:
        """Whether another write to the same buffer writes to all that this one does."""
        if part_of(other) is None or part_of(op) is None:
            return False
        return not (self._written(op) & ~self._written(other)).any()


def _in_part(what: str, unread: int, fate: Reached) -> str:
    lines = sorted({o.loc.line for o in fate.over})
    where = f"line {lines[0]}" if len(lines) == 1 else f"lines {', '.join(map(str, lines[:MOST_LINES]))}"
    return f"{unread} of {what} are overwritten at {where} before anything reads them; write only the others"

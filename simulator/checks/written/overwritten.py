"""Stores to global memory in vain: the same program stores to the same elements again, and nobody has read them between.

It is legal and what stays is defined, so it costs time and is no fault. Told is a store of which all elements are
overwritten: a block that is moved back to end with the tensor stores a part of them twice on purpose. A store that an
atomic, a flag or a barrier makes known to others before it is overwritten is none: it is theirs to read.
"""

from __future__ import annotations

import bisect
from typing import Any

import numpy as np

from ...interpreter.faults import place
from ...interpreter.tensors import Tensor
from ...ir.pointer_roots import pointer_roots
from ...ir.program import Op, Program, Region
from ...messages import Message, time_hint
from ..access import Access, Watcher
from ..clocks import releases
from ..memory.areas import Area, Areas, finer
from ._touched import clear, store

MOST_STORES = 1 << 25  # of a program each; a launch with more is not followed to its end


class OverwrittenUnread(Watcher):
    """Follows stores; only where a program may store to one place twice."""

    def __init__(self, program: Program) -> None:
        self.twice, self.once = _stored(program)
        self.parameters = set(program.params)
        self.on = bool(self.once)  # whether any memory is followed
        self.memory: Areas[np.ndarray | None] = Areas(self._new, self._finer)
        self.stores: list[tuple[int, Access]] = []  # number of the first lane's store, and what it is
        self.count = 1
        self.programs = np.zeros(1024, np.int64)
        self.counts = np.zeros((1024, 3), np.uint32)
        self.told: dict[
            int, list[int]
        ] = {}  # by program: numbers of stores before which it told others of all so far

    def _new(self, area: Area[np.ndarray | None]) -> np.ndarray | None:
        """The last store of each unit: none yet. None where a program stores once at most."""
        twice = self.twice & area.names or len(self.once & area.names) > 1
        return np.zeros(area.units, np.uint32) if twice or not area.names <= self.parameters else None

    def _finer(self, last: np.ndarray | None, times: int) -> np.ndarray | None:
        self.counts[:, :2] *= times  # of all stores, as each one's two are compared
        return finer(last, times)

    def tensors(self, given: list[Tensor]) -> None:
        if self.on:
            self.memory.add(given)
            self.on = bool(self.twice) or any(area.map is not None for area in self.memory.areas)

    def access(self, a: Access) -> None:
        if not (self.on and a.tensor.elements):
            return
        if releases(a.op):
            self._tell(a.programs)
        area, *at = self.memory.placed(a.tensor)
        if area.map is None:
            return
        if a.what != "store":
            clear(area.map, *at, a.runs)  # what was stored last was of use
            return
        first = self._numbered(a)
        store(area.map, *at, a.runs, first, self.programs, self.counts)

    def synced(self, op: Op, event: Any, programs: np.ndarray, part: str) -> None:
        self._tell(programs)

    def _tell(self, programs: np.ndarray) -> None:
        for p in programs.tolist():
            numbers = self.told.setdefault(p, [0])
            if numbers[-1] != self.count:
                numbers.append(self.count)

    def _was_told(self, number: int, by: int) -> bool:
        """Whether the program told others between a store and the one that overwrote it."""
        numbers = self.told.get(int(self.programs[number]), [])
        return bisect.bisect_right(numbers, number) < bisect.bisect_right(numbers, by)

    def _numbered(self, a: Access) -> int:
        """The number of the store of the first lane."""
        first, self.count = self.count, self.count + len(a.programs)
        self.on = self.count < MOST_STORES
        if self.count > len(self.programs):
            room = 2 * self.count
            self.programs = np.concatenate([self.programs, np.zeros(room - len(self.programs), np.int64)])
            self.counts = np.concatenate([self.counts, np.zeros((room - len(self.counts), 3), np.uint32)])
        self.programs[first : self.count] = a.programs
        self.stores.append((first, a._replace(region=None, where=None, mask=None, offsets=None)))
        return first

    def found(self) -> tuple[Message, ...]:
        written, again, by = self.counts[: self.count].T
        told: dict[tuple[int, int, str], Message] = {}
        firsts = [first for first, _ in self.stores]
        for number in np.flatnonzero((written > 0) & (again == written)).tolist():
            one, other = (
                self.stores[int(np.searchsorted(firsts, n, "right")) - 1][1]
                for n in (number, int(by[number]))
            )
            key = one.op.id, other.op.id, one.tensor.name
            if key not in told and not self._was_told(number, int(by[number])):
                told[key] = self._message(one, other, int(self.programs[number]))
        return tuple(told.values())

    def _message(self, one: Access, other: Access, number: int) -> Message:
        text = (
            f"all that {one.site.program(number)} stores to {one.tensor.name!r} here it stores to again at line "
            f"{other.op.loc.line}, and nobody loads it between: the first store is in vain; leave it out, or store once "
            "behind the loop"
        )
        return time_hint(text, place(one.op), (number,))


def _stored(program: Program) -> tuple[set[str], set[str]]:
    """Parameters to which a program reaches two stores, or one in a loop, and those to which it stores at all; all of
    them through other addresses.
    """
    roots = pointer_roots(program)
    once: set[str] = set()
    twice: set[str] = set()
    for op, looped in _stores(program.body, False):
        names = set(roots.get(op.operand(0).id) or program.params)
        twice |= names if looped else names & once
        once |= names
    return twice, once


def _stores(region: Region, looped: bool) -> list[tuple[Op, bool]]:
    out = []
    for op in region.ops:
        if op.kind == "store":
            out.append((op, looped))
        for inner in op.regions:
            out += _stores(inner, looped or op.kind in ("for", "while"))
    return out

"""What each program knows to be over in the others: vector clocks, which atomics and barriers hand on.

A program's time is cut into epochs, each of which ends where it releases. An atomic releases at its address what its program
did before; where its old value is used it acquires what others released there, and so does a load that a loop waits with.
`sem` lets an atomic do one of both ("acquire", "release") or neither ("relaxed").
Numbers that an atomic hands out may go to other programs than they did (see ir/work_queues.py), so `TurnClocks` take what
is done for one of them as the work of a program that draws only this one.
What a program did in epoch e is ordered before what another one does if the clock of the other has more than e for it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np

from ..ir.program import Op, Program, Region

MOST_PROGRAMS = (
    1 << 16
)  # of a launch whose clocks are kept: a program then costs 256 KiB at each address that it releases
MOST_AT_ONCE = 1 << 12  # where all of them run at once, each with a clock of its own
MOST_BYTES = 1 << 30  # of what was released; addresses beyond that share one clock
EVER = np.iinfo(np.int32).max
EPOCHS = (1 << 16) - 1  # that are told apart
NO_BASE = np.zeros(1, np.int64)
_NO_CLOCK = np.empty((0, 0), np.int32)
UNORDERED = NO_BASE, _NO_CLOCK, False


def waiting_loads(program: Program) -> frozenset[int]:
    """Loads (by id) of scalars in a `while`, and those before it that a carried value begins with: with them a program
    waits for what others do.
    """
    made = {r.id: op for op in program.walk() for r in op.results}

    def before(op: Op) -> list[int]:
        pairs = zip(op.args, op.regions[1].yields, strict=True)
        both = [(made.get(v.id), made.get(y.id)) for v, y in pairs if v is not None]
        return [v.id for v, y in both if v and y and v.kind == y.kind == "load" and not v.results[0].shape]

    def inside(region: Region, waits: bool) -> list[int]:
        found = [op.id for op in region.ops if waits and op.kind == "load" and not op.results[0].shape]
        for op in region.ops:
            found += before(op) if op.kind == "while" else []
            for r in op.regions:
                found += inside(r, op.kind == "while" or (waits and op.kind != "for"))
        return found

    return frozenset(inside(program.body, False))


def acquires(op: Op, waits: frozenset[int]) -> bool:
    """Whether what an access reads tells its program how far others are."""
    used = op.kind == "atomic" and bool(op.attrs.get("result_used", True))
    return op.id in waits or (used and op.attrs["sem"] in ("acquire", "acq_rel"))


def polls(op: Op) -> bool:
    """Whether a load that waits may be answered with what was read before."""
    return op.kind == "load" and not (op.attrs.get("volatile") or op.attrs.get("cache") == ".cv")


def releases(op: Op) -> bool:
    """Whether what an atomic writes tells others how far its program is."""
    return op.kind == "atomic" and op.attrs["sem"] in ("release", "acq_rel")


class Released:
    """What was released at each address of a place, as rows of clocks; addresses beyond `most` share one row."""

    def __init__(self, most: int = MOST_BYTES // 64) -> None:
        self.most = max(1, most)
        self.rows: dict[Hashable, np.ndarray] = {}

    def at(self, place: Hashable, at: Hashable) -> Iterator[np.ndarray]:
        """What who acquires there learns. at: None for several addresses."""
        for key in ((place, None, "all"),) if at is None else ((place, at), (place, None)):
            if key in self.rows:
                yield self.rows[key]

    def add(self, place: Hashable, at: Hashable, row: np.ndarray) -> None:
        at = at if (place, at) in self.rows or len(self.rows) < self.most else None
        for key in ((place, at), (place, None, "all")):
            known = self.rows.get(key)
            self.rows[key] = row.copy() if known is None else np.maximum(known, row, out=known)


class Clocks:
    """The clocks of the programs of a launch. together: they all run at once, else one after another."""

    each = 1  # clocks of a program

    def __init__(self, programs: int, together: bool) -> None:
        self.together = together
        self.epochs = np.zeros(programs, np.int32)
        self.rows = np.zeros((programs if together else 1, programs), np.int32)
        self.running = -1
        self.kept: dict[int, np.ndarray] = {}  # rows of programs that wait while others run
        self.released = Released(MOST_BYTES // (4 * programs))

    def now(self, programs: np.ndarray) -> tuple[Any, tuple[Any, ...]]:
        """The epochs of programs, and what orders their accesses as `_element_map.visit` takes it."""
        if self.together:
            return self.epochs[programs], (NO_BASE, self.rows[programs], False)
        program = int(programs[0])
        self._row(program)
        return int(self.epochs[program]), (NO_BASE, self.rows, False)

    def _row(self, program: int) -> np.ndarray:
        if self.together:
            return np.asarray(self.rows[program])
        if program != self.running:
            self.running = program
            self.rows[:] = self.kept.pop(program, 0)
        return np.asarray(self.rows[0])

    def keep(self, programs: np.ndarray) -> None:
        """They go on later, and others meanwhile."""
        if not self.together:
            for p in np.unique(programs).tolist():
                self.kept[p] = self._row(p).copy()
            self.running = -1

    def acquire(self, program: int, place: Hashable, at: Hashable) -> None:
        """Take over what was released at an address of a tensor. at: None for several addresses."""
        row = self._row(program)
        for found in self.released.at(place, at):
            np.maximum(row, found, out=row)

    def heard(self, program: int, place: Hashable, at: Hashable) -> bool:
        """Whether another program has released there."""
        found = self.released.rows.get((place, at))
        return found is not None and bool((np.flatnonzero(found) // self.each != program).any())

    def release(self, program: int, place: Hashable, at: Hashable) -> None:
        """End an epoch, for those who acquire at that address."""
        row, epoch = self._row(program), self.epochs[program] + 1
        self.epochs[program] = epoch
        row[program] = epoch
        self.released.add(place, at, row)

    def barrier(self, programs: np.ndarray) -> None:
        """All of them go on when all have come."""
        self.epochs[programs] += 1
        self.rows[programs, programs] = self.epochs[programs]
        self.rows[programs] = self.rows[programs].max(axis=0)


class TurnClocks(Clocks):
    """The clocks of programs that draw their work. Agent `programs` + p is program p with the number it has drawn last.

    It knows what came before the first draws, and what it was told of since its own one. Program p knows all that it did.
    """

    def __init__(self, programs: int) -> None:
        super().__init__(programs, together=False)
        self.programs = programs
        self.turns = Clocks(programs, together=False)
        self.begun = np.zeros(programs, np.int32)  # the epoch in which the turn of each program began
        self.first: dict[int, np.ndarray] = {}  # what a program knew at its first draw

    def now(self, programs: np.ndarray) -> tuple[Any, tuple[Any, ...]]:
        drawn, program = divmod(int(programs[0]), self.programs)
        known = self._row(program)
        row = np.concatenate([known, self.turns._row(program) if drawn else known])
        row[program] = EVER
        if not drawn:
            row[self.programs + program] = EVER
        turn = min(int(self.begun[program]), EPOCHS) if drawn else 0
        return int(self.epochs[program]), (NO_BASE, row[None], False, turn)

    def keep(self, programs: np.ndarray) -> None:
        super().keep(programs)
        self.turns.keep(programs)

    def acquire(self, program: int, place: Hashable, at: Hashable) -> None:
        super().acquire(program, place, at)
        self.turns.acquire(program, place, at)

    def release(self, program: int, place: Hashable, at: Hashable) -> None:
        self.turns.epochs[program] = self.epochs[program]
        super().release(program, place, at)
        self.turns.release(program, place, at)

    def draw(self, program: int, place: Hashable, at: Hashable, releases: bool, begins: bool) -> None:
        """Begin a turn with a number of that address, which tells others of no work but that before the first draw.

        begins: whether a loop over such numbers begins.
        """
        if releases:
            super().release(program, place, at)
        else:
            self.epochs[program] += 1
        self.begun[program] = self.epochs[program]
        row = self.turns._row(program)
        if program in self.first and not begins:
            row[:] = self.first[program]
            self.turns.acquire(program, place, at)
            return
        row[program] = self.epochs[program]
        self.first[program] = row.copy()
        if releases:
            self.turns.released.add(place, at, row)

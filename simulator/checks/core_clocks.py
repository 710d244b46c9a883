"""What the Cube core and the Vector cores of a program know to be over in each other: flags, barriers, tiles that pass.

A flag counts, so the n-th wait for an event goes on with the n-th set of it: it orders what the sender did before that set,
on its pipe. What the other pipes did is over up to the last access of that pipe, which may have needed it. A wait that
blocks a pipe behind MTE2 lets loads go on.
Both Vector cores of a program pass each flag: the Cube core waits for both of them, and they for the Cube core. Of each
other they know what a barrier tells them, an atomic, or what has come back by way of the Cube core.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from ..ir.passes.split_cores import CORES, CUBE, VECTOR, barrier_cores
from ..ir.program import Op
from .clocks import Released

Key = tuple[str, int]  # who sets, event
LOADS, STORES = range(2)  # what an access is; atomics store
SEATS = 4  # of the cores of a program: the Cube core, each Vector core, and both where they do the same
CUBE_SEAT, FIRST_SEAT, BOTH_SEAT = 0, 1, 3
CUBE_CORE, VECTOR_CORES = (CORES.index(core) for core in (CUBE, VECTOR))
ROWS = slice(0, 1), slice(1, 3)  # of `known`: the cores of each kind
COLUMNS = slice(0, 2), slice(2, 2 * SEATS)
FRONT = ("MTE2", "S", "ALL")  # blocked, they hold up loads
BACK = ("MTE3", "FIX")  # they store
EVER = np.iinfo(np.int32).max


class _Flag:
    """The sets of one event that are still to be waited for: their number, and what is over with each."""

    def __init__(self, programs: int) -> None:
        self.sets = np.zeros(programs, np.int32)
        self.waits = np.zeros(programs, np.int32)
        self.ends: dict[int, np.ndarray] = {}  # number of the set -> epochs, (programs, agents)
        self.pending: dict[int, int] = {}  # programs that have not yet waited for it
        self.last: Op | None = None

    def set(self, op: Op, programs: np.ndarray, over: np.ndarray) -> None:
        self.last = op
        for k, which in _alike(self.sets[programs]):
            row = self.ends.setdefault(k, np.zeros((len(self.sets), 2 * SEATS), np.int32))
            row[programs[which]] = over[which]
            self.pending[k] = self.pending.get(k, 0) + len(which)
        self.sets[programs] += 1

    def wait(self, programs: np.ndarray) -> np.ndarray:
        """The first epochs that need not be over, (programs, agents)."""
        out = np.zeros((len(programs), 2 * SEATS), np.int32)
        for k, which in _alike(self.waits[programs]):
            if k in self.ends:
                out[which] = self.ends[k][programs[which]]
                self.pending[k] -= len(which)
                if not self.pending[k]:
                    del self.ends[k], self.pending[k]
        self.waits[programs] += 1
        return out


def _alike(numbers: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Each number and where it stands."""
    for k in np.unique(numbers):
        yield int(k), np.flatnonzero(numbers == k)


class CoreClocks:
    """For each program and kind of core its epoch, and for each core the first epochs of the others that need not be over.

    Agents are 8 * program + 2 * seat + (LOADS or STORES). An epoch ends at a set, and where stores follow loads or loads
    stores; those of both Vector cores end together. loose: whether pipes store otherwise than by stores, so that a set of
    theirs is taken to follow all loads.
    """

    def __init__(self, programs: int, loose: bool = False) -> None:
        self.loose = loose
        self.epochs = np.zeros((programs, 2), np.int32)
        self.known = np.zeros((programs, 3, 2, 2 * SEATS), np.int32)  # program, seat, what it does; of whom
        for seat in range(3):
            self.known[:, seat, :, 2 * seat : 2 * seat + 2] = EVER
        self.last = np.full((programs, 2), -1, np.int8)  # LOADS or STORES
        self.begun = np.zeros((programs, 2, 2), np.int32)  # epoch in which the last loads and stores began
        self.flags: dict[Key, _Flag] = {}
        self.barriers: dict[tuple[str, str], int] = {}  # mode, part -> how many it has passed
        self.released = Released()
        self.releasing: dict[Hashable, int] = {}  # address -> the program that released there, -1 for several

    def order(
        self, programs: np.ndarray, seats: np.ndarray, what: int, same: bool
    ) -> tuple[np.ndarray, np.ndarray, bool]:
        """What orders accesses of these cores, as `_element_map.visit` takes it; other programs are not asked about.

        same: whether it does not matter which of two stores that both Vector cores make alike comes last.
        """
        rows = np.ascontiguousarray(self.known[programs, seats, what])
        if same:
            rows[:, 2 * BOTH_SEAT + STORES] = EVER
        return 2 * SEATS * programs, rows, True

    def used(self, programs: np.ndarray, core: int, what: int) -> None:
        """Loads or stores of that kind of core come next."""
        new = np.unique(programs[self.last[programs, core] != what])
        if len(new):
            self.epochs[new, core] += 1
            self.begun[new, core, what] = self.epochs[new, core]
            self.last[new, core] = what

    def passed(self, op: Op, event: Any, programs: np.ndarray, part: str) -> None:
        """A flag or a barrier; part: the core whose part of the program passes it, "" if the parts run as one."""
        if op.name == "all":
            self._barrier(op.attrs["mode"], np.unique(programs), part)
            return
        numbers, first = np.unique(programs, return_index=True)
        events = np.broadcast_to(event, programs.shape)[first]
        for e, which in _alike(events):
            key = op.attrs["sender"], e
            flag = self.flags.setdefault(key, _Flag(len(self.epochs)))
            self._flag(op, flag, numbers[which])

    def _flag(self, op: Op, flag: _Flag, programs: np.ndarray) -> None:
        sender, receiver = (CORES.index(op.attrs[x]) for x in ("sender", "receiver"))
        if op.name == "set":
            self.epochs[programs, sender] += 1
            flag.set(op, programs, self._over(programs, sender, op.attrs["sender_pipe"]))
            return
        blocked = (LOADS, STORES) if op.attrs["receiver_pipe"] in FRONT else (STORES,)
        self._hear(programs, receiver, flag.wait(programs), blocked)

    def _hear(
        self, programs: np.ndarray, core: int, over: np.ndarray, blocked: Sequence[int] = (LOADS, STORES)
    ) -> None:
        """That kind of core learns what is over, (programs, agents)."""
        for what in blocked:
            rows = self.known[programs, ROWS[core], what]
            self.known[programs, ROWS[core], what] = np.maximum(rows, over[:, None])

    def _over(self, programs: np.ndarray, core: int, pipe: str = "ALL") -> np.ndarray:
        """The first epochs that need not be over when that pipe has come so far, (programs, agents): also of those whom it
        waited for.
        """
        heard = LOADS if pipe == "MTE2" else STORES
        over = self.known[programs, ROWS[core], heard].max(axis=1)
        over[:, COLUMNS[core]] = self.epochs[programs, core][:, None]
        before = self.begun[programs, core]
        if pipe in BACK and not self.loose:
            over[:, COLUMNS[core]][:, LOADS::2] = before[:, STORES, None]
        elif pipe not in (*BACK, "ALL", "S"):
            over[:, COLUMNS[core]][:, STORES::2] = before[:, LOADS, None]
        return np.asarray(over)

    def _barrier(self, mode: str, programs: np.ndarray, part: str) -> None:
        """Between the Cube core and the Vector cores only that of all cores. The part that is through first orders all."""
        cores = barrier_cores(mode)
        if part not in ("", *cores):
            return
        mine = self.barriers[mode, part] = self.barriers.get((mode, part), 0) + 1
        if mine > max((self.barriers.get((mode, c), 0) for c in cores if c != part), default=0):
            meeting = [CORES.index(core) for core in cores]
            for core in meeting:
                self.epochs[programs, core] += 1
            over = np.maximum.reduce([self._over(programs, core) for core in meeting])
            for core in meeting:
                self._hear(programs, core, over)

    def handed_over(self, programs: np.ndarray, sender: int) -> None:
        """The other kind of core goes on with something that the sender has made."""
        programs = np.unique(programs)
        self.epochs[programs, sender] += 1
        self._hear(programs, 1 - sender, self._over(programs, sender))

    def acquire(self, program: int, seat: int, place: Hashable, at: Hashable) -> None:
        """A Vector core takes over what those of its program released at an address; what came by way of other programs
        is not followed and may be all that they released.
        """
        row = self.known[program, seat]
        others = at is None or self.releasing.get((place, at), program) != program
        for key in ((program, place), at), *([(program, None)] if others else []):
            for found in self.released.at(*key):
                np.maximum(row, found, out=row)
        other = 2 * (3 - seat)
        row[:, 2 * BOTH_SEAT :] = row[:, other : other + 2]

    def release(self, program: int, seat: int, place: Hashable, at: Hashable) -> None:
        """End an epoch, for those who acquire at that address."""
        self.epochs[program, VECTOR_CORES] += 1
        row = self.known[program, seat, STORES].copy()
        row[2 * seat : 2 * seat + 2] = self.epochs[program, VECTOR_CORES]
        self.released.add((program, place), at, row)
        self.released.add(program, None, row)
        first = self.releasing.setdefault((place, at), program)
        self.releasing[place, at] = program if first == program else -1

    def heard(self, program: int, core: int) -> int:
        """The first epoch of the other kind of core that it has not heard of; 0 if it has heard nothing."""
        return int(self.known[program, ROWS[core], :, COLUMNS[1 - core]].max())

    def left_over(self) -> Iterator[tuple[Op, int, np.ndarray]]:
        """Sets that nobody waited for: the last one, its event, and how many there are in each program."""
        for (_, event), flag in self.flags.items():
            more = flag.sets - flag.waits
            if flag.last is not None and (more > 0).any():
                yield flag.last, event, more

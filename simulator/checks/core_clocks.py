"""What the Cube core and the Vector cores of a program know to be over in each other: flags, barriers, tiles that pass.

A flag counts, so the n-th wait for an event goes on with the n-th set of it: it orders what the sender did before that set.
Both Vector cores of a program count as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..ir.passes.split_cores import CORES
from ..ir.program import Op

Key = tuple[str, int]  # who sets, event


class _Flag:
    """The sets of one event that are still to be waited for: their number, and the epoch of the sender that each ends."""

    def __init__(self, programs: int) -> None:
        self.sets = np.zeros(programs, np.int32)
        self.waits = np.zeros(programs, np.int32)
        self.ends: dict[int, np.ndarray] = {}  # number of the set -> epoch, for each program
        self.pending: dict[int, int] = {}  # programs that have not yet waited for it
        self.last: Op | None = None

    def set(self, op: Op, programs: np.ndarray, epochs: np.ndarray) -> None:
        self.last = op
        for k, which in _alike(self.sets[programs]):
            row = self.ends.setdefault(k, np.zeros(len(self.sets), np.int32))
            row[programs[which]] = epochs[which]
            self.pending[k] = self.pending.get(k, 0) + len(which)
        self.sets[programs] += 1

    def wait(self, programs: np.ndarray) -> np.ndarray:
        """The epochs that are over; 0 ends none."""
        out = np.full(len(programs), -1, np.int32)
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
    """For each program and core: its epoch, and the first epoch of the other core that need not be over."""

    def __init__(self, programs: int) -> None:
        self.epochs = np.zeros((programs, 2), np.int32)
        self.known = np.zeros((programs, 2, 2), np.int32)  # program, core, of which core
        self.flags: dict[Key, _Flag] = {}
        self.barriers: dict[str, int] = {}

    def order(self, programs: np.ndarray, core: int) -> tuple[np.ndarray, np.ndarray, bool]:
        """What orders accesses of that core, as `visit_boxes` takes it; other programs are not asked about."""
        return 2 * programs, np.ascontiguousarray(self.known[programs, core]), True

    def passed(self, op: Op, event: Any, programs: np.ndarray, part: str) -> None:
        """A flag or a barrier; part: the core whose part of the program passes it, "" if the parts run as one."""
        if op.name == "all":
            self._barrier(op, programs, part)
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
            flag.set(op, programs, self.epochs[programs, sender])
            self.epochs[programs, sender] += 1
            return
        over = flag.wait(programs) + 1
        self.known[programs, receiver, sender] = np.maximum(self.known[programs, receiver, sender], over)

    def _barrier(self, op: Op, programs: np.ndarray, part: str) -> None:
        """Only one of all cores is between the cores of a program. The part that is through first orders both."""
        if op.attrs["mode"] != "all":
            return
        mine = self.barriers[part] = self.barriers.get(part, 0) + 1
        if not part or mine > max((n for other, n in self.barriers.items() if other != part), default=0):
            for core in range(2):
                self.handed_over(programs, core)

    def handed_over(self, programs: np.ndarray, sender: int) -> None:
        """The other core goes on with something that the sender has made."""
        programs = np.unique(programs)
        self.epochs[programs, sender] += 1
        self.known[programs, 1 - sender, sender] = self.epochs[programs, sender]

    def left_over(self) -> Iterator[tuple[Op, int, np.ndarray]]:
        """Sets that nobody waited for: the last one, its event, and how many there are in each program."""
        for (_, event), flag in self.flags.items():
            more = flag.sets - flag.waits
            if flag.last is not None and (more > 0).any():
                yield flag.last, event, more

"""What the Cube core and the Vector cores of a program know to be over in each other: flags, barriers, tiles that pass.

A flag counts, so the n-th wait for an event goes on with the n-th set of it: it orders what the sender did before that set,
on its pipe. What the other pipes did is over up to the last access of that pipe, which may have needed it. A wait that
blocks a pipe behind MTE2 lets loads go on.
Both Vector cores of a program count as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..ir.passes.split_cores import CORES
from ..ir.program import Op

Key = tuple[str, int]  # who sets, event
LOADS, STORES = range(2)  # what an access is; atomics store
FRONT = ("MTE2", "S", "ALL")  # blocked, they hold up loads
BACK = ("MTE3", "FIX")  # they store
EVER = np.iinfo(np.int32).max


class _Flag:
    """The sets of one event that are still to be waited for: their number, and what of the sender is over with each."""

    def __init__(self, programs: int) -> None:
        self.sets = np.zeros(programs, np.int32)
        self.waits = np.zeros(programs, np.int32)
        self.ends: dict[int, np.ndarray] = {}  # number of the set -> epochs, (programs, LOADS and STORES)
        self.pending: dict[int, int] = {}  # programs that have not yet waited for it
        self.last: Op | None = None

    def set(self, op: Op, programs: np.ndarray, over: np.ndarray) -> None:
        self.last = op
        for k, which in _alike(self.sets[programs]):
            row = self.ends.setdefault(k, np.zeros((len(self.sets), 2), np.int32))
            row[programs[which]] = over[which]
            self.pending[k] = self.pending.get(k, 0) + len(which)
        self.sets[programs] += 1

    def wait(self, programs: np.ndarray) -> np.ndarray:
        """The first epochs that need not be over, (programs, 2)."""
        out = np.zeros((len(programs), 2), np.int32)
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
    """For each program and core: its epoch, and the first epoch of the other core that need not be over.

    Agents are 4 * program + 2 * core + (LOADS or STORES). An epoch ends at a set, and where stores follow loads or loads
    stores. loose: whether pipes store otherwise than by stores, so that a set of theirs is taken to follow all loads.
    """

    def __init__(self, programs: int, loose: bool = False) -> None:
        self.loose = loose
        self.epochs = np.zeros((programs, 2), np.int32)
        self.known = np.zeros(
            (programs, 2, 2, 4), np.int32
        )  # program, core, what it does; of which core and what
        for core in range(2):
            self.known[:, core, :, 2 * core : 2 * core + 2] = EVER
        self.last = np.full((programs, 2), -1, np.int8)  # LOADS or STORES
        self.begun = np.zeros((programs, 2, 2), np.int32)  # epoch in which the last loads and stores began
        self.flags: dict[Key, _Flag] = {}
        self.barriers: dict[str, int] = {}

    def order(self, programs: np.ndarray, core: int, what: int) -> tuple[np.ndarray, np.ndarray, bool]:
        """What orders accesses of that core, as `visit_boxes` takes it; other programs are not asked about."""
        return 4 * programs, np.ascontiguousarray(self.known[programs, core, what]), True

    def used(self, programs: np.ndarray, core: int, what: int) -> None:
        """Loads or stores of that core come next."""
        new = np.unique(programs[self.last[programs, core] != what])
        if len(new):
            self.epochs[new, core] += 1
            self.begun[new, core, what] = self.epochs[new, core]
            self.last[new, core] = what

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
            self.epochs[programs, sender] += 1
            flag.set(op, programs, self._over(programs, sender, op.attrs["sender_pipe"]))
            return
        over = flag.wait(programs)
        blocked = (LOADS, STORES) if op.attrs["receiver_pipe"] in FRONT else (STORES,)
        for what in blocked:
            row = self.known[programs, receiver, what]
            row[:, 2 * sender : 2 * sender + 2] = np.maximum(row[:, 2 * sender : 2 * sender + 2], over)
            self.known[programs, receiver, what] = row

    def _over(self, programs: np.ndarray, core: int, pipe: str) -> np.ndarray:
        """The first epochs that need not be over when that pipe has come so far, (programs, LOADS and STORES)."""
        over = np.stack([self.epochs[programs, core]] * 2, axis=1)
        if pipe in BACK and not self.loose:
            over[:, LOADS] = self.begun[programs, core, STORES]
        elif pipe not in (*BACK, "ALL", "S"):
            over[:, STORES] = self.begun[programs, core, LOADS]
        return over

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
        now = self.epochs[programs, sender][:, None, None]
        self.known[programs, 1 - sender, :, 2 * sender : 2 * sender + 2] = now

    def left_over(self) -> Iterator[tuple[Op, int, np.ndarray]]:
        """Sets that nobody waited for: the last one, its event, and how many there are in each program."""
        for (_, event), flag in self.flags.items():
            more = flag.sets - flag.waits
            if flag.last is not None and (more > 0).any():
                yield flag.last, event, more

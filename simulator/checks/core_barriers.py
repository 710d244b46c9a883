"""What the cores of programs know of each other where a barrier is of one kind of cores only.

Such a barrier orders what these cores did, and what they had heard of the other core of their program before: by a flag or
a tile. So each core of each program has a clock of its own, and takes over the other's where one of these passes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Any

import numpy as np

from ..ir.passes.split_cores import CORES, barrier_cores
from ..ir.program import Op, Program
from .access import Access
from .clocks import EVER, NO_BASE, Clocks
from .core_uses import CoreUses, by_hand, core_uses

MODES = ("all_cube", "all_vector")


def has_core_barrier(program: Program) -> bool:
    """Whether one kind of cores waits without the other."""
    return any(op.name == "all" and op.attrs["mode"] in MODES for op in program.of_kind("sync"))


class CoreBarrierClocks(Clocks):
    """Clocks of agents: 2 * program + core. Accesses of one program are taken as ordered: see `cores.py` for those."""

    each = 2

    def __init__(self, program: Program, programs: int) -> None:
        super().__init__(2 * programs, together=True)
        self.uses: CoreUses = core_uses(program)
        self.by_hand = by_hand(program)
        self.sets: dict[tuple[int, str, int], deque[np.ndarray]] = {}  # program, who sets, event
        self.barriers: dict[tuple[str, str], int] = {}  # mode, part -> how many it has passed

    def agents(self, a: Access, names: set[str]) -> np.ndarray:
        """Who makes an access of one core. names: the arguments that lie there."""
        here = CORES.index(self.uses.core[a.op.id])
        if not self.by_hand and names & self.uses.names[CORES[1 - here]]:
            self.handed_over(a.programs, 1 - here)  # by a flag of the compiler's own
        return np.asarray(2 * a.programs + here)

    def now(self, programs: np.ndarray) -> tuple[Any, tuple[Any, ...]]:
        rows = self.rows[programs]
        rows[np.arange(len(programs)), programs ^ 1] = EVER
        return self.epochs[programs], (NO_BASE, rows, False)

    def passed(self, op: Op, event: Any, programs: np.ndarray, part: str) -> None:
        """A flag or a barrier, which all programs pass together; part: as of `Watcher.synced`."""
        programs = np.unique(programs)
        if op.name == "all":
            self._barrier(op.attrs["mode"], programs, part)
            return
        sender, receiver = (CORES.index(op.attrs[x]) for x in ("sender", "receiver"))
        if op.name == "set":
            self._end(2 * programs + sender)
        for p in programs.tolist():
            sets = self.sets.setdefault((p, op.attrs["sender"], int(event)), deque())
            if op.name == "set":
                sets.append(self.rows[2 * p + sender].copy())
            elif sets:
                row = self.rows[2 * p + receiver]
                np.maximum(row, sets.popleft(), out=row)

    def _barrier(self, mode: str, programs: np.ndarray, part: str) -> None:
        """The part that is through first orders all that wait."""
        cores = barrier_cores(mode)
        if mode == "all_sub_vector" or part not in ("", *cores):
            return
        mine = self.barriers[mode, part] = self.barriers.get((mode, part), 0) + 1
        if mine > max((self.barriers.get((mode, c), 0) for c in cores if c != part), default=0):
            self.barrier(np.concatenate([2 * programs + CORES.index(c) for c in cores]))

    def acquire(self, program: int, place: Hashable, at: Hashable) -> None:
        for core in range(2):
            super().acquire(2 * program + core, place, at)

    def release(self, program: int, place: Hashable, at: Hashable) -> None:
        for core in range(2):
            super().release(2 * program + core, place, at)

    def handed_over(self, programs: np.ndarray, sender: int) -> None:
        """The other core goes on with something that the sender has made."""
        programs = np.unique(programs)
        self._end(2 * programs + sender)
        other = 2 * programs + 1 - sender
        self.rows[other] = np.maximum(self.rows[other], self.rows[2 * programs + sender])

    def _end(self, agents: np.ndarray) -> None:
        self.epochs[agents] += 1
        self.rows[agents, agents] = self.epochs[agents]

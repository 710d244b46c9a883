"""What passes between the Cube's part and the Vector part of programs that run side by side.

First the Vector part runs, then the Cube's, and so on, each until it has to wait for the other (`turns.py`). If neither can
go on, that is a hang; who waits for what is said.
What passes through global memory is in order only where flags say so, as on the device without the compiler's own flags.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...errors import RunError
from ...ir.passes.split_cores import CUBE, VECTOR, barrier_cores
from ...ir.program import Op, Program
from ..values import take
from .deadlock import check_left_over, hang
from .turns import Turns


class Exchange:
    """What passes between the parts of programs: flags, barriers, tiles."""

    def __init__(self, whole: Program, program: int, turns: Turns) -> None:
        self.whole = whole
        self.program = program
        self.turns = turns
        self.counts: dict[tuple[str, int], int] = {}
        self.passed: dict[tuple[str, int], int] = {}  # sets so far
        self.last_set: dict[tuple[str, int], Op] = {}
        self.arrived: dict[tuple[str, str], int] = {}
        self.tiles: dict[int, deque[Any]] = {}
        self.waits: dict[str, Op] = {}
        self.over: list[str] = []

    def run(self, parts: Mapping[str, Callable[[], None]]) -> None:
        """The Vector part begins: its loads stand before the tiles that it is sent, as in the source."""
        self.turns.spawn(lambda: self._part(CUBE, parts[CUBE]))
        self._part(VECTOR, parts[VECTOR])
        self.turns.wait(lambda: CUBE in self.over, self._hang)

    def _part(self, core: str, work: Callable[[], None]) -> None:
        work()
        self.over.append(core)

    def wait(self, core: str, op: Op, met: Callable[[], bool]) -> None:
        """Let the other part run until `met`."""
        self.waits[core] = op
        self.turns.wait(met, self._hang)
        del self.waits[core]

    # -- flags -------------------------------------------------------------------------------------------------------

    def sync(self, core: str, op: Op, event: Any) -> None:
        """Pass a set, a wait or a barrier."""
        if op.name == "all":
            self._barrier(core, op)
            return
        key = (op.attrs["sender"], int(np.asarray(event).flat[0]))
        if op.name == "set":
            self.counts[key] = self.counts.get(key, 0) + 1
            self.passed[key] = self.passed.get(key, 0) + 1
            self.last_set[key] = op
            return
        self.wait(core, op, lambda: self.counts.get(key, 0) > 0)
        self.counts[key] -= 1

    def _barrier(self, core: str, op: Op) -> None:
        mode = op.attrs["mode"]
        mine = self.arrived[mode, core] = self.arrived.get((mode, core), 0) + 1
        self.wait(core, op, lambda: all(self.arrived.get((mode, c), 0) >= mine for c in barrier_cores(mode)))

    # -- tiles -------------------------------------------------------------------------------------------------------

    def send(self, value: int, x: Any) -> None:
        """Hand a tile over; a part that has waited for it goes on at once, so that the parts stay side by side."""
        self.tiles.setdefault(value, deque()).append(x)
        self.turns.give_way()

    def receive(self, core: str, op: Op, value: int, count: int) -> Any:
        """The next tile that the other part sends, for `count` lanes."""
        self.wait(core, op, lambda: bool(self.tiles.get(value)))
        x, sent = self.tiles[value].popleft()
        return x if sent == count else take(x, np.arange(count) % sent)

    # -- hangs -------------------------------------------------------------------------------------------------------

    def _hang(self) -> RunError:
        waiting = {core: self.waits[core] for core in (CUBE, VECTOR) if core in self.waits}
        return hang(self.whole, self.program, waiting, sorted(self.over), self.passed)

    def check_left_over(self) -> None:
        """Raise `RunError` for flags that stay set beyond what their counters hold."""
        for key, left in self.counts.items():
            check_left_over(self.last_set[key], key[1], left)

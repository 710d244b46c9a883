"""What passes between the Cube's part and the Vector part of programs that run side by side, and which part runs now.

One part runs at a time, in a thread of its own that hands over when a flag is missing: first the Vector part, then the
Cube's, and so on, so that the order is always the same. If neither can go on, that is a hang; who waits for what is said.
What passes through global memory is in order only where flags say so, as on the device without the compiler's own flags.
"""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...errors import RunError
from ...ir.passes.split_cores import CUBE, VECTOR, barrier_cores
from ...ir.program import Op, Program
from ..values import take
from .deadlock import check_left_over, hang


class _Abandoned(BaseException):
    """Ends the thread of a part that was given up."""


class Exchange:
    """What passes between the parts of programs: flags, barriers, tiles; and which part runs now."""

    def __init__(self, whole: Program, program: int) -> None:
        self.whole = whole
        self.program = program
        self.counts: dict[tuple[str, int], int] = {}
        self.passed: dict[tuple[str, int], int] = {}  # sets so far
        self.last_set: dict[tuple[str, int], Op] = {}
        self.arrived: dict[tuple[str, str], int] = {}
        self.tiles: dict[int, deque[Any]] = {}
        self.turn = {core: threading.Semaphore(0) for core in (CUBE, VECTOR)}
        self.back = threading.Semaphore(0)
        self.waits: dict[str, tuple[Op, Callable[[], bool]]] = {}
        self.over: dict[str, BaseException | None] = {}
        self.abandoned = False

    # -- which part runs ---------------------------------------------------------------------------------------------

    def run(self, parts: Mapping[str, Callable[[], None]]) -> None:
        threads = []
        for core, work in parts.items():
            context = contextvars.copy_context()
            t = threading.Thread(target=context.run, args=(self._part, core, work), daemon=True)
            t.start()
            threads.append(t)
        try:
            self._turns(list(parts))
        finally:
            self.abandoned = True
            for core in parts:
                self.turn[core].release()
            for t in threads:
                t.join()

    def _turns(self, cores: list[str]) -> None:
        last = CUBE  # so the Vector part begins: its loads stand before the tiles that it is sent, as in the source
        while len(self.over) < len(cores):
            ready = [c for c in cores if c not in self.over and (c not in self.waits or self.waits[c][1]())]
            if not ready:
                raise self._hang(cores)
            last = min(ready, key=lambda c: c == last)  # the other one, if it can go on
            self.waits.pop(last, None)
            self.turn[last].release()
            self.back.acquire()
            failed = self.over.get(last)
            if failed is not None:
                raise failed

    def _part(self, core: str, work: Callable[[], None]) -> None:
        self.turn[core].acquire()
        if self.abandoned:
            return
        try:
            work()
            self.over[core] = None
        except _Abandoned:
            return
        except BaseException as e:  # goes on in the thread that started this one
            self.over[core] = e
        self.back.release()

    def wait(self, core: str, op: Op, met: Callable[[], bool]) -> None:
        """Let the other part run until `met`."""
        if met():
            return
        self.waits[core] = (op, met)
        self._give_way(core)

    def others_go_on(self, core: str, op: Op) -> bool:
        """Let the other part run until it has to wait, if it can: for a part that waits for what is in memory."""
        others = (c for c in self.turn if c != core and c not in self.over)
        if not any(c not in self.waits or self.waits[c][1]() for c in others):
            return False
        self.waits[core] = (op, lambda: True)
        self._give_way(core)
        return True

    def _give_way(self, core: str) -> None:
        self.back.release()
        self.turn[core].acquire()
        if self.abandoned:
            raise _Abandoned

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

    def send(self, core: str, op: Op, value: int, x: Any) -> None:
        """Hand a tile over; a part that has waited for it goes on at once, so that the parts stay side by side."""
        self.tiles.setdefault(value, deque()).append(x)
        if any(met() for _, met in self.waits.values()):
            self.waits[core] = (op, lambda: True)
            self._give_way(core)

    def receive(self, core: str, op: Op, value: int, count: int) -> Any:
        """The next tile that the other part sends, for `count` lanes."""
        self.wait(core, op, lambda: bool(self.tiles.get(value)))
        x, sent = self.tiles[value].popleft()
        return x if sent == count else take(x, np.arange(count) % sent)

    # -- hangs -------------------------------------------------------------------------------------------------------

    def _hang(self, cores: list[str]) -> RunError:
        waiting = {c: self.waits[c][0] for c in cores if c in self.waits}
        return hang(self.whole, self.program, waiting, [c for c in cores if c not in waiting], self.passed)

    def check_left_over(self) -> None:
        """Raise `RunError` for flags that stay set beyond what their counters hold."""
        for key, left in self.counts.items():
            check_left_over(self.last_set[key], key[1], left)

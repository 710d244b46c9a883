"""Signs of life of worker processes: one that is stopped (SIGSTOP, a frozen container) gives none.

A process beats from a thread of its own, so one that computes for minutes is not taken for a stopped one. What is counted is
how often the waiting process looked and found no new beat, not the time that a clock shows: a machine that slept, or a
waiting process that was stopped itself, kills nobody.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import threading
import time as clock
from typing import Any

STOPPED_SECONDS = 30.0
TICK_SECONDS = 1.0
TICKS = 4  # in the time-out at least: a beat that is late is no stopped process


class Heartbeats:
    """Shared memory of a pool of `count` processes: their numbers, and a counter that each of them raises every tick."""

    def __init__(self, context: Any, count: int, timeout_seconds: float) -> None:
        self.tick_seconds = min(TICK_SECONDS, timeout_seconds / TICKS)
        self.most_silent = math.ceil(timeout_seconds / self.tick_seconds)
        self.pids = context.RawArray("l", count)
        self.beats = context.RawArray("L", count)
        self.begun = context.Value("i", 0)
        self.seen, self.silent = [0] * count, [0] * count

    def begin(self) -> None:
        """In a new process: beat from now on."""
        with self.begun:
            slot = self.begun.value
            self.begun.value += 1
        self.pids[slot] = os.getpid()
        threading.Thread(target=self._beat, args=(slot,), daemon=True).start()
        threading.Thread(target=_end_with_parent, daemon=True).start()

    def _beat(self, slot: int) -> None:
        while True:
            self.beats[slot] += 1
            clock.sleep(self.tick_seconds)

    def kill_stopped(self) -> bool:
        """Once a tick in the process that waits: whether there were processes that have been silent for too long."""
        for slot, beats in enumerate(self.beats):
            self.silent[slot] = self.silent[slot] + 1 if beats == self.seen[slot] else 0
            self.seen[slot] = beats
        return self._kill(
            [pid for pid, ticks in zip(self.pids, self.silent, strict=True) if ticks >= self.most_silent]
        )

    def _kill(self, pids: list[int]) -> bool:
        """Only children that still are: the number of one that has gone may be another process by now."""
        wanted = [p for p in multiprocessing.active_children() if p.pid in pids]
        for process in wanted:
            process.kill()
        return bool(wanted)


def _end_with_parent() -> None:
    """A process of a pool waits for work for ever, also of one that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)

"""Iterations of a staged loop that are lowered one by one: their records wait until their stage has its turn (staged.py)."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

from .staged import chunk_of

Record = tuple[Callable[..., None], tuple[Any, ...]]  # what makes it, with its arguments


class Held:
    """ahead: iterations under way at once. rounds: of its stages. step_done: called when each stage had its turn."""

    def __init__(self, ahead: int, rounds: int, step_done: Callable[[], None]) -> None:
        self.size, self.step_done = chunk_of(ahead, rounds), step_done
        self.iterations = self.inner = 0
        self.chunks: deque[defaultdict[int, list[Record]]] = deque(maxlen=rounds)  # the newest first
        self._open()

    def _open(self) -> None:
        self.iterations = 0
        self.chunks.appendleft(defaultdict(list))

    def put(self, stage: int, make: Callable[..., None], *arguments: Any) -> None:
        self.chunks[0][stage].append((make, arguments))

    def next(self) -> None:
        """An iteration has ended."""
        self.iterations += 1
        if self.iterations == self.size:
            self._step()

    def finish(self) -> None:
        """No iteration comes after those that wait."""
        for _ in range(self.chunks.maxlen or 1):
            self._step()

    def _step(self) -> None:
        """Each stage runs for its chunk: a later round for an older one."""
        for stage in sorted({k for chunk in self.chunks for k in chunk}):
            age = max(0, stage) // 2
            for make, arguments in self.chunks[age].pop(stage, ()) if age < len(self.chunks) else ():
                make(*arguments)
        self.step_done()
        self._open()

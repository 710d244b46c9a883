"""What this process is busy with: launches and tuners say it, whoever shows progress reads it.

Nothing is counted here that is not counted anyway, so a launch pays for two assignments.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Work:
    """A launch that is not done. done: programs whose values are computed. interpreter: the one that runs it now."""

    kernel: str
    programs: int
    number: int
    begun: float = field(default_factory=time.monotonic)
    done: int = 0
    interpreter: Any = None

    def tell(self, done: int, programs: int) -> None:
        """So many programs are done."""
        self.done, self.programs = done, programs

    @property
    def iterations(self) -> int:
        """Loop iterations so far."""
        x = self.interpreter
        return 0 if x is None else max(0, x.step_limit - x.steps_left)


_launches: list[Work] = []
_candidates: list[tuple[int, int]] = []
_count = 0
# Called when a launch is over, before the script goes on.
listeners: list[Callable[[], None]] = []


@contextmanager
def launching(kernel: str, programs: int) -> Iterator[Work]:
    """A launch of `kernel`."""
    global _count
    _count += 1
    work = Work(kernel, programs, _count)
    _launches.append(work)
    try:
        yield work
    finally:
        _launches.remove(work)
        for tell in listeners:
            tell()


@contextmanager
def trying(number: int, candidates: int) -> Iterator[None]:
    """A tuner's candidate: `number` of so many."""
    _candidates.append((number, candidates))
    try:
        yield
    finally:
        _candidates.pop()


def interpreting(interpreter: Any) -> None:
    """`interpreter` runs the program of the launch."""
    if _launches:
        _launches[-1].interpreter = interpreter


def now() -> tuple[Work | None, tuple[int, int] | None]:
    """The innermost launch, and the candidate (number, how many) that it is of; None where there is none."""
    work, candidate = _launches[-1:], _candidates[-1:]  # another thread may end either at any moment
    return (work[0] if work else None), (candidate[0] if candidate else None)


__all__ = ["Work", "interpreting", "launching", "listeners", "now", "trying"]

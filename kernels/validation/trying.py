"""Kernels whose tiling nobody published: several are timed, and the fastest stands for the row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from ... import simulator as sim
from ...simulator.errors import BufferOverflowError
from ...simulator.record.run import Run
from .settings import Settings
from .table import Row

Choice = TypeVar("Choice")


def fastest(row: Row, choices: Iterable[Choice], work: Callable[[Choice], Run]) -> tuple[Run, Choice, int]:
    """The fastest run, what was chosen for it, and of how many; those that do not fit in a buffer do not count.

    Raises BufferOverflowError, of the last one, if none fits.
    """
    found: list[tuple[Run, Choice]] = []
    overflow: BufferOverflowError | None = None
    with sim.device(**Settings(row).device_options()):
        for choice in choices:
            try:
                found.append((work(choice), choice))
            except BufferOverflowError as e:
                overflow = e
    if not found:
        raise overflow or ValueError(f"{row.id}: nothing to try")
    run, choice = min(found, key=lambda x: x[0].time_us)
    return run, choice, len(found)


def halves(most: int, step: int = 1) -> list[int]:
    """A size, half of it and a quarter, in multiples of `step`."""
    return sorted({max(step, most // part // step * step) for part in (1, 2, 4)})


def note_of(count: int, what: str) -> str:
    """How the note of a row says it."""
    return f"no tiling published: best of {count}, {what}"

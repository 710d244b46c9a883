"""The lanes of a loop: one for each iteration of each program, iteration after iteration.

Where trip counts differ, all programs have the first iterations, and fewer have the later ones. A range is iterations that
the same programs have.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class IterationRange(NamedTuple):
    """Iterations in a row. programs: those that have them, among those that enter the loop."""

    trip_count: int
    programs: np.ndarray


class IterationLanes:
    """All iterations that are lowered at once. index, iteration: the program and the iteration of each lane."""

    def __init__(self, parts: list[IterationRange]) -> None:
        self.parts = parts
        index, iteration, done = [], [], 0
        for trip_count, programs in parts:
            index.append(programs[None].repeat(trip_count, 0).ravel())
            iteration.append(np.arange(done, done + trip_count).repeat(len(programs)))
            done += trip_count
        self.trip_count = done
        self.index, self.iteration = (x[0] if len(x) == 1 else np.concatenate(x) for x in (index, iteration))

    @property
    def first(self) -> int:
        """Lanes of the first iteration."""
        return len(self.parts[0].programs)


def even(programs: int, trip_count: int) -> IterationLanes:
    """Lanes of programs that all have the same trip count."""
    return IterationLanes([IterationRange(trip_count, np.arange(programs))])


def ranges_of_trip_counts(trip_counts: np.ndarray) -> list[IterationRange]:
    """The ranges of programs with these trip counts."""
    out, done = [], 0
    for stop in sorted(set(trip_counts[trip_counts > 0].tolist())):
        out.append(IterationRange(stop - done, np.flatnonzero(trip_counts >= stop)))
        done = stop
    return out

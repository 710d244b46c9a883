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
        self.trip_count = sum(p.trip_count for p in parts)
        if len(parts) == 1:
            trip_count, programs = parts[0]
            self.index, self.iteration = (
                np.tile(programs, trip_count),
                np.repeat(np.arange(trip_count), len(programs)),
            )
            return
        self.index = np.concatenate([np.tile(p.programs, p.trip_count) for p in parts])
        lanes = np.repeat([len(p.programs) for p in parts], [p.trip_count for p in parts])
        self.iteration = np.repeat(np.arange(self.trip_count), lanes)

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

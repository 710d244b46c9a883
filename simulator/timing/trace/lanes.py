"""Which programs walk which iterations of a loop: a lane for each iteration and program, iteration after iteration.

Where programs have different trip counts, all of them walk the first iterations and fewer the later ones. A stretch is
iterations that the same programs walk.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Stretch(NamedTuple):
    """So many iterations. programs: those that walk them, among those that enter the loop."""

    trips: int
    programs: np.ndarray


class Stretches:
    """All iterations that are walked at once. index, iteration: the program and the iteration of each lane."""

    def __init__(self, parts: list[Stretch]) -> None:
        self.parts = parts
        self.trips = sum(p.trips for p in parts)
        if len(parts) == 1:
            trips, programs = parts[0]
            self.index, self.iteration = np.tile(programs, trips), np.repeat(np.arange(trips), len(programs))
            return
        self.index = np.concatenate([np.tile(p.programs, p.trips) for p in parts])
        lanes = np.repeat([len(p.programs) for p in parts], [p.trips for p in parts])
        self.iteration = np.repeat(np.arange(self.trips), lanes)

    @property
    def first(self) -> int:
        """Lanes of the first iteration."""
        return len(self.parts[0].programs)


def even(programs: int, trips: int) -> Stretches:
    """The same iterations in all programs."""
    return Stretches([Stretch(trips, np.arange(programs))])


def of_trips(trips: np.ndarray) -> list[Stretch]:
    """The stretches of programs with so many iterations each."""
    out, done = [], 0
    for stop in np.unique(trips[trips > 0]).tolist():
        out.append(Stretch(stop - done, np.flatnonzero(trips >= stop)))
        done = stop
    return out

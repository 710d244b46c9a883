"""Which programs walk which turns of a loop: a lane for each turn and program, turn after turn.

Where programs have different trip counts, all of them walk the first turns and fewer the later ones. A stretch is turns
that the same programs walk.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np

from ...interpreter.regions import AccessRegion


class Stretch(NamedTuple):
    """So many turns. programs: those that walk them, among those that enter the loop."""

    turns: int
    programs: np.ndarray


class Stretches:
    """All turns that are walked at once. index, turn: the program and the turn of each lane."""

    def __init__(self, parts: list[Stretch]) -> None:
        self.parts = parts
        self.turns = sum(p.turns for p in parts)
        if len(parts) == 1:
            turns, programs = parts[0]
            self.index, self.turn = np.tile(programs, turns), np.repeat(np.arange(turns), len(programs))
            return
        self.index = np.concatenate([np.tile(p.programs, p.turns) for p in parts])
        lanes = np.repeat([len(p.programs) for p in parts], [p.turns for p in parts])
        self.turn = np.repeat(np.arange(self.turns), lanes)


def even(programs: int, turns: int) -> Stretches:
    """The same turns in all programs."""
    return Stretches([Stretch(turns, np.arange(programs))])


def of_trips(trips: np.ndarray) -> list[Stretch]:
    """The stretches of programs with so many turns each."""
    out, done = [], 0
    for stop in np.unique(trips[trips > 0]).tolist():
        out.append(Stretch(stop - done, np.flatnonzero(trips >= stop)))
        done = stop
    return out


class Cut:
    """Takes the lanes of one stretch out of what is known of the lanes of all, once for each array and each region."""

    def __init__(self, lanes: int, first: int, end: int) -> None:
        self.lanes, self.first, self.end = lanes, first, end
        self.regions: dict[int, AccessRegion] = {}

    def numbers(self, x: Any) -> Any:
        """One number stays; of an array with one number for each lane, in rows, those of the stretch."""
        if not isinstance(x, np.ndarray) or x.size == 1:
            return x
        rows = x.reshape(-1, self.lanes, *x.shape[1:])[:, self.first : self.end]
        return rows.reshape(-1, *x.shape[1:])

    def region(self, region: AccessRegion) -> AccessRegion:
        found = self.regions.get(id(region))
        if found is None:
            found = self.regions[id(region)] = copy.copy(region)
            found.starts = np.ascontiguousarray(self.numbers(region.starts))
            found.programs = len(found.starts)
            for name in ("strides", "lows", "highs"):
                table = getattr(region, name)
                if len(table) > 1:
                    setattr(found, name, np.ascontiguousarray(self.numbers(table)))
        return found

"""Which lines' roundings make up an error: the program is evaluated again, with the roundings of one line more each time.

Without any rounding it gives the float64 values, with those of all lines the values of the run. What a line changes when it
joins those before it is its part of the error; parts add up to the error, element by element. A line's share is the product
of its part and the error over the square of the error, summed over the elements. Shares add up to one; one is negative where
a line's roundings undo some of those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from ...ir.program import Loc

Line = tuple[str, int]


class Roundings:
    """Which lines round as in the run, and which were found to round at all."""

    def __init__(self, lines: Iterable[Line] = ()) -> None:
        self.chosen = frozenset(lines)
        self.found: dict[Line, None] = {}
        self.memory: dict[Line, None] = {}  # of atomics, whose sums memory rounds

    def applied(
        self, loc: Loc, exact: np.ndarray, real: np.ndarray, plain: Callable[[], np.ndarray]
    ) -> np.ndarray:
        """The result of an operation at `loc`; plain: what it would give on the operands of the run without rounding."""
        line = (loc.file, loc.line)
        if line in self.found and line not in self.chosen:
            return exact
        with np.errstate(all="ignore"):
            rounding = real - plain()
            if line not in self.found and not np.all((rounding == 0) | np.isnan(rounding)):
                self.found[line] = None
            if line not in self.chosen:
                return exact
            return np.where(np.isfinite(rounding), exact + rounding, real)

    def in_memory(self, loc: Loc) -> None:
        """An atomic at `loc` was made."""
        self.memory[loc.file, loc.line] = None

    @property
    def lines(self) -> list[Line]:
        """Those that round, in the order of the source, and atomics last."""
        return [*sorted(set(self.found) - set(self.memory)), *sorted(self.memory)]


def shares(steps: Sequence[Mapping[str, np.ndarray]], names: list[str]) -> dict[str, dict[str, float]]:
    """Output by output, "file:line" -> share. steps: the outputs with the roundings of no line, of the first, ... of all."""
    return {n: dict(zip(names, _of([s[n] for s in steps]), strict=True)) for n in steps[0]}


def _of(steps: list[np.ndarray]) -> list[float]:
    with np.errstate(all="ignore"):
        error = steps[-1] - steps[0]
        parts = [b - a for a, b in pairwise(steps)]
    fine = np.all([np.isfinite(p) for p in (error, *parts)], axis=0)
    whole = float(np.sum(error[fine] ** 2))
    return [float(np.sum(p[fine] * error[fine])) / whole if whole else 0.0 for p in parts]

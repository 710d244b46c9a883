"""Ends of intervals as sums of terms that are never negative: quantile regression, and its errors on sources left out.

An end is the quantile of y = log(measured / predicted) that it stands for, a sum of coefficients times features. The sum of
tau * (y - end) where y is above, and of (1 - tau) * (end - y) where it is below, is least there (Koenker and Bassett, 1978);
its corner is rounded over SMOOTH, and large coefficients beside the first one cost something (ridge), as few rows are near
an end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
TAIL = 0.05  # of the rows lie beyond either end
SMOOTH = 0.02  # in logarithms
STEPS = 1500
RIDGES = (0.003, 0.006, 0.012, 0.03, 0.1)


@dataclass(frozen=True)
class Sample:
    """Rows side by side. features: [rows, terms], the first term is 1 everywhere; errors: log(measured / predicted);
    sources: who measured. least: of each coefficient."""

    features: Floats
    errors: Floats
    sources: tuple[str, ...]
    least: Floats

    def of(self, chosen: npt.NDArray[np.bool_]) -> Sample:
        """Some of the rows."""
        sources = tuple(s for s, c in zip(self.sources, chosen, strict=True) if c)
        return Sample(self.features[chosen], self.errors[chosen], sources, self.least)

    def weights(self) -> Floats:
        """Rows of one source are alike: n of them count as much as the root of n."""
        count = {s: self.sources.count(s) for s in self.sources}
        found: Floats = np.array([count[s] ** -0.5 for s in self.sources])
        found /= found.sum()
        return found

    def left_out(self) -> Iterator[npt.NDArray[np.bool_]]:
        """The rows of each source in turn, where other sources are left."""
        sources = np.array(self.sources)
        for source in dict.fromkeys(self.sources):
            chosen = sources == source
            if not chosen.all():
                yield chosen


def ends(sample: Sample, ridge: float) -> tuple[Floats, Floats]:
    """Coefficients of the lower end, counted downwards, and of the upper end."""
    low, high = (_quantile(sample, sign * sample.errors, ridge) for sign in (-1.0, 1.0))
    return low, high


def _quantile(sample: Sample, y: Floats, ridge: float) -> Floats:
    """Accelerated gradient steps (Beck and Teboulle, 2009), each back to where no coefficient is too small."""
    terms, weights, least = sample.features, sample.weights(), sample.least
    penalty = np.array([0.0] + [ridge] * (terms.shape[1] - 1))
    step = 1.0 / (float((weights[:, None] * terms**2).sum()) / (4 * SMOOTH) + ridge)
    speeds = [1.0]
    for _ in range(STEPS):
        speeds.append((1 + (1 + 4 * speeds[-1] ** 2) ** 0.5) / 2)
    now = ahead = np.maximum(least, 0.2)
    for speed, later in pairwise(speeds):
        above = np.clip((y - terms @ ahead) / SMOOTH, -60, 60)
        pull = weights * (1 - TAIL - 1 / (1 + np.exp(above)))
        moved = np.maximum(least, ahead + step * (pull @ terms - penalty * ahead))
        ahead, now = moved + (speed - 1) / later * (moved - now), moved
    return now


@dataclass(frozen=True)
class Bands:
    """Logarithms of both ends of each row, beside that of its error."""

    low: Floats
    high: Floats
    errors: Floats

    def wider(self, factor: float) -> Bands:
        """The same with wider intervals."""
        return Bands(factor * self.low, factor * self.high, self.errors)

    @property
    def inside(self) -> npt.NDArray[np.bool_]:
        """Which rows are between their ends."""
        found: npt.NDArray[np.bool_] = (-self.low <= self.errors) & (self.errors <= self.high)
        return found

    @property
    def coverage(self) -> float:
        return float(self.inside.mean())

    @property
    def score(self) -> float:
        """Mean width, and what lies outside at its price (Gneiting and Raftery, 2007); less is better."""
        outside = np.maximum(0.0, -self.low - self.errors) + np.maximum(0.0, self.errors - self.high)
        return float((self.low + self.high + outside / TAIL).mean())


def left_out(sample: Sample, ridge: float) -> Bands:
    """The ends of every row by the rows of other sources."""
    low, high = np.zeros(len(sample.errors)), np.zeros(len(sample.errors))
    for chosen in sample.left_out():
        terms = sample.features[chosen]
        low[chosen], high[chosen] = (terms @ end for end in ends(sample.of(~chosen), ridge))
    return Bands(low, high, sample.errors)


def widening(found: Bands, coverage: float) -> float:
    """The least factor with which so many of the rows are inside, in steps of 2 %."""
    steps = [1 + 0.02 * k for k in range(-20, 150)]
    return next((x for x in steps if found.wider(x).coverage >= coverage), steps[-1])


def best(sample: Sample, coverage: float) -> tuple[float, Bands]:
    """The ridge that predicts sources left out best, once so many of their rows are inside, and their ends as they come."""
    found = [(ridge, left_out(sample, ridge)) for ridge in RIDGES]
    return min(found, key=lambda x: x[1].wider(widening(x[1], coverage)).score)

"""Where the errors of an array are: by the magnitude of the golden, and the worst elements. Bounded, however large it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _metrics

WORST = 12  # elements that are kept
LOWEST, OCTAVES = -150, 280  # below the least float32, and beyond the largest


@dataclass(frozen=True, slots=True)
class Octave:
    """Elements whose golden is of 2^exponent up to the next power of two; those of 2^-150 have zero and all below."""

    exponent: int
    count: int
    mean_ulp: float
    max_ulp: float
    mean_abs: float


@dataclass(frozen=True, slots=True)
class Element:
    """One element: index, what was computed, what it should be, error in ulp of the golden."""

    index: tuple[int, ...]
    actual: float
    golden: float
    ulp: float


@dataclass(frozen=True, slots=True)
class ErrorPlaces:
    """octaves: ascending, those with elements. worst: at most 12, worst first, those without error left out."""

    octaves: tuple[Octave, ...]
    worst: tuple[Element, ...]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ErrorPlaces:
        """What `dataclasses.asdict` made, after JSON."""
        octaves = tuple(Octave(**x) for x in values["octaves"])
        worst = (Element(**{**x, "index": tuple(x["index"])}) for x in values["worst"])
        return cls(octaves, tuple(worst))


def places(a: NDArray[Any], g: NDArray[Any], shape: tuple[int, ...], limits: dict[str, float]) -> ErrorPlaces:
    """Of flat arrays (float32 or float64) of one length, whose elements are those of `shape`; see `_metrics.locate`."""
    counts, (ulp_sums, ulp_most, abs_sums) = np.zeros(OCTAVES, np.int64), np.zeros((3, OCTAVES))
    worst, at = np.zeros(WORST), np.zeros(WORST, np.int64)
    _metrics.locate(a, g, limits, LOWEST, counts, ulp_sums, ulp_most, abs_sums, worst, at)
    octaves = (
        Octave(
            LOWEST + int(k),
            n := int(counts[k]),
            float(ulp_sums[k]) / n,
            float(ulp_most[k]),
            float(abs_sums[k]) / n,
        )
        for k in np.flatnonzero(counts)
    )
    elements = (
        Element(tuple(int(i) for i in np.unravel_index(k, shape)), float(a[k]), float(g[k]), float(ulp))
        for k, ulp in zip(at, worst, strict=True)
        if ulp > 0
    )
    return ErrorPlaces(tuple(octaves), tuple(elements))

"""Statistics of rows: errors, rank correlation, and how many measured figures the intervals hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Interval = tuple[float, float]


@dataclass(frozen=True)
class Summary:
    """rows: how many were judged. Errors are fractions of the measured value; None where there is nothing to say.

    spearman: rank correlation of predicted and measured; None for fewer than two rows, for rows of several units (their
    ranks say nothing of each other), and where all of one side are equal.
    interval_coverage: share of the rows with an interval whose measured figure is inside. interval_width: median of the
    upper end over the lower end.
    """

    rows: int
    median_abs_error: float | None
    p90_abs_error: float | None
    spearman: float | None
    roofline_median_abs_error: float | None
    interval_coverage: float | None = None
    interval_width: float | None = None


def summarise(
    measured: Sequence[float],
    predicted: Sequence[float],
    rooflines: Sequence[float | None],
    units: Sequence[str],
    intervals: Sequence[Interval | None] = (),
) -> Summary:
    """Statistics of rows, given side by side. The median of the roofline is over the rows that have one."""
    m, p = np.asarray(measured, np.float64), np.asarray(predicted, np.float64)
    errors = np.abs(p - m) / m
    bounds = [abs(r - x) / x for r, x in zip(rooflines, measured, strict=True) if r is not None]
    known = [(x, i) for x, i in zip(measured, intervals, strict=False) if i is not None]
    return Summary(
        rows=len(m),
        median_abs_error=float(np.median(errors)) if len(m) else None,
        p90_abs_error=float(np.quantile(errors, 0.9)) if len(m) else None,
        spearman=spearman(m, p) if len(set(units)) == 1 else None,
        roofline_median_abs_error=float(np.median(bounds)) if bounds else None,
        interval_coverage=sum(inside(x, i) for x, i in known) / len(known) if known else None,
        interval_width=float(np.median([high / low for _, (low, high) in known])) if known else None,
    )


def inside(measured: float, interval: Interval) -> bool:
    """Whether a figure lies in an interval, its ends included."""
    return interval[0] <= measured <= interval[1]


def spearman(a: npt.ArrayLike, b: npt.ArrayLike) -> float | None:
    """Correlation of the ranks, equal values sharing the mean of theirs; None if one side has one rank only."""
    x, y = _ranks(np.asarray(a, np.float64)), _ranks(np.asarray(b, np.float64))
    x, y = x - x.mean() if len(x) else x, y - y.mean() if len(y) else y
    size = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / size if size else None


def _ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[place]

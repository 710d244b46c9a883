"""A robust least-squares fit of a few figures to many times, with what is known of the figures before.

    t_i(u) = t_i + sum over k of g_ik (u_k - u0_k)      time of row i at the slowness u of the figures
    minimise  sum of rho(log(t_i(u) / measured_i) / s) + sum of ((log u_k - c_k) / w_k)^2

rho is Cauchy's, so rows that the simulator does not describe count little. Gauss-Newton on log u with weights of the last
step, shortened until the sum falls. s is what the rows scatter about figures that suit them best, the median of the errors
as a standard deviation: it is found first, with next to nothing known before, because errors that a figure explains are no
reason to trust the rows less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
CAUCHY = 2.385  # of s: 95 % as efficient as least squares where errors are normal
LEAST_SCALE = 0.02  # a board repeats itself no better
LOOSE = 10.0  # times as wide is what is known before, while s is looked for
MOST_STEPS, ENOUGH = 60, 1e-7
TOLD_APART, MOST_CONDITION = 30.0, 1e6
LEAST_PART = 0.05  # of its time, below which a row would not fall however fast a figure is


@dataclass(frozen=True)
class LinearTimes:
    """Times near a point. base: us at it (rows); gradient: us for each 1 of slowness (rows x figures); at: log u there."""

    base: Array
    gradient: Array
    at: Array

    def times(self, log_u: Array) -> Array:
        """Times at another point."""
        moved = self.base + self.gradient @ (np.exp(log_u) - np.exp(self.at))
        found: Array = np.maximum(moved, LEAST_PART * self.base)
        return found


@dataclass(frozen=True)
class PriorKnowledge:
    """What is known of each figure before: centre and standard deviation of log u, and how far it may go."""

    centre: Array
    width: Array
    farthest: float


@dataclass(frozen=True)
class Fit:
    """log_u: what came out. deviation: its standard deviation, for what is known and the rows together. condition: of the
    rows' part alone, each figure in units of what it does to the rows: how well they tell the figures apart (1 is best).
    together: the figures that they tell only together, where the condition is above `TOLD_APART`. scale: s.
    """

    log_u: Array
    deviation: Array
    condition: float
    together: tuple[int, ...]
    scale: float


def fit(line: LinearTimes, measured: Array, known: PriorKnowledge) -> Fit:
    """The figures that the rows and what is known agree on best. measured: us of each row."""
    loose = PriorKnowledge(known.centre, LOOSE * known.width, known.farthest)
    best = _descend(line, measured, loose, line.at, None)
    scale = _scale(_errors(line, measured, best), len(line.at))
    return _result(line, measured, known, _descend(line, measured, known, best, scale), scale)


def _descend(
    line: LinearTimes, measured: Array, known: PriorKnowledge, start: Array, scale: float | None
) -> Array:
    """From a point to where the sum is smallest. scale: None takes that of the errors on the way."""
    x = start.copy()
    for _ in range(MOST_STEPS):
        s = scale or _scale(_errors(line, measured, x))
        matrix, right = _system(line, measured, known, x, s)
        step = _within(np.linalg.lstsq(matrix, right, rcond=None)[0], x, known)
        x, reached = _shortened(line, measured, known, x, step, s)
        if reached < ENOUGH:
            break
    return x


def objective(errors: Array, log_u: Array, known: PriorKnowledge, scale: float) -> float:
    """The sum that is made small. errors: log(predicted / measured)."""
    rows = CAUCHY**2 * np.log1p((errors / (CAUCHY * scale)) ** 2)
    return float(rows.sum() + (((log_u - known.centre) / known.width) ** 2).sum())


def _errors(line: LinearTimes, measured: Array, x: Array) -> Array:
    found: Array = np.log(line.times(x) / measured)
    return found


def _scale(errors: Array, figures: int = 0) -> float:
    """figures: so many were fitted to these rows, which makes errors smaller than they are."""
    if not len(errors):
        return LEAST_SCALE
    free = len(errors) / max(1, len(errors) - figures)
    return max(LEAST_SCALE, 1.4826 * float(np.median(np.abs(errors))) * float(np.sqrt(free)))


def _system(
    line: LinearTimes, measured: Array, known: PriorKnowledge, x: Array, scale: float
) -> tuple[Array, Array]:
    errors = _errors(line, measured, x)
    weight = 1.0 / (scale * np.sqrt(1.0 + (errors / (CAUCHY * scale)) ** 2))
    slopes = line.gradient * np.exp(x) / line.times(x)[:, None] * weight[:, None]
    matrix = np.vstack([slopes, np.diag(1.0 / known.width)])
    return matrix, -np.concatenate([weight * errors, (x - known.centre) / known.width])


def _within(step: npt.NDArray[np.floating[Any]], x: Array, known: PriorKnowledge) -> Array:
    found: Array = np.clip(x + step, -known.farthest, known.farthest) - x
    return found


def _shortened(
    line: LinearTimes, measured: Array, known: PriorKnowledge, x: Array, step: Array, scale: float
) -> tuple[Array, float]:
    """The next point, and how far it is: half a step, a quarter ... until the sum is no larger."""
    before = objective(_errors(line, measured, x), x, known, scale)
    for part in (1.0, 0.5, 0.25, 0.125, 0.0625):
        there = x + part * step
        if objective(_errors(line, measured, there), there, known, scale) < before:
            return there, float(np.max(np.abs(part * step), initial=0.0))
    return x, 0.0


def _result(line: LinearTimes, measured: Array, known: PriorKnowledge, x: Array, scale: float) -> Fit:
    matrix, _ = _system(line, measured, known, x, scale)
    deviation = np.sqrt(np.diag(np.linalg.inv(matrix.T @ matrix)))
    return Fit(x, deviation, *_apart(matrix[: len(measured)]), scale)


def _apart(of_rows: Array) -> tuple[float, tuple[int, ...]]:
    """Condition of the rows' part, and the figures that the direction least told consists of."""
    size = np.linalg.norm(of_rows, axis=0)
    told = np.flatnonzero(size > 0)
    if len(told) < 2:
        return 1.0, ()
    alike = of_rows[:, told] / size[told]
    strength, directions = np.linalg.eigh(alike.T @ alike)
    condition = float(np.sqrt(strength[-1] / max(strength[0], strength[-1] / MOST_CONDITION**2)))
    mixed = np.abs(directions[:, 0]) > 0.25
    return condition, tuple(int(k) for k in told[mixed]) if condition > TOLD_APART else ()

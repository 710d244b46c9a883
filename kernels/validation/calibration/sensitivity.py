"""How the time of each row depends on each figure: simulated, not derived.

Figures of a family (the launch, memory, the way into L1 ...) are made slower together first: a row whose time does not
change by that is not simulated for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from ascendtile.simulator import device
from ascendtile.simulator.errors import RunError, UsageError
from ascendtile.simulator.observers import quietly
from ascendtile.simulator.products import Product

from ..registry import predict
from ..table import Row
from .figures import ScaledFigure, changed
from .fit import Array, LinearTimes

STEP = 0.1  # of slowness
NOTHING = 0.0005  # of a row's time: what a family does not change by STEP it does not depend on

Progress = Callable[[int, int], None]
Slowness = Mapping[ScaledFigure, float]


class Clockwork:
    """Times of rows on their products with changed figures.

    product_of: the product of a row. Products with the same figures changed by the same amount are made once, and so is the
    prediction of a row on one of them.
    """

    def __init__(self, product_of: Callable[[Row], Product]) -> None:
        self.product_of = product_of
        self._made: dict[tuple[object, ...], Product] = {}
        self._times: dict[tuple[Row, Product], float] = {}

    def time_us(self, row: Row, slowness: Slowness) -> float:
        """The time that is predicted for the row."""
        key = row, self._product(row, slowness)
        if key not in self._times:
            self._times[key] = predict(*key).value
        return self._times[key]

    def _product(self, row: Row, slowness: Slowness) -> Product:
        product = self.product_of(row)
        known = {f: u for f, u in slowness.items() if u != 1.0 and product.has(f.key)}
        key = (product.name, *sorted((f.key, u) for f, u in known.items()))
        if key not in self._made:
            self._made[key] = changed(product, known) if known else product
        return self._made[key]


@contextmanager
def times_alone() -> Iterator[None]:
    """Inside, launches are not reported, and nothing but their times is worked out."""
    with quietly(), device(details=False):
        yield


def predictable(
    rows: Iterable[Row], times: Clockwork, progress: Progress | None = None
) -> tuple[dict[str, float], dict[str, str]]:
    """By id of a row its time, or the reason why there is none."""
    rows, found, failed = list(rows), dict[str, float](), dict[str, str]()
    for k, row in enumerate(rows):
        try:
            found[row.id] = times.time_us(row, {})
        except (UsageError, RunError) as e:
            failed[row.id] = str(e).removeprefix(f"{row.id}: ")
        if progress is not None:
            progress(k + 1, len(rows))
    return found, failed


def near(
    rows: Sequence[Row],
    figures: Sequence[ScaledFigure],
    times: Clockwork,
    log_u: Array,
    progress: Progress | None = None,
) -> LinearTimes:
    """The times of rows near a point, as a line through it. Inside of `choices.keeping()`, or the tilings may change."""
    at = {f: float(u) for f, u in zip(figures, np.exp(log_u), strict=True)}
    base, gradient = np.empty(len(rows)), np.zeros((len(rows), len(figures)))
    for i, row in enumerate(rows):
        base[i] = times.time_us(row, at)
        for k, slope in _slopes(row, figures, times, at, base[i]).items():
            gradient[i, k] = slope
        if progress is not None:
            progress(i + 1, len(rows))
    return LinearTimes(base, gradient, log_u.copy())


def _slopes(
    row: Row, figures: Sequence[ScaledFigure], times: Clockwork, at: Slowness, base: float
) -> dict[int, float]:
    """us for each 1 of slowness, by number of the figure; those without any are left out."""
    found: dict[int, float] = {}
    for family in dict.fromkeys(f.family for f in figures):
        members = [k for k, f in enumerate(figures) if f.family == family]
        moved = _moved(row, [figures[k] for k in members], times, at) - base
        if abs(moved) <= NOTHING * base:
            continue
        if len(members) == 1:
            found[members[0]] = moved / (STEP * at[figures[members[0]]])
            continue
        for k in members:
            slower = _moved(row, [figures[k]], times, at) - base
            found[k] = slower / (STEP * at[figures[k]])
    return found


def _moved(row: Row, figures: Sequence[ScaledFigure], times: Clockwork, at: Slowness) -> float:
    return times.time_us(row, {**at, **{f: at[f] * (1.0 + STEP) for f in figures}})


def real_times(rows: Sequence[Row], figures: Sequence[ScaledFigure], times: Clockwork, log_u: Array) -> Array:
    """The times of rows at a point, simulated."""
    at = {f: float(u) for f, u in zip(figures, np.exp(log_u), strict=True)}
    return np.array([times.time_us(row, at) for row in rows], np.float64)

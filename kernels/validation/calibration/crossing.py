"""Each source of kernel rows left out once: figures fitted on the others, and the rows of that source predicted with them.

What is fitted: every figure whose source says that this project fitted it, and the launch's, each by one factor for all
products. A fold does not start from the fitted values: it takes the middle of the range that others published and half of
its width as what is known before, and a figure without a range stays near the product's value as its grade says (a few per
cent to half), because nothing else is known of it. Sensitivities are simulated once and serve all folds; the rows that are
left out are simulated with the figures of their fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.products import Product, load_product

from ..accuracy.fitting import source_of
from ..accuracy.statistics import Summary, summarise
from ..choices import keeping
from ..table import Row
from .figures import FARTHEST, ScaledFigure, fitted_figures, prior
from .fit import Array, Fit, LinearTimes, PriorKnowledge, fit
from .sensitivity import Clockwork, near, predictable, times_alone

Progress = Callable[[int, int], None]
LEAST_SOURCES = 2


@dataclass(frozen=True)
class Fold:
    """One source left out. rows: how many it has. fitted, crossed: medians of absolute errors with the product's figures and
    with those of the fold. slowness: by key the factor by which a figure slows things down, 1 is the product's value.
    """

    source: str
    rows: int
    fitted: float
    crossed: float
    slowness: dict[str, float]
    condition: float


@dataclass(frozen=True)
class CrossedRow:
    """A row as predicted with the product's figures, and with those of the fold that leaves its source out; us."""

    row: Row
    source: str
    fitted: float
    crossed: float


@dataclass(frozen=True)
class CrossValidation:
    """groups: by name the errors of the same rows twice, fitted and left out; "all" last. untold: figures whose range nobody
    published. failed: rows without a prediction, by id.
    """

    rows: tuple[CrossedRow, ...]
    folds: tuple[Fold, ...]
    groups: dict[str, tuple[Summary, Summary]]
    untold: tuple[str, ...]
    failed: dict[str, str]


def cross_validate(rows: Sequence[Row], progress: Progress | None = None) -> CrossValidation:
    """Leave each source of rows out once.

    rows: those that are judged, with a time in us; others are passed over. progress: is told (done, total).

    Raises:
        UsageError: there are fewer than two sources.
    """
    judged = [r for r in rows if not r.excluded and r.unit == "us" and r.measured is not None]
    _check_sources(judged)
    times = Clockwork(lambda row: load_product(row.product))
    with times_alone():
        with keeping():
            fitted, failed = predictable(judged, times, progress)
            used = [r for r in judged if r.id in fitted]
            _check_sources(used)
            crossing = _Crossing(used, fitted, times, progress)
        return crossing.run(failed)


def _check_sources(rows: Sequence[Row]) -> None:
    sources = {source_of(r) for r in rows}
    if len(sources) < LEAST_SOURCES:
        raise UsageError(
            f"these rows have {len(sources)} sources with times in us, leaving one out needs {LEAST_SOURCES} or more; give "
            "more groups, or none"
        )


class _Crossing:
    def __init__(
        self, rows: Sequence[Row], fitted: dict[str, float], times: Clockwork, progress: Progress | None
    ) -> None:
        self.rows, self.fitted, self.times, self.progress = list(rows), fitted, times, progress
        self.measured = np.array([r.measured for r in rows], np.float64)
        self.base: Product = _most_used(rows)
        self.figures = fitted_figures(self.base)
        self.line = self._line()

    def run(self, failed: dict[str, str]) -> CrossValidation:
        line = self.line
        priors = [prior(self.base, f, at_value=False) for f in self.figures]
        known = PriorKnowledge(
            np.array([p.centre for p in priors]), np.array([p.width for p in priors]), FARTHEST
        )
        crossed: dict[str, float] = {}
        folds = []
        for source in dict.fromkeys(map(source_of, self.rows)):
            out = np.array([source_of(r) == source for r in self.rows])
            found = fit(
                LinearTimes(line.base[~out], line.gradient[~out], line.at), self.measured[~out], known
            )
            crossed |= self._predicted(out, found)
            folds.append(self._fold(source, out, found, crossed))
        every = tuple(CrossedRow(r, source_of(r), self.fitted[r.id], crossed[r.id]) for r in self.rows)
        untold = tuple(f.key for f, p in zip(self.figures, priors, strict=True) if not p.told)
        return CrossValidation(every, tuple(folds), _groups(every), untold, failed)

    def _line(self) -> LinearTimes:
        """How times depend on the figures; those on which none does are left alone."""
        line = near(self.rows, self.figures, self.times, np.zeros(len(self.figures)), self.progress)
        told = (line.gradient != 0.0).any(axis=0)
        self.figures = tuple(f for f, x in zip(self.figures, told, strict=True) if x)
        return LinearTimes(line.base, line.gradient[:, told], line.at[told])

    def _predicted(self, out: Array, found: Fit) -> dict[str, float]:
        slowness = {f: float(u) for f, u in zip(self.figures, np.exp(found.log_u), strict=True)}
        return {r.id: self.times.time_us(r, slowness) for r, x in zip(self.rows, out, strict=True) if x}

    def _fold(self, source: str, out: Array, found: Fit, crossed: dict[str, float]) -> Fold:
        rows = [r for r, x in zip(self.rows, out, strict=True) if x]
        slowness = {f.key: float(u) for f, u in zip(self.figures, np.exp(found.log_u), strict=True)}
        errors = (_median(rows, self.fitted), _median(rows, crossed))
        return Fold(source, len(rows), *errors, slowness, found.condition)


def _most_used(rows: Sequence[Row]) -> Product:
    """The product with most rows among those that have most figures of ours: its file says what is fitted."""
    names = [r.product for r in rows]
    return load_product(max(dict.fromkeys(names), key=lambda n: (len(_keys(n)), names.count(n))))


def _keys(name: str) -> tuple[ScaledFigure, ...]:
    return fitted_figures(load_product(name))


def _median(rows: Sequence[Row], predicted: dict[str, float]) -> float:
    return float(np.median([abs(predicted[r.id] / (r.measured or 1.0) - 1.0) for r in rows]))


def _groups(rows: Sequence[CrossedRow]) -> dict[str, tuple[Summary, Summary]]:
    names = dict.fromkeys(r.row.group for r in rows)
    parts = {name: [r for r in rows if r.row.group == name] for name in names} | {"all": list(rows)}
    return {name: (_summary(part, "fitted"), _summary(part, "crossed")) for name, part in parts.items()}


def _summary(rows: Sequence[CrossedRow], which: str) -> Summary:
    measured = [float(r.row.measured or 0.0) for r in rows]
    return summarise(measured, [getattr(r, which) for r in rows], [None] * len(rows), ["us"] * len(rows))

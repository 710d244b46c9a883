"""Fit launch, bandwidths and clock of a product to the times that somebody's own board took.

c = calibrate("op_summary_20260101.csv", product="ascend910b3")
print(c.before, c.after)  # errors of rows that were left out of the fit
c.save("mine.toml")       # ascendtile run ... --product mine.toml
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.products import Product, load_product

from ..choices import keeping
from .figures import FARTHEST, Prior, ScaledFigure, prior, scaled_figures
from .fit import Array, Fit, LinearTimes, PriorKnowledge, fit, objective
from .results import Calibration, Errors, FittedFigure
from .rows import MeasuredRow, NotUsed, dearest, read_rows, split
from .sensitivity import Clockwork, near, predictable, real_times, times_alone

USUAL_PRODUCT = "ascend910b3"
SPEAKS = 0.05  # a row speaks for a figure if its time depends on it by so many per cent for each 100 % of the figure
LEAST_SPEAKING = 2  # rows, to fit a figure
MOST_ROWS = 200
ROUNDS = 2
NEAR_ENOUGH = (
    0.01  # of the times: how well the line has to say what is simulated, or else there is another round
)
FAR_OFF = 5.0  # times the measured one, or a part of it: rows that are listed
LEAST_TOLD = 0.1
MOST_REASONS = 3  # in a message

Progress = Callable[[int, int], None]


def calibrate(
    path: str | Path,
    product: str | Product = USUAL_PRODUCT,
    *,
    leave_out: float = 0.25,
    seed: int = 0,
    most_rows: int = MOST_ROWS,
    progress: Progress | None = None,
) -> Calibration:
    """Fit what the rows of a file tell of launch, bandwidths and clock of a product.

    Args:
        path: op_summary_*.csv of msProf, kernel_details.csv of the PyTorch profiler, or a table as `validate --table` reads.
        product: where the fit starts, and where it stays near: a name, a path to a TOML file, or a Product.
        leave_out: part of the kernels (op and shape), 0 to 0.9, that is not fitted but predicted for the errors.
        seed: which ones. The same seed leaves out the same ones.
        most_rows: of more, those that take the most time in all are used.
        progress: is told (done, total).

    Raises:
        UsageError: the file is no such table, breaks a rule, or has too few rows that can be predicted.
    """
    if not 0.0 <= leave_out <= 0.9:
        raise UsageError(f"leave_out must be from 0 to 0.9, got {leave_out:g}")
    if most_rows < 1:
        raise UsageError(f"most_rows must be 1 or more, got {most_rows}")
    start = load_product(product)
    every, left_out = read_rows(path, start)
    rows, capped = dearest(every, most_rows)
    times = Clockwork(lambda _: start)
    with times_alone():
        with keeping():
            before, failed = predictable([r.row for r in rows], times, progress)
            used = [r for r in rows if r.row.id in before]
            left_out = [*left_out, *_failures(rows, failed)]
            fitted, checked = _split(used, leave_out, seed, left_out, capped)
            found = _Fitting(start, fitted, times, progress).run()
        after = dict(zip((r.row.id for r in used), found.times_of(used), strict=True))
    return Calibration(
        path=str(path),
        product=start,
        calibrated=found.product,
        figures=found.figures,
        alone=found.alone,
        before=errors_of(checked, before),
        after=errors_of(checked, after),
        fitted_before=errors_of(fitted, before),
        fitted_after=errors_of(fitted, after),
        condition=found.fit.condition,
        together=tuple(found.figures[k].key for k in found.fit.together),
        launches=sum(r.launches for r in used),
        left_out=tuple(left_out),
        capped=capped,
        far_off=tuple(r.row.id for r in used if _far_off(before[r.row.id] / r.us)),
    )


def _split(
    rows: Sequence[MeasuredRow], part: float, seed: int, left_out: Sequence[NotUsed], capped: int
) -> tuple[list[MeasuredRow], list[MeasuredRow]]:
    """As `split`, whose error says what most of the file is not used for."""
    try:
        return split(rows, part, seed, capped)
    except UsageError as error:
        reasons = "; ".join(f"{x.type}: {x.reason}" for x in left_out[:MOST_REASONS])
        raise UsageError(f"{error}{f'. Not used are {reasons}' if reasons else ''}") from None


def _failures(rows: Sequence[MeasuredRow], failed: dict[str, str]) -> list[NotUsed]:
    return [
        NotUsed(r.row.group, failed[r.row.id], r.launches, r.total_us) for r in rows if r.row.id in failed
    ]


def _far_off(ratio: float) -> bool:
    return not 1 / FAR_OFF < ratio < FAR_OFF


def errors_of(rows: Sequence[MeasuredRow], predicted: dict[str, float]) -> Errors:
    """How far off predictions by id of the row are."""
    off = np.array([predicted[r.row.id] / r.us - 1.0 for r in rows])
    if not len(off):
        return Errors(0, None, None, None)
    size = np.abs(off)
    return Errors(len(off), float(np.median(size)), float(np.quantile(size, 0.9)), float(np.median(off)))


@dataclass
class _Found:
    product: Product
    figures: tuple[FittedFigure, ...]
    alone: tuple[tuple[str, str], ...]
    fit: Fit

    def times_of(self, rows: Sequence[MeasuredRow]) -> list[float]:
        """Simulated on the new product, with every tiling that a predictor tries."""
        times = Clockwork(lambda _: self.product)
        return [times.time_us(r.row, {}) for r in rows]


class _Fitting:
    """The rounds of a fit: a line through simulated times, the figures that suit it, and those simulated in turn."""

    def __init__(
        self, product: Product, rows: Sequence[MeasuredRow], times: Clockwork, progress: Progress | None
    ) -> None:
        self.product, self.times, self.progress = product, times, progress
        self.rows = [r.row for r in rows]
        self.measured = np.array([r.us for r in rows])
        self.figures: tuple[ScaledFigure, ...] = scaled_figures(product)
        self.alone: list[tuple[str, str]] = []

    def run(self) -> _Found:
        """Fit, simulate, and fit again around there if the line was not near enough."""
        line = near(self.rows, self.figures, self.times, np.zeros(len(self.figures)), self.progress)
        speaking = {f: int(n) for f, n in zip(self.figures, self._speaking(line), strict=True)}
        few = f"of {len(self.rows)} rows depend on it by {SPEAKS:.0%} or more"
        line = self._without(line, {f: f"{n} {few}" for f, n in speaking.items() if n < LEAST_SPEAKING})
        line = self._without(line, self._untold(fit(line, self.measured, self._known())))
        found = self._rounds(line)
        figures = tuple(self._figure(k, found, speaking[f]) for k, f in enumerate(self.figures))
        values = {f.key: f.new for f in figures}
        return _Found(load_product(self.product, values), figures, tuple(self.alone), found)

    def _without(self, line: LinearTimes, reasons: dict[ScaledFigure, str]) -> LinearTimes:
        """Leave figures alone."""
        kept = np.array([f not in reasons for f in self.figures], bool)
        self.alone += [(f.key, why) for f, why in reasons.items()]
        self.figures = tuple(f for f in self.figures if f not in reasons)
        return LinearTimes(line.base, line.gradient[:, kept], line.at[kept])

    def _untold(self, found: Fit) -> dict[ScaledFigure, str]:
        told = zip(self.figures, (self._told(k, found) for k in range(len(self.figures))), strict=True)
        return {f: f"the rows say {x:.0%} of what is known of it" for f, x in told if x < LEAST_TOLD}

    def _told(self, k: int, found: Fit) -> float:
        return max(0.0, 1.0 - float(found.deviation[k] / self._prior(self.figures[k]).width) ** 2)

    def _rounds(self, line: LinearTimes) -> Fit:
        known = self._known()
        start, base = line.at, line.base
        for k in range(ROUNDS):
            found = fit(line, self.measured, known)
            there = real_times(self.rows, self.figures, self.times, found.log_u)
            missed = np.median(np.abs(there / line.times(found.log_u) - 1.0))
            if missed <= NEAR_ENOUGH or k == ROUNDS - 1:
                break
            line = near(self.rows, self.figures, self.times, found.log_u, self.progress)
        return self._no_worse(found, there, start, base, known)

    def _no_worse(self, found: Fit, there: Array, start: Array, base: Array, known: PriorKnowledge) -> Fit:
        """What was found if its simulated times suit better than those before; else half of the way, or none."""
        before = objective(np.log(base / self.measured), start, known, found.scale)
        log_u = found.log_u
        for _ in range(3):
            if objective(np.log(there / self.measured), log_u, known, found.scale) <= before:
                return replace(found, log_u=log_u)
            log_u = (log_u + start) / 2
            there = real_times(self.rows, self.figures, self.times, log_u)
        return replace(found, log_u=start)

    def _known(self) -> PriorKnowledge:
        found = [self._prior(f) for f in self.figures]
        return PriorKnowledge(
            np.array([p.centre for p in found]), np.array([p.width for p in found]), FARTHEST
        )

    def _prior(self, figure: ScaledFigure) -> Prior:
        return prior(self.product, figure, at_value=True)

    def _speaking(self, line: LinearTimes) -> Array:
        found: Array = (line.gradient * np.exp(line.at) > SPEAKS * line.base[:, None]).sum(axis=0)
        return found

    def _figure(self, k: int, found: Fit, rows: int) -> FittedFigure:
        f = self.figures[k]
        figure = self.product.figure(f.key)
        old, u = self.product.number(f.key), float(np.exp(found.log_u[k]))
        new = float(f"{old / u if f.rate else old * u:.5g}")
        deviation, told = float(found.deviation[k]), self._told(k, found)
        return FittedFigure(f.key, figure.unit, old, new, figure.low, figure.high, rows, deviation, told)

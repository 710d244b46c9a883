"""Pictures of errors: of one run as a histogram and by magnitude, of precision studies bits with time and over a sweep."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from ...kernels.study.results import EXACT, ROUNDED, ModeRow, Study
from ...simulator.errors import UsageError
from ...simulator.record.run import Run
from ..facts import texts
from ..facts.charts import named, populated, power
from ..facts.study.json_form import StudySweep, read_study
from ..facts.study.rows import colours, distinct, labelled, lost_percent, sweep_label
from .style import COLOURS, MARKS, below, beneath, new_figure, plain_figures, styled

AGAINST = {EXACT: "exact: what the mode loses", ROUNDED: "rounded: what the kernel adds"}


def precision_bars(given: Study | Mapping[str, Any], output: str | None = None) -> Figure:
    """Effective bits of every computation against both references, beside its time. given: a Study, or the JSON of one."""
    study = read_study(given)
    name = output or next(iter(study.outputs), None)
    rows = [] if name is None else distinct(study.first.rows, name)
    if name is None or not rows:
        raise UsageError("this study has no errors to show")
    labels = [texts.clean(f"{r.dtype} as {r.compute_dtype or '-'}\n{r.cube_math_type}", 80) for r in rows]
    with styled():
        figure, (bits, time) = new_figure(9.0, 1.7 + 0.5 * len(rows), columns=2)
        for k, (golden, label) in enumerate(AGAINST.items()):
            at = [j + 0.2 * (2 * k - 1) for j in range(len(rows))]
            found = [_bits(r, name, golden) for r in rows]
            bits.barh(at, found, height=0.36, color=COLOURS[5 * k], label=label)
            _tell_exact(bits, at, rows, name, golden)
        bits.set_yticks(range(len(rows)), [label.replace("  ", "\n") for label in labels])
        bits.set(xlabel="effective bits", ylim=(len(rows) - 0.5, -0.5))
        beneath(bits, 1)
        first = study.first  # of a sweep the first point is drawn
        where = "" if study.parameter is None else f", {study.parameter} {first.value}"
        title = texts.clean(f"{first.op}{f' {study.case}' if study.case else ''}", 80)
        bits.set_title(f"{title}: {_of_outputs(study, name, 'precision_bars')}{texts.clean(where, 40)}")
        _times(time, rows)
    return figure


def _of_outputs(study: StudySweep, name: str, function: str) -> str:
    """An output, of several with its number and how to draw the others."""
    shown, every = texts.clean(name, 40), study.outputs
    if len(every) == 1 or name not in every:
        return shown
    return f"{shown}\n(output {every.index(name) + 1} of {len(every)}; others: {function}(study, output=...))"


def _times(axes: Any, rows: list[ModeRow]) -> None:
    times = [r.time_us or 0.0 for r in rows]
    axes.barh(range(len(rows)), times, height=0.6, color=COLOURS[2])
    for k, us in enumerate(times):
        if us:
            axes.annotate(f" {texts.micros(us)}", (us, k), va="center", fontsize=8.5)
    axes.set_yticks(range(len(rows)), [])
    axes.set(xlabel="us", ylim=(len(rows) - 0.5, -0.5), xlim=(0, max(times, default=1.0) * 1.15 or 1.0))


def _tell_exact(axes: Any, at: list[float], rows: list[ModeRow], name: str, golden: str) -> None:
    """Words where there is no error: as many bits as one likes have no bar."""
    for y, r in zip(at, rows, strict=True):
        e = r.errors[name].get(golden)
        if e is not None and e.effective_bits == math.inf:
            axes.annotate(" no error", (0.0, y), va="center", fontsize=7.5)


def _bits(r: ModeRow, name: str, golden: str) -> float:
    e = r.errors[name].get(golden)
    return e.effective_bits if e is not None and math.isfinite(e.effective_bits) else 0.0


def precision_sweep(given: Mapping[str, Any], output: str | None = None) -> Figure:
    """Effective bits over the points of a sweep; beside them the elements that are not finite, where there are any."""
    study = read_study(given)
    name = output or next(iter(study.outputs), None)
    if study.parameter is None or name is None:
        raise UsageError(
            "this is a study of one point: `ascendtile precision --sweep k|scale|distribution` makes a sweep"
        )
    with styled():
        found = {"effective bits": _series(study.points, name, True)}
        lost = _series(study.points, name, False)
        if any(share for points in lost.values() for _, share in points):
            found["elements that are NaN or infinite, %"] = lost
        figure, panels = new_figure(1.0 + 4.5 * len(found), 4.4, columns=len(found))
        numbers = colours(study, name)
        for axes, (title, series) in zip(panels, found.items(), strict=True):
            for label, points in sorted(series.items(), reverse=True):
                k = numbers[label]
                axes.plot(*zip(*points, strict=True), marker=MARKS[k % 8], color=COLOURS[k % 7], label=label)
            axes.set_xticks(range(len(study.points)), [sweep_label(p.value) for p in study.points])
            axes.set(xlabel=texts.clean(study.parameter, 40), ylabel=title)
        below(figure, panels[0], 2 * len(found))
        told = _of_outputs(study, name, "precision_sweep")
        panels[0].set_title(f"{texts.clean(study.first.op, 40)}: {told}")
    return figure


def _series(points: Any, name: str, bits: bool) -> dict[str, list[tuple[int, float]]]:
    """Data type and compute type -> (place, figure)."""
    out: dict[str, dict[int, float]] = {}
    for k, p in enumerate(points):
        for label, r in labelled(p.rows, name).items():
            e = r.errors[name].get(EXACT)
            value = math.nan if e is None else e.effective_bits if bits else lost_percent(e)
            if math.isfinite(value):
                out.setdefault(label, {}).setdefault(k, value)
    return {n: list(found.items()) for n, found in out.items()}


MOST = 6  # outputs


def error_histogram(run: Run) -> Figure:
    """Elements by octave of their error in ulp, one panel for each output."""
    shown = [(n, populated(e)) for n, e in list(run.errors.items())[:MOST]]
    shown = [(n, bars) for n, bars in shown if bars]
    if not shown:
        raise UsageError("this run has no errors: it has times only, or nothing to compare")
    with styled():
        figure, panels = new_figure(5.2 * len(shown), 3.4, len(shown))
        for axes, (name, bars) in zip(panels, shown, strict=True):
            colours = [COLOURS[2] if label == "0" else COLOURS[0] for label, _ in bars]
            axes.bar(range(len(bars)), [n for _, n in bars], color=colours, width=0.84)
            every = max(1, len(bars) // 12)
            labels = [named(label) for label, _ in bars[::every]]
            axes.set_xticks(range(0, len(bars), every), labels, rotation=45, ha="right")
            axes.set(
                yscale="log", xlabel="error, ulp (from this power of two to the next)", ylabel="elements"
            )
            plain_figures(axes.yaxis)
            axes.set_title(texts.clean(name, 40))
            axes.grid(axis="x", visible=False)
    return figure


def error_magnitude(run: Run) -> Figure:
    """Mean and largest error in ulp by octave of the float64 result, one panel for each output."""
    shown = [
        (n, e.places.octaves) for n, e in list(run.errors.items())[:MOST] if e.places and e.places.octaves
    ]
    if not shown:
        raise UsageError("this run does not hold where its errors are")
    with styled():
        figure, panels = new_figure(5.2 * len(shown), 3.4, len(shown))
        for axes, (name, octaves) in zip(panels, shown, strict=True):
            xs = [o.exponent for o in octaves]
            sizes = {"largest": [o.max_ulp for o in octaves], "mean": [o.mean_ulp for o in octaves]}
            for k, (label, values) in enumerate(sizes.items()):
                axes.plot(xs, values, marker=MARKS[k], color=COLOURS[3 - 3 * k], label=label, markersize=4)
            axes.set(yscale="log", xlabel="magnitude of the float64 result", ylabel="error, ulp")
            every = max(1, (xs[-1] - xs[0]) // 8)
            ticks = range(xs[0], xs[-1] + 1, every)
            axes.set_xticks(ticks, [power(k) for k in ticks])
            plain_figures(axes.yaxis)
            axes.set_title(texts.clean(name, 40))
            axes.legend()
    return figure

"""Pictures of precision studies: bits by mode with time, and figures over a sweep."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from ...kernels.study.bench import EXACT, ROUNDED, ModeRow, Study
from ...simulator.errors import UsageError
from ..facts import texts
from ..facts.study_reading import read_study
from ..facts.study_rows import colours, distinct, labelled, lost_percent, sweep_label
from .style import COLOURS, MARKS, below, new_figure, styled


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
        for k, (golden, label) in enumerate(((EXACT, "exact inputs"), (ROUNDED, "inputs as multiplied"))):
            at = [j + 0.2 * (2 * k - 1) for j in range(len(rows))]
            found = [_bits(r, name, golden) for r in rows]
            bits.barh(at, found, height=0.36, color=COLOURS[5 * k], label=label)
        bits.set_yticks(range(len(rows)), [label.replace("  ", "\n") for label in labels])
        bits.set(xlabel="effective bits", ylim=(len(rows) - 0.5, -0.5))
        bits.legend(loc="upper left", bbox_to_anchor=(0.0, -0.12), ncols=2)
        first = study.first  # of a sweep the first point is drawn
        where = "" if study.parameter is None else f", {study.parameter} {first.value}"
        bits.set_title(texts.clean(f"{first.op}{f' {study.case}' if study.case else ''}: {name}{where}", 80))
        _times(time, rows)
    return figure


def _times(axes: Any, rows: list[ModeRow]) -> None:
    times = [r.time_us or 0.0 for r in rows]
    axes.barh(range(len(rows)), times, height=0.6, color=COLOURS[2])
    for k, us in enumerate(times):
        if us:
            axes.annotate(f" {texts.micros(us)}", (us, k), va="center", fontsize=8.5)
    axes.set_yticks(range(len(rows)), [])
    axes.set(xlabel="us", ylim=(len(rows) - 0.5, -0.5), xlim=(0, max(times, default=1.0) * 1.15 or 1.0))


def _bits(r: ModeRow, name: str, golden: str) -> float:
    e = r.errors[name].get(golden)
    return e.effective_bits if e is not None and math.isfinite(e.effective_bits) else 0.0


def precision_sweep(given: Mapping[str, Any], output: str | None = None) -> Figure:
    """Effective bits, and elements without a finite result, over the points of a sweep."""
    study = read_study(given)
    name = output or next(iter(study.outputs), None)
    if study.parameter is None or name is None:
        raise UsageError(
            "this is a study of one point: `ascendtile precision --sweep k|scale|distribution` makes a sweep"
        )
    with styled():
        figure, panels = new_figure(10.0, 4.2, columns=2)
        numbers = colours(study, name)
        titles = ("effective bits", "elements without a finite result, %")
        for axes, title in zip(panels, titles, strict=True):
            series = _series(study.points, name, title == titles[0])
            for label, points in sorted(series.items(), reverse=True):
                k = numbers[label]
                axes.plot(*zip(*points, strict=True), marker=MARKS[k % 8], color=COLOURS[k % 7], label=label)
            axes.set_xticks(range(len(study.points)), [sweep_label(p.value) for p in study.points])
            axes.set(xlabel=texts.clean(study.parameter, 40), ylabel=title)
        below(figure, panels[0])
        panels[0].set_title(texts.clean(f"{study.first.op}: {name}", 80))
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

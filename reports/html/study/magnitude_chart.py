"""Error by the magnitude of the result: a line for each computation of a study."""

from __future__ import annotations

import math
from collections.abc import Iterable

from markupsafe import Markup

from ....kernels.study.results import ModeRow
from ...facts import texts
from ...facts.charts import power, spread
from ...facts.study.magnitudes import ErrorByMagnitude, magnitudes
from ..svg import ChartFrame, line, mark
from .legend import with_legend

SIZES = ("mean error", "largest error")


def magnitude_charts(rows: Iterable[ModeRow], name: str) -> Markup:
    """The mean and the largest error side by side; empty where no row says where its errors are."""
    found, hidden = magnitudes(rows, name)
    if not any(x > 0 for e in found for _, *sizes in e.points for x in sizes):
        return Markup("")
    left = f", {hidden} computations are left out" if hidden else ""
    charts = (_chart(found, name, k, f"{SIZES[k].capitalize()}{left}") for k in range(2))
    return Markup('<div class="charts">{}</div>').format(Markup("").join(charts))


def _chart(found: list[ErrorByMagnitude], name: str, which: int, note: str) -> Markup:
    """which: 0 for the mean, 1 for the largest error."""
    series = [(x.label, [(p[0], p[1 + which]) for p in x.points if p[1 + which] > 0]) for x in found]
    every = [point for _, points in series for point in points]
    low, high = min(e for e, _ in every), max(e for e, _ in every)
    frame = ChartFrame(width=560, height=330, left=76)
    x, y = frame.x(low - 0.5, high + 1.5), frame.y(*spread([v for _, v in every], log=True), log=True)
    step = max(1, math.ceil((high - low + 2) / 9))
    ticks = [(float(k), power(k)) for k in range(low, high + 2, step)]
    parts = [frame.axes(x, y, "magnitude of the float64 result", "error / magnitude", ticks)]
    for k, (label, points) in enumerate(series):
        parts.append(line([(x(e + 0.5), y(v)) for e, v in points], class_=f"s{k % 7} thick"))
        for e, v in points:
            tip = f"{label}, from {power(e)}: {SIZES[which]} {v:.3g} of that"
            parts.append(mark(k, x(e + 0.5), y(v), 3.2, class_=f"f{k % 7}", data_tip=tip))
    chart = frame.svg(f"{SIZES[which]} of {texts.clean(name, 40)} by magnitude".capitalize(), *parts)
    return with_legend(chart, [(label, k) for k, (label, _) in enumerate(series)], note)

"""Errors of the outputs: a table, and for each output its histogram, error against magnitude, and the worst elements."""

from __future__ import annotations

import math

from markupsafe import Markup

from ...simulator.precision.metrics import ErrorReport
from ...simulator.precision.places import ErrorPlaces
from ...simulator.record.run import Run
from ..facts import texts
from ..facts.error_bars import named, populated
from ..facts.scales import power, spread
from .svg import ChartFrame, el, line, mark
from .writing import render

MOST_OUTPUTS = 12


def error_panel(run: Run) -> Markup:
    """Empty if the run has no errors."""
    if not run.errors:
        return Markup("")
    first = list(run.errors.items())[:MOST_OUTPUTS]
    shown = [(n, e, histogram(n, e), against_magnitude(n, e.places)) for n, e in first]
    return render("errors.html", outputs=shown, every=run.errors)


def histogram(name: str, e: ErrorReport) -> Markup:
    """Elements by their error in ulp: one bar for an octave, by logarithm; empty where there is nothing to show."""
    bars = populated(e)
    if not bars:
        return Markup("")
    frame = ChartFrame(width=560, height=250, bottom=62)
    x = frame.x(0.0, float(len(bars)))
    y = frame.y(0.5, max(n for _, n in bars) * 2.0, log=True)
    parts = [frame.axes(x, y, "error, ulp", "elements", [])]
    every = max(1, math.ceil(len(bars) / 14))
    for k, (label, n) in enumerate(bars):
        upper = " and more, below the double" if ".." in label else ""
        tip = f"{named(label)} ulp{upper}: {n:,} elements"
        if n > 0:
            box = {"x": x(k + 0.08), "y": y(n), "width": x(k + 0.92) - x(k + 0.08), "height": y(0.5) - y(n)}
            parts.append(el("rect", class_="f2" if label == "0" else "f0", data_tip=tip, **box))
        if k % every == 0:
            where = f"translate({x(k + 0.5):.1f} {frame.height - frame.bottom + 12}) rotate(-35)"
            parts.append(el("text", named(label), class_="tick", transform=where, text_anchor="end"))
    return frame.svg(f"Histogram of the errors of {texts.clean(name, 40)} in ulp", *parts)


def against_magnitude(name: str, places: ErrorPlaces | None) -> Markup:
    """Mean and largest error in ulp by the octave of the float64 result."""
    octaves = [] if places is None else [o for o in places.octaves if o.count > 0]
    if not octaves:
        return Markup("")
    frame = ChartFrame(width=560, height=250)
    low, high = octaves[0].exponent, octaves[-1].exponent
    x = frame.x(low - 0.5, high + 1.5)
    sizes = [v for o in octaves for v in (o.mean_ulp, o.max_ulp) if v > 0]
    y = frame.y(*spread(sizes, log=True), log=True)
    every = max(1, math.ceil((high - low + 2) / 9))
    ticks = [(float(k), power(k)) for k in range(low, high + 2) if (k - low) % every == 0]
    parts = [frame.axes(x, y, "magnitude of the float64 result", "error, ulp", ticks)]
    for k, (label, value) in enumerate((("largest", "max_ulp"), ("mean", "mean_ulp"))):
        points = [(o, getattr(o, value)) for o in octaves if getattr(o, value) > 0]
        parts.append(line([(x(o.exponent + 0.5), y(v)) for o, v in points], class_=f"s{3 - 3 * k} thick"))
        for o, v in points:
            tip = f"{power(o.exponent)}: {label} {v:.3g} ulp of {o.count:,} elements"
            parts.append(mark(k, x(o.exponent + 0.5), y(v), 3.2, class_=f"f{3 - 3 * k}", data_tip=tip))
    return frame.svg(f"Error of {texts.clean(name, 40)} against the magnitude of the result", *parts)

"""Errors of the outputs of a run: histogram in ulp, and against the magnitude of the result."""

from __future__ import annotations

from matplotlib.figure import Figure

from ...simulator.errors import UsageError
from ...simulator.record.run import Run
from ..facts import texts
from ..facts.error_bars import named, populated
from ..facts.scales import power
from .style import COLOURS, MARKS, new_figure, plain_figures, styled

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
            axes.set(yscale="log", xlabel="error from, ulp", ylabel="elements")
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

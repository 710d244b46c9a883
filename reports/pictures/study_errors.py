"""Pictures of the errors of a precision study: by the magnitude of the result, and what is too large or too small."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from ...kernels.study.results import ModeRow, Study
from ...simulator.errors import UsageError
from ..facts import texts
from ..facts.charts import power
from ..facts.study.json_form import output_of, read_study
from ..facts.study.lost import KINDS, LostShares, lost_shares
from ..facts.study.magnitudes import magnitudes
from .style import COLOURS, MARKS, below, new_figure, plain_figures, styled

MOST_ROWS = 60  # of tensors


def study_magnitude(given: Study | Mapping[str, Any], output: str | None = None) -> Figure:
    """Mean and largest error over the magnitude of the result, a line for each computation. given: a Study, or its JSON."""
    name, rows, title = _read(given, output)
    found, hidden = magnitudes(rows, name)
    if not any(x > 0 for e in found for _, *sizes in e.points for x in sizes):
        raise UsageError("this study does not hold where its errors are, or has none")
    with styled():
        figure, panels = new_figure(10.0, 4.2, columns=2)
        for which, (axes, what) in enumerate(zip(panels, ("mean", "largest"), strict=True)):
            for k, series in enumerate(found):
                points = [(p[0], p[1 + which]) for p in series.points if p[1 + which] > 0]
                look: Any = {"marker": MARKS[k % 8], "color": COLOURS[k % 7], "markersize": 3.5}
                axes.plot(*(zip(*points, strict=True) if points else ((), ())), label=series.label, **look)
            axes.set(
                yscale="log", xlabel="magnitude of the float64 result", ylabel=f"{what} error / magnitude"
            )
            plain_figures(axes.yaxis)
            low, high = map(round, axes.get_xlim())
            ticks = range(low, high + 1, max(1, (high - low) // 8))
            axes.set_xticks(ticks, [power(e) for e in ticks])
        below(figure, panels[0], 5)
        panels[0].set_title(f"{title}{f' ({hidden} more computations)' if hidden else ''}")
    return figure


def study_lost(given: Study | Mapping[str, Any], output: str | None = None) -> Figure:
    """Shares of the elements that are too large, zero, subnormal or NaN: of the operands as multiplied and the output."""
    name, rows, title = _read(given, output)
    found = lost_shares(rows, name)[:MOST_ROWS]
    if not found:
        raise UsageError("nothing in this study is too large, zero, subnormal or NaN that should not be")
    with styled():
        figure, (axes,) = new_figure(8.4, 1.5 + 0.24 * len(found))
        _stack(axes, found)
        labels = [f"{x.label}: {texts.clean(x.tensor, 30)}" for x in found]
        axes.set_yticks(range(len(found)), labels, fontsize=8.5)
        axes.set(xlabel="% of the elements", ylim=(len(found) - 0.5, -0.5))
        below(figure, axes, 4)
        axes.set_title(title)
    return figure


def _stack(axes: Any, found: list[LostShares]) -> None:
    start = [0.0] * len(found)
    for kind, (words, colour) in KINDS.items():
        parts = [100.0 * x.shares[kind] for x in found]
        axes.barh(range(len(found)), parts, left=start, height=0.7, color=COLOURS[colour], label=words)
        start = [a + b for a, b in zip(start, parts, strict=True)]
    for k, (x, end) in enumerate(zip(found, start, strict=True)):
        told = " + ".join(texts.share_text(share) for share in x.shares.values() if share)
        axes.annotate(f" {told}", (end, k), va="center", fontsize=7.5)
    axes.set_xlim(0.0, max(start) * 1.3)


def _read(given: Study | Mapping[str, Any], output: str | None) -> tuple[str, tuple[ModeRow, ...], str]:
    """The output, rows of the first point, and a title."""
    study = read_study(given)
    name = output_of(study, output)
    first = study.first
    title = f"{first.op}{f' {first.case}' if first.case else ''}"
    return name, first.rows, f"{texts.clean(title, 80)}: {texts.clean(name, 40)}"

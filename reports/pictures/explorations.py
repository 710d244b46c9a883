"""Pictures of an exploration: its Pareto front, and a heat map over two knobs."""

from __future__ import annotations

import math
from textwrap import fill

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from ...simulator.errors import UsageError
from ...tiling.results.exploration import Exploration
from ..facts import texts
from ..facts.charts import ONLY_TIME, empty_cells, only_time, other_axis
from .style import COLOURS, beneath, new_figure, plain_figures, styled


def pareto(e: Exploration) -> Figure:
    """Time against KiB of UB (the lower bound, where all have one peak) of all evaluated tilings, with the front."""
    ranked = [x for x in e.ranked if math.isfinite(x.time_us)]
    if not ranked:
        raise UsageError("nothing was evaluated, so there is no front")
    front = sorted(e.pareto, key=lambda x: x.time_us)
    axis = other_axis(e)
    if axis is None:
        raise UsageError(
            "nothing but the time of these tilings is known, so there is nothing to draw it against"
        )
    title, value = axis
    with styled():
        figure, (axes,) = new_figure(6.4, 4.2)
        every, best = (([x.time_us for x in found], [value(x) for x in found]) for found in (ranked, front))
        axes.plot(*every, "o", color=COLOURS[7], alpha=0.4, markersize=4, label="evaluated")
        axes.plot(*best, "o-", color=COLOURS[3], markersize=6.5, label="Pareto front")
        axes.set(xscale="log", xlabel="us", ylabel=title)
        plain_figures(axes.xaxis)
        remark = f"\n{ONLY_TIME}" if only_time(e) else ""
        axes.set_title(texts.clean(f"{named(e)} on {e.product}", 80) + remark)
        beneath(axes, 2)
    return figure


def heat_map(e: Exploration, rows: str | None = None, columns: str | None = None) -> Figure:
    """The best time for each pair of values of two knobs, by default the two that matter most."""
    if not e.whole:
        raise UsageError(
            f"a heat map needs all evaluated tilings; here are the best {len(e.found)} of {e.evaluated} "
            "(`ascendtile explore --export json` writes all)"
        )
    varied = [n for n in (*e.sensitivity(), *e.axes) if len(e.axes.get(n, ())) > 1]
    names = list(dict.fromkeys(varied))
    rows = rows or next((n for n in names if n != columns), None)
    columns = columns or next((n for n in names if n != rows), None)
    for n in (rows, columns):
        if n is None or n not in e.axes:
            raise UsageError(
                f"a heat map needs two knobs that vary; here these do: {', '.join(names) or 'none'}"
            )
    assert rows is not None
    assert columns is not None
    table = np.full((len(e.axes[rows]), len(e.axes[columns])), np.nan)
    for x in e.ranked:
        if x.point.get(rows) in e.axes[rows] and x.point.get(columns) in e.axes[columns]:
            at = e.axes[rows].index(x.point[rows]), e.axes[columns].index(x.point[columns])
            table[at] = np.nanmin([table[at], x.time_us])
    return _drawn(e, table, rows, columns)


def _drawn(e: Exploration, table: np.ndarray, rows: str, columns: str) -> Figure:
    with styled():
        wide = 2.8 + 0.72 * table.shape[1]
        figure, (axes,) = new_figure(wide, 2.0 + 0.46 * table.shape[0])
        norm = LogNorm(float(np.nanmin(table)), math.exp(_pale(table)))
        image = axes.imshow(table, cmap="Blues_r", aspect="auto", norm=norm)
        _colour_bar(figure, image, table)
        axes.set_xticks(range(table.shape[1]), [texts.clean(str(v), 14) for v in e.axes[columns]])
        axes.set_yticks(range(table.shape[0]), [texts.clean(str(v), 14) for v in e.axes[rows]])
        dark = np.nanmin(np.log(table)) + 0.45 * (_pale(table) - np.nanmin(np.log(table)))
        for (i, j), us in np.ndenumerate(table):
            if np.isfinite(us):
                colour = "white" if np.log(us) < dark else "#1c1f23"
                axes.text(j, i, texts.micros(float(us)), ha="center", va="center", fontsize=8.5, color=colour)
        axes.set(xlabel=texts.clean(columns, 40), ylabel=texts.clean(rows, 40))
        axes.set_title(texts.clean(f"{named(e)}: best us", 80))
        axes.grid(visible=False)
        if np.isnan(table).any():
            figure.supxlabel(fill(empty_cells(e), int(14 * wide)), x=0.01, ha="left", fontsize=8)
    return figure


def _colour_bar(figure: Figure, image: AxesImage, table: np.ndarray) -> None:
    """Beside the map; of the times that it has, as the colours go on beyond them."""
    bar = figure.colorbar(image, ax=figure.axes[0])
    bar.ax.set_ylim(float(np.nanmin(table)), float(np.nanmax(table)) * 1.0001)
    bar.set_label("us")
    plain_figures(bar.ax.yaxis)


def _pale(table: np.ndarray) -> float:
    """End of the colours: beyond the slowest, so that it is still seen."""
    logs = np.log(table)
    return float(np.nanmax(logs) + 0.25 * (np.nanmax(logs) - np.nanmin(logs)) + 0.05)


def named(e: Exploration) -> str:
    """What was explored."""
    return f"{e.op} {e.case}" if e.case else e.op

"""The roofline of a run's dearest launch."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...simulator.errors import UsageError
from ...simulator.record.run import Run
from ..facts import texts
from ..facts.rooflines import UnitRoofline, units
from ..facts.scales import spread
from .style import COLOURS, MARKS, beneath, new_figure, plain_figures, styled

GIGA = 1e9  # figures are in G operations per s


def roofline(run: Run) -> Figure:
    """A panel for each unit that computes: peaks, slopes of the paths to memory, and where the run stands under each."""
    if not run.launches:
        raise UsageError("this run has no times, and so no roofline")
    launch = max(run.launches, key=lambda x: x.time_us)
    found = units(launch)
    if not found:
        raise UsageError(f"{launch.kernel[:60]} computes on no unit: it only moves data")
    with styled():
        figure, panels = new_figure(5.6 * len(found), 4.8, len(found))
        for axes, u in zip(panels, found, strict=True):
            _panel(axes, u)
            axes.set_title(
                f"{texts.clean(launch.kernel, 40)}, {u.name} unit: {texts.percent(u.reached)} of its peak"
            )
    return figure


def _panel(axes: Axes, u: UnitRoofline) -> None:
    top = max(u.peaks.values(), default=u.gops)
    xs = spread([*(top / v.gb_per_s for v in u.levels), *(v.intensity for v in u.levels)], log=True, room=0.2)
    for kind, peak in u.peaks.items():
        axes.axhline(peak, color="#3a4149", linewidth=1.2)
        axes.annotate(f"peak {kind}", (xs[1], peak), ha="right", va="bottom", fontsize=8.5, color="#3a4149")
    for k, v in enumerate(u.levels):
        ridge = min(top / v.gb_per_s, xs[1])
        axes.plot([xs[0], ridge], [xs[0] * v.gb_per_s, ridge * v.gb_per_s], color=COLOURS[k], linewidth=1.6)
        label = f"{v.name}: {texts.percent(v.used)} used"
        shape: Any = {"color": COLOURS[k], "markersize": 8, "markeredgecolor": "white", "zorder": 3}
        axes.plot([v.intensity], [u.gops], MARKS[k], label=label, **shape)
    axes.axhline(u.gops, color="#5b636d", linewidth=0.9, linestyle=(0, (4, 3)))
    low = min(u.gops, *(v.gb_per_s * xs[0] * 3 for v in u.levels)) if u.levels else u.gops
    axes.set(xscale="log", yscale="log", xlim=xs, ylim=(low / 2, top * 1.8))
    axes.set(xlabel="operations per byte (padding of tiles included)", ylabel="operations per s")
    plain_figures(axes.xaxis)
    plain_figures(axes.yaxis, GIGA)
    beneath(axes, 2)

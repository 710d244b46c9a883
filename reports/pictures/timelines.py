"""Pictures of a run's launches: pipes of one core over time, what fills the buffers, and the roofline."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...simulator.errors import UsageError
from ...simulator.record.run import Launch, Run
from ..facts import texts
from ..facts.charts import spread
from ..facts.launch_figures import TERA, UnitRoofline, over_time, peak_text, units
from ..facts.timelines import NOTHING, Lanes, core_text, sort_lanes, told_part, told_until
from .style import COLOURS, MARKS, PIPES, beneath, new_figure, plain_figures, styled

MOST = 6000  # instructions of a lane; neighbours are drawn as one beyond


def timeline(run: Run, core: int | None = None, first: float = 0.0, last: float | None = None) -> Figure:
    """Instructions of a core (the slowest that the timeline has) that take a pipe between two cycles."""
    with_time = [x for x in run.launches if x.timeline is not None and len(x.timeline.start)]
    if not with_time:
        raise UsageError("this run keeps no timeline (device option timeline=20000)")
    launch = max(with_time, key=lambda x: x.time_us)
    assert launch.timeline is not None
    t = told_part(launch.timeline)
    if not len(t.start):
        raise UsageError(f"the timeline of {texts.clean(launch.kernel, 60)} is too short to draw: {NOTHING}")
    lanes = sort_lanes(t)
    chosen = _slowest(launch, lanes) if core is None else core
    mine = [k for k, key in enumerate(lanes.keys) if key[0] == chosen]
    if not mine:
        cores = sorted({c for c, _ in lanes.keys})
        raise UsageError(f"the timeline has no core {chosen}; it has {cores[0]} to {cores[-1]}")
    with styled():
        figure, (axes,) = new_figure(9.0, 0.62 + 0.42 * len(mine))
        for row, k in enumerate(mine):
            unit = texts.clean(t.pipes[lanes.keys[k][1]], 24)
            span = slice(int(lanes.first[k]), int(lanes.first[k + 1]))
            bars = _joined(lanes.start[span] * lanes.cycles_per_tick, lanes.end[span] * lanes.cycles_per_tick)
            colour = COLOURS[PIPES.get(unit.rpartition(".")[2], 6)]
            axes.broken_barh(bars, (row - 0.38, 0.76), color=colour, linewidth=0)
        names = [texts.clean(t.pipes[lanes.keys[k][1]], 24) for k in mine]
        axes.set_yticks(range(len(mine)), names)
        whole = lanes.span * lanes.cycles_per_tick
        end = whole if last is None else min(last, whole)
        axes.set(xlim=(first, end), ylim=(len(mine) - 0.4, -0.6), xlabel="cycle")
        until = told_until(t) or launch.cycles
        first_ones = f", the first {texts.count(until)} of {texts.count(launch.cycles)} cycles"
        part = first_ones if until < launch.cycles else ""
        axes.set_title(f"{texts.clean(launch.kernel, 40)}, {core_text(launch, chosen)}{part}")
        axes.grid(axis="y", visible=False)
    return figure


def _slowest(launch: Launch, lanes: Lanes) -> int:
    """Of the cores with lanes."""
    cores = dict.fromkeys(core for core, _ in lanes.keys)
    cycles = launch.core_cycles
    return max(cores, key=lambda c: cycles[c] if c < len(cycles) else 0.0)


def _joined(start: np.ndarray, end: np.ndarray) -> list[tuple[float, float]]:
    """(start, length) of bars; where there are many, those closer than a pixel are one."""
    if len(start) > MOST:
        gap = (end[-1] - start[0]) / 4000
        breaks = np.flatnonzero(start[1:] - end[:-1] > gap)
        start, end = start[np.append(0, breaks + 1)], end[np.append(breaks, len(end) - 1)]
    return [(float(a), float(b - a)) for a, b in zip(start, end, strict=True)]


def occupancy(run: Run) -> Figure:
    """A panel for each buffer whose ledger has steps: stairs of KiB under the capacity."""
    if not run.launches:
        raise UsageError("this run has no times, and so no ledger of buffers")
    launch = max(run.launches, key=lambda x: x.time_us)
    found = [(n, b, *over_time(launch, b)) for n, b in launch.buffers.items() if b.peak_bytes > 0 and b.steps]
    if not found:
        raise UsageError(f"{launch.kernel[:60]} uses no buffer")
    with styled():
        figure, panels = new_figure(7.0, 2.4 * len(found), rows=len(found))
        for axes, (name, b, points, axis) in zip(panels, found, strict=True):
            xs, ys = [c for c, _ in points], [size / 1024 for _, size in points]
            axes.fill_between(xs, ys, step="post", color=COLOURS[0], alpha=0.25, linewidth=0)
            axes.step(xs, ys, where="post", color=COLOURS[0], linewidth=1.2)
            axes.axhline(b.capacity_bytes / 1024, color=COLOURS[3], linewidth=1.3, linestyle=(0, (5, 3)))
            end = (xs[-1], b.capacity_bytes / 1024)
            axes.annotate("capacity", end, ha="right", va="bottom", fontsize=8.5, color=COLOURS[3])
            top = max(b.capacity_bytes, b.peak_bytes) / 1024 * 1.14
            axes.set(xlabel=axis, ylabel="KiB in use", ylim=(0, top))
            title = f"{texts.clean(launch.kernel, 40)}: {texts.clean(name, 20)}, {peak_text(b)}"
            axes.set_title(title, fontsize="medium")
    return figure


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
    entries = [_level(axes, u, k, xs) for k in range(len(u.levels))]
    axes.axhline(u.gops, color="#5b636d", linewidth=0.9, linestyle=(0, (4, 3)))
    low = min(u.gops, *(v.gb_per_s * xs[0] * 3 for v in u.levels)) if u.levels else u.gops
    axes.set(xscale="log", yscale="log", xlim=xs, ylim=(low / 2, top * 1.8))
    axes.set(xlabel="operations per byte (padding of tiles included)", ylabel=u.rate_name)
    plain_figures(axes.xaxis)
    plain_figures(axes.yaxis, TERA)
    beneath(axes, 2, handles=entries, title="Markers: this run. Each belongs to the line of its colour.")


def _level(axes: Axes, u: UnitRoofline, k: int, xs: tuple[float, float]) -> Line2D:
    """The line of a path to memory up to the peak, and where the run stands; gives what the legend shows of both."""
    v, top = u.levels[k], max(u.peaks.values(), default=u.gops)
    end = min(top / v.gb_per_s, xs[1])
    shape: Any = {"color": COLOURS[k], "markersize": 8, "markeredgecolor": "white", "marker": MARKS[k]}
    axes.plot([xs[0], end], [xs[0] * v.gb_per_s, end * v.gb_per_s], color=COLOURS[k], linewidth=1.6)
    axes.plot([v.intensity], [u.gops], linestyle="none", zorder=3, **shape)
    return Line2D([], [], label=f"{v.name}: {texts.percent(v.used)} used", **shape)

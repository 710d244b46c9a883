"""The pipe timeline of a run's dearest launch: one core, a lane for each pipe."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from ...simulator.errors import UsageError
from ...simulator.record.run import Run
from ..facts import texts
from ..facts.timelines import NOTHING, sort_lanes, told_part, told_until
from .style import COLOURS, PIPES, new_figure, styled

MOST = 6000  # instructions of a lane; neighbours are drawn as one beyond


def timeline(run: Run, core: int | None = None, first: float = 0.0, last: float | None = None) -> Figure:
    """Instructions of a core (the first of the timeline) that take a pipe between two cycles."""
    with_time = [x for x in run.launches if x.timeline is not None and len(x.timeline.start)]
    if not with_time:
        raise UsageError("this run keeps no timeline (device option timeline=20000)")
    launch = max(with_time, key=lambda x: x.time_us)
    assert launch.timeline is not None
    t = told_part(launch.timeline)
    if not len(t.start):
        raise UsageError(f"the timeline of {texts.clean(launch.kernel, 60)} is too short to draw: {NOTHING}")
    lanes = sort_lanes(t)
    chosen = lanes.keys[0][0] if core is None else core
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
        until = told_until(t)
        first_ones = f", the first {texts.count(until or 0)} of {texts.count(launch.cycles)} cycles"
        part = "" if until is None else first_ones
        axes.set_title(f"{texts.clean(launch.kernel, 40)}, core {chosen}{part}")
        axes.grid(axis="y", visible=False)
    return figure


def _joined(start: np.ndarray, end: np.ndarray) -> list[tuple[float, float]]:
    """(start, length) of bars; where there are many, those closer than a pixel are one."""
    if len(start) > MOST:
        gap = (end[-1] - start[0]) / 4000
        breaks = np.flatnonzero(start[1:] - end[:-1] > gap)
        start, end = start[np.append(0, breaks + 1)], end[np.append(breaks, len(end) - 1)]
    return [(float(a), float(b - a)) for a, b in zip(start, end, strict=True)]

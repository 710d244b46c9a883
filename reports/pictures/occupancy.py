"""How full the buffers of a run's dearest launch are over time."""

from __future__ import annotations

from matplotlib.figure import Figure

from ...simulator.errors import UsageError
from ...simulator.record.run import Run
from ..facts import texts
from ..facts.occupancy import over_time, peak_text
from .style import COLOURS, new_figure, styled


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

"""Buffers of a launch: how full they are over time, their capacity, and what is alive at the peak."""

from __future__ import annotations

from markupsafe import Markup

from ...simulator.record.run import Buffer, Launch
from ..facts.occupancy import alive_at_peak, over_time, peak_text
from .svg import ChartFrame, el, steps
from .writing import render

KIB = 1024


def buffers(launch: Launch) -> Markup:
    """A picture and a table for each buffer that is used."""
    used = [(n, b) for n, b in launch.buffers.items() if b.peak_bytes > 0]
    shown = [(n, b, chart(launch, n, b), alive_at_peak(b)) for n, b in used]
    return render("buffers.html", buffers=shown) if used else Markup("")


def chart(launch: Launch, name: str, b: Buffer) -> Markup:
    """Stairs of KiB over time under a line at the capacity; empty where the ledger has no steps."""
    points, axis = over_time(launch, b)
    if len(points) < 2:
        return Markup("")
    frame = ChartFrame(width=560, height=230)
    x = frame.x(points[0][0], points[-1][0])
    y = frame.y(0.0, max(b.capacity_bytes, b.peak_bytes) / KIB * 1.08)
    path = steps([(x(c), y(size / KIB)) for c, size in points], y(0.0))
    limit = y(b.capacity_bytes / KIB)
    label = f"{name}: {peak_text(b)}"
    return frame.svg(
        label,
        frame.axes(x, y, axis, "KiB in use"),
        el("path", d=path, class_="f0 area"),
        el("path", d=path.removesuffix("Z"), class_="s0", fill="none"),
        el("line", class_="limit", x1=frame.left, x2=frame.width - frame.right, y1=limit, y2=limit),
        el("text", "capacity", class_="tick", x=frame.width - frame.right, y=limit - 5, text_anchor="end"),
    )

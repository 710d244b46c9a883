"""Pictures of one launch with their tables: the roofline of each unit, and how full each buffer is over time."""

from __future__ import annotations

from markupsafe import Markup

from ...simulator.record.run import Buffer, Launch
from ..facts import texts
from ..facts.charts import Scale, spread
from ..facts.launch_figures import (
    TERA,
    UnitRoofline,
    alive_at_peak,
    allocated_text,
    bits_text,
    freed_text,
    holes_bytes,
    made_at,
    over_time,
    peak_text,
    shape_text,
    units,
    why_text,
)
from .svg import ChartFrame, el, line, spot, steps
from .writing import render

KIB = 1024


def rooflines(launch: Launch) -> Markup:
    """One for each unit, with a point for each path to memory; empty if the launch has no operations."""
    found = units(launch)
    return render("roofline.html", units=[(u, roofline_chart(u)) for u in found]) if found else Markup("")


def roofline_chart(u: UnitRoofline) -> Markup:
    """Operations per byte against operations per time, both by logarithm."""
    frame = ChartFrame(width=560, height=350, right=30)
    top = max(u.peaks.values(), default=u.gops)
    ridges = [top / v.gb_per_s for v in u.levels]
    x = frame.x(*spread([*ridges, *(v.intensity for v in u.levels)], log=True, room=0.18), log=True)
    lows = [u.gops, *(v.gb_per_s * min(v.intensity, x.high) for v in u.levels)]
    y = frame.y(*spread([*lows, u.gops / 3, top * 1.15], log=True, room=0.02), log=True)
    parts = [frame.axes(x, y, "operations per byte", u.rate_name, y_unit=TERA)]
    parts += [_peak(x, y, kind, peak) for kind, peak in u.peaks.items()]
    parts += [_slope(x, y, v.gb_per_s, top, k) for k, v in enumerate(u.levels)]
    parts.append(
        el("line", class_="here", x1=frame.left, x2=frame.width - frame.right, y1=y(u.gops), y2=y(u.gops))
    )
    for k, v in enumerate(u.levels):
        tip = (
            f"{v.name}: {v.intensity:.3g} operations per byte, {texts.percent(v.used)} of its bandwidth used"
        )
        parts.append(spot(k, x(v.intensity), y(u.gops), 6, tip, f"f{k}"))
    label = f"Roofline of the {u.name} unit: {u.gops * TERA:.4g} {u.rate_name}, {texts.percent(u.reached)} of the peak"
    return frame.svg(label, *parts)


def _peak(x: Scale, y: Scale, kind: str, peak: float) -> Markup:
    where = y(peak)
    text = el("text", f"peak {kind}", class_="tick", x=x.last, y=where - 6, text_anchor="end")
    return el("line", class_="limit", x1=x.first, x2=x.last, y1=where, y2=where) + text


def _slope(x: Scale, y: Scale, rate: float, top: float, k: int) -> Markup:
    """From the lower edge of the picture up to the peak."""
    low = max(x.low, y.low / rate)
    high = min(x.high, top / rate)
    if high <= low:
        return Markup("")
    return line([(x(low), y(low * rate)), (x(high), y(high * rate))], class_=f"s{k} thick")


def buffers(launch: Launch) -> Markup:
    """A picture and a table for each buffer that is used."""
    used = [(n, b) for n, b in launch.buffers.items() if b.peak_bytes > 0]
    shown = [(n, b, occupancy_chart(launch, n, b), alive_at_peak(b)) for n, b in used]
    words = {
        "bits": bits_text,
        "allocated": allocated_text,
        "why": why_text,
        "shape": shape_text,
        "made_at": made_at,
        "holes": holes_bytes,
        "freed": freed_text,
    }
    return render("buffers.html", buffers=shown, **words) if used else Markup("")


def occupancy_chart(launch: Launch, name: str, b: Buffer) -> Markup:
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

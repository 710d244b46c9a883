"""A launch for charts: each unit as points of a roofline, and what fills each buffer over time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ...simulator.record.run import Buffer, Launch, LiveValue, Roof
from . import texts
from .timelines import core_text, told_until

# Unit -> the paths to memory that feed it, from the farthest; HBM and L2 are shared.
LEVELS = {
    "Cube": ("HBM", "L2", "GM to L1", "L1 to L0A", "L1 to L0B", "L0C to GM"),
    "Vector": ("HBM", "L2", "GM to UB", "UB to GM"),
}


@dataclass(frozen=True)
class Level:
    """One path to memory. intensity: operations for each byte. gb_per_s: its most; used: part of that, 0 to 1."""

    name: str
    bytes: float
    gb_per_s: float
    intensity: float
    used: float


@dataclass(frozen=True)
class UnitRoofline:
    """One unit. gops: operations of the launch per ns of its time; peaks: data type -> the most (likewise)."""

    name: str
    operations: float
    gops: float
    peaks: dict[str, float]
    levels: tuple[Level, ...]

    @property
    def reached(self) -> float:
        """Part of the time that the operations would take at the peaks of their types alone."""
        return self.gops / max(self.peaks.values(), default=math.inf)

    @property
    def rate_name(self) -> str:
        """What 10^12 operations per s are called."""
        return "TOP/s" if self.peaks and all("int" in kind for kind in self.peaks) else "TFLOP/s"


def units(launch: Launch) -> tuple[UnitRoofline, ...]:
    """The units that the launch computes on."""
    found = (_unit(launch, name) for name in LEVELS)
    return tuple(u for u in found if u is not None)


def _unit(launch: Launch, name: str) -> UnitRoofline | None:
    mine = {n.removeprefix(f"{name} "): r for n, r in launch.roofs.items() if n.startswith(f"{name} ")}
    operations = sum(r.amount for r in mine.values())
    ns = launch.time_us * 1e3
    if not _sane(operations) or not _sane(ns):
        return None
    paths = ((n, launch.roofs[n]) for n in LEVELS[name] if n in launch.roofs)
    levels = tuple(_level(n, r, operations, ns) for n, r in paths if _sane(r.amount) and _sane(r.per_us))
    peaks = {t: r.per_us / 1e3 for t, r in mine.items() if _sane(r.per_us)}
    return UnitRoofline(name, operations, operations / ns, peaks, levels)


def _level(name: str, r: Roof, operations: float, ns: float) -> Level:
    return Level(name, r.amount, r.per_us / 1e3, operations / r.amount, r.amount / ns / (r.per_us / 1e3))


def _sane(x: float) -> bool:
    return math.isfinite(x) and x > 0


TERA = 1e-3  # of figures that are in G operations per s
MOST_POINTS = 4000  # what a page can show
MOST_CHANGES = 3  # of a buffer, in a sentence


def over_time(launch: Launch, buffer: Buffer) -> tuple[list[tuple[float, int]], str]:
    """([(where, bytes from then on)], what the axis is).

    Cycles of one core; where the record has none (it was run without a timeline, or by an earlier version) the steps of
    the program, with what is set aside there.
    """
    if buffer.held:
        points = [(0.0, 0), *occupancy(buffer)]
        return points, f"cycle, {core_text(launch, told_core(launch))}{_cut_text(launch, points[-1][0])}"
    stairs = [(float(k), size) for k, (_, size) in enumerate(buffer.steps)]
    return _merged(stairs), "step of the program"


def _cut_text(launch: Launch, last: float) -> str:
    """Where the stairs end before the launch does."""
    until = None if launch.timeline is None else told_until(launch.timeline)
    if until is None or until >= launch.cycles or last >= 0.99 * launch.cycles:
        return ""
    return f" (recorded to cycle {texts.count(last)} of {texts.count(launch.cycles)})"


def occupancy(buffer: Buffer) -> list[tuple[float, int]]:
    """`buffer.held` in the order of time: a record may be anybody's."""
    return sorted((c, max(0, size)) for c, size in buffer.held if 0 <= c < math.inf)[:MOST_POINTS]


def peak_text(buffer: Buffer) -> str:
    """What has to fit, and what is allocated where there is more room than that."""
    peak = f"{texts.kib(buffer.peak_bytes)} of {texts.kib(buffer.capacity_bytes)} KiB at the peak"
    if buffer.placed_bytes <= buffer.peak_bytes:
        return peak
    return f"{peak} ({texts.kib(buffer.placed_bytes)} allocated)"


def alive_at_peak(buffer: Buffer) -> list[tuple[int, LiveValue]]:
    """(how many, one of them): values at the peak that differ by their place only are told once, what takes most first."""
    counts: dict[LiveValue, int] = {}
    for value in buffer.peak:
        alike = replace(value, offset=0, offsets=())
        counts[alike] = counts.get(alike, 0) + 1
    found = [(n, value) for value, n in counts.items()]
    return sorted(found, key=lambda x: -x[0] * x[1].bytes * x[1].copies)


def why_text(value: LiveValue) -> str:
    """What a buffer is there for, and how often: "second copy" of a tile, "3 copies", "stride padding, 2 x"."""
    if value.copies == 1:
        return texts.clean(value.why, 20)
    if value.why in ("", "tile", "second copy"):
        return "second copy" if value.copies == 2 else f"{value.copies} copies"
    return f"{texts.clean(value.why, 20)}, {value.copies} x"


def shape_text(value: LiveValue) -> str:
    """ "2x1024 fp32"; empty of a buffer that holds no tile of the kernel."""
    dims = "x".join(map(str, value.shape)) or ("scalar" if value.dtype else "")
    return texts.clean(f"{dims} {value.dtype}".strip(), 60)


def made_at(value: LiveValue) -> str:
    """The line that a buffer is for; empty where none is known."""
    if not value.line:
        return ""
    return texts.place(value.file, value.line) if value.file else f"line {value.line}"


def bits_text(buffer: Buffer) -> str:
    """As the vendor's compiler counts: "1,318,912 of 1,572,864 bits"."""
    return f"{texts.count(8 * buffer.peak_bytes)} of {texts.count(8 * buffer.capacity_bytes)} bits"


def allocated_text(buffer: Buffer) -> str:
    """The figure that the vendor's compiler prints, where the need is another one: its memory planner tells the highest
    address of the plan, and values lie side by side where there is room. Empty where both are one."""
    if buffer.used_bytes == buffer.peak_bytes:
        return ""
    return (
        f"{texts.count(8 * buffer.used_bytes)} bits are allocated, as values lie side by side where there is room; "
        f"what has to fit is {texts.count(8 * buffer.peak_bytes)}"
    )


def holes_bytes(buffer: Buffer) -> int:
    """What the plan needs beyond the values at the peak, as these cannot lie closer; 0 where nobody told the values."""
    return max(0, buffer.peak_bytes - buffer.alive_bytes) if buffer.peak else 0


def freed_text(buffer: Buffer) -> str:
    """What the buffer needs after single changes, the one that frees most first. Tried where the run tried changes; else
    reckoned from the values at the peak, as is what int32 in place of int64 would free.

    Empty where the buffer is less than half full, or nothing is known.
    """
    if 2 * buffer.peak_bytes < buffer.capacity_bytes:
        return ""
    found = {f"{texts.clean(change, 40)} (tried)": need for change, need in buffer.freed.items()}
    for change, size in _reckoned(buffer).items():
        if size and change not in buffer.freed:
            found[f"{change} (reckoned)"] = max(0, buffer.peak_bytes - size)
    least = sorted(found.items(), key=lambda x: x[1])[:MOST_CHANGES]
    return "; ".join(f"{texts.kib(need)} KiB {change}" for change, need in least)


def _reckoned(buffer: Buffer) -> dict[str, int]:
    """Bytes of the values at the peak that a change would free."""
    copies = 0 if buffer.freed else sum(v.bytes * (v.copies - 1) for v in buffer.peak if v.copies > 1)
    wide = sum(v.bytes * v.copies for v in buffer.peak if v.dtype == "int64") // 2
    return {"without second copies": copies, "with int32 in place of int64": wide}


def told_core(launch: Launch) -> int:
    """The core whose buffers the record tells over time."""
    t = launch.timeline
    if t is None or not len(t.core):
        return 0
    cores, counts = np.unique(t.core, return_counts=True)  # as `timing/results/occupancy.py` chooses
    return int(cores[counts.argmax()])


def _merged(points: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Without points that change nothing."""
    last = len(points) - 1
    return [p for k, p in enumerate(points) if k in (0, last) or p[1] != points[k - 1][1]]

"""How full a buffer is over time: bytes that hold a value on one core, as the record has them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ...simulator.record.run import Buffer, Launch, LiveValue
from . import texts
from .timelines import told_until

MOST_POINTS = 4000  # what a page can show


def over_time(launch: Launch, buffer: Buffer) -> tuple[list[tuple[float, int]], str]:
    """([(where, bytes from then on)], what the axis is).

    Cycles of one core; where the record has none (it was run without a timeline, or by an earlier version) the steps of
    the program, with what is set aside there.
    """
    if buffer.held:
        points = [(0.0, 0), *occupancy(buffer)]
        return points, f"cycle of core {told_core(launch)}{_cut_text(launch, points[-1][0])}"
    stairs = [(float(k), size) for k, (_, size) in enumerate(buffer.steps)]
    return _merged(stairs), "step of the program"


def _cut_text(launch: Launch, last: float) -> str:
    """Where the stairs end before the launch does."""
    whole = launch.timeline is None or told_until(launch.timeline) is None
    if whole or last >= 0.99 * launch.cycles:
        return ""
    return f", told for the first {texts.count(last)} of {texts.count(launch.cycles)}"


def occupancy(buffer: Buffer) -> list[tuple[float, int]]:
    """`buffer.held` in the order of time: a record may be anybody's."""
    return sorted((c, max(0, size)) for c, size in buffer.held if 0 <= c < math.inf)[:MOST_POINTS]


def peak_text(buffer: Buffer) -> str:
    """What has to fit, and what is taken where there is more room than that."""
    peak = f"{texts.kib(buffer.peak_bytes)} of {texts.kib(buffer.capacity_bytes)} KiB at the peak"
    if buffer.placed_bytes <= buffer.peak_bytes:
        return peak
    return f"{peak}, spread over {texts.kib(buffer.placed_bytes)} as there is room"


def alive_at_peak(buffer: Buffer) -> list[tuple[int, LiveValue]]:
    """(how many, one of them): values at the peak that differ by their place only are told once, what takes most first."""
    counts: dict[LiveValue, int] = {}
    for value in buffer.peak:
        alike = replace(value, offset=0)
        counts[alike] = counts.get(alike, 0) + 1
    found = [(n, value) for value, n in counts.items()]
    return sorted(found, key=lambda x: -x[0] * x[1].bytes * x[1].copies)


def told_core(launch: Launch) -> int:
    """The core whose buffers the record tells over time."""
    t = launch.timeline
    if t is None or not len(t.core):
        return 0
    cores, counts = np.unique(t.core, return_counts=True)
    return int(cores[counts.argmax()])


def _merged(points: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Without points that change nothing."""
    last = len(points) - 1
    return [p for k, p in enumerate(points) if k in (0, last) or p[1] != points[k - 1][1]]

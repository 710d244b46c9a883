"""A timeline as compact arrays for the page: sorted by lane, shares of time in levels of detail, packed.

Of a timeline that was cut only the part that tells everything is shown (`told_part`). A lane is one pipe of one core. Times
are whole ticks of a fraction of a cycle, so that 32 bits hold them. A level of detail has, for each lane and bucket of time,
the share that the pipe is busy and the line of the last instruction that starts there; the page draws from it while a bucket
is about as wide as a pixel, and single instructions from there on.
"""

from __future__ import annotations

import base64
import zlib
from pathlib import PurePath
from typing import Any

import numpy as np

from ...simulator.record.files import picked
from ...simulator.record.run import Launch, Timeline
from ..facts.texts import clean
from ..facts.timelines import Lanes, renumbered, sort_lanes, told_part

EXACT = 40_000  # instructions that a browser draws one by one without help
BUCKETS = (256, 1024, 4096)
LOAD = 512  # buckets of the overview
NO_LINE = 0xFFFF
COLOURS = {"V": 0, "MTE2": 1, "MTE3": 2, "M": 3, "MTE1": 4, "FIXP": 5, "S": 7}


def timeline_data(launch: Launch) -> dict[str, Any]:
    """What the script reads for one launch with a timeline."""
    assert launch.timeline is not None
    t = told_part(launch.timeline)
    lanes = sort_lanes(t)
    line = _line_numbers(t, lanes.order, len(launch.lines))
    return {
        "span": lanes.span,
        "cycles_per_tick": lanes.cycles_per_tick,
        "lanes": [_lane(t, lanes, k) for k in range(len(lanes.keys))],
        "lines": [
            [PurePath(clean(x.file)).name, x.line, clean(x.source, 160)] for x in launch.lines[:NO_LINE]
        ],
        "columns": _columns(t, lanes, line),
        "levels": levels(lanes, line),
        "load": _bytes(busy_shares(lanes, LOAD).mean(axis=0)).tolist() if len(lanes.keys) else [],
        "reasons": [clean(x, 40) for x in t.reasons],
        "names": [clean(x, 60) for x in t.names],
    }


def _line_numbers(t: Timeline, order: np.ndarray, count: int) -> np.ndarray:
    line = t.line[order].astype(np.int64)
    return np.where((line >= 0) & (line < min(count, NO_LINE)), line, NO_LINE).astype(np.uint16)


def _lane(t: Timeline, lanes: Lanes, k: int) -> dict[str, Any]:
    core, pipe = lanes.keys[k]
    unit, _, name = clean(t.pipes[pipe], 24).rpartition(".")
    return {
        "core": core,
        "unit": unit,
        "pipe": name if unit != "AIV1" else f"{name} (1)",
        "colour": COLOURS.get(name, 6),
        "first": int(lanes.first[k]),
        "count": int(lanes.first[k + 1] - lanes.first[k]),
    }


def _columns(t: Timeline, lanes: Lanes, line: np.ndarray) -> dict[str, Any]:
    order = lanes.order
    return {
        "start": packed(lanes.start.astype(np.uint32), delta=True),
        "length": packed((lanes.end - lanes.start).astype(np.uint32)),
        "line": packed(line),
        "program": packed(np.clip(t.program[order], 0, 2**32 - 1).astype(np.uint32), delta=True),
        **_gaps(t, order, lanes.cycles_per_tick),
    }


def _gaps(t: Timeline, order: np.ndarray, cycles_per_tick: float) -> dict[str, Any]:
    """What instructions waited for; nothing where an earlier version wrote the record."""
    columns = picked(t, "gap bandwidth bytes waited reason name")
    if any(x is None for x in columns.values()):
        return {}
    gap, bandwidth, moved, waited, reason, name = (x[order] for x in columns.values())
    return {
        "gap": packed(_whole(gap, cycles_per_tick)),
        "bandwidth": packed(_whole(bandwidth, cycles_per_tick)),
        "bytes": packed(_whole(moved, 1.0)),
        "waited": packed(renumbered(waited, order, len(order))),
        "reason": packed(np.where(reason < 0, 255, reason.astype(np.int16)).astype(np.uint8)),
        "name": packed(name.astype(np.uint16)),
    }


def _whole(values: np.ndarray, unit: float) -> np.ndarray:
    """In units, as numbers of 32 bits; what is not finite is 0."""
    finite = np.nan_to_num(values.astype(np.float64), posinf=0.0, neginf=0.0)
    return np.clip(np.rint(finite / unit), 0, 2**32 - 1).astype(np.uint32)


def levels(lanes: Lanes, line: np.ndarray) -> list[dict[str, Any]]:
    """Coarse to fine; none where there are few instructions, and none with more buckets than half of them."""
    n = len(lanes.start)
    wanted = [b for b in BUCKETS if n > EXACT and b * len(lanes.keys) <= max(n // 2, BUCKETS[0] * 64)]
    return [_level(lanes, line, b) for b in wanted]


def _level(lanes: Lanes, line: np.ndarray, buckets: int) -> dict[str, Any]:
    return {
        "buckets": buckets,
        "width": lanes.span / buckets,
        "busy": packed(_bytes(busy_shares(lanes, buckets)).reshape(-1)),
        "line": packed(_last_lines(lanes, line, buckets).reshape(-1)),
    }


def busy_shares(lanes: Lanes, buckets: int) -> np.ndarray:
    """[lanes, buckets] part of each bucket of time that the pipe is busy, 0 to 1."""
    edges = np.linspace(0.0, lanes.span, buckets + 1)
    out = np.empty((len(lanes.keys), buckets))
    for k in range(len(lanes.keys)):
        mine = slice(int(lanes.first[k]), int(lanes.first[k + 1]))
        times = np.stack([lanes.start[mine], lanes.end[mine]], axis=1).reshape(-1)
        length = np.stack([np.zeros_like(lanes.start[mine]), lanes.end[mine] - lanes.start[mine]], axis=1)
        out[k] = np.diff(np.interp(edges, times, np.cumsum(length.reshape(-1)))) / (lanes.span / buckets)
    return out


def _last_lines(lanes: Lanes, line: np.ndarray, buckets: int) -> np.ndarray:
    edges = np.linspace(0.0, lanes.span, buckets + 1)[1:]
    out = np.empty((len(lanes.keys), buckets), np.uint16)
    for k in range(len(lanes.keys)):
        first, last = int(lanes.first[k]), int(lanes.first[k + 1])
        out[k] = line[first + np.maximum(np.searchsorted(lanes.start[first:last], edges) - 1, 0)]
    return out


def _bytes(shares: np.ndarray) -> np.ndarray:
    """0 to 1 as 0 to 255; what is busy at all is at least 1."""
    return np.where(shares > 0, np.clip(np.rint(shares * 255), 1, 255), 0).astype(np.uint8)


def packed(values: np.ndarray, delta: bool = False) -> dict[str, Any]:
    """Numbers as text: differences where that is shorter, bytes of one place together, deflated, in base 64."""
    kind = values.dtype
    if delta:
        values = np.diff(values, prepend=values.dtype.type(0))  # wraps around, and back when it is added up
    small = np.ascontiguousarray(values.astype(kind.newbyteorder("<"))).view(np.uint8)
    data = zlib.compress(small.reshape(-1, kind.itemsize).T.tobytes(), 4)
    name = f"{'i' if kind.kind == 'i' else 'u'}{8 * kind.itemsize}"
    return {"kind": name, "delta": delta, "data": base64.b64encode(data).decode("ascii")}

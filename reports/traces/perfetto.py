"""The events that Chrome's tracing and Perfetto read (Trace Event Format): a process per core, a track per pipe.

Every instruction is a complete event ("X"), and so is the gap before it, in the category `stall`, with its reason. Arrows
("s", "f") go from the instruction that a gap waited for to the one that waited, where they are on different pipes.
Counters ("C"): bytes a second on each path of transfers, and the bytes alive in each buffer (Perfetto appends the unit).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..facts.launch_figures import occupancy, told_core
from .instructions import Told, instructions, name_of
from .selection import Selection, TracePart

SAMPLES = 1000  # of one counter: what a screen shows


def rate_samples(part: TracePart) -> Iterator[tuple[str, float, float]]:
    """(path, us, GB/s): bytes of all cores in equal steps of time, each transfer's spread over its own duration."""
    t = part.timeline
    if t.bytes is None or not (t.bytes[part.rows] > 0).any():
        return
    moves = np.flatnonzero(t.bytes[part.rows] > 0)
    low, high = float(part.start[moves].min()), float(part.end[moves].max())
    edges = np.linspace(low, high if high > low else low + 1e-6, min(SAMPLES, 4 * len(moves)) + 1)
    paths = t.pipe if t.name is None else t.name
    for path in np.unique(paths[part.rows[moves]]).tolist():
        mine = moves[paths[part.rows[moves]] == path]
        amounts = _spread(part.start[mine], part.end[mine], t.bytes[part.rows[mine]].astype(float), edges)
        rates = amounts / np.diff(edges) / 1e3
        yield from _changes(name_of(part, int(part.rows[mine[0]])), edges, rates)


def _spread(start: np.ndarray, end: np.ndarray, amount: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Bytes in each step: the difference of what had passed at its edges (exact for constant rates)."""
    length = np.maximum(end - start, 1e-9)
    passed = np.zeros(len(edges))
    for first in range(0, len(start), 512):
        s, n, a = (x[first : first + 512, None] for x in (start, length, amount))
        passed += (np.clip((edges - s) / n, 0.0, 1.0) * a).sum(axis=0)
    return np.diff(passed)


def _changes(path: str, edges: np.ndarray, rates: np.ndarray) -> Iterator[tuple[str, float, float]]:
    previous = -1.0
    for us, rate in zip(edges[:-1].tolist(), rates.round(3).tolist(), strict=True):
        if rate != previous:
            yield path, us, rate
            previous = rate
    yield path, float(edges[-1]), 0.0


def buffer_samples(part: TracePart) -> Iterator[tuple[int, str, float, int]]:
    """(core, buffer, us, bytes): what holds a value in the buffers of the core whose occupancy the record tells."""
    if not len(part.rows):
        return
    core, first, last = told_core(part.launch), float(part.start.min()), float(part.end.max())
    for name, buffer in part.launch.buffers.items():
        found = [(part.begins_us + cycle * part.us_per_cycle, amount) for cycle, amount in occupancy(buffer)]
        before = [amount for us, amount in found if us <= first]
        if found:
            yield core, name, first, before[-1] if before else 0
        yield from ((core, name, us, amount) for us, amount in found if first < us <= last)


CORES = 10_000  # processes of one launch: above the cores of any product
Event = dict[str, Any]
COLOURS = {"data": "iowait", "buffer": "uninterruptible", "flag": "runnable"}  # of states of a thread


def events(selection: Selection) -> Iterator[Event]:
    """All events, names of tracks first."""
    for part in selection.parts:
        yield from _names(part)
        yield from _slices(part)
        yield from _counters(part)


def _names(part: TracePart) -> Iterator[Event]:
    t = part.timeline
    for core in sorted(set(t.core[part.rows].tolist())):
        pid = _process(part, core)
        yield _meta(pid, "process_name", name=f"core {core}, {part.title}")
        yield _meta(pid, "process_sort_index", sort_index=pid)
        for pipe, name in enumerate(t.pipes):
            yield {**_meta(pid, "thread_name", name=name), "tid": pipe + 1}
            yield {**_meta(pid, "thread_sort_index", sort_index=pipe + 1), "tid": pipe + 1}
    yield _meta(_device(part), "process_name", name=f"transfers, {part.title}")


def _slices(part: TracePart) -> Iterator[Event]:
    tracks = {name: k + 1 for k, name in enumerate(part.timeline.pipes)}
    shown: dict[int, Told] = {}
    for told in instructions(part):
        shown[told.place] = told
        where = {"pid": _process(part, told.core), "tid": tracks[told.pipe]}
        if told.gap_us > 0 and told.reason:
            stall = _stall(told, where)
            if stall["dur"] > 0:  # no nanosecond: nothing to see
                yield stall
        head = {"name": told.name, "cat": "instruction", "ph": "X"}
        yield {**head, **_span(told.start, told.end), **where, "args": told.details}
        cause = shown.get(told.waited) if told.waited is not None else None
        if cause is not None and cause.pipe != told.pipe:
            yield from _arrow(part, told, cause, tracks)


def _stall(told: Told, where: Event) -> Event:
    begins = max(0.0, told.start - told.gap_us)
    extra = {"cname": f"thread_state_{COLOURS[told.reason]}"} if told.reason in COLOURS else {}
    head = {"name": f"wait: {told.reason}", "cat": "stall", "ph": "X"}
    args = {"before": told.name, "line": told.details.get("line", "")}
    return {**head, **_span(begins, told.start), **where, **extra, "args": args}


def _arrow(part: TracePart, told: Told, cause: Told, tracks: dict[str, int]) -> Iterator[Event]:
    """Its ends lie inside the two instructions, where viewers look for the slices they belong to."""
    number = part.number << 32 | told.place
    both = {"name": str(told.reason), "cat": "wait", "id": number}
    start = {"pid": _process(part, cause.core), "tid": tracks[cause.pipe], "ts": _us(cause.start)}
    end = {"pid": _process(part, told.core), "tid": tracks[told.pipe], "ts": _us(told.start), "bp": "e"}
    yield {**both, "ph": "s", **start}
    yield {**both, "ph": "f", **end}


def _counters(part: TracePart) -> Iterator[Event]:
    for core, buffer, us, amount in buffer_samples(part):
        yield _count(_process(part, core), buffer, us, {"bytes": amount})
    for path, us, rate in rate_samples(part):
        yield _count(_device(part), path, us, {"GB/s": rate})


def _count(pid: int, name: str, us: float, values: dict[str, float]) -> Event:
    return {"name": name, "ph": "C", "pid": pid, "tid": 0, "ts": round(us, 6), "args": values}


def _meta(pid: int, kind: str, **values: Any) -> Event:
    return {"name": kind, "ph": "M", "pid": pid, "tid": 0, "args": values}


def _process(part: TracePart, core: int) -> int:
    return part.number * CORES + core + 1


def _device(part: TracePart) -> int:
    return part.number * CORES + CORES - 1


def _span(start: float, end: float) -> Event:
    return {"ts": _us(start), "dur": _us(max(0.0, _us(end) - _us(start)))}


def _us(x: float) -> float:
    return round(x, 3)  # whole nanoseconds, as the viewers count: what meets here meets there

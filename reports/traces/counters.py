"""Counters of a trace: bytes a second on each path, and bytes alive in each buffer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..facts.occupancy import occupancy, told_core
from .instructions import name_of
from .selection import TracePart

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

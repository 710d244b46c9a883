"""Ranges of memory that programs touch, and whether those of different programs overlap."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..values import Affine, Box

# Runs kept of one launch; a kernel with more is treated as if its programs met.
MAX_RUNS = 1 << 22


class Spans:
    """Runs of bytes [low, high) with the program that touches each; added a batch at a time."""

    def __init__(self) -> None:
        self.batches: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self.count = 0
        self.found: tuple[int, tuple[np.ndarray, np.ndarray, np.ndarray]] | None = None  # for so many batches

    def add(self, programs: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        self.batches.append((programs, low, high))
        self.count += len(low)

    def merged(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(program, low, high) by program and address; runs of one program that overlap or touch are one."""
        if self.found is None or self.found[0] != len(self.batches):
            self.found = len(self.batches), self._merge()
        return self.found[1]

    def _merge(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if not self.batches:
            return (np.empty(0, np.int64),) * 3
        program, low, high = (np.concatenate(x) for x in zip(*self.batches, strict=True))
        if not len(low):
            return program, low, high
        start, end, places = _places(program, low, high)
        shift = program.astype(np.int64) * (
            int(end.max()) + 1
        )  # programs apart: one running maximum serves all
        start, end = start + shift, end + shift
        order = np.argsort(start, kind="stable")
        start, top = start[order], np.maximum.accumulate(end[order])
        first = np.flatnonzero(np.r_[True, start[1:] > top[:-1]])
        last = np.r_[first[1:], len(low)] - 1
        kept = order[first]
        return program[kept], low[kept], places(top[last] - shift[kept])


def _places(
    program: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Addresses as small numbers, their ranks if need be, and what makes addresses of such numbers again."""
    base = int(low.min())
    if (int(high.max()) - base + 1) * (int(program.max()) + 1) < 1 << 62:
        return low - base, high - base, lambda x: x + base
    edges = np.unique(np.concatenate((low, high)))
    return np.searchsorted(edges, low), np.searchsorted(edges, high), lambda x: edges[x]


def meet_each_other(runs: Spans) -> bool:
    """Whether runs of two programs overlap."""
    _, low, high = runs.merged()
    order = np.argsort(low, kind="stable")
    return bool(np.any(low[order][1:] < np.maximum.accumulate(high[order])[:-1]))


def meet_others(a: Spans, b: Spans) -> bool:
    """Whether a run of `a` overlaps one of `b` of another program; those of `b` must not overlap each other."""
    program, low, high = b.merged()
    order = np.argsort(low, kind="stable")
    program, low, high = program[order], low[order], high[order]
    mine, start, end = a.merged()
    first = np.searchsorted(high, start, side="right")
    last = np.searchsorted(low, end, side="left")
    changes = np.cumsum(np.diff(program, prepend=program[:1]) != 0)
    hit = first < last
    f, e = first[hit], last[hit] - 1
    return bool(np.any((program[f] != mine[hit]) | (changes[f] != changes[e])))


def runs_of(affine: Affine, box: Any, programs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(program, first, last + 1) in elements of an affine access, one run for each row along its densest axis."""
    count = len(programs)
    base = _each(affine.base, count)
    lows, highs = _ends(affine, box, count)
    alive = np.all(lows < highs, axis=0) if len(lows) else np.ones(count, bool)
    if isinstance(box, bool | np.bool_) and not box:
        alive[:] = False
    strides = [_each(s, count) for s in affine.strides]
    if not alive.all():
        base, program, strides = base[alive], programs[alive], [s[alive] for s in strides]
        lows, highs = lows[:, alive], highs[:, alive]
    else:
        program = programs
    low, high = base, base
    if not len(program):
        return program, low, high
    axes = sorted(range(len(strides)), key=lambda k: int(np.abs(strides[k]).min()))
    for n, k in enumerate(axes):
        s, first, last = strides[k], lows[k], highs[k] - 1
        rows = len(program) * math.prod(affine.shape[j] for j in axes[n:])
        if affine.shape[k] == 1 or rows > MAX_RUNS or (np.abs(s) <= high - low + 1).all():
            ends = s * first, s * last  # rows that touch each other are one run
            low, high = low + np.minimum(*ends), high + np.maximum(*ends)
            continue
        return _rows(affine, axes[n:], strides, (lows, highs), (program, low, high))
    return program, low, high + 1


def _each(x: Any, count: int) -> np.ndarray:
    """A number for every program."""
    return x if isinstance(x, np.ndarray) and len(x) == count else np.full(count, x, np.int64)


def _ends(affine: Affine, box: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
    """First and last + 1 index along each axis, for each program."""
    rank = len(affine.shape)
    lows, highs = np.zeros((rank, count), np.int64), np.empty((rank, count), np.int64)
    for k, n in enumerate(affine.shape):
        highs[k] = n
        if isinstance(box, Box):
            lows[k], highs[k] = np.maximum(box.lows[k], 0), np.minimum(box.highs[k], n)
    return lows, highs


def _rows(
    affine: Affine,
    axes: list[int],
    strides: list[np.ndarray],
    ends: tuple[np.ndarray, np.ndarray],
    run: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The run of every index along the outer axes."""
    program, low, high = (x[:, None] for x in run)
    chosen = np.ones((len(program), 1), bool)
    for k in axes:
        i = np.arange(affine.shape[k])
        inside = (i >= ends[0][k][:, None]) & (i < ends[1][k][:, None])
        step = (strides[k][:, None] * i)[:, None, :]
        low, high = ((x[:, :, None] + step).reshape(len(x), -1) for x in (low, high))
        chosen = (chosen[:, :, None] & inside[:, None, :]).reshape(len(chosen), -1)
    return np.broadcast_to(program, low.shape)[chosen], low[chosen], high[chosen] + 1

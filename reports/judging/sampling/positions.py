"""Which elements of an output are looked at."""

from __future__ import annotations

import math

import numpy as np

DRAWN = 1024  # positions of an output that are drawn; as many of the first are looked at as the budgets allow
BLOCKS = (16, 64, 128, 256, 1024, 4096, 16384)  # sizes at whose multiples tiles of kernels begin


def drawn_positions(shape: tuple[int, ...], seed: int, count: int = DRAWN) -> np.ndarray:
    """Numbers of elements in row-major order, those that say most first: each once, `count` at most.

    The first element and the last; then by turns one of the whole output, one at the end of an axis (where masked tails
    are), and one beside a multiple of a usual block. Drawn by `seed`.
    """
    size = math.prod(shape)
    if not size:
        return np.empty(0, np.int64)
    draw = np.random.Generator(np.random.PCG64(seed % (1 << 128)))
    whole = draw.integers(0, size, count)
    kinds = np.stack([whole, _ends(shape, draw, count), _borders(size, draw, count)], 1).reshape(-1)
    return np.array(list(dict.fromkeys([0, size - 1, *kinds.tolist()]))[: min(count, size)], np.int64)


def _ends(shape: tuple[int, ...], draw: np.random.Generator, count: int) -> np.ndarray:
    """Elements within 16 of the end of one axis."""
    index = [draw.integers(0, n, count) for n in shape]
    axis = draw.integers(0, max(1, len(shape)), count)
    back = draw.integers(0, 16, count)
    for k, n in enumerate(shape):
        index[k] = np.where(axis == k, np.maximum(n - 1 - back, 0), index[k])
    return np.asarray(np.ravel_multi_index(tuple(index), shape)) if shape else np.zeros(count, np.int64)


def _borders(size: int, draw: np.random.Generator, count: int) -> np.ndarray:
    """Elements in front of a multiple of a block, and behind."""
    block = np.array(BLOCKS)[draw.integers(0, len(BLOCKS), count)]
    multiple = draw.integers(0, np.maximum(1, size // block + 1)) * block
    return np.asarray(np.clip(multiple - draw.integers(0, 2, count), 0, size - 1))


def drawn_in_runs(low: np.ndarray, high: np.ndarray, seed: int, count: int) -> np.ndarray:
    """At most `count` numbers out of runs [low, high), each once."""
    lengths = high - low
    total = int(lengths.sum())
    if not total:
        return np.empty(0, np.int64)
    draw = np.random.Generator(np.random.PCG64(seed % (1 << 128)))
    found = np.unique(draw.integers(0, total, count)) if total > count else np.arange(total)
    ends = np.cumsum(lengths)
    run = np.searchsorted(ends, found, side="right")
    return np.asarray(low[run] + found - (ends[run] - lengths[run]))

"""Whole-array work of the host (inputs, references) in chunks that fit the cache, on all processors.

Chunks are cut by size alone, so the result does not depend on the number of processors.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from ...simulator.precision.rounding import decode

T = TypeVar("T")


def in_chunks(total: int, size: int, work: Callable[[int, int], T]) -> list[T]:
    """`work(start, stop)` over [0, total) in chunks of `size`; results in the order of the chunks."""
    starts = range(0, total, size)

    def one(start: int) -> T:
        with np.errstate(all="ignore"):  # infinities and NaN are data here
            return work(start, min(start + size, total))

    workers = min(len(starts), os.cpu_count() or 1)
    if workers <= 1:
        return [one(s) for s in starts]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(one, starts))


def float64(stored: np.ndarray) -> np.ndarray:
    """Values of an input array in float64, exactly."""
    if stored.dtype in (np.float32, np.float64):
        return stored.astype(np.float64)
    return decode(stored).astype(np.float64)

"""Sorts and histograms of tiles; arrays are (P, *shape)."""

from __future__ import annotations

import numpy as np


def sort(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    """Elements along tile axis `axis` in order. NaN counts as the largest, whatever its sign; -0 and 0 are equal."""
    out = np.sort(x, axis=axis + 1)
    return np.ascontiguousarray(np.flip(out, axis + 1)) if descending else out


def histogram(x: np.ndarray, mask: np.ndarray | None, bins: int) -> np.ndarray:
    """How often each of 0..bins-1 occurs among the elements of each program, (P, bins) int32.

    Elements outside of that range, or where `mask` is False, are not counted.
    """
    count = max(x.shape[0], 1 if mask is None else mask.shape[0])
    x = np.broadcast_to(x, (count, *x.shape[1:])).reshape(count, -1)
    counted = (x >= 0) & (x < bins)
    if mask is not None:
        counted &= np.broadcast_to(mask, (count, *mask.shape[1:])).reshape(count, -1)
    slots = np.arange(count)[:, None] * bins + np.where(counted, x, 0).astype(np.int64)
    found = np.bincount(slots[counted], minlength=count * bins)
    return found.reshape(count, bins).astype(np.int32)

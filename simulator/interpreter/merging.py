"""One value for all programs from the values of groups of them, where branches and loops end."""

from __future__ import annotations

from typing import Any

import numpy as np

from .flat_pointers import as_flat
from .values import OPAQUE, Affine, Box, Opaque, Pointers


def merge(parts: list[tuple[np.ndarray, Any]], count: int) -> Any:
    """One value for `count` programs from values of disjoint groups of them (index, value)."""
    first = parts[0][1]
    if len(parts) == 1 and len(parts[0][0]) == count:
        return first
    if any(isinstance(v, Opaque) for _, v in parts):
        return OPAQUE
    if isinstance(first, Pointers):
        return _merge_pointers(parts, count)
    if len({type(v) for _, v in parts if isinstance(v, Affine | Box) or getattr(v, "ndim", 0) > 1}) > 1:
        return _merge_mixed(parts, count)
    if isinstance(first, Affine):
        strides = zip(*(v.strides for _, v in parts), strict=True)
        merged = tuple(merge([(i, s) for (i, _), s in zip(parts, ss, strict=True)], count) for ss in strides)
        return Affine(merge([(i, v.base) for i, v in parts], count), merged, first.shape)
    if isinstance(first, Box):
        return _merge_boxes(parts, count)
    return _merge_arrays(parts, count)


def _merge_pointers(parts: list[tuple[np.ndarray, Any]], count: int) -> Pointers:
    """Into one tensor if all are; otherwise the addresses are merged."""
    tensor = parts[0][1].tensor
    if any(v.tensor is not tensor for _, v in parts):
        parts = [(i, as_flat(v)) for i, v in parts]
        tensor = parts[0][1].tensor
    return Pointers(tensor, merge([(i, v.offsets) for i, v in parts], count))


def _merge_mixed(parts: list[tuple[np.ndarray, Any]], count: int) -> np.ndarray:
    """Index tiles or masks of some programs with dense tiles of others: all of them as elements."""
    held = next(v.dtype for _, v in parts if isinstance(v, np.ndarray))
    tiles = [(i, v.elements() if isinstance(v, Affine) else v) for i, v in parts]
    tiles = [(i, (v.dense() if isinstance(v, Box) else v).astype(held)) for i, v in tiles]
    return np.asarray(_merge_arrays(tiles, count))


def _merge_boxes(parts: list[tuple[np.ndarray, Any]], count: int) -> Box:
    rank = range(len(parts[0][1].shape))
    lows = tuple(merge([(i, v.lows[k]) for i, v in parts], count) for k in rank)
    highs = tuple(merge([(i, v.highs[k]) for i, v in parts], count) for k in rank)
    return Box(lows, highs, parts[0][1].shape)


def _merge_arrays(parts: list[tuple[np.ndarray, Any]], count: int) -> Any:
    values = [v for _, v in parts]
    if all(isinstance(v, int) and v == values[0] for v in values):
        return values[0]
    first = np.asarray(values[0])
    shape = max((np.asarray(v).shape[1:] for v in values), key=len)
    dtype = first.dtype if first.ndim or first.dtype == bool else np.dtype(np.int64)
    out = np.empty((count, *shape), dtype)
    for index, v in parts:
        out[index] = v
    return out

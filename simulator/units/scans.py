"""Indices of extremes, running combinations, sorts and histograms, of arrays (P, *shape) in the host dtype."""

from __future__ import annotations

import numpy as np

from ..precision.dtypes import DType
from .vector import _IEEE as IEEE
from .vector import COMBINE, Numerics
from .vector import _rounded as rounded


def arg_reduce(name: str, x: np.ndarray, axis: int, first: bool) -> np.ndarray:
    """Index of the largest ("argmax") or smallest element along tile axis `axis`; NaN is skipped.

    Of equal ones the first index, or the last. Where all elements are NaN it is index 0.
    """
    at = axis + 1
    extreme = (np.fmax if name == "argmax" else np.fmin).reduce(x, axis=at, keepdims=True)
    hit = x == extreme
    n = x.shape[at]
    index = np.argmax(hit, axis=at) if first else n - 1 - np.argmax(np.flip(hit, at), axis=at)
    return np.where(hit.any(axis=at), index, 0).astype(np.int32)


def scan(
    name: str, x: np.ndarray, axis: int, reverse: bool, dtype: DType, numerics: Numerics | None = None
) -> np.ndarray:
    """Running combination along tile axis `axis`, one element after another from the first (last, if `reverse`) on.

    name: one of COMBINE. Each step is rounded in `dtype`, under the unit's overflow and subnormal rules.
    """
    rules = numerics or IEEE
    work = np.moveaxis(np.flip(x, axis + 1) if reverse else x, axis + 1, 0)
    out = np.array(work, dtype.host_dtype, order="C")
    with np.errstate(all="ignore"):
        if name in ("sum", "mul") and _needs_rounding(dtype, rules):
            for k in range(1, len(out)):
                rounded(COMBINE[name](out[k - 1], out[k], out=out[k]), dtype, rules)
        else:
            _combiner(name, dtype).accumulate(out, axis=0, out=out, dtype=dtype.host_dtype)
    back = np.moveaxis(out, 0, axis + 1)
    return np.ascontiguousarray(np.flip(back, axis + 1) if reverse else back)


def _needs_rounding(dtype: DType, rules: Numerics) -> bool:
    """Whether a step is more than numpy's operation in the type that holds the values."""
    special = rules.flushes(dtype) or rules.overflow == "saturate"
    return dtype.is_floating() and (dtype.bits == 16 or (special and dtype.bits == 32))


def _combiner(name: str, dtype: DType) -> np.ufunc:
    if dtype.is_bool() and name in ("sum", "mul"):
        return np.logical_xor if name == "sum" else np.logical_and
    return COMBINE[name]


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

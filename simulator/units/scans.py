"""Indices of extremes, and running combinations, of arrays (P, *shape) in the host dtype."""

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

"""Truth values of the elements of a tile: a `Box` as long as they are one, else an array (P or 1, *shape).

Of a scalar: a bool, or one for each program.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...interpreter.regions import covers
from ...interpreter.values import Box


def full(shape: tuple[int, ...]) -> Any:
    """True everywhere."""
    return Box((0,) * len(shape), shape, shape) if shape else True


def dense(x: Any) -> np.ndarray:
    """As an array (P or 1, *shape)."""
    return x.dense() if isinstance(x, Box) else np.atleast_1d(np.asarray(x, bool))


def is_full(x: Any) -> bool:
    """Whether all is true, in all programs."""
    return covers(x) if isinstance(x, Box) else bool(np.all(x))


def within(inner: Any, outer: Any) -> bool:
    """Whether `outer` is true wherever `inner` is, in all programs. inner: None for everywhere."""
    if is_full(outer):
        return True
    if inner is None:
        return False
    if not (isinstance(inner, Box) and isinstance(outer, Box)):
        return not (dense(inner) & ~dense(outer)).any()
    inside: Any = True
    empty: Any = False
    for lo, hi, low, high, n in zip(
        inner.lows, inner.highs, outer.lows, outer.highs, inner.shape, strict=True
    ):
        inside = inside & ((lo >= low) | (low <= 0)) & ((hi <= high) | (high >= n))
        empty = empty | (hi <= lo) | (hi <= 0) | (lo >= n)
    return bool(np.all(inside | empty))


def all_along(x: Any, axis: int) -> Any:
    """True where all elements along an axis are, which is taken away; of a tile of one axis a scalar."""
    if not isinstance(x, Box):
        found: np.ndarray = np.asarray(np.asarray(x).all(axis=axis + 1))
        return found if found.ndim > 1 or len(found) > 1 else bool(found[0])
    whole = (x.lows[axis] <= 0) & (x.highs[axis] >= x.shape[axis])
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    if not shape:
        return whole
    lows, highs = (list(ends[:axis] + ends[axis + 1 :]) for ends in (x.lows, x.highs))
    highs[0] = np.where(whole, highs[0], 0) if isinstance(whole, np.ndarray) else highs[0] if whole else 0
    return Box(tuple(lows), tuple(highs), shape)


def stretched(x: Any, axis: int, n: int) -> Any:
    """The same for each of `n` elements along a new axis."""
    if isinstance(x, Box):
        lows, highs = ((*e[:axis], new, *e[axis:]) for e, new in ((x.lows, 0), (x.highs, n)))
        return Box(lows, highs, (*x.shape[:axis], n, *x.shape[axis:]))
    return np.repeat(np.expand_dims(np.atleast_1d(np.asarray(x)), axis + 1), n, axis=axis + 1)

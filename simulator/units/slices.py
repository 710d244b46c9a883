"""Slices of tiles at offsets that may differ between programs; arrays are (P or 1, *shape).

`places` holds for each axis the indices that a slice takes, (P or 1, size).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Places = Sequence[np.ndarray]


def places(offsets: Sequence[np.ndarray], sizes: Sequence[int], strides: Sequence[int]) -> list[np.ndarray]:
    """The indices offset + stride * i of each axis; an offset is (P,) or (1,)."""
    return [
        o.astype(np.int64)[:, None] + step * np.arange(n, dtype=np.int64)
        for o, n, step in zip(offsets, sizes, strides, strict=True)
    ]


def extract(x: np.ndarray, at: Places) -> np.ndarray:
    """The elements of each program at the places of its slice: (P or 1, *sizes)."""
    if all(a.shape[0] == 1 for a in at):
        return np.ascontiguousarray(x[_same_for_all(at)])
    return np.asarray(x[_for_each(at, x.shape[0])])


def extract_fixed(
    x: np.ndarray, offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]
) -> np.ndarray:
    """`extract` at places that are the same in every run: no index is made."""
    steps = zip(offsets, sizes, strides, strict=True)
    return np.ascontiguousarray(x[:, *(slice(o, o + (n - 1) * step + 1, step) for o, n, step in steps)])


def insert(full: np.ndarray, sub: np.ndarray, at: Places) -> np.ndarray:
    """A copy of `full` that holds `sub` at the places of the slice."""
    count = max(full.shape[0], sub.shape[0], *(a.shape[0] for a in at))
    out = np.array(np.broadcast_to(full, (count, *full.shape[1:])))
    same = all(a.shape[0] == 1 for a in at)
    out[_same_for_all(at) if same else _for_each(at, count)] = sub
    return out


def _same_for_all(at: Places) -> tuple[slice, ...]:
    """Plain slices, which numpy copies without an index for every element."""
    return (slice(None), *(slice(int(a[0, 0]), int(a[0, -1]) + 1, _step(a)) for a in at))


def _step(a: np.ndarray) -> int:
    return int(a[0, 1] - a[0, 0]) if a.shape[1] > 1 else 1


def _for_each(at: Places, count: int) -> tuple[np.ndarray, ...]:
    """An index array for the programs and for each axis, to be broadcast together."""
    programs = max(count, *(a.shape[0] for a in at))
    rank = len(at)
    rows = np.arange(programs) if count > 1 else np.zeros(programs, np.int64)
    axes = [
        a.reshape(a.shape[0], *(-1 if k == axis else 1 for k in range(rank))) for axis, a in enumerate(at)
    ]
    return (rows.reshape(programs, *(1,) * rank), *axes)

"""Whether the elements of a tensor were always given the same value."""

from __future__ import annotations

import numpy as np

from ...interpreter.tensors import Tensor
from .._races import mark_all, put_all
from ..access import Access
from ._runs import Runs

LOOK, SET, CLEAR = range(3)  # see _races.pyx


class StoredValues:
    """Compares to the bit what stores give an element, in whatever order they come.

    Only marks are kept until an element is stored to again. differ: a bit for each element that got several values.
    """

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.written = np.zeros((tensor.elements >> 6) + 1, np.uint64)
        self.differ = np.zeros_like(self.written)
        self.values: np.ndarray | None = None

    @property
    def again(self) -> bool:
        """Whether any element was stored to again."""
        return self.values is not None

    def of(self, tensor: Tensor) -> bool:
        """Whether an element of that tensor is one of this one."""
        one, two = self.tensor, tensor
        return one is two or (one.address, one.elements, one.dtype) == (two.address, two.elements, two.dtype)

    def put(self, a: Access) -> None:
        """A store that is carried out next."""
        runs = a.runs
        if self.values is None:
            if not mark_all(self.written, LOOK, runs):
                if not mark_all(self.written, SET, runs):
                    return
                mark_all(self.written, CLEAR, runs)  # two of this store itself fall together
            assert a.tensor.window is not None
            self.values = _bits(a.tensor.window.astype(a.tensor.dtype.host_dtype))
        values, tiles = _tiles(a)
        if len(values):
            put_all(self.written, self.differ, self.values, values, runs, tiles)


def _tiles(a: Access) -> tuple[np.ndarray, Runs]:
    """The values that are stored, and where among them those of each element are."""
    dtype = a.tensor.dtype.host_dtype
    assert a.value is not None
    if a.where is not None:
        values = _bits(np.ascontiguousarray(np.broadcast_to(a.value, a.where.shape), dtype))
        return values, Runs.of_elements(np.arange(len(values)), a.where.chosen, a.where.shape[0])
    assert a.region is not None
    values, r = _bits(np.ascontiguousarray(a.value, dtype)), a.region
    sizes = np.asarray(r.shape, np.int64)
    tile, lanes = int(sizes.prod()), len(r.starts)
    starts = np.arange(lanes) * (tile if len(values) > tile else 0)
    steps = np.append(np.cumprod(sizes[:0:-1])[::-1], 1)
    return values, Runs(starts, steps[None], r.lows, r.highs)


def _bits(x: np.ndarray) -> np.ndarray:
    return x.reshape(-1).view(f"u{x.itemsize}")

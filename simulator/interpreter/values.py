"""What a value of the program is while it runs, for all programs of a chunk at once.

    integer scalar        Python int (same in all programs) or int64 array (P,)
    boolean scalar        Python bool or bool array (P,)
    float scalar          array (1,) or (P,), as a dense tile of shape ()
    index tile            Affine
    box mask              Box
    pointers              Pointers
    dense tile            array (P, *shape) or (1, *shape), of `DType.host_dtype`
    data not known        OPAQUE (timing without values)

P is the number of programs in the chunk. Nothing here knows what an operation means on hardware.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..precision.dtypes import DType
from .tensors import Tensor

Int = Any  # Python int or int64 array (P,)


class Opaque:
    """Elements that this run does not know."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "OPAQUE"


OPAQUE = Opaque()


class Affine:
    """Index tile: element i of program p is base[p] + sum_k strides[k] * i_k."""

    __slots__ = ("base", "shape", "strides")

    def __init__(self, base: Int, strides: tuple[Int, ...], shape: tuple[int, ...]) -> None:
        self.base = base
        self.strides = strides
        self.shape = shape

    def __repr__(self) -> str:
        return f"Affine({self.base}, {self.strides}, {self.shape})"

    def take(self, index: np.ndarray) -> Affine:
        return Affine(take(self.base, index), tuple(take(s, index) for s in self.strides), self.shape)

    def dense(self, dtype: DType) -> np.ndarray:
        """All elements, (P or 1, *shape)."""
        return self.elements().astype(dtype.host_dtype)

    def elements(self) -> np.ndarray:
        """All elements as int64, before they are put into their type."""
        out: Any = _column(self.base, len(self.shape))
        for axis, (s, n) in enumerate(zip(self.strides, self.shape, strict=True)):
            if isinstance(s, int) and s == 0:
                continue
            steps = np.arange(n, dtype=np.int64).reshape(n, *(1,) * (len(self.shape) - axis - 1))
            out = out + _column(s, len(self.shape)) * steps
        return np.broadcast_to(out, (out.shape[0], *self.shape))


class Box:
    """Mask that is true where lows[k] <= i_k < highs[k] for every axis k."""

    __slots__ = ("highs", "lows", "shape")

    def __init__(self, lows: tuple[Int, ...], highs: tuple[Int, ...], shape: tuple[int, ...]) -> None:
        self.lows = lows
        self.highs = highs
        self.shape = shape

    def __repr__(self) -> str:
        return f"Box({self.lows}, {self.highs}, {self.shape})"

    def take(self, index: np.ndarray) -> Box:
        return Box(
            tuple(take(x, index) for x in self.lows), tuple(take(x, index) for x in self.highs), self.shape
        )

    def dense(self) -> np.ndarray:
        rank = len(self.shape)
        out: Any = np.ones((1,) * (rank + 1), bool)
        for axis, (lo, hi, n) in enumerate(zip(self.lows, self.highs, self.shape, strict=True)):
            if isinstance(lo, int) and isinstance(hi, int) and lo <= 0 and hi >= n:
                continue
            i = np.arange(n, dtype=np.int64).reshape(n, *(1,) * (rank - axis - 1))
            out = out & (i >= _column(lo, rank)) & (i < _column(hi, rank))
        return np.ascontiguousarray(np.broadcast_to(out, (out.shape[0], *self.shape)))

    def counts(self) -> tuple[Int, ...]:
        """Number of selected indices along each axis, never negative."""
        return tuple(
            _least(_most(hi, n, np.minimum) - _most(lo, 0, np.maximum))
            for lo, hi, n in zip(self.lows, self.highs, self.shape, strict=True)
        )


class Pointers:
    """Addresses into one tensor: element offsets that are a scalar, an Affine tile or a dense tile."""

    __slots__ = ("offsets", "tensor")

    def __init__(self, tensor: Tensor, offsets: Any) -> None:
        self.tensor = tensor
        self.offsets = offsets

    def __repr__(self) -> str:
        return f"Pointers({self.tensor.name}, {self.offsets})"

    def take(self, index: np.ndarray) -> Pointers:
        return Pointers(self.tensor, take(self.offsets, index))


def _most(x: Int, bound: int, pick: Any) -> Int:
    if isinstance(x, int):
        return int(pick(x, bound))
    return pick(x, bound)


def _least(x: Int) -> Int:
    return max(x, 0) if isinstance(x, int) else np.maximum(x, 0)


def _column(x: Int, rank: int) -> np.ndarray:
    """A scalar of each program with `rank` axes of size 1 behind the program axis."""
    a = np.asarray(x)
    return a.reshape(a.shape[0] if a.ndim else 1, *(1,) * rank)


def column(x: Any, rank: int) -> np.ndarray:
    """As an array (P or 1, 1, ..., 1) with `rank` trailing axes."""
    return _column(x, rank)


def take(x: Any, index: np.ndarray) -> Any:
    """The value for the programs at `index` only."""
    if isinstance(x, Affine | Box | Pointers):
        return x.take(index)
    if isinstance(x, np.ndarray) and x.shape[0] != 1:
        return x[index]
    return x

"""Boxes of one size in a tensor, at many places: what an operation is asked for, and asks of its operands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Boxes(NamedTuple):
    """starts: (n, rank), the first index of each. sizes: along each axis."""

    starts: np.ndarray
    sizes: tuple[int, ...]

    @property
    def number(self) -> int:
        """How many boxes there are."""
        return len(self.starts)

    @property
    def elements(self) -> int:
        """Of one box."""
        return math.prod(self.sizes)

    def replaced(self, axis: int, starts: np.ndarray | int, size: int) -> Boxes:
        """With other places and another size along an axis."""
        changed = self.starts.copy()
        changed[:, axis] = starts
        return Boxes(changed, (*self.sizes[:axis], size, *self.sizes[axis + 1 :]))

    def whole(self, axes: Sequence[int], shape: Sequence[int]) -> Boxes:
        """All of these axes."""
        out = self
        for axis in axes:
            out = out.replaced(axis, 0, shape[axis])
        return out

    def columns(self, axes: Sequence[int]) -> Boxes:
        """The axes in that order."""
        return Boxes(self.starts[:, list(axes)], tuple(self.sizes[k] for k in axes))

    def with_axes(self, axes: Sequence[int]) -> Boxes:
        """With axes of length 1 put in, so that they stand at those numbers afterwards."""
        starts, sizes = self.starts, list(self.sizes)
        for axis in sorted(axes):
            starts = np.insert(starts, axis, 0, axis=1)
            sizes.insert(axis, 1)
        return Boxes(starts, tuple(sizes))

    def rows(self, index: np.ndarray | slice) -> Boxes:
        """Some of the boxes."""
        return Boxes(self.starts[index], self.sizes)

    def unique(self, shape: Sequence[int]) -> tuple[Boxes, np.ndarray | None]:
        """Each once, and which of them each was; None for the latter where all differ."""
        key = np.zeros(self.number, np.int64)
        for k, n in enumerate(shape):
            key = key * max(1, n) + self.starts[:, k]
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        return (self, None) if len(first) == self.number else (self.rows(first), inverse)

    def points(self) -> Boxes:
        """Each element of each box, in order, as a box of its own."""
        grid = np.indices(self.sizes).reshape(len(self.sizes), -1).T
        starts = (self.starts[:, None, :] + grid[None]).reshape(-1, len(self.sizes))
        return Boxes(starts, (1,) * len(self.sizes))


def at(positions: np.ndarray, shape: Sequence[int]) -> Boxes:
    """Elements of a tensor by their number in row-major order."""
    starts = np.stack(np.unravel_index(positions, tuple(shape) or (1,)), 1).astype(np.int64)
    starts = starts[:, : len(shape)]
    return Boxes(starts, (1,) * len(shape))

"""Values of operations that move elements inside of a tile: slices, joins, gathers, scans, sorts, histograms."""

from __future__ import annotations

import numpy as np

from ..interpreter.reading import Reading
from ..ir.program import Op
from ..precision.dtypes import DType
from ..units import moving, scans, vector


class Rearranging(Reading):
    """The part of a run over values that moves elements; arrays are (P or 1, *shape)."""

    numerics: vector.Numerics

    def dense_slice(self, op: Op, x: np.ndarray) -> np.ndarray:
        axis, step, count = op.attrs["axis"] + 1, op.attrs["step"], op.results[0].shape[op.attrs["axis"]]
        index = op.attrs["start"] + step * np.arange(count)
        return np.asarray(np.take(x, index, axis=axis))

    def dense_cat(self, op: Op, *parts: np.ndarray) -> np.ndarray:
        count = max(p.shape[0] for p in parts)
        wide = [np.broadcast_to(p, (count, *p.shape[1:])) for p in parts]
        return np.concatenate(wide, axis=op.attrs["axis"] + 1)

    def dense_gather(self, op: Op, source: np.ndarray, index: np.ndarray) -> np.ndarray:
        axis = op.attrs["axis"] + 1
        n = source.shape[axis]
        bad = (index < 0) | (index >= n)
        if bad.any():
            self._refuse_index(op, index, bad, n)
        count = max(source.shape[0], index.shape[0])
        source = np.broadcast_to(source, (count, *source.shape[1:]))
        index = np.broadcast_to(index, (count, *index.shape[1:]))
        return np.take_along_axis(source, index.astype(np.int64), axis=axis)

    def _refuse_index(self, op: Op, index: np.ndarray, bad: np.ndarray, n: int) -> None:
        at = tuple(np.argwhere(bad)[0])
        site = self.site(op)
        program = site.program(self.programs[at[0] if index.shape[0] > 1 else 0])
        raise site.error(
            f"gather: index {int(index[at])} at element {[int(k) for k in at[1:]]} in {program} "
            f"is outside of axis {op.attrs['axis']}, which has {n} elements; clamp it, or mask with tl.where"
        )

    def dense_arg_reduce(self, op: Op, x: np.ndarray) -> np.ndarray:
        return scans.arg_reduce(op.name, x, op.attrs["axis"], op.attrs["first"])

    def dense_scan(self, op: Op, x: np.ndarray) -> np.ndarray:
        return scans.scan(op.name, x, op.attrs["axis"], op.attrs["reverse"], _result(op), self.numerics)

    def dense_sort(self, op: Op, x: np.ndarray) -> np.ndarray:
        return moving.sort(x, op.attrs["axis"], op.attrs["descending"])

    def dense_histogram(self, op: Op, x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        return moving.histogram(x, mask, op.results[0].shape[0])


def _result(op: Op) -> DType:
    t = op.results[0].dtype
    assert isinstance(t, DType)
    return t

"""Values of operations that move elements inside of a tile: slices, joins, gathers, scans, sorts, histograms.

Arrays are (P or 1, *shape). `REARRANGING` has the function of each kind of operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..interpreter.slicing import places_of
from ..ir.program import Op
from ..precision import dtypes as ty
from ..units import moving as moves
from ..units import scans, slices
from .context import Context, result_type


def slice_(at: Context, op: Op, x: np.ndarray) -> np.ndarray:
    axis, step, count = op.attrs["axis"] + 1, op.attrs["step"], op.results[0].shape[op.attrs["axis"]]
    index = op.attrs["start"] + step * np.arange(count)
    return np.asarray(np.take(x, index, axis=axis))


def cat(at: Context, op: Op, *parts: np.ndarray) -> np.ndarray:
    count = max(p.shape[0] for p in parts)
    wide = [np.broadcast_to(p, (count, *p.shape[1:])) for p in parts]
    return np.concatenate(wide, axis=op.attrs["axis"] + 1)


def gather(at: Context, op: Op, source: np.ndarray, index: np.ndarray) -> np.ndarray:
    axis = op.attrs["axis"] + 1
    n = source.shape[axis]
    bad = (index < 0) | (index >= n)
    if bad.any():
        _refuse_index(at, op, index, bad, n)
    count = max(source.shape[0], index.shape[0])
    source = np.broadcast_to(source, (count, *source.shape[1:]))
    index = np.broadcast_to(index, (count, *index.shape[1:]))
    return np.take_along_axis(source, index.astype(np.int64), axis=axis)


def _refuse_index(at: Context, op: Op, index: np.ndarray, bad: np.ndarray, n: int) -> None:
    first = tuple(np.argwhere(bad)[0])
    site = at.walk.site(op)
    program = site.program(at.walk.programs[first[0] if index.shape[0] > 1 else 0])
    raise site.error(
        f"gather: index {int(index[first])} at element {[int(k) for k in first[1:]]} in {program} "
        f"is outside of axis {op.attrs['axis']}, which has {n} elements; clamp it, or mask with tl.where"
    )


def arg_reduce(at: Context, op: Op, x: np.ndarray) -> np.ndarray:
    return scans.arg_reduce(op.name, x, op.attrs["axis"], op.attrs["first"])


def scan(at: Context, op: Op, x: np.ndarray) -> np.ndarray:
    return scans.scan(op.name, x, op.attrs["axis"], op.attrs["reverse"], result_type(op), at.numerics)


def sort(at: Context, op: Op, x: np.ndarray) -> np.ndarray:
    return moves.sort(x, op.attrs["axis"], op.attrs["descending"])


def histogram(at: Context, op: Op, x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    return moves.histogram(x, mask, op.results[0].shape[0])


def extract_slice(at: Context, op: Op, x: np.ndarray, *moving: np.ndarray) -> np.ndarray:
    if not moving:
        return slices.extract_fixed(x, op.attrs["offsets"], op.attrs["sizes"], op.attrs["strides"])
    return slices.extract(x, places_of(op, moving))


def insert_slice(at: Context, op: Op, full: np.ndarray, sub: np.ndarray, *moving: np.ndarray) -> np.ndarray:
    return slices.insert(full, sub, places_of(op, moving))


def alloc(at: Context, op: Op) -> np.ndarray:
    """What nobody wrote: NaN, or the smallest integer."""
    r = op.results[0]
    held = r.dtype.held  # type: ignore[union-attr]
    what = ty.limits(r.dtype)[0] if r.dtype.is_int() else np.nan  # type: ignore[arg-type]
    return np.full((1, *r.shape), what, held)


def move(at: Context, op: Op, x: np.ndarray, *rest: np.ndarray) -> np.ndarray:
    return x if op.attrs["offsets"] is None else insert_slice(at, op, x, *rest)


def from_l1(at: Context, op: Op, x: np.ndarray) -> np.ndarray:
    return x


def get_element(at: Context, op: Op, x: np.ndarray, *moving: np.ndarray) -> np.ndarray:
    out = slices.extract(x, places_of(op, moving))
    return out.reshape(out.shape[0])


REARRANGING: dict[str, Callable[..., Any]] = {
    "slice": slice_,
    "cat": cat,
    "gather": gather,
    "arg_reduce": arg_reduce,
    "scan": scan,
    "sort": sort,
    "histogram": histogram,
    "extract_slice": extract_slice,
    "insert_slice": insert_slice,
    "alloc": alloc,
    "move": move,
    "from_l1": from_l1,
    "get_element": get_element,
}

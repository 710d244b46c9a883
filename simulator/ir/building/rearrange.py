"""Operations that move elements inside of a tile, or carry them along an axis: slices, joins, gathers, scans, sorts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...precision import dtypes as ty
from ...units import scans, vector
from ..operations import WIDE, Context, Fallback, Operation, Scratch, define, in_fp32, result_type
from ..program import Op, Value
from .builder import Builder
from .promotion import KernelError, Operand, axis_of, computes_in_single, describe

SORTING = Fallback(
    lambda op: not op.operand(0).dtype.is_floating(), "a sort of {dtype} has no vector instruction"
)
ALONG_LAST = Fallback(
    lambda op: op.attrs["axis"] == len(op.operand(0).shape) - 1,
    "a running combination along the last axis is no vector code of the compiler",
    compiled=True,
)
INDEX_OF_LAST = Fallback(
    lambda op: len(op.operand(0).shape) > 2 or (not op.attrs["first"] and ALONG_LAST.of(op)),
    "an index of more than two axes, or of the last of equal elements, is no vector code of the compiler",
    compiled=True,
)
INDEX_OF_INTEGERS = Fallback(
    lambda op: not op.operand(0).dtype.is_floating(),
    "the index of an extreme {dtype} has no vector instruction",
)


def tile(b: Builder, what: str, x: Operand) -> Value:
    """`x` as a tile; `KernelError` for scalars and pointers."""
    v = b.to_value(x)
    if not v.shape or v.is_pointer:
        raise KernelError(f"{what} needs a tile, got {describe(v)}")
    return v


def _slice(at: Context, op: Op, x: np.ndarray) -> np.ndarray:
    axis, step, count = op.attrs["axis"] + 1, op.attrs["step"], op.results[0].shape[op.attrs["axis"]]
    index = op.attrs["start"] + step * np.arange(count)
    return np.asarray(np.take(x, index, axis=axis))


@define(Operation("slice", "copy", _slice, rows=("gather_mask", "gather"), scratch=Scratch.ALL), name="slice")
def cut(b: Builder, v: Value, axis: int, start: int, count: int, step: int = 1) -> Value:
    """`count` elements from `start` on along an axis, `step` apart (which may be negative)."""
    if (start, count, step) == (0, v.shape[axis], 1):
        return v
    shape = [count if k == axis else n for k, n in enumerate(v.shape)]
    return b.emit_one("slice", (v,), v.dtype, shape, axis=axis, start=start, step=step)


def flip(b: Builder, v: Value, axis: int) -> Value:
    n = v.shape[axis]
    return v if n == 1 else cut(b, v, axis, n - 1, n, -1)


def _cat(at: Context, op: Op, *parts: np.ndarray) -> np.ndarray:
    count = max(p.shape[0] for p in parts)
    wide = [np.broadcast_to(p, (count, *p.shape[1:])) for p in parts]
    return np.concatenate(wide, axis=op.attrs["axis"] + 1)


@define(Operation("cat", "copy", _cat, rows=("gather",), scratch=Scratch.ALL))
def cat(b: Builder, parts: Sequence[Value], axis: int) -> Value:
    """Tiles behind each other along an axis; the other axes must be equal."""
    parts = [v for v in parts if v.shape[axis]]
    first = parts[0]
    for v in parts[1:]:
        rest = [(m, n) for k, (m, n) in enumerate(zip(first.shape, v.shape, strict=True)) if k != axis]
        if v.dtype != first.dtype or any(m != n for m, n in rest):
            raise KernelError(
                f"cat along axis {axis}: {describe(first)} and {describe(v)} do not fit together"
            )
    if len(parts) == 1:
        return first
    shape = [sum(v.shape[k] for v in parts) if k == axis else n for k, n in enumerate(first.shape)]
    return b.emit_one("cat", tuple(parts), first.dtype, shape, axis=axis)


def join(b: Builder, x: Operand, y: Operand) -> Value:
    """Two tiles beside each other along a new last axis of size 2."""
    a, c = broadcast(b, x, y)
    if not a.shape:
        return cat(b, [b.splat(a, (1,)), b.splat(c, (1,))], 0)
    rank = len(a.shape)
    return cat(b, [b.expand_dims(a, rank), b.expand_dims(c, rank)], rank)


def broadcast(b: Builder, x: Operand, y: Operand) -> tuple[Value, Value]:
    """Two values broadcast to their common shape; a number takes the other's type."""
    like = next((v.dtype for v in (x, y) if isinstance(v, Value) and isinstance(v.dtype, ty.DType)), None)
    return b.same_shape(b.to_value(x, like), b.to_value(y, like))


def split(b: Builder, v: Value) -> tuple[Value, Value]:
    """The two halves of a last axis of size 2."""
    if not v.shape or v.shape[-1] != 2:
        raise KernelError(f"split needs a last axis of size 2, got {describe(v)}; reshape or permute before")
    axis = len(v.shape) - 1
    halves = [cut(b, v, axis, k, 1) for k in (0, 1)]
    first, second = (b.reshape(h, v.shape[:-1]) if axis else element(b, h) for h in halves)
    return first, second


def element(b: Builder, v: Value) -> Value:
    """The scalar in a tile of one element."""
    return b.emit_one("reduce", (b.reshape(v, (1,)),), v.dtype, (), name="max", axis=0)


def _gather(at: Context, op: Op, source: np.ndarray, index: np.ndarray) -> np.ndarray:
    axis = op.attrs["axis"] + 1
    n = source.shape[axis]
    bad = (index < 0) | (index >= n)
    if bad.any():
        raise _outside(at, op, index, bad, n)
    count = max(source.shape[0], index.shape[0])
    source = np.broadcast_to(source, (count, *source.shape[1:]))
    index = np.broadcast_to(index, (count, *index.shape[1:]))
    return np.take_along_axis(source, index.astype(np.int64), axis=axis)


def _outside(at: Context, op: Op, index: np.ndarray, bad: np.ndarray, n: int) -> Exception:
    first = tuple(np.argwhere(bad)[0])
    site = at.interpreter.site(op)
    program = site.program(at.interpreter.programs[first[0] if index.shape[0] > 1 else 0])
    return site.error(
        f"gather: index {int(index[first])} at element {[int(k) for k in first[1:]]} in {program} "
        f"is outside of axis {op.attrs['axis']}, which has {n} elements; clamp it, or mask with tl.where"
    )


@define(Operation("gather", "gather", _gather, rows=("muls", "add"), scratch=Scratch.ALL | Scratch.OFFSETS))
def gather(b: Builder, source: Value, index: Value, axis: int) -> Value:
    """source[..., index[...], ...] along an axis: the shape of `index`, whose other axes are those of `source`."""
    if not index.dtype.is_int() or index.dtype.is_bool():
        raise KernelError(f"gather: the index must be made of integers, got {describe(index)}")
    axis = axis_of(axis, len(source.shape))
    same = len(source.shape) == len(index.shape) and all(
        k == axis or m == n for k, (m, n) in enumerate(zip(source.shape, index.shape, strict=True))
    )
    if not same:
        raise KernelError(
            f"gather along axis {axis}: {list(source.shape)} and the index {list(index.shape)} must agree in all other axes"
        )
    return b.emit_one("gather", (source, index), source.dtype, index.shape, axis=axis)


@define(
    Operation(
        "arg_reduce",
        value=lambda at, op, x: scans.arg_reduce(op.name, x, op.attrs["axis"], op.attrs["first"]),
        rows=("reduce_repeat_max", "compare", "select"),
        scratch=Scratch.PARTIALS | Scratch.FIRST,
        flops=1,
        of_operand=True,
        fallback=(INDEX_OF_INTEGERS, INDEX_OF_LAST),
    )
)
def arg_reduce(b: Builder, name: str, v: Value, axis: int | None, keep_dims: bool, first: bool) -> Value:
    """int32 index of the largest (argmax) or smallest element; of the whole tile in row-major order without an axis."""
    if computes_in_single(v.dtype):
        v = b.cast(v, ty.float32)
    return b.along("arg_reduce", v, ty.int32, axis, keep_dims, name=name, first=first)


def _scan(at: Context, op: Op, x: np.ndarray) -> np.ndarray:
    def compute(dtype: ty.DType) -> np.ndarray:
        return scans.scan(op.name, x, op.attrs["axis"], op.attrs["reverse"], dtype, at.numerics)

    t = result_type(op)
    return vector.in_fp32(compute, t, at.numerics) if in_fp32(op) else compute(t)


@define(
    Operation(
        "scan",
        value=_scan,
        rows=("copy", "transpose_5hd"),
        scratch=Scratch.ALL,
        flops=1,
        of_operand=True,
        fallback=(WIDE, ALONG_LAST),
        flushes=True,
    )
)
def scan(b: Builder, name: str, v: Value, axis: int, reverse: bool) -> Value:
    """Running combination by a known operation: sum, mul, max, min, and, or, xor."""
    if computes_in_single(v.dtype):
        return b.cast(scan(b, name, b.cast(v, ty.float32), axis, reverse), v.dtype)
    return b.emit_one("scan", (v,), v.dtype, v.shape, name=name, axis=axis, reverse=reverse)


@define(
    Operation(
        "sort",
        value=lambda at, op, x: scans.sort(x, op.attrs["axis"], op.attrs["descending"]),
        rows=("sort32", "mrgsort4", "muls", "gather_mask"),
        scratch=Scratch.ALL | Scratch.PAIRS,
        flops=1,
        of_operand=True,
        fallback=(SORTING,),
    )
)
def sort(b: Builder, v: Value, axis: int, descending: bool) -> Value:
    if axis != len(v.shape) - 1:
        raise KernelError(
            f"sort along axis {axis} of {list(v.shape)}: only the last axis can be sorted; permute before"
        )
    if computes_in_single(v.dtype):
        return b.cast(sort(b, b.cast(v, ty.float32), axis, descending), v.dtype)
    return b.emit_one("sort", (v,), v.dtype, v.shape, axis=axis, descending=descending)

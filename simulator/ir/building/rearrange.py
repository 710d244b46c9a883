"""Builds operations that move elements inside of a tile: slices, joins, gathers, sorts; and reductions and scans by a
function of the user, which become slices and that function, log2 of the axis times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...precision import dtypes as ty
from ..program import Region, Value
from ..types import AnyType
from .builder import Builder
from .promotion import KernelError, Operand, axis_of, describe
from .registry import Kernel

Values = tuple[Value, ...]
Combine = Callable[[Values, Values], Values]


def tile(b: Builder, what: str, x: Operand) -> Value:
    """`x` as a tile; `KernelError` for scalars and pointers."""
    v = b.to_value(x)
    if not v.shape or v.is_pointer:
        raise KernelError(f"{what} needs a tile, got {describe(v)}")
    return v


def cut(b: Builder, v: Value, axis: int, start: int, count: int, step: int = 1) -> Value:
    """`count` elements from `start` on along an axis, `step` apart (which may be negative)."""
    if (start, count, step) == (0, v.shape[axis], 1):
        return v
    shape = [count if k == axis else n for k, n in enumerate(v.shape)]
    out = b.value(v.dtype, shape)
    b.emit("slice", (v,), (out,), axis=axis, start=start, step=step)
    return out


def flip(b: Builder, v: Value, axis: int) -> Value:
    n = v.shape[axis]
    return v if n == 1 else cut(b, v, axis, n - 1, n, -1)


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
    out = b.value(first.dtype, shape)
    b.emit("cat", tuple(parts), (out,), axis=axis)
    return out


def join(b: Builder, x: Operand, y: Operand) -> Value:
    """Two tiles beside each other along a new last axis of size 2."""
    a, c = broadcast(b, x, y)
    if not a.shape:
        return cat(b, [b.splat(a, (1,)), b.splat(c, (1,))], 0)
    rank = len(a.shape)
    return cat(b, [b.expand_dims(a, rank), b.expand_dims(c, rank)], rank)


def broadcast(b: Builder, x: Operand, y: Operand) -> tuple[Value, Value]:
    """Two values stretched to their common shape; a number takes the other's type."""
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
    out = b.value(v.dtype, ())
    b.emit("reduce", (b.reshape(v, (1,)),), (out,), name="max", axis=0)
    return out


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
    out = b.value(source.dtype, index.shape)
    b.emit("gather", (source, index), (out,), axis=axis)
    return out


def arg_reduce(b: Builder, name: str, v: Value, axis: int | None, keep_dims: bool, first: bool) -> Value:
    """int32 index of the largest (argmax) or smallest element; of the whole tile in row-major order without an axis."""
    if axis is None:
        rank, v, axis = len(v.shape), b.reshape(v, (v.numel,)), 0
        out = b.value(ty.int32, ())
        b.emit("arg_reduce", (v,), (out,), name=name, axis=0, first=first)
        return b.splat(out, (1,) * rank) if keep_dims else out
    axis = axis_of(axis, len(v.shape))
    out = b.value(ty.int32, [n for k, n in enumerate(v.shape) if k != axis])
    b.emit("arg_reduce", (v,), (out,), name=name, axis=axis, first=first)
    return _kept(b, out, axis) if keep_dims else out


def _kept(b: Builder, v: Value, axis: int) -> Value:
    return b.expand_dims(v, axis) if v.shape else b.splat(v, (1,))


def scan(b: Builder, name: str, v: Value, axis: int, reverse: bool) -> Value:
    """Running combination by a known operation: sum, mul, max, min, and, or, xor."""
    out = b.value(v.dtype, v.shape)
    b.emit("scan", (v,), (out,), name=name, axis=axis, reverse=reverse)
    return out


def sort(b: Builder, v: Value, axis: int, descending: bool) -> Value:
    if axis != len(v.shape) - 1:
        raise KernelError(
            f"sort along axis {axis} of {list(v.shape)}: only the last axis can be sorted; permute before"
        )
    out = b.value(v.dtype, v.shape)
    b.emit("sort", (v,), (out,), axis=axis, descending=descending)
    return out


# -- functions of the user -------------------------------------------------------------------------------------------

KNOWN = {"add": "sum", "mul": "mul", "max": "max", "min": "min", "and": "and", "or": "or", "xor": "xor"}


def known_operation(b: Builder, combine: Combine, types: Sequence[AnyType]) -> str | None:
    """Which built-in reduction a combine function is: it must be one operation on its two operands and nothing else."""
    if len(types) != 1:
        return None
    outer, b.region = b.region, Region()
    try:
        left, right = b.value(types[0]), b.value(types[0])
        (out,) = combine((left,), (right,))
        ops = b.region.ops
    finally:
        b.region = outer
    one = len(ops) == 1 and ops[0].kind == "binary" and ops[0].results[0] is out and out.dtype == types[0]
    if not one or {id(v) for v in ops[0].args} != {id(left), id(right)}:
        return None
    return KNOWN.get(ops[0].name)


def combined(b: Builder, parts: Values, axis: int, combine: Combine) -> Values:
    """One element along an axis: neighbours are combined in pairs, and their results again, until one is left.

    The order of the elements is kept, so the function need not commute. An odd last one waits for the next round.
    """
    n = parts[0].shape[axis]
    while n > 1:
        half = n // 2
        left = tuple(cut(b, v, axis, 0, half, 2) for v in parts)
        right = tuple(cut(b, v, axis, 1, half, 2) for v in parts)
        made = combine(left, right)
        if n % 2:
            rest = [cut(b, v, axis, n - 1, 1) for v in parts]
            made = tuple(cat(b, (m, r), axis) for m, r in zip(made, rest, strict=True))
        parts, n = made, half + n % 2
    return parts


def running(b: Builder, parts: Values, axis: int, combine: Combine, reverse: bool) -> Values:
    """Running combination: in round k each element is combined with the one 2^k before it (behind it, if `reverse`)."""
    if reverse:
        parts = tuple(flip(b, v, axis) for v in parts)
    n, distance = parts[0].shape[axis], 1
    while distance < n:
        early = tuple(cut(b, v, axis, 0, n - distance) for v in parts)
        late = tuple(cut(b, v, axis, distance, n - distance) for v in parts)
        head = [cut(b, v, axis, 0, distance) for v in parts]
        made = combine(early, late)
        parts = tuple(cat(b, (h, m), axis) for h, m in zip(head, made, strict=True))
        distance *= 2
    return tuple(flip(b, v, axis) for v in parts) if reverse else parts


def combiner(b: Builder, fn: Any, types: Sequence[AnyType]) -> Combine:
    """A jit function of 2n values as a function of two n-tuples; its results must have the types of its operands."""
    if not isinstance(fn, Kernel):
        raise KernelError(f"the combine function must be a @jit function, got {describe(fn)}")

    def combine(left: Values, right: Values) -> Values:
        out = b.compile_helper(fn, (*left, *right))
        made = out if isinstance(out, tuple) else (out,)
        if len(made) != len(types):
            raise KernelError(
                f"{fn.name} must return {len(types)} values, one for each input, got {len(made)}"
            )
        shape = left[0].shape
        return tuple(_fitting(b, fn.name, x, t, shape) for x, t in zip(made, types, strict=True))

    return combine


def mapped(b: Builder, fn: Any, values: Sequence[Value]) -> Any:
    """A jit function on values that are broadcast together."""
    if not isinstance(fn, Kernel):
        raise KernelError(f"map_elementwise takes a @jit function, got {describe(fn)}")
    for k in range(1, len(values)):
        values = [b.same_shape(v, values[k])[0] for v in values]
    shape = values[0].shape if values else ()
    return b.compile_helper(fn, [b.broadcast_to(v, shape) for v in values])


def _fitting(b: Builder, name: str, x: Any, wanted: AnyType, shape: tuple[int, ...]) -> Value:
    v = b.to_value(x, wanted if isinstance(wanted, ty.DType) else None)
    if v.dtype != wanted:
        raise KernelError(
            f"{name} must return the types of its operands: {wanted} is expected, got {describe(v)}"
        )
    return b.broadcast_to(v, shape) if v.shape != shape else v

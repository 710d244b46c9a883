"""Accesses to global memory through a tile of indices: `extension`'s gathers and scatters between memory and UB."""

from __future__ import annotations

from typing import Any

from ....ir.building import indexed
from ....ir.building.promotion import KernelError, Operand, describe
from ....ir.building.registry import Builder, builtin
from ....ir.program import Value


@builtin(method=True)
def index_select_simd(
    b: Builder, src: Value, dim: int, index: Value, src_shape: Any, src_offset: Any, read_shape: Any
) -> Value:
    """Slabs of a contiguous tensor at the places `index` along axis `dim`: a tile whose axis `dim` is that of `index`.

    src: pointer to the first element. dim: any axis but the last. index: integers (n,); one outside of the tensor is an
    `OutOfBoundsError`. src_shape: shape of the tensor. src_offset: where to begin on each axis (-1: 0; `dim`: ignored).
    read_shape: compile-time sizes, -1 for `dim`. What lies behind the end of an axis is 0. Each row is one transfer.
    """
    what = "index_select_simd"
    rank = len(src_shape) if isinstance(src_shape, tuple | list) else 0
    shape, begin, sizes = (
        indexed.listed(what, name, x, rank)
        for name, x in (("src_shape", src_shape), ("src_offset", src_offset), ("read_shape", read_shape))
    )
    axis, at = indexed.axis_in(what, dim, rank - 1), indexed.index_tile(b, what, index)
    if len(at.shape) != 1 or sizes[axis] != -1:
        raise KernelError(
            f"{what}: the index must have one axis and read_shape[{axis}] must be -1, got {describe(at)} and {sizes[axis]!r}"
        )
    sizes[axis] = at.shape[0]
    access = indexed.GrownAccess(b, indexed.base_pointer(what, src, floats=False), _sizes(what, sizes))
    strides = indexed.contiguous(b, shape)
    access.move(access.spread(at, axis), strides[axis])
    for k in range(rank):
        if k != axis:
            first = 0 if isinstance(begin[k], int) and begin[k] == -1 else begin[k]
            place = b.binary("add", access.along(k), first)
            access.below(place, shape[k])
            access.move(place, strides[k])
    return access.load(None, access.shape[-1])


def _sizes(what: str, sizes: list[Any]) -> list[int]:
    for n in sizes:
        if not isinstance(n, int) or n < 1:
            raise KernelError(f"{what}: read_shape must be made of compile-time sizes, got {describe(n)}")
    return sizes


@builtin(method=True)
def gather_out_to_ub(
    b: Builder, src: Value, index: Value, index_boundary: int, dim: int, src_stride: Any, end_offset: Any,
    start_offset: Any, other: Operand | None = None,
) -> Value:  # fmt: skip
    """out[i, j, ...] = src[start + (i, j, ...)], with index[i, j, ...] in place of the coordinate along `dim`.

    src: pointer to fp16, bf16 or fp32. index: integers, one to five axes, the shape of the result; where an index reaches
    `index_boundary`, or a place of the tile lies behind `end_offset` - `start_offset`, the result is `other` (0).
    src_stride: elements from one coordinate to the next, for each axis. Each element is a transfer of its own.
    """
    at = indexed.index_tile(b, "gather_out_to_ub", index)
    access = _elementwise(
        b, "gather_out_to_ub", src, at, index_boundary, dim, src_stride, end_offset, start_offset
    )
    return access.load(other)


@builtin(method=True)
def scatter_ub_to_out(
    b: Builder, ptr: Value, value: Value, index: Value, index_boundary: int, dim: int, dst_stride: Any, end_offset: Any,
    start_offset: Any,
) -> None:  # fmt: skip
    """Writes value[i, j, ...] where `gather_out_to_ub` would read: places and bounds as there."""
    at = indexed.index_tile(b, "scatter_ub_to_out", index)
    if not isinstance(value, Value) or value.shape != at.shape:
        raise KernelError(
            f"scatter_ub_to_out: {describe(value)} and the index {list(at.shape)} must have one shape"
        )
    access = _elementwise(
        b, "scatter_ub_to_out", ptr, at, index_boundary, dim, dst_stride, end_offset, start_offset
    )
    access.store(value)


def _elementwise(
    b: Builder,
    what: str,
    pointer: Value,
    at: Value,
    boundary: int,
    dim: int,
    strides: Any,
    end: Any,
    start: Any,
) -> indexed.GrownAccess:
    rank = len(at.shape)
    if rank > MAX_RANK:
        raise KernelError(f"{what}: the index may have up to {MAX_RANK} axes, got {describe(at)}")
    axis = indexed.axis_in(what, dim, rank)
    step, stop, first = _places(what, strides, end, start, rank)
    access = indexed.GrownAccess(b, indexed.base_pointer(what, pointer, floats=True), at.shape)
    access.below(at, _boundary(what, boundary))
    for k in range(rank):
        access.below(access.along(k), b.binary("sub", stop[k], first[k]))
        access.move(b.binary("add", at if k == axis else access.along(k), first[k]), step[k])
    return access


@builtin(method=True)
def index_put(
    b: Builder, ptr: Value, index: Value, value: Value, dim: int, index_boundary: int, end_offset: Any,
    start_offset: Any, dst_stride: Any,
) -> None:  # fmt: skip
    """Writes the slabs of `value` along axis `dim` to the places `index` along that axis of a tensor.

    ptr: pointer to fp16, bf16 or fp32. value: two to five axes; dim: any but the last. index: integers, one for each slab; a
    slab whose index reaches `index_boundary` is not written. On the other axes places go from `start_offset` to before
    `end_offset`. dst_stride: elements from one coordinate to the next. Each row is one transfer if its stride is 1.
    """
    what = "index_put"
    at = indexed.index_tile(b, what, index)
    rank = len(value.shape) if isinstance(value, Value) else 0
    if not 2 <= rank <= MAX_RANK:
        raise KernelError(
            f"{what}: the value must be a tile of two to {MAX_RANK} axes, got {describe(value)}"
        )
    axis = indexed.axis_in(what, dim, rank - 1)
    if at.numel != value.shape[axis]:
        raise KernelError(f"{what}: {at.numel} indices do not fit axis {axis} of {describe(value)}")
    step, stop, first = _places(what, dst_stride, end_offset, start_offset, rank)
    access = indexed.GrownAccess(b, indexed.base_pointer(what, ptr, floats=True), value.shape)
    slab = access.spread(b.reshape(at, (at.numel,)), axis)
    access.below(slab, _boundary(what, index_boundary))
    access.move(slab, step[axis])
    for k in range(rank):
        if k != axis:
            access.below(access.along(k), b.binary("sub", stop[k], first[k]))
            access.move(b.binary("add", access.along(k), first[k]), step[k])
    access.store(value, value.shape[-1] if step[-1] == 1 else 1)


MAX_RANK = 5


def _places(
    what: str, strides: Any, end: Any, start: Any, rank: int
) -> tuple[list[Any], list[Any], list[Any]]:
    return (
        indexed.listed(what, "the stride", strides, rank),
        indexed.listed(what, "end_offset", end, rank),
        indexed.listed(what, "start_offset", start, rank),
    )


def _boundary(what: str, boundary: Any) -> int:
    if isinstance(boundary, bool) or not isinstance(boundary, int):
        raise KernelError(f"{what}: index_boundary must be a compile-time integer, got {describe(boundary)}")
    return boundary


__all__ = ["gather_out_to_ub", "index_put", "index_select_simd", "scatter_ub_to_out"]

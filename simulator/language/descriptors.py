"""Tensor descriptors: a tensor with its shape and strides, read and written block by block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import in_triton
from ..ir.building import blocks
from ..ir.building.blocks import DescriptorInKernel
from ..ir.building.promotion import KernelError, Operand, describe, pointee
from ..ir.building.registry import Builder, Builtin, builtin, named, unwrap
from ..ir.program import Value
from ..precision import dtypes as ty

MIN_ROW_BYTES = 16  # of a block that a descriptor moves

__all__ = ["load_tensor_descriptor", "make_tensor_descriptor", "store_tensor_descriptor"]


@builtin
def make_tensor_descriptor(
    b: Builder,
    base: Value,
    shape: Sequence[Operand],
    strides: Sequence[Operand],
    block_shape: Sequence[int],
    padding_option: str = "zero",
) -> DescriptorInKernel:
    """Descriptor of a tensor with one to five axes.

    base: pointer to its first element. shape, strides (in elements): integer scalars. block_shape: compile-time integers.
    padding_option: "zero" or "nan", the value of elements outside when a block is loaded.
    """
    blocks.base_pointer(base, "make_tensor_descriptor")
    rank = blocks.lists("make_tensor_descriptor", shape=shape, strides=strides, block_shape=block_shape)
    sizes, steps = (
        tuple(blocks.wide(b, x, f"make_tensor_descriptor: {n}") for x in given)
        for n, given in (("shape", shape), ("strides", strides))
    )
    block = blocks.block_sizes(block_shape, "make_tensor_descriptor")
    _check_row(block[-1], pointee(base, "make_tensor_descriptor").itemsize)
    return DescriptorInKernel(base, sizes, steps, (0,) * rank, block, unwrap(padding_option) or "zero")


def _check_row(size: int, itemsize: int) -> None:
    """Triton's rule for a block."""
    if size * itemsize < MIN_ROW_BYTES:
        words = in_triton(
            f"Descriptor block shape must have at least {MIN_ROW_BYTES} bytes in the last dimension"
        )
        raise KernelError(
            f"make_tensor_descriptor: the last axis of a block is {size} elements of {itemsize} bytes, which are "
            f"{size * itemsize}; {MIN_ROW_BYTES} are the least, so take {MIN_ROW_BYTES // itemsize} elements or more{words}"
        )


@builtin
def load_tensor_descriptor(b: Builder, desc: DescriptorInKernel, offsets: Sequence[Operand]) -> Value:
    """The block at `offsets`; elements outside of the tensor are padded."""
    d = blocks.at(b, _descriptor(desc, "load"), unwrap(offsets), "descriptor load")
    return blocks.load_block(b, d, range(len(d.block)), _descriptor(desc, "load").padding)


@builtin
def store_tensor_descriptor(
    b: Builder, desc: DescriptorInKernel, offsets: Sequence[Operand], value: Operand
) -> None:
    """Write a block at `offsets`; elements outside of the tensor are left out."""
    d = blocks.at(b, _descriptor(desc, "store"), unwrap(offsets), "descriptor store")
    blocks.store_block(b, d, value, range(len(d.block)))


def _descriptor(x: Any, what: str) -> DescriptorInKernel:
    if not isinstance(x, DescriptorInKernel):
        raise KernelError(f"{what}: needs a tensor descriptor, got {describe(x)}")
    return x


@builtin
def _gather(b: Builder, desc: DescriptorInKernel, x_offsets: Value, y_offset: Operand) -> Value:
    """Rows `x_offsets` (a tile with one axis) of a tensor with two axes, from column `y_offset`; blocks are (1, columns)."""
    pointer, mask = _rows(b, _descriptor(desc, "gather"), x_offsets, y_offset, "gather")
    return b.load(pointer, mask, None, padding="zero")


@builtin
def _scatter(b: Builder, desc: DescriptorInKernel, value: Value, x_offsets: Value, y_offset: Operand) -> None:
    """Write the rows of `value` to the rows `x_offsets` of a tensor with two axes, from column `y_offset`."""
    pointer, mask = _rows(b, _descriptor(desc, "scatter"), x_offsets, y_offset, "scatter")
    b.store(pointer, value, mask)


def _rows(b: Builder, d: DescriptorInKernel, rows: Any, column: Any, what: str) -> tuple[Value, Value]:
    """Pointers and mask of whole rows that are chosen one by one."""
    if len(d.block) != 2 or d.block[0] != 1:
        raise KernelError(f"{what}: needs a descriptor with blocks (1, columns), got {d}")
    if not isinstance(rows, Value) or len(rows.shape) != 1 or not rows.dtype.is_int():
        raise KernelError(f"{what}: row numbers must be an integer tile with one axis, got {describe(rows)}")
    r: Any = b.expand_dims(b.cast(rows, ty.int64), 1)
    c: Any = b.binary(
        "add", b.cast(b.arange(0, d.block[1]), ty.int64), blocks.wide(b, column, f"{what}: column")
    )
    c = b.expand_dims(c, 0)
    at: Any = b.binary("add", b.binary("mul", r, d.strides[0]), b.binary("mul", c, d.strides[1]))
    mask: Any = b.binary("and", _within(b, r, d.shape[0]), _within(b, c, d.shape[1]))
    return b.binary("add", d.base, at), mask  # type: ignore[return-value]


def _within(b: Builder, x: Any, size: Operand) -> Any:
    return b.binary("and", b.compare("ge", x, 0), b.compare("lt", x, size))


def _atomic(name: str) -> Builtin:
    def build(b: Builder, desc: DescriptorInKernel, offsets: Sequence[Operand], value: Operand) -> None:
        d = blocks.at(b, _descriptor(desc, f"atomic_{name}"), unwrap(offsets), f"atomic_{name}")
        b.atomic(name, blocks.pointers(b, d), value, blocks.inside(b, d, range(len(d.block))))

    says = (
        f"Combine a block at `offsets` with memory as tl.atomic_{name} does; elements outside are left out."
    )
    return named(f"atomic_{name}", build, says)


DescriptorInKernel.methods.update(
    load=load_tensor_descriptor,
    store=store_tensor_descriptor,
    gather=_gather,
    scatter=_scatter,
    **{f"atomic_{n}": _atomic(n) for n in ("add", "max", "min", "and", "or", "xor")},
)

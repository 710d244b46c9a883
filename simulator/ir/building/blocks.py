"""Block pointers and tensor descriptors: a tensor of the kernel's choosing and the block of it that is meant.

Both are several values of the program under one name. An access through them is built from ordinary index arithmetic, so
that it stays a regular transfer: pointers base + sum_k (offset_k + i_k) * stride_k, mask 0 <= offset_k + i_k < shape_k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...precision import dtypes as ty
from ...precision.dtypes import DType
from ..program import Value
from ..types import BlockType, PointerType
from .aggregate import Aggregate
from .builder import Builder
from .promotion import KernelError, Operand, describe
from .registry import unwrap

PADDINGS = ("", "zero", "nan")


@dataclass(frozen=True)
class Block(Aggregate):
    """A block of a tensor with `len(block)` axes; sizes, strides (in elements) and offsets are int64 scalars or ints."""

    base: Value
    shape: tuple[Operand, ...]
    strides: tuple[Operand, ...]
    offsets: tuple[Operand, ...]
    block: tuple[int, ...]

    def parts(self) -> tuple[Any, ...]:
        return (self.base, *self.shape, *self.strides, *self.offsets)

    def rebuilt(self, parts: tuple[Any, ...]) -> Aggregate:
        n = len(self.block)
        base, shape, strides, offsets = (
            parts[0],
            parts[1 : n + 1],
            parts[n + 1 : 2 * n + 1],
            parts[2 * n + 1 :],
        )
        return replace(self, base=base, shape=shape, strides=strides, offsets=offsets)

    def stable(self) -> int:
        return 1 + 2 * len(self.block)

    def kind(self) -> str:
        return f"{type(self).__name__} {self.base.dtype} {list(self.block)}"

    @property
    def dtype(self) -> Any:
        return self.base.dtype

    @property
    def type(self) -> Any:
        return self.base.dtype

    @property
    def element(self) -> DType:
        assert isinstance(self.base.dtype, PointerType)
        return self.base.dtype.element_ty  # type: ignore[no-any-return]


@dataclass(frozen=True)
class BlockPointer(Block):
    """What tl.make_block_ptr gives."""

    methods = {}  # noqa: RUF012

    def __str__(self) -> str:
        return f"a block pointer to {list(self.block)} of {self.element}"


@dataclass(frozen=True)
class DescriptorInKernel(Block):
    """What tl.make_tensor_descriptor gives; `padding` is the value of elements outside."""

    padding: str = "zero"
    methods = {}  # noqa: RUF012  # filled in by language/descriptors.py

    def __str__(self) -> str:
        return f"a tensor descriptor of {list(self.block)} blocks of {self.element}"

    @property
    def block_shape(self) -> tuple[int, ...]:
        return self.block

    @property
    def dtype(self) -> Any:
        return self.element

    @property
    def block_type(self) -> BlockType:
        return BlockType(self.element, self.block)


def wide(b: Builder, x: Any, what: str) -> Operand:
    """An integer scalar as int64; a number stays one."""
    x = unwrap(x)
    if isinstance(x, int) and not isinstance(x, bool):
        return x
    if not isinstance(x, Value) or x.shape or not x.dtype.is_int() or x.dtype.is_bool():
        raise KernelError(f"{what} must be integer scalars, got {describe(x)}")
    return b.cast(x, ty.int64)


def base_pointer(x: Any, what: str) -> Value:
    """`x` if it is a pointer scalar."""
    if not isinstance(x, Value) or not x.is_pointer or x.shape:
        raise KernelError(f"{what}: the base must be a pointer to the first element, got {describe(x)}")
    return x


def lists(what: str, rank: int | None = None, **named: Any) -> int:
    """Number of axes; all lists must have as many entries."""
    for name, x in named.items():
        if not isinstance(unwrap(x), tuple | list):
            raise KernelError(
                f"{what}: {name} must be a list or tuple with one entry per axis, got {describe(x)}"
            )
    sizes = {name: len(unwrap(x)) for name, x in named.items()}
    first = next(iter(sizes.values())) if rank is None else rank
    if any(n != first for n in sizes.values()) or not first:
        sizes_text = ", ".join(f"{name} {n}" for name, n in sizes.items())
        raise KernelError(f"{what}: all lists must have one entry per axis, got {sizes_text}")
    return first


def block_sizes(sizes: Sequence[Any], what: str) -> tuple[int, ...]:
    """Block sizes as compile-time integers above zero."""
    out = tuple(unwrap(n) for n in sizes)
    for n in out:
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise KernelError(f"{what}: block sizes must be compile-time integers above 0, got {describe(n)}")
    return out


def moved(b: Builder, block: Block, offsets: Sequence[Any]) -> Block:
    """The block `offsets` further along each axis."""
    lists("advance", len(block.block), offsets=offsets)
    steps = [wide(b, x, "advance: offsets") for x in offsets]
    new = tuple(
        a if isinstance(s, int) and s == 0 else b.binary("add", a, s)
        for a, s in zip(block.offsets, steps, strict=True)
    )
    return replace(block, offsets=new)


def at(b: Builder, block: Block, offsets: Sequence[Any], what: str) -> Block:
    """The block at `offsets`."""
    lists(what, len(block.block), offsets=offsets)
    return replace(block, offsets=tuple(wide(b, x, f"{what}: offsets") for x in offsets))


def pointers(b: Builder, block: Block) -> Value:
    """Tile of pointers to the elements of the block."""
    p: Any = block.base
    for offset, stride in zip(block.offsets, block.strides, strict=True):
        if not (isinstance(offset, int) and offset == 0):
            p = b.binary("add", p, b.binary("mul", offset, stride))
    p = b.splat(p, (1,) * len(block.block))
    for axis, stride in enumerate(block.strides):
        index = _index(b, block, axis)
        p = b.binary(
            "add", p, index if isinstance(stride, int) and stride == 1 else b.binary("mul", index, stride)
        )
    return b.broadcast_to(p, block.block)


def _index(b: Builder, block: Block, axis: int) -> Value:
    """0, 1, ... along one axis, with axes of size 1 for the others."""
    out = b.cast(b.arange(0, block.block[axis]), ty.int64)
    for k in range(len(block.block)):
        if k != axis:
            out = b.expand_dims(out, k)
    return out


def inside(b: Builder, block: Block, axes: Sequence[int]) -> Value | None:
    """Mask of the elements inside the tensor along `axes`; None if nothing is checked."""
    mask: Any = None
    for axis in axes:
        offset, size = block.offsets[axis], block.shape[axis]
        index = _index(b, block, axis)
        tests = [b.compare("lt", index, b.binary("sub", size, offset))]
        if not (isinstance(offset, int) and offset >= 0):
            tests.append(b.compare("ge", index, b.binary("sub", 0, offset)))
        for test in tests:
            test = b.broadcast_to(test, block.block)
            mask = test if mask is None else b.binary("and", mask, test)
    return mask  # type: ignore[no-any-return]


def checked_axes(block: Block, boundary_check: Any) -> tuple[int, ...]:
    """The axes of `boundary_check`, each once."""
    given = unwrap(boundary_check)
    given = given if isinstance(given, tuple | list) else (given,)
    rank = len(block.block)
    for axis in (unwrap(a) for a in given):
        if isinstance(axis, bool) or not isinstance(axis, int) or not 0 <= axis < rank:
            raise KernelError(f"boundary_check: axes are 0 to {rank - 1} for {block}, got {describe(axis)}")
    return tuple(dict.fromkeys(unwrap(a) for a in given))


def load_block(b: Builder, block: Block, axes: Sequence[int], padding: str) -> Value:
    """The block's elements; along `axes`, elements outside of the tensor are padded and not read."""
    if padding not in PADDINGS:
        raise KernelError(
            f"padding_option is one of {', '.join(map(repr, PADDINGS))}, got {describe(padding)}"
        )
    if padding == "nan" and not block.element.is_floating():
        raise KernelError(f"padding_option 'nan' needs a floating type, got {block.element}")
    mask = inside(b, block, axes)
    other = float("nan") if padding == "nan" and mask is not None else None
    return b.load(pointers(b, block), mask, other, padding=padding)


def store_block(b: Builder, block: Block, value: Any, axes: Sequence[int]) -> None:
    """Write the block; along `axes`, elements outside of the tensor are left out."""
    if isinstance(value, Value) and value.shape and value.shape != block.block:
        raise KernelError(f"store: {block} takes a tile of that shape, got {describe(value)}")
    b.store(pointers(b, block), value, inside(b, block, axes))

"""Loads, stores and atomics on global memory, through pointers and block pointers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import in_triton
from ..ir.building import blocks
from ..ir.building.blocks import Block, BlockPointer
from ..ir.building.promotion import KernelError, Operand, describe
from ..ir.building.registry import Builder, Builtin, builtin, named, unwrap
from ..ir.program import Value

__all__ = [
    "advance", "atomic_add", "atomic_and", "atomic_cas", "atomic_max", "atomic_min", "atomic_or",
    "atomic_xchg", "atomic_xor", "load", "make_block_ptr", "store",
]  # fmt: skip

SEMANTICS = ("acquire", "release", "acq_rel", "relaxed")
SCOPES = ("gpu", "cta", "sys")  # all programs, one, and those of other devices


@builtin
def load(
    b: Builder,
    pointer: Value | Block,
    mask: Operand | None = None,
    other: Operand | None = None,
    boundary_check: Sequence[int] = (),
    padding_option: str = "",
    cache_modifier: str = "",
    eviction_policy: str = "",
    volatile: bool = False,
    care_padding: bool = True,
) -> Value:
    """Elements at `pointer`.

    pointer: a pointer scalar, a tile of pointers (`ptr + offsets`, offsets in elements), or a block pointer.
    mask: boolean or integer, broadcastable to the pointers; elements where it is False are not read.
    other: value of masked-out elements; needs a mask. Not for block pointers. Without it Triton leaves them undefined; they
    are 0 here, as in Triton-Ascend, and poison (NaN, the smallest integer) with sim.device(masked="poison") or check=True.
    boundary_check: axes of a block pointer along which elements outside of its shape are not read but padded, with
    `padding_option` "zero" or "nan" ("": as without `other`). care_padding: False leaves masked-out elements without
    `other` random on the device; here it only changes what check=True tells of them.
    cache_modifier: ".cv" reads past L2, for what is read once; others and eviction_policy are accepted, without effect in
    the model. volatile: whether memory is read each time, as a flag of another program must be; here it always is.
    Reading outside of the tensor is an `OutOfBoundsError` with tensor, index, program and line.
    """
    if isinstance(pointer, Block):
        _no_mask(pointer, mask, other, "load")
        return blocks.load_block(
            b, pointer, blocks.checked_axes(pointer, boundary_check), unwrap(padding_option) or ""
        )
    _no_boundary("load", boundary_check, padding_option)
    if other is not None and mask is None:
        raise KernelError("load: `other` is the value of masked-out elements and needs a `mask`")
    past_l2 = ".cv" if unwrap(cache_modifier) == ".cv" else ""
    padding = None if unwrap(care_padding) else "random"
    return b.load(pointer, mask, None if mask is True else other, past_l2, padding, bool(unwrap(volatile)))


@builtin
def store(
    b: Builder,
    pointer: Value | Block,
    value: Operand,
    mask: Operand | None = None,
    boundary_check: Sequence[int] = (),
    cache_modifier: str = "",
    eviction_policy: str = "",
) -> None:
    """Write `value`, cast to the pointer's element type, where `mask` is True. Shapes and keywords as in `load`."""
    if isinstance(pointer, Block):
        _no_mask(pointer, mask, None, "store")
        blocks.store_block(b, pointer, value, blocks.checked_axes(pointer, boundary_check))
        return
    _no_boundary("store", boundary_check, "")
    b.store(pointer, value, mask)


def _no_mask(pointer: Block, mask: Any, other: Any, what: str) -> None:
    if mask is not None or other is not None:
        raise KernelError(
            f"{what}: {pointer} takes boundary_check and padding_option instead of `mask` and `other`"
        )


def _no_boundary(what: str, boundary_check: Any, padding: Any) -> None:
    if unwrap(boundary_check) or unwrap(padding):
        raise KernelError(
            f"{what}: boundary_check and padding_option belong to block pointers (tl.make_block_ptr); use `mask`"
        )


@builtin
def make_block_ptr(
    b: Builder,
    base: Value,
    shape: Sequence[Operand],
    strides: Sequence[Operand],
    offsets: Sequence[Operand],
    block_shape: Sequence[int],
    order: Sequence[int],
) -> BlockPointer:
    """Pointer to a block of a tensor with one to eight axes.

    base: pointer to its first element. shape, strides (in elements), offsets of the block: one integer scalar per axis.
    block_shape: compile-time integers of any size. order: axes from the fastest in memory to the slowest, a permutation;
    it is checked, and strides alone decide about the transfer.
    """
    blocks.base_pointer(base, "make_block_ptr")
    rank = blocks.lists(
        "make_block_ptr", shape=shape, strides=strides, offsets=offsets, block_shape=block_shape, order=order
    )
    if sorted(unwrap(a) for a in order) != list(range(rank)):
        raise KernelError(
            f"make_block_ptr: order must name every axis from 0 to {rank - 1} once, got {order}"
        )
    if rank > 8:
        raise KernelError(f"make_block_ptr: a block has one to eight axes, got {rank}")
    sizes, steps, first = (
        tuple(blocks.wide(b, x, f"make_block_ptr: {n}") for x in given)
        for n, given in (("shape", shape), ("strides", strides), ("offsets", offsets))
    )
    return BlockPointer(base, sizes, steps, first, blocks.block_sizes(block_shape, "make_block_ptr"))


@builtin
def advance(b: Builder, base: BlockPointer, offsets: Sequence[Operand]) -> Block:
    """A block pointer moved by `offsets`, one integer scalar per axis, in elements of that axis."""
    if not isinstance(base, BlockPointer):
        raise KernelError(f"advance: needs a block pointer (tl.make_block_ptr), got {describe(base)}")
    return blocks.moved(b, base, unwrap(offsets))


BlockPointer.methods["advance"] = advance


def _sem(name: str, given: Any, scope: Any) -> str:
    """What else an atomic orders: "acq_rel" unless given. Relaxed orders nothing but its own element.

    One of scope "cta" orders what is in one program, so to other programs it is relaxed.
    """
    sem, reach = unwrap(given) or "acq_rel", unwrap(scope) or "gpu"
    for what, said, known in (("sem", sem, SEMANTICS), ("scope", reach, SCOPES)):
        if said not in known:
            raise KernelError(
                f"atomic_{name}: {what} is {said!r}, it must be one of {', '.join(map(repr, known))}"
                f"{in_triton(f'Memory semantic {said} not supported')}"
            )
    return "relaxed" if reach == "cta" else str(sem)


def _atomic(name: str, says: str) -> Builtin:
    def build(
        b: Builder,
        pointer: Value,
        val: Operand,
        mask: Operand | None = None,
        sem: str | None = None,
        scope: str | None = None,
    ) -> Value:
        return b.atomic(name, pointer, val, mask, _sem(name, sem, scope))

    return named(f"atomic_{name}", build, says)


atomic_add = _atomic("add", "Add `val` to memory, once per element, rounded in the element type.")
atomic_max = _atomic(
    "max", "Put the larger of memory and `val` into memory; a NaN in either gives way to the number."
)
atomic_min = _atomic(
    "min", "Put the smaller of memory and `val` into memory; a NaN in either gives way to the number."
)
atomic_and = _atomic("and", "Bitwise and of memory and `val`; integers and booleans.")
atomic_or = _atomic("or", "Bitwise or of memory and `val`; integers and booleans.")
atomic_xor = _atomic("xor", "Bitwise exclusive or of memory and `val`; integers and booleans.")
atomic_xchg = _atomic("xchg", "Put `val` into memory.")


@builtin
def atomic_cas(
    b: Builder, pointer: Value, cmp: Operand, val: Operand, sem: str | None = None, scope: str | None = None
) -> Value:
    """Put `val` into memory where it holds `cmp`; bit patterns are compared."""
    return b.compare_and_swap(pointer, cmp, val, _sem("cas", sem, scope))

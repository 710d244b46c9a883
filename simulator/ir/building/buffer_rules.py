"""What explicit buffers may be: their places, types, sizes, and rows that the hardware can reach."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...precision.dtypes import DType
from ..program import Value
from .aggregate import Aggregate
from .promotion import KernelError, describe
from .registry import unwrap

BLOCK_BYTES = 32
L0 = ("L0A", "L0B", "L0C")


class AddressSpace(enum.Enum):
    """Where a buffer lies: UB of the Vector unit, or L1, L0A, L0B, L0C of the Cube."""

    UB = "UB"
    L1 = "L1"
    L0A = "L0A"
    L0B = "L0B"
    L0C = "L0C"


@dataclass(frozen=True)
class KernelBuffer(Aggregate):
    """A buffer, or (with `offsets`) the part of one that begins there. `strides` are those of a part, in elements."""

    key: str
    dtype: DType
    shape: tuple[int, ...]
    space: AddressSpace | None
    strides: tuple[int, ...] = ()
    offsets: tuple[Any, ...] = ()
    methods = {}  # noqa: RUF012  # filled in by language/extra/cann/buffer.py

    def parts(self) -> tuple[Any, ...]:
        return self.offsets

    def rebuilt(self, parts: tuple[Any, ...]) -> Aggregate:
        return replace(self, offsets=parts)

    def kind(self) -> str:
        return f"{self.key} {list(self.shape)} {bool(self.offsets)}"

    def __str__(self) -> str:
        where = f" in {self.space.value}" if self.space else ""
        return f"a buffer of {self.dtype} {list(self.shape)}{where}"

    @property
    def type(self) -> KernelBuffer:
        return self

    @property
    def element_ty(self) -> DType:
        return self.dtype

    @property
    def place(self) -> str:
        return self.space.value if self.space else AddressSpace.UB.value


def check_rows(dst: KernelBuffer, modes: Mapping[str, Any]) -> None:
    """Rows that the fixpipe can write (Triton-Ascend, al.fixpipe): a multiple of elements on the last axis."""
    if len(dst.shape) != 2:
        return
    wide = dst.dtype.bits == 32
    least = 8 if wide else 16
    if wide and modes["dma_mode"] != "NZ2ND":
        least = 16
    if wide and modes["dual_dst_mode"] == "COLUMN_SPLIT":
        least = 32
    if dst.shape[1] % least:
        raise KernelError(
            f"fixpipe: the last axis of {dst} must be a multiple of {least} elements ({modes['dma_mode']}, "
            f"{modes['dual_dst_mode']})"
        )
    first = 8 if wide else 16
    if modes["dma_mode"] == "NZ2DN" and dst.shape[0] % first:
        raise KernelError(f"fixpipe: NZ2DN needs a first axis of {dst} that is a multiple of {first}")


def check_aligned(
    whole: KernelBuffer, at: list[Any], size: tuple[int, ...], step: tuple[int, ...], pitch: tuple[int, ...]
) -> None:
    """Refuse parts whose rows are not on blocks; where one begins is checked as it runs if the program alone knows it."""
    if any(s != 1 for s in step):
        raise KernelError(
            f"subview: all strides must be 1, got {list(step)}; take every other element of a tensor with extract_slice"
        )
    bits = whole.dtype.bits
    rows = [p * bits // 8 for p, n in zip(pitch[:-1], size, strict=False) if n > 1]
    known = all(isinstance(x, int) for x in at)
    begins = [sum(x * p for x, p in zip(at, pitch, strict=True)) * bits // 8] if known else []
    for name, found in (*((BEGINS, x) for x in begins), *(("its rows are apart by bytes", r) for r in rows)):
        if found % BLOCK_BYTES:
            raise KernelError(off_blocks(str(whole), name, found, bits))


BEGINS = "it begins at byte"


def off_blocks(whole: str, name: str, found: int, bits: int) -> str:
    """What is wrong with a part of `whole`; name: of the distance that is `found` bytes. bits: of an element."""
    return (
        f"subview of {whole}: {name} {found}, which must be a multiple of {BLOCK_BYTES}; take offsets and a last "
        f"axis that are multiples of {BLOCK_BYTES * 8 // bits} elements, or extract_slice of the tensor"
    )


def pitch_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Elements from one index to the next on each axis of a whole buffer."""
    out, n = [], 1
    for size in reversed(shape):
        out.append(n)
        n *= size
    return tuple(reversed(out))


def listed(x: Any) -> tuple[Any, ...]:
    x = unwrap(x)
    return tuple(x) if isinstance(x, tuple | list) else (x,)


def integers(what: str, name: str, x: Any, rank: int) -> tuple[int, ...]:
    numbers = tuple(unwrap(n) for n in listed(x))
    if len(numbers) != rank or not all(isinstance(n, int) and not isinstance(n, bool) for n in numbers):
        raise KernelError(f"{what}: {name}s must be {rank} compile-time integers, got {describe(x)}")
    return numbers


def checked_space(what: str, x: Any) -> AddressSpace | None:
    x = unwrap(x)
    if x is not None and not isinstance(x, AddressSpace):
        raise KernelError(
            f"{what}: the address space must be one of al.ascend_address_space, got {describe(x)}"
        )
    return x


def element_type(x: Any) -> DType:
    x = unwrap(x)
    if not isinstance(x, DType) or x.is_bool():
        raise KernelError(f"alloc: the element type must be a number's, got {describe(x)}; take tl.int8")
    return x


def tile(what: str, x: Any) -> Value:
    if not isinstance(x, Value) or not x.shape or x.is_pointer:
        raise KernelError(f"{what} needs a tile, got {describe(x)}")
    return x

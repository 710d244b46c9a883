"""Builds accesses to global memory through a tile of indices along one axis of a tensor.

The tensor is given by its strides in elements. Offsets are 64-bit and are added to the pointer one axis after another, so
that only the indexed axis leaves the regular form. Where the last axis is read or written as it lies in memory, the
access moves whole rows: `run` of a load or store is the number of elements that lie behind each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...precision import dtypes as ty
from ..program import Value
from .builder import Builder
from .promotion import KernelError, Operand, axis_of, describe, is_number, pointee
from .rearrange import tile

FLOATS = ("fp16", "bf16", "fp32")


def index_tile(b: Builder, what: str, x: Any) -> Value:
    v = tile(b, what, x)
    if not v.dtype.is_int() or v.dtype.is_bool():
        raise KernelError(f"{what}: the index must be made of integers, got {describe(v)}")
    return v


def base_pointer(what: str, x: Any, floats: bool) -> Value:
    """A scalar pointer, to floats where the vendor's operation takes no other."""
    element = pointee(x, what)
    if x.shape:
        raise KernelError(f"{what} takes the pointer to the tensor's first element, got {describe(x)}")
    if floats and element.name not in FLOATS:
        raise KernelError(f"{what} takes pointers to {', '.join(FLOATS)}, got {x.dtype}")
    return x  # type: ignore[no-any-return]


def listed(what: str, name: str, x: Any, rank: int) -> list[Any]:
    """One integer (scalar) for each axis."""
    if not isinstance(x, tuple | list) or len(x) != rank:
        raise KernelError(f"{what}: {name} must have one integer for each of {rank} axes, got {describe(x)}")
    for n in x:
        scalar = isinstance(n, Value) and not n.shape and not n.is_pointer and n.dtype.is_int()
        if not scalar and not (is_number(n) and isinstance(n, int)):
            raise KernelError(f"{what}: {name} must be made of integers, got {describe(n)}")
    return list(x)


def axis_in(what: str, dim: Any, count: int) -> int:
    """`dim` as one of the first `count` axes."""
    if isinstance(dim, bool) or not isinstance(dim, int) or not 0 <= dim < count:
        raise KernelError(
            f"{what}: dim must be a compile-time integer from 0 to {count - 1}, got {describe(dim)}"
        )
    return axis_of(dim, count)


def contiguous(b: Builder, shape: Sequence[Any]) -> list[Any]:
    """Strides of a tensor whose last axis lies in memory element by element."""
    strides: list[Any] = [1]
    for n in reversed(shape[1:]):
        strides.insert(0, b.binary("mul", _wide(b, strides[0]), n))
    return strides


def _wide(b: Builder, x: Operand) -> Operand:
    return b.cast(x, ty.int64) if isinstance(x, Value) else x


class GrownAccess:
    """Pointer and mask of an access, grown axis by axis."""

    def __init__(self, b: Builder, pointer: Value, shape: Sequence[int]) -> None:
        self.b = b
        self.pointer: Any = pointer
        self.shape = tuple(shape)
        self.mask: Any = None
        self.first = len(b.region.ops)

    def along(self, axis: int) -> Value:
        """0, 1, 2 ... along an axis, 64-bit, of the access's rank."""
        return self.spread(self.b.cast(self.b.arange(0, self.shape[axis]), ty.int64), axis)

    def spread(self, v: Value, axis: int) -> Value:
        """A tile of one axis as `axis` among others of size 1."""
        for k in range(len(self.shape)):
            if k != axis:
                v = self.b.expand_dims(v, k)
        return v

    def move(self, offset: Operand, stride: Operand) -> None:
        """`offset` steps of `stride` elements further."""
        steps = self.b.binary("mul", _wide(self.b, offset), _wide(self.b, stride))
        self.pointer = self.b.binary("add", self.pointer, steps)

    def only(self, condition: Operand) -> None:
        """Where `condition` holds, too."""
        self.mask = condition if self.mask is None else self.b.binary("and", self.mask, condition)

    def below(self, x: Operand, bound: Operand) -> None:
        self.only(self.b.compare("lt", x, bound))

    def load(self, other: Operand | None, run: int = 1) -> Value:
        pointer = self.b.broadcast_to(self.pointer, self.shape)
        if other is None and self.mask is not None:
            other = 0
        out = self.b.load(pointer, self.mask, other)
        self._mark(run)
        return out

    def store(self, value: Value, run: int = 1) -> None:
        self.b.store(self.b.broadcast_to(self.pointer, self.shape), value, self.mask)
        self._mark(run)

    def _mark(self, run: int) -> None:
        """Note the length of rows, and which operations are the access's own: a user cannot write those otherwise."""
        op = self.b.region.ops[-1]
        assert op.kind in ("load", "store")
        for inner in self.b.region.ops[self.first : -1]:
            inner.attrs["of_access"] = True
        if run > 1:
            op.attrs["run"] = run

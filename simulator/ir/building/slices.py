"""Builds slices of tiles with an offset, a size and a stride on each axis, and single elements of tiles.

`img2col` makes windows of images side by side, as LoadData3D does. Sizes and strides are compile-time integers; an offset is
one too, or an integer scalar of the program, which may differ between programs. A slice outside of its tile is an
error: here for constant offsets, while it runs for all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...units import slices
from ..operations import Context, Operation, Scratch, define
from ..program import Op, Value
from .builder import Builder
from .promotion import KernelError, describe
from .rearrange import tile


def places_of(op: Op, moving: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """Places of a slice on each axis, from the offsets that are values of the program."""
    rest = iter(moving)
    offsets = [next(rest) if x is None else np.array([x]) for x in op.attrs["offsets"]]
    return slices.places(offsets, op.attrs["sizes"], op.attrs["strides"])


def _extract(at: Context, op: Op, x: np.ndarray, *moving: np.ndarray) -> np.ndarray:
    if not moving:
        return slices.extract_fixed(x, op.attrs["offsets"], op.attrs["sizes"], op.attrs["strides"])
    return slices.extract(x, places_of(op, moving))


@define(
    Operation(
        "extract_slice",
        "copy",
        _extract,
        rows=("gather", "compares"),
        scratch=Scratch.FIRST | Scratch.SLICED,
    )
)
def extract_slice(b: Builder, full: Value, offsets: Any, sizes: Any, strides: Any) -> Value:
    """The elements offset + stride * i (0 <= i < size) of every axis: a tile of shape `sizes`."""
    what = "extract_slice"
    v = tile(b, what, full)
    where = _region(what, v, offsets, sizes, strides)
    if where.sizes == v.shape and all(x == 0 for x in where.offsets):
        return v
    return b.emit_one(what, (v, *where.moving), v.dtype, where.sizes, **where.attrs)


def inserted(at: Context, op: Op, full: np.ndarray, sub: np.ndarray, *moving: np.ndarray) -> np.ndarray:
    """The value of an insertion."""
    return slices.insert(full, sub, places_of(op, moving))


@define(
    Operation(  # a whole tile that is a formula is written straight into the result
        "insert_slice",
        "copy",
        inserted,
        rows=("gather", "select", "compares"),
        scratch=Scratch.SECOND | Scratch.SLICED,
    )
)
def insert_slice(b: Builder, full: Value, sub: Value, offsets: Any, sizes: Any, strides: Any) -> Value:
    """`full` with `sub` in place of the elements that `extract_slice` would take."""
    what = "insert_slice"
    v, s = tile(b, what, full), tile(b, what, sub)
    where = _region(what, v, offsets, sizes, strides)
    if s.shape != where.sizes:
        raise KernelError(
            f"insert_slice: sizes are {list(where.sizes)} but the tile to insert is {describe(s)}"
        )
    if s.dtype != v.dtype:
        raise KernelError(f"insert_slice: {describe(s)} cannot go into {describe(v)}; cast one of them")
    return b.emit_one(what, (v, s, *where.moving), v.dtype, v.shape, **where.attrs)


def _element(at: Context, op: Op, x: np.ndarray, *moving: np.ndarray) -> np.ndarray:
    out = slices.extract(x, places_of(op, moving))
    return out.reshape(out.shape[0])


@define(Operation("get_element", value=_element, scratch=Scratch.FIRST))
def get_element(b: Builder, src: Value, indices: Any) -> Value:
    """The scalar at one index per axis."""
    what = "get_element"
    v = tile(b, what, src)
    ones = (1,) * len(v.shape)
    where = _region(what, v, indices, ones, ones)
    return b.emit_one(what, (v, *where.moving), v.dtype, (), **where.attrs)


def _windows(at: Context, op: Op, x: np.ndarray) -> np.ndarray:
    (n, down, across, wide), taps = op.attrs["sizes"], op.attrs["taps"]
    programs, images, line, place, channel = x.strides
    (step_h, step_w), (apart_h, apart_w) = op.attrs["steps"], op.attrs["apart"]
    shape = x.shape[0], n, down, across, *taps, wide // prod(taps)
    strides = (
        *(programs, images, line * step_h, place * step_w),
        *(line * apart_h, place * apart_w, channel),
    )
    seen = np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False)
    return np.ascontiguousarray(seen).reshape(x.shape[0], n, down, across, wide)


@define(Operation("img2col", "copy", _windows, scratch=Scratch.FIRST))
def img2col(b: Builder, image: Value, taps: Any, steps: Any, apart: Any) -> Value:
    """(images, rows, columns, taps down x taps across x channels) of (images, rows, columns, channels)."""
    v = tile(b, "img2col", image)
    if len(v.shape) != 4:
        raise KernelError(f"img2col takes (images, rows, columns, channels), got {describe(v)}; reshape it")
    given = [_two(name, x) for name, x in (("taps", taps), ("steps", steps), ("apart", apart))]
    counts = [_places(v, axis, *(x[axis] for x in given)) for axis in (0, 1)]
    if given[0] == given[1] == (1, 1):
        return v
    sizes = v.shape[0], *counts, v.shape[3] * prod(given[0])
    return b.emit_one("img2col", (v,), v.dtype, sizes, sizes=sizes, **dict(zip(NAMES, given, strict=True)))


NAMES = "taps", "steps", "apart"


def _two(name: str, x: Any) -> tuple[int, int]:
    good = isinstance(x, tuple | list) and len(x) == 2
    if not good or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in x):
        raise KernelError(
            f"img2col: {name} must be two compile-time integers of at least 1, down and across, got {describe(x)}"
        )
    return x[0], x[1]


def _places(v: Value, axis: int, taps: int, step: int, apart: int) -> int:
    """Windows of one axis that lie within the image."""
    span, size = (taps - 1) * apart + 1, v.shape[1 + axis]
    if span > size:
        what = ("rows", "columns")[axis]
        raise KernelError(
            f"img2col: a window of {taps} taps {apart} apart spans {span} {what}, the image has {size}; load more of it"
        )
    return (size - span) // step + 1


class _Where(NamedTuple):
    """offsets: one for each axis, None where it is a value of the program; those are `moving`, in order."""

    offsets: tuple[int | None, ...]
    moving: list[Value]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def attrs(self) -> dict[str, Any]:
        return {"offsets": self.offsets, "sizes": self.sizes, "strides": self.strides}


def _region(what: str, v: Value, offsets: Any, sizes: Any, strides: Any) -> _Where:
    """Checked offsets, sizes and strides of a slice of `v`."""
    given = [
        _listed(what, name, x, v) for name, x in (("offset", offsets), ("size", sizes), ("stride", strides))
    ]
    places = [checked_offset(what, x) for x in given[0]]
    constant = [x if isinstance(x, int) else None for x in places]
    size, stride = (
        [_constant(what, name, x) for x in xs] for name, xs in zip(("size", "stride"), given[1:], strict=True)
    )
    for axis, (n, at, count, step) in enumerate(zip(v.shape, constant, size, stride, strict=True)):
        check_axis(what, axis, n, at, count, step)
    moving = [x for x in places if isinstance(x, Value)]
    return _Where(tuple(constant), moving, tuple(size), tuple(stride))


def check_axis(what: str, axis: int, n: int, offset: int | None, count: int, step: int) -> None:
    """Refuse a slice that leaves an axis of `n` elements, wherever an unknown offset (None) may begin."""
    if count < 1 or step < 0 or (step == 0 and count > 1):
        raise KernelError(f"{what}: axis {axis} has size {count} and stride {step}; both must be at least 1")
    first = offset or 0
    last = first + (count - 1) * step
    if first < 0 or last >= n:
        raise KernelError(
            f"{what}: axis {axis} has {n} elements, but offset {first}, size {count} and stride {step} reach from "
            f"{first} to {last}"
        )


def _listed(what: str, name: str, x: Any, v: Value) -> Sequence[Any]:
    if not isinstance(x, tuple | list):
        raise KernelError(f"{what}: {name}s must be a tuple with one {name} for each axis, got {describe(x)}")
    if len(x) != len(v.shape):
        raise KernelError(f"{what}: {describe(v)} has {len(v.shape)} axes, but {len(x)} {name}s are given")
    return x


def checked_offset(what: str, x: Any) -> int | Value:
    """`x` as an integer, or an integer scalar of the program."""
    integer = isinstance(x, int) and not isinstance(x, bool)
    scalar = (
        isinstance(x, Value)
        and not x.shape
        and not x.is_pointer
        and x.dtype.is_int()
        and not x.dtype.is_bool()
    )
    if not integer and not scalar:
        raise KernelError(f"{what}: an offset must be an integer scalar, got {describe(x)}")
    return x  # type: ignore[no-any-return]


def _constant(what: str, name: str, x: Any) -> int:
    if isinstance(x, bool) or not isinstance(x, int):
        raise KernelError(f"{what}: a {name} must be a compile-time integer, got {describe(x)}")
    return x

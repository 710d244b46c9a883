"""Boxes of memory or single elements that an access touches, and whether they lie in their tensor."""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import OutOfBoundsError, UsageError
from ._numbers import find_outside, first_outside
from .faults import Site
from .tensors import Tensor
from .values import Affine, Box

MAX_RANK = 9  # AXES of _axes.pxd
_EVERY = np.empty(0, np.uint8)


class AccessRegion:
    """Where an affine access with a box mask touches a tensor: arrays for Cython loops, padded to nine axes."""

    __slots__ = ("full", "highs", "lows", "origin", "programs", "rank", "shape", "starts", "strides")

    def __init__(
        self, tensor: Tensor, offsets: Any, mask: Box | bool | np.ndarray | None, programs: int
    ) -> None:
        affine = offsets if isinstance(offsets, Affine) else Affine(offsets, (), ())
        shape = affine.shape
        if len(shape) > MAX_RANK:
            raise UsageError(
                f"{tensor.name}: tiles of rank {len(shape)} cannot be loaded or stored; the limit is {MAX_RANK} axes: "
                "reshape"
            )
        pad = MAX_RANK - len(shape)
        self.programs = programs
        self.rank = len(shape)
        self.shape = _padded(shape)
        self.origin = tensor.origin  # window index of element 0 of the tensor
        self.starts = _starts(affine.base, self.origin, programs)
        self.strides = _table(affine.strides, pad, 0)
        self.lows, self.highs, self.full = _bounds(mask, shape, pad)

    def of_program(self, lane: int) -> AccessRegion:
        """The same access of one of the programs."""
        out = copy.copy(self)
        out.programs, out.starts = 1, self.starts[lane : lane + 1]
        for name in ("strides", "lows", "highs"):
            table = getattr(self, name)
            setattr(out, name, table[lane : lane + 1] if len(table) > 1 else table)
        return out


class ElementAddresses:
    """Where a discrete access goes: window indices and, or empty for all, which of them are meant; flat and in order.

    lost: which are left out though they were meant, as they lie outside of the tensor; None for none.
    """

    __slots__ = ("at", "chosen", "lost", "shape")

    def __init__(self, at: np.ndarray, chosen: np.ndarray | None) -> None:
        if chosen is not None and chosen.shape != at.shape:
            at, chosen = np.broadcast_arrays(at, chosen)
        self.shape = at.shape
        self.lost: np.ndarray | None = None
        self.at = np.ascontiguousarray(at, np.int64).reshape(-1)
        self.chosen = (
            _EVERY if chosen is None else np.ascontiguousarray(chosen, bool).reshape(-1).view(np.uint8)
        )

    def outside(self, tensor: Tensor) -> int:
        """Position of the first address outside of the tensor's window, or -1."""
        return first_outside(self.at, self.chosen, tensor.elements)

    def all_outside(self, tensor: Tensor) -> np.ndarray:
        """Which of the addresses that are meant lie outside of the tensor's window."""
        outside = (self.at < 0) | (self.at >= tensor.elements)
        return outside & self.chosen.view(bool) if len(self.chosen) else outside

    def without(self, lost: np.ndarray) -> ElementAddresses:
        """The same without some of them."""
        kept = ~lost & self.chosen.view(bool) if len(self.chosen) else ~lost
        out = ElementAddresses(np.where(lost, 0, self.at).reshape(self.shape), kept.reshape(self.shape))
        out.lost = lost
        return out

    def masked_far(self, tensor: Tensor) -> int:
        """Position of the first address outside of the window that is not chosen, or -1."""
        if not len(self.chosen):
            return -1
        return first_outside(self.at, 1 - self.chosen, tensor.elements)

    def of_program(self, lane: int) -> ElementAddresses:
        """The same access of one of the programs."""
        if self.shape[0] == 1:
            return self
        out, size = copy.copy(self), len(self.at) // self.shape[0]
        out.shape = (1, *self.shape[1:])
        out.at = self.at[lane * size : (lane + 1) * size]
        out.chosen = self.chosen[lane * size : (lane + 1) * size]  # empty stays empty
        return out

    @property
    def count(self) -> int:
        """Elements that are really accessed."""
        return int(np.count_nonzero(self.chosen)) if len(self.chosen) else len(self.at)


def _starts(base: Any, origin: int, programs: int) -> np.ndarray:
    """Window index of element 0 of the tile of each program."""
    if isinstance(base, int):
        return np.full(programs, base + origin, np.int64)
    if len(base) == programs and base.dtype == np.int64 and not origin:
        return np.ascontiguousarray(base)
    return np.ascontiguousarray(np.broadcast_to(base + origin, programs), np.int64)


@lru_cache(maxsize=1024)
def _padded(shape: tuple[int, ...]) -> np.ndarray:
    """Shared, never written; the next two as well."""
    return np.array((1,) * (MAX_RANK - len(shape)) + shape, np.int64)


@lru_cache(maxsize=1024)
def _row(columns: tuple[int, ...], pad: int, fill: int) -> np.ndarray:
    return np.array([(fill,) * pad + columns], np.int64)


@lru_cache(maxsize=1024)
def _whole(shape: tuple[int, ...], pad: int) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of a box that covers the tile."""
    return np.zeros((1, MAX_RANK), np.int64), np.array([(1,) * pad + shape], np.int64)


def covers(mask: Box) -> bool:
    """Whether a mask is true everywhere, in all programs."""
    ends = zip(mask.lows, mask.highs, mask.shape, strict=True)
    return all(isinstance(lo, int) and isinstance(hi, int) and lo <= 0 and hi >= n for lo, hi, n in ends)


def _table(columns: tuple[Any, ...], pad: int, fill: int) -> np.ndarray:
    """(1 or P, 8) table of per-axis numbers that may differ between programs."""
    if all([isinstance(c, int) for c in columns]):
        return _row(columns, pad, fill)
    n = max(len(c) for c in columns if isinstance(c, np.ndarray))
    out = np.full((n, MAX_RANK), fill, np.int64)
    for k, c in enumerate(columns):
        out[:, pad + k] = c
    return out


def _bounds(mask: Any, shape: tuple[int, ...], pad: int) -> tuple[np.ndarray, np.ndarray, bool]:
    if mask is None or mask is True or (isinstance(mask, Box) and covers(mask)):
        return *_whole(shape, pad), True
    if isinstance(mask, Box):
        lows = np.maximum(_table(mask.lows, pad, 0), 0)
        limits = _padded(shape)
        highs = np.minimum(_table(mask.highs, pad, 1), limits)
        return lows, highs, bool((lows == 0).all() and (highs == limits).all())
    one = np.asarray(mask).astype(np.int64).reshape(-1)  # a scalar access under a scalar condition
    highs = np.ones((len(one), MAX_RANK), np.int64)
    highs[:, -1] = one
    return np.zeros((1, MAX_RANK), np.int64), highs, False


def check(tensor: Tensor, region: AccessRegion, numbers: np.ndarray, what: str, site: Site) -> None:
    """Raise `OutOfBoundsError` for the first program whose box leaves the tensor's window."""
    bad = find_outside(region.starts, region.strides, region.lows, region.highs, tensor.elements)
    if bad < 0:
        return
    stride, low, high = (t[min(bad, len(t) - 1)] for t in (region.strides, region.lows, region.highs))
    corners = [
        [int(low[k] if (s >= 0) == smallest else high[k] - 1) for k, s in enumerate(stride)]
        for smallest in (True, False)
    ]
    first, last = (int(region.starts[bad] + np.dot(stride, c)) for c in corners)
    index, corner = (first, corners[0]) if first < 0 else (last, corners[1])
    element = tuple(corner[MAX_RANK - region.rank :])
    number = int(numbers[min(bad, len(numbers) - 1)])
    raise out_of_bounds(tensor, index - tensor.origin, number, what, site, element)


def out_of_bounds(
    tensor: Tensor,
    index: int,
    program: int,
    what: str,
    site: Site,
    element: tuple[int, ...] = (),
    count: int = 0,
) -> OutOfBoundsError:
    """The error for element `index` of a tensor, which `element` of the tile points to; count: such elements in all."""
    low, high = -tensor.origin, tensor.elements - tensor.origin - 1
    legal = f"{low} to {high}" if high >= low else "none (the tensor is empty)"
    far = f"{index - high} beyond the last" if index > high else f"{low - index} before the first"
    lane = (
        f" (tile element {list(element)}{f', {count} such elements' if count > 1 else ''})" if element else ""
    )
    return site.outside(
        f"{what} of element {index} of {tensor.name!r} in {site.program(program)} is out of bounds: "
        f"the tensor has shape {list(tensor.shape)}, legal elements are {legal}, this is {far}{lane}",
        program,
        "Mask the access (mask=offsets < n) or correct the offsets",
    )


def can_add(tensor: Tensor) -> bool:
    """Whether memory can add to elements of that type."""
    return tensor.dtype.itemsize <= 4 and not tensor.dtype.is_bool()

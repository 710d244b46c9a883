"""The elements of an access as rows, and maps of the memory of a launch that follow what is done to each element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from ...interpreter.tensors import Tensor
from ..access import Access
from ._touched import box_rows

Map = TypeVar("Map")


def rows_of(a: Access) -> np.ndarray:
    """(n, 4) int64: lane, first window index, step and count of each row of elements that an access touches."""
    if a.region is not None:
        r = a.region
        room = int(np.maximum(r.highs - r.lows, 0)[:, :4].prod(axis=1).max()) * r.programs
        out = np.empty((room, 4), np.int64)
        return out[: box_rows(r.starts, r.strides, r.lows, r.highs, out)]
    assert a.where is not None
    lane = np.repeat(np.arange(a.where.shape[0]), len(a.where.at) // max(1, a.where.shape[0]))
    out = np.ones((len(lane), 4), np.int64)
    out[:, 0], out[:, 1] = lane, a.where.at
    return out[a.where.chosen.view(bool)] if len(a.where.chosen) else out


class Stretch(Generic[Map]):
    """Bytes [low, high) of memory, in units; of tensors that overlap there is one stretch."""

    def __init__(self, low: int, high: int, unit: int) -> None:
        self.low, self.high, self.unit = low, high, unit
        self.tensors: list[Tensor] = []
        self.map: Map | None = None  # None: nothing to follow here

    @property
    def units(self) -> int:
        return (self.high - self.low) // self.unit

    def place(self, tensor: Tensor) -> tuple[int, int] | None:
        """Unit of window index 0 and units an element; None for a view of smaller elements than the units."""
        shift, size = tensor.address - self.low, tensor.dtype.itemsize
        return None if shift % self.unit or size % self.unit else (shift // self.unit, size // self.unit)


class Memory(Generic[Map]):
    """The stretches of a launch's arguments. make: gives the map of one, or None where nothing is to be followed."""

    def __init__(self, make: Callable[[Stretch[Map]], Map | None]) -> None:
        self.make = make
        self.stretches: list[Stretch[Map]] = []
        self.known: dict[int, tuple[Tensor, Stretch[Map]]] = {}

    def add(self, given: list[Tensor]) -> None:
        """The arguments of a launch, before its first access; those that are known already stay."""
        fresh: list[Stretch[Map]] = []
        for t in sorted(
            (t for t in given if t.elements and id(t) not in self.known), key=lambda t: t.address
        ):
            end = t.address + t.elements * t.dtype.itemsize
            if fresh and t.address < fresh[-1].high:
                last = fresh[-1]
                last.high, last.unit = (
                    max(last.high, end),
                    math.gcd(last.unit, t.dtype.itemsize, t.address - last.low),
                )
            else:
                fresh.append(Stretch(t.address, end, t.dtype.itemsize))
            fresh[-1].tensors.append(t)
            self.known[id(t)] = t, fresh[-1]
        for stretch in fresh:
            stretch.map = self.make(stretch)

    def of(self, tensor: Tensor) -> Stretch[Map] | None:
        """Where an argument or a view of one lies, if anything is followed there."""
        _, found = self.known.get(id(tensor.whole), (None, None))
        return None if found is None or found.map is None else found

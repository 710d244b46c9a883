"""The memory of a launch's arguments: areas, of which those that overlap share one, each with a map of its elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import numpy as np

from ...interpreter.tensors import Tensor

Map = TypeVar("Map")


class Area(Generic[Map]):
    """A stretch of memory in one piece: bytes [low, high). It counts in units: the largest number of bytes that divides
    elements and addresses of all tensors in it.
    """

    map: Map

    def __init__(self, first: Tensor) -> None:
        self.low, self.high = _ends(first)
        self.unit = first.dtype.itemsize
        self.tensors = [first]
        self.names = {first.name}

    @property
    def units(self) -> int:
        return (self.high - self.low) // self.unit

    def place(self, tensor: Tensor) -> tuple[int, int]:
        """Unit of window index 0 and units an element."""
        return (tensor.address - self.low) // self.unit, tensor.dtype.itemsize // self.unit

    def take(self, low: int, high: int, unit: int, tensors: Iterable[Tensor]) -> bool:
        """Hold those, too; tells whether it is other units than before."""
        before = self.low, self.high, self.unit
        self.unit = math.gcd(self.unit, unit, low - self.low)
        self.low, self.high = min(self.low, low), max(self.high, high)
        self.tensors += tensors
        self.names.update(t.name for t in tensors)
        return before != (self.low, self.high, self.unit)


def _ends(t: Tensor) -> tuple[int, int]:
    """Its bytes: the first one, and that behind the last."""
    return t.address, t.address + t.elements * t.dtype.itemsize


class Areas(Generic[Map]):
    """The areas of a launch. make: gives the map of one; a new one where it grows. finer: gives the same map with so
    many entries for each one, as a view of smaller elements needs.
    """

    def __init__(self, make: Callable[[Area[Map]], Map], finer: Callable[[Map, int], Map]) -> None:
        self.make, self.finer = make, finer
        self.areas: list[Area[Map]] = []
        self.known: dict[int, Area[Map]] = {}  # by tensor

    def add(self, given: Iterable[Tensor]) -> None:
        """Arguments of a launch, before its first access; those that are known stay where they are."""
        new = {id(t.whole): t.whole for t in given if t.elements and id(t.whole) not in self.known}
        changed: dict[int, Area[Map]] = {}
        for t in sorted(new.values(), key=lambda t: t.address):
            area = self._put(t)
            changed.update({id(area): area} if area is not None else {})
        for area in changed.values():
            area.map = self.make(area)

    def _put(self, t: Tensor) -> Area[Map] | None:
        """The area of a tensor, if it is new or has grown."""
        low, high = _ends(t)
        met = [a for a in self.areas if a.low < high and low < a.high]
        if not met:
            area = self.known[id(t)] = Area(t)
            self.areas.append(area)
            return area
        area, *others = met
        grown = area.take(low, high, t.dtype.itemsize, [t])
        for other in others:
            area.take(other.low, other.high, other.unit, other.tensors)
            self.areas.remove(other)
        self.known.update((id(x), area) for x in area.tensors)
        return area if grown else None

    def area(self, tensor: Tensor) -> Area[Map]:
        """Where a tensor lies; also one that no argument leads to, but an address."""
        found = self.known.get(id(tensor.whole))
        if found is None:
            self.add([tensor])
            found = self.known[id(tensor.whole)]
        return found

    def placed(self, tensor: Tensor) -> tuple[Area[Map], int, int]:
        """Where a tensor or a view lies: area, unit of window index 0, units an element."""
        area = self.area(tensor)
        shift, size = tensor.address - area.low, tensor.dtype.itemsize
        if shift % area.unit or size % area.unit:
            before, area.unit = area.unit, math.gcd(area.unit, size, shift)
            area.map = self.finer(area.map, before // area.unit)
        return area, shift // area.unit, size // area.unit


def finer(marks: np.ndarray | None, times: int) -> np.ndarray | None:
    """Marks of memory, in smaller units."""
    return None if marks is None else np.repeat(marks, times)

"""The global memory of a launch, element by element: who stored to it, loaded it or combined with it last."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..interpreter.tensors import Tensor
from ._element_map import visit
from ._races import mark_lanes
from .access import Access
from .memory.areas import Area, Areas

LOAD, STORE, ATOMIC = range(3)
MOST_UNITS = 1 << 30  # of an area: 8 GiB for each entry of an element
EPOCHS = (1 << 16) - 1
MOST_OPERATIONS = (1 << 14) - 1
_NOTHING = np.empty(0, np.uint64)
_ENTRIES = (1, 2, 2)  # an element, of stores, loads, atomics


def kind_of(what: str) -> int:
    """LOAD, STORE or ATOMIC, of what an access is."""
    return {"load": LOAD, "store": STORE}.get(what, ATOMIC)


def entries(agents: np.ndarray, epochs: Any, operation: int) -> np.ndarray:
    """One entry for each lane, see _element_map.pyx."""
    if len(agents) == 1:  # without the detour over arrays
        epoch = epochs if isinstance(epochs, int) else int(epochs[0])
        one = (int(agents[0]) + 1) << 30 | min(epoch, EPOCHS) << 14 | operation
        return np.array([one], np.uint64)
    above = (agents.astype(np.uint64) + np.uint64(1)) << np.uint64(30)
    below = np.minimum(epochs, EPOCHS).astype(np.uint64) << np.uint64(14)
    return np.asarray(above | below | np.uint64(operation), np.uint64)


class Meeting(NamedTuple):
    """Two accesses to one element that nothing orders: the lane of the later one; agent and operation of the other."""

    lane: int
    agent: int
    operation: int
    element: int


class MemoryMap(Areas[list[np.ndarray]]):
    """The areas of a launch's tensors, each with arrays of entries: of stores, loads, atomics."""

    def __init__(self) -> None:
        super().__init__(lambda _: [_NOTHING] * 3)
        self.left_out: dict[str, int] = {}  # arguments that are too large -> units

    def visit(self, a: Access, kind: int, lanes: np.ndarray, order: tuple[Any, ...]) -> Meeting | None:
        """An access; gives the first element at which it is not ordered after another one. lanes: entries; order: see
        `_element_map.visit`.
        """
        area = self.area(a.tensor)
        if area.units > MOST_UNITS:
            self.left_out[a.tensor.name] = area.units
            return None
        place = area.place(a.tensor) or _refined(area, a.tensor)
        _require(area, kind)
        met = visit(area.map, place, kind, lanes, order, a.runs)
        if met is None:
            return None
        lane, unit, other = met
        element = (unit - place[0]) // place[1] - a.tensor.origin
        return Meeting(lane, (other >> 30) - 1, other & MOST_OPERATIONS, element)


def _require(area: Area[list[np.ndarray]], kind: int) -> None:
    """Keep accesses of that kind from now on."""
    slot = (1, 0, 2)[kind]
    if not len(area.map[slot]):
        area.map[slot] = np.zeros(area.units * _ENTRIES[slot], np.uint64)


def _refined(area: Area[list[np.ndarray]], tensor: Tensor) -> tuple[int, int]:
    """The place of a view of smaller elements, for which the units become smaller."""
    before = area.unit
    area.unit = math.gcd(before, tensor.dtype.itemsize, tensor.address - area.low)
    area.map = [
        np.repeat(x.reshape(-1, size), before // area.unit, axis=0).reshape(-1)
        for x, size in zip(area.map, _ENTRIES, strict=True)
    ]
    return (tensor.address - area.low) // area.unit, tensor.dtype.itemsize // area.unit


class MarksOfTwo:
    """Of each element a bit for the loads and one for the stores of each of two Vector cores, in any programs."""

    def __init__(self) -> None:
        self.tensors: dict[int, Tensor | None] = {}  # by area; None if there are several
        self.bits: dict[int, np.ndarray] = {}  # by area: core, whether it stores, words

    def add(self, a: Access, area: Area[Any]) -> None:
        first = self.tensors.setdefault(id(area), a.tensor)
        if first is not a.tensor:
            self.tensors[id(area)] = None
            return
        bits = self.bits.get(id(area))
        if bits is None:
            bits = self.bits[id(area)] = np.zeros((2, 2, (a.tensor.elements >> 6) + 1), np.uint64)
        assert a.vector_cores is not None
        for core in range(2):
            lanes = np.flatnonzero(a.vector_cores == core)
            if len(lanes):
                mark_lanes(bits[core, int(a.what != "load")], a.runs, lanes)

    def met(self) -> set[int]:
        """Areas (by id) in which one of them may have been where the other one stored."""
        return {area for area, tensor in self.tensors.items() if tensor is None or _meet(*self.bits[area])}


def _meet(one: np.ndarray, other: np.ndarray) -> bool:
    (loads, stores), (other_loads, other_stores) = one, other
    return bool((stores & (other_stores | other_loads)).any() or (other_stores & loads).any())

"""The global memory of a launch, element by element: who stored to it, loaded it or combined with it last.

Arguments that overlap are one area. An area counts in units: the largest number of bytes that divides the elements and the
addresses of all that is seen of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ..interpreter.tensors import Tensor
from ._element_map import visit_boxes, visit_elements
from ._races import mark_boxes, mark_elements
from .access import Access

LOAD, STORE, ATOMIC = range(3)
MOST_UNITS = 1 << 30  # of an area: 8 GiB for each entry of an element
EPOCHS = (1 << 16) - 1
MOST_OPERATIONS = (1 << 14) - 1
_NOTHING = np.empty(0, np.uint64)


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


class Area:
    """A stretch of memory in one piece: bytes [low, high)."""

    def __init__(self, low: int, high: int, unit: int) -> None:
        self.low, self.high, self.unit = low, high, unit
        self.arrays = [_NOTHING, _NOTHING, _NOTHING]  # of stores, loads, atomics
        self.names: set[str] = set()  # of the arguments that lie here

    @property
    def units(self) -> int:
        return (self.high - self.low) // self.unit

    def require(self, kind: int) -> None:
        """Keep accesses of that kind from now on."""
        slot, size = ((1, 2), (0, 1), (2, 2))[kind]
        if not len(self.arrays[slot]):
            self.arrays[slot] = np.zeros(self.units * size, np.uint64)

    def place(self, tensor: Tensor) -> tuple[int, int]:
        """Where window index 0 of a tensor lies and how many units an element has."""
        unit = math.gcd(self.unit, tensor.dtype.itemsize, tensor.address - self.low)
        if unit < self.unit:
            times = self.unit // unit
            self.arrays = [
                np.repeat(x.reshape(-1, size), times, axis=0).reshape(-1)
                for x, size in zip(self.arrays, (1, 2, 2), strict=True)
            ]
            self.unit = unit
        return (tensor.address - self.low) // unit, tensor.dtype.itemsize // unit


class MemoryMap:
    """The areas of a launch's tensors."""

    def __init__(self) -> None:
        self.areas: list[Area] = []
        self.known: dict[int, tuple[Tensor, Area]] = {}
        self.left_out: dict[str, int] = {}  # arguments that are too large -> units

    def add(self, tensors: Iterable[Tensor]) -> None:
        """Arguments of a launch; those that are known stay where they are."""
        new = [t for t in tensors if t.elements and id(t.whole) not in self.known]
        for t in sorted(new, key=lambda t: t.address):
            end = t.address + t.elements * t.dtype.itemsize
            last = self.areas[-1] if self.areas else None
            if last is not None and last.low <= t.address < last.high:
                last.high = max(last.high, end)
                last.unit = math.gcd(last.unit, t.dtype.itemsize, t.address - last.low)
            else:
                last = Area(t.address, end, t.dtype.itemsize)
                self.areas.append(last)
            last.names.add(t.name)
            self.known[id(t.whole)] = t.whole, last

    def area(self, tensor: Tensor) -> Area:
        """Where a tensor lies; also one that no argument leads to, but an address."""
        found = self.known.get(id(tensor.whole))
        if found is None:
            self.add([tensor.whole])
            found = self.known[id(tensor.whole)]
        return found[1]

    def visit(self, a: Access, kind: int, lanes: np.ndarray, order: tuple[Any, ...]) -> Meeting | None:
        """An access; gives the first element at which it is not ordered after another one. lanes: entries; order: see
        `visit_boxes`.
        """
        area = self.area(a.tensor)
        if area.units > MOST_UNITS:
            self.left_out[a.tensor.name] = area.units
            return None
        area.require(kind)
        place = area.place(a.tensor)
        if a.region is not None:
            r = a.region
            met = visit_boxes(area.arrays, place, kind, lanes, order, r.starts, r.strides, r.lows, r.highs)
        else:
            assert a.where is not None
            rows = max(1, a.where.shape[0])
            met = visit_elements(area.arrays, place, kind, lanes, order, a.where.at, a.where.chosen, rows)
        if met is None:
            return None
        lane, unit, other = met
        element = (unit - place[0]) // place[1] - a.tensor.origin
        return Meeting(lane, (other >> 30) - 1, other & MOST_OPERATIONS, element)


class MarksOfTwo:
    """Of each element a bit for the loads and one for the stores of each of two Vector cores, in any programs."""

    def __init__(self) -> None:
        self.tensors: dict[int, Tensor | None] = {}  # by area; None if there are several
        self.bits: dict[int, np.ndarray] = {}  # by area: core, whether it stores, words

    def add(self, a: Access, area: Area) -> None:
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
                _mark(bits[core, int(a.what != "load")], a, lanes)

    def met(self) -> set[int]:
        """Areas (by id) in which one of them may have been where the other one stored."""
        return {area for area, tensor in self.tensors.items() if tensor is None or _meet(*self.bits[area])}


def _meet(one: np.ndarray, other: np.ndarray) -> bool:
    (loads, stores), (other_loads, other_stores) = one, other
    return bool((stores & (other_stores | other_loads)).any() or (other_stores & loads).any())


def _mark(bits: np.ndarray, a: Access, lanes: np.ndarray) -> None:
    """What some lanes of an access touch."""
    if a.region is not None:
        r = a.region
        tables = (x[lanes] if len(x) > 1 else x for x in (r.starts, r.strides, r.lows, r.highs))
        mark_boxes(bits, *tables)
        return
    assert a.where is not None
    rows = a.where.shape[0]
    at, chosen = (
        x.reshape(rows, -1)[lanes].reshape(-1) if rows > 1 and len(x) else x
        for x in (a.where.at, a.where.chosen)
    )
    mark_elements(bits, at, chosen)

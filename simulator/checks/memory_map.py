"""The global memory of a launch, element by element: who stored to it, loaded it or combined with it last. Beside it stands
which elements were not always given the same value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..interpreter.tensors import Tensor
from ._element_map import visit
from ._races import mark_lanes
from .access import Access
from .clocks import EPOCHS
from .memory.areas import Area, Areas
from .memory.stored_values import StoredValues

LOAD, STORE, ATOMIC = range(3)
MOST_UNITS = 1 << 30  # of an area: 8 GiB for each entry of an element
MOST_OPERATIONS = (1 << 14) - 1
_NOTHING = np.empty(0, np.uint64)
_ENTRIES = (1, 2, 2, 1)  # an element, see _element_map.pyx


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
    """Two accesses to one element that nothing orders: the lane of the later one; agent and operation of the other.

    equal: whether they are stores of the same value, as all others to that element.
    """

    lane: int
    agent: int
    operation: int
    element: int
    equal: bool = False


class Entries:
    """Of an area: arrays of entries for stores, loads, atomics, and stores of the same value before; what was stored."""

    def __init__(self) -> None:
        self.arrays = [_NOTHING] * 4
        self.values: StoredValues | None = None
        self.mixed = False  # whether several tensors are stored to here: then values are not compared

    def require(self, kind: int, units: int) -> None:
        """Keep accesses of that kind from now on."""
        slots = [(1, 0, 2)[kind]] + ([3] if kind == STORE and self.again else [])
        for slot in slots:
            if not len(self.arrays[slot]):
                self.arrays[slot] = np.zeros(units * _ENTRIES[slot], np.uint64)

    def finer(self, times: int) -> Entries:
        """Units become so many times smaller."""
        self.arrays = [
            np.repeat(x.reshape(-1, size), times, axis=0).reshape(-1)
            for x, size in zip(self.arrays, _ENTRIES, strict=True)
        ]
        return self

    @property
    def again(self) -> bool:
        """Whether any element was stored to again, or may have been."""
        return self.mixed or (self.values is not None and self.values.again)

    @property
    def differ(self) -> np.ndarray:
        """A bit for each element that was given several values: empty if all may have been."""
        return _NOTHING if self.mixed or self.values is None or not self.again else self.values.differ

    def put(self, a: Access) -> None:
        """A store that is carried out next."""
        if self.values is None:
            self.values = StoredValues(a.tensor)
        if not self.mixed and self.values.of(a.tensor):
            self.values.put(a)
        else:
            self.mixed = True


class MemoryMap(Areas[Entries]):
    """The areas of a launch's tensors, each with its entries."""

    def __init__(self) -> None:
        super().__init__(lambda _: Entries(), Entries.finer)
        self.left_out: dict[str, int] = {}  # arguments that are too large -> units

    def visit(self, a: Access, kind: int, lanes: np.ndarray, order: tuple[Any, ...]) -> Meeting | None:
        """An access; gives the first element at which it is not ordered after another one. lanes: entries; order: see
        `_element_map.visit`.
        """
        area, shift, scale = self.placed(a.tensor)
        if area.units > MOST_UNITS:
            self.left_out[a.tensor.name] = area.units
            return None
        area.map.require(kind, area.units)
        met = visit(area.map.arrays, (shift, scale, area.map.differ), kind, lanes, order, a.runs)
        if met is None:
            return None
        lane, unit, other, equal = met
        element = (unit - shift) // scale - a.tensor.origin
        return Meeting(lane, (other >> 30) - 1, other & MOST_OPERATIONS, element, equal)


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

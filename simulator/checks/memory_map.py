"""The global memory of a launch, element by element: who stored to it, loaded it or combined with it last.

Arguments that overlap are one area. An area counts in units: the largest number of bytes that divides the elements and the
addresses of all that is seen of it. Beside it stands which elements were not always given the same value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ..interpreter.tensors import Tensor
from ._element_map import visit_boxes, visit_elements
from ._races import mark_boxes, mark_elements, put_boxes, put_elements
from .access import Access
from .clocks import EPOCHS

LOAD, STORE, ATOMIC = range(3)
LOOK, SET, CLEAR = range(3)  # see _races.pyx
MOST_UNITS = 1 << 30  # of an area: 8 GiB for each entry of an element
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
    """Two accesses to one element that nothing orders: the lane of the later one; agent and operation of the other.

    equal: whether they are stores of the same value, as all others to that element.
    """

    lane: int
    agent: int
    operation: int
    element: int
    equal: bool = False


class StoredValues:
    """Compares to the bit what stores give an element, in whatever order they come.

    Only marks are kept until an element is stored to again. differ: a bit for each element that got several values.
    """

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.written = np.zeros((tensor.elements >> 6) + 1, np.uint64)
        self.differ = np.zeros_like(self.written)
        self.values: np.ndarray | None = None

    @property
    def again(self) -> bool:
        """Whether any element was stored to again."""
        return self.values is not None

    def of(self, tensor: Tensor) -> bool:
        """Whether an element of that tensor is one of this one."""
        one, two = self.tensor, tensor
        return one is two or (one.address, one.elements, one.dtype) == (two.address, two.elements, two.dtype)

    def put(self, a: Access) -> None:
        """A store that is carried out next."""
        if self.values is None:
            if not self._mark(a, LOOK):
                if not self._mark(a, SET):
                    return
                self._mark(a, CLEAR)  # two of this store itself fall together
            assert a.tensor.window is not None
            self.values = _bits(a.tensor.window.astype(a.tensor.dtype.host_dtype))
        dtype = a.tensor.dtype.host_dtype
        assert a.value is not None
        if a.where is not None:
            values = np.ascontiguousarray(np.broadcast_to(a.value, a.where.shape), dtype)
            put_elements(self.written, self.differ, self.values, _bits(values), a.where.at, a.where.chosen)
            return
        r = a.region
        assert r is not None
        values = _bits(np.ascontiguousarray(a.value, dtype))
        box = r.shape, r.starts, r.strides, r.lows, r.highs
        put_boxes(self.written, self.differ, self.values, values, *box)

    def _mark(self, a: Access, how: int) -> bool:
        if a.where is not None:
            return bool(mark_elements(self.written, how, a.where.at, a.where.chosen))
        r = a.region
        assert r is not None
        return bool(mark_boxes(self.written, how, r.starts, r.strides, r.lows, r.highs))


def _bits(x: np.ndarray) -> np.ndarray:
    return x.reshape(-1).view(f"u{x.itemsize}")


class Area:
    """A stretch of memory in one piece: bytes [low, high)."""

    def __init__(self, low: int, high: int, unit: int) -> None:
        self.low, self.high, self.unit = low, high, unit
        self.arrays = [_NOTHING] * 4  # of stores, loads, atomics, and stores of the same value before
        self.values: StoredValues | None = None
        self.mixed = False  # whether several tensors are stored to here: then values are not compared
        self.names: set[str] = set()  # of the arguments that lie here

    @property
    def units(self) -> int:
        return (self.high - self.low) // self.unit

    def require(self, kind: int) -> None:
        """Keep accesses of that kind from now on."""
        slot, size = ((1, 2), (0, 1), (2, 2))[kind]
        if not len(self.arrays[slot]):
            self.arrays[slot] = np.zeros(self.units * size, np.uint64)
        if kind == STORE and self.again and not len(self.arrays[3]):
            self.arrays[3] = np.zeros(self.units, np.uint64)

    @property
    def again(self) -> bool:
        """Whether any element was stored to again, or may have been."""
        return self.mixed or (self.values is not None and self.values.again)

    def put(self, a: Access) -> None:
        """A store that is carried out next."""
        if self.values is None:
            self.values = StoredValues(a.tensor)
        if not self.mixed and self.values.of(a.tensor):
            self.values.put(a)
        else:
            self.mixed = True

    def place(self, tensor: Tensor) -> tuple[int, int, np.ndarray]:
        """Where window index 0 of a tensor lies, how many units an element has, and which elements were given several
        values: empty if all may have been.
        """
        unit = math.gcd(self.unit, tensor.dtype.itemsize, tensor.address - self.low)
        if unit < self.unit:
            times = self.unit // unit
            self.arrays = [
                np.repeat(x.reshape(-1, size), times, axis=0).reshape(-1)
                for x, size in zip(self.arrays, (1, 2, 2, 1), strict=True)
            ]
            self.unit = unit
        differ = _NOTHING if self.mixed or self.values is None or not self.again else self.values.differ
        return (tensor.address - self.low) // unit, tensor.dtype.itemsize // unit, differ


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
        lane, unit, other, equal = met
        element = (unit - place[0]) // place[1] - a.tensor.origin
        return Meeting(lane, (other >> 30) - 1, other & MOST_OPERATIONS, element, equal)

"""The global memory of a launch, element by element: who stored to it, loaded it or combined with it last."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._element_map import visit
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
        super().__init__(lambda _: [_NOTHING] * 3, _finer)
        self.left_out: dict[str, int] = {}  # arguments that are too large -> units

    def visit(self, a: Access, kind: int, lanes: np.ndarray, order: tuple[Any, ...]) -> Meeting | None:
        """An access; gives the first element at which it is not ordered after another one. lanes: entries; order: see
        `_element_map.visit`.
        """
        area, shift, scale = self.placed(a.tensor)
        if area.units > MOST_UNITS:
            self.left_out[a.tensor.name] = area.units
            return None
        _require(area, kind)
        met = visit(area.map, (shift, scale), kind, lanes, order, a.runs)
        if met is None:
            return None
        lane, unit, other = met
        element = (unit - shift) // scale - a.tensor.origin
        return Meeting(lane, (other >> 30) - 1, other & MOST_OPERATIONS, element)


def _require(area: Area[list[np.ndarray]], kind: int) -> None:
    """Keep accesses of that kind from now on."""
    slot = (1, 0, 2)[kind]
    if not len(area.map[slot]):
        area.map[slot] = np.zeros(area.units * _ENTRIES[slot], np.uint64)


def _finer(arrays: list[np.ndarray], times: int) -> list[np.ndarray]:
    return [
        np.repeat(x.reshape(-1, size), times, axis=0).reshape(-1)
        for x, size in zip(arrays, _ENTRIES, strict=True)
    ]

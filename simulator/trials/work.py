"""Whether two launches do the same work: read from the same parts of the same tensors, and store the same elements.

With `reductions.py` a size that cuts the work (a tile) is told from one that is a part of the problem (the width of a row or
of a window): with another tile the launch reaches the same memory, with another row it does not; and a larger tile loads no
element more often than a smaller one, as a larger window does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..call import Call
from ..errors import AscendtileError
from ..interpreter.arguments import runtime_arguments
from ..interpreter.backend import AddressBackend
from ..interpreter.flat_pointers import FlatMemory
from ..interpreter.interpreter import Interpreter
from ..interpreter.lanes import lanes
from ..interpreter.regions import AccessRegion
from ..interpreter.values import Affine, Box, Opaque, Pointers
from ..ir.program import Op

MOST_ITERATIONS = 4096  # of a loop: each is gone through
MOST_ELEMENTS = 1 << 22  # of one access that are looked at one by one
OVERHANG = 1 / 32  # of the elements that are loaded: what tiles at an end may add


class TrialsSpentError(AscendtileError):
    """As much was looked at, or timed, as trials may."""


class Reach(NamedTuple):
    """What a launch reads and writes. read: tensor -> first and last element. written: the same and the number of elements
    that are stored; of atomics -1. unknown: tensors that are reached by addresses which depend on data. loaded: tensor ->
    elements that are loaded, each time.
    """

    read: dict[str, tuple[int, int]]
    written: dict[str, tuple[int, int, int]]
    unknown: frozenset[str]
    loaded: dict[str, int]

    def same(self, other: Reach) -> bool:
        """Whether both reach the same elements, and store as many."""
        return self[:3] == other[:3]

    def loads_as_larger_tiles(self, smaller: Reach) -> bool:
        """Whether no tensor is loaded more often than with `smaller` tiles."""
        most = {n: count * (1 + OVERHANG) for n, count in smaller.loaded.items()}
        return all(count <= most.get(n, 0.0) for n, count in self.loaded.items())


def reach(call: Call, spend: Callable[[], None] = lambda: None) -> Reach:
    """Raises `AscendtileError` where the work depends on data, or where a loop is too long to be gone through.

    spend: called for each access that is looked at; what it raises ends the search.
    """
    found = _Reached(spend)
    total = math.prod(call.grid)
    interpreter = Interpreter(call.program, call.grid, found, min(MOST_ITERATIONS, call.device.step_limit))
    numbers = lanes(call.program, call.grid, np.arange(total))
    interpreter.run(numbers, runtime_arguments(call.program, call.arguments))
    return found.reach()


class _Reached(AddressBackend):
    """Hulls of what each operation reaches, and how many elements are stored."""

    def __init__(self, spend: Callable[[], None]) -> None:
        super().__init__()
        self.spend = spend
        self.hulls: dict[tuple[str, bool], tuple[int, int]] = {}
        self.stored: dict[str, int] = {}
        self.loaded: Counter[str] = Counter()
        self.unknown: set[str] = set()

    def access(self, op: Op, pointer: Pointers, mask: Any) -> None:
        self.spend()
        name = "" if isinstance(pointer.tensor, FlatMemory) else pointer.tensor.name
        if not name or isinstance(pointer.offsets, Opaque):
            self.unknown.add(name)
            return
        found = _extent(pointer, mask, len(self.interpreter.active))
        if found is None:
            self.unknown.add(name)
            return
        low, high, count = found
        key = name, op.kind != "load"
        if not count:
            return
        before = self.hulls.get(key, (low, high))
        self.hulls[key] = min(before[0], low), max(before[1], high)
        if op.kind == "store" and self.stored.get(name, 0) >= 0:
            self.stored[name] = self.stored.get(name, 0) + count
        elif op.kind == "atomic":
            self.stored[name] = -1
        elif op.kind == "load":
            self.loaded[name] += count

    def reach(self) -> Reach:
        read = {n: hull for (n, writes), hull in self.hulls.items() if not writes}
        written = {n: (*hull, self.stored[n]) for (n, writes), hull in self.hulls.items() if writes}
        return Reach(read, written, frozenset(self.unknown), dict(self.loaded))


def _extent(pointer: Pointers, mask: Any, programs: int) -> tuple[int, int, int] | None:
    """First and last element, and how many, of all programs together; None where the mask is not known."""
    offsets = pointer.offsets
    shape = offsets.shape if isinstance(offsets, Affine) else np.shape(offsets)[1:]
    boxed = mask is None or isinstance(mask, bool | Box) or (isinstance(mask, np.ndarray) and not shape)
    if isinstance(mask, Opaque):
        return None
    if mask is False:
        return 0, 0, 0
    if boxed and (isinstance(offsets, Affine) or not shape):
        return _of_box(AccessRegion(pointer.tensor, offsets, mask, programs))
    if programs * math.prod(shape) > MOST_ELEMENTS:
        return None
    return _of_elements(offsets.elements() if isinstance(offsets, Affine) else offsets, mask, programs)


def _of_box(region: AccessRegion) -> tuple[int, int, int]:
    counts = np.maximum(region.highs - region.lows, 0).prod(axis=1)
    there = np.broadcast_to(counts > 0, len(region.starts))
    if not there.any():
        return 0, 0, 0
    ends = region.strides * region.lows, region.strides * (region.highs - 1)
    low, high = (region.starts + f(*ends).sum(axis=1) for f in (np.minimum, np.maximum))
    many = int(np.broadcast_to(counts, len(region.starts)).sum())
    return int(low[there].min()), int(high[there].max()), many


def _of_elements(at: Any, mask: Any, programs: int) -> tuple[int, int, int]:
    chosen: Any = True if mask is None else mask.dense() if isinstance(mask, Box) else mask
    at, chosen = np.broadcast_arrays(at, chosen)
    found = at[chosen]
    many = len(found) * programs // max(1, at.shape[0])
    return (int(found.min()), int(found.max()), many) if len(found) else (0, 0, 0)

"""What L2 holds while a launch is walked: which bytes come from memory, and which stores push older ones out to it.

L2 keeps the lines that were touched last (LRU), reads and writes alike; a changed line goes to memory when it leaves. The
order of the program, and of programs within one instruction, stands in for the order in time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..execution.copy import Region
from ..execution.memory import Tensor
from ._touch import touch

LINE_SHIFT = 7  # MSO counts reads of L2 in requests of 128 bytes: that much comes from memory at least
MAX_LINES = 1 << 28
MEMO = 1 << 14  # tiles of one form that are known to have been touched
NEW, CHANGED, TOTAL = 9, 10, 11  # places in an access of `touch`
PARTS = 64  # in which what earlier kernels wrote leaves L2


class FirstTouch:
    """L2 as the accesses of a launch see it.

    capacity: its bytes. Kept per tensor as a map of pieces of 128 bytes (larger ones for tensors above 32 GiB). `resident`:
    tensors that are there when the kernel starts, as far as they fit; all others come from memory. changed: part of L2 that
    is full of what earlier kernels wrote, and has to go to memory first.
    """

    def __init__(
        self, capacity: int = 1 << 36, resident: Iterable[Tensor] = (), changed: float = 0.0
    ) -> None:
        self.room = capacity >> LINE_SHIFT
        self.maps: dict[int, tuple[np.ndarray, int]] = {}
        self.touched: dict[Any, tuple[np.ndarray, ...]] = {}
        self.clock = np.ones(1, np.int64)
        parts = range(PARTS) if changed else ()
        self.changed: deque[tuple[int, int]] = deque(  # (clock, lines that were changed by then)
            (1 - self.room + k * self.room // PARTS, int(changed * self.room) // PARTS) for k in parts
        )
        self.owed = 0  # lines that left L2 changed and whose way to memory is not charged yet
        self.read_lines = 0
        self.written_lines = 0
        left = self.room
        for tensor in resident:
            lines = (tensor.whole.elements * tensor.dtype.itemsize >> LINE_SHIFT) + 1
            if id(tensor.whole) not in self.maps and lines <= left:
                self._map(tensor)[0][:] = 2
                left -= lines

    def share(self, tensor: Tensor, region: Region) -> np.ndarray:
        """Per program (or one for all alike) the part of its bytes, 0 to 1, that a load gets from memory.

        A line that two neighbours share counts for neither of them: parts that differ from 0 or 1 by less than two
        lines are taken as 0 or 1.
        """
        return self._one(tensor, region, False)

    def write(self, tensor: Tensor, region: Region) -> bool:
        """A store changes these lines; True if what it pushes out weighs as much, so that it runs at memory's pace."""
        return bool(self._one(tensor, region, True)[0])

    def _one(self, tensor: Tensor, region: Region, write: bool) -> np.ndarray:
        once = np.zeros(1, np.int32)
        return self.shares([(tensor, region, write)], once, once.astype(np.int64), len(region.starts))[0]

    def shares(
        self, met: list[tuple[Tensor, Region, bool]], order: np.ndarray, rows: np.ndarray, programs: int
    ) -> list[np.ndarray]:
        """`share` of loads and `write` of stores that are met more than once: the k-th to be met is row `rows[k]` of
        `programs` tiles of access `order[k]`. Gives one number for each tile of an access.
        """
        accesses = [self._access(*x) for x in met]
        clocks = np.empty(len(order), np.int64)
        touch(accesses, order, rows, programs, self.clock, self.room, clocks)
        out = [_part(x[NEW], x[TOTAL]) for x in accesses]
        for k, (_, _, write) in enumerate(met):
            if not write:
                self.read_lines += int(accesses[k][NEW].sum())
        stores = np.flatnonzero(np.array([write for *_, write in met])[order])
        for k in stores.tolist():
            tiles = slice(rows[k] * programs, (rows[k] + 1) * programs)
            access = accesses[order[k]]
            late = self._written(
                int(clocks[k]), int(access[CHANGED][tiles].sum()), int(access[TOTAL][tiles].sum())
            )
            out[order[k]][tiles] = late
        return out

    def _written(self, clock: int, fresh: int, lines: int) -> bool:
        """A store of so many lines, of which `fresh` are newly changed; whether it has to wait for memory."""
        if fresh:
            self.changed.append((clock, fresh))
        oldest = clock - self.room
        while self.changed and self.changed[0][0] < oldest:
            self.owed += self.changed.popleft()[1]
        if not lines or self.owed < lines:
            return False
        self.owed -= lines
        self.written_lines += lines
        return True

    def past(self, size: float) -> None:
        """A load of `size` bytes that leaves no trace in L2."""
        self.read_lines += int(size) >> LINE_SHIFT

    @property
    def write_share(self) -> float:
        """Part of the traffic with memory that writes have."""
        return self.written_lines / max(1, self.read_lines + self.written_lines)

    def _access(self, tensor: Tensor, region: Region, write: bool) -> tuple[Any, ...]:
        """As `_touch.touch` wants it."""
        stamps, shift = self._map(tensor)
        size, count = tensor.dtype.itemsize, len(region.starts)
        box = (region.strides, region.lows, region.highs)
        memo = None
        if not write and all(len(x) == 1 for x in box):
            key = (id(tensor.whole), size, *(x.tobytes() for x in box))
            memo = self.touched.get(key)
            if memo is None:
                memo = self.touched[key] = (np.full(MEMO, -1, np.int64), *np.zeros((2, MEMO), np.int64))
        counts = np.zeros((3, count), np.int64)
        return (stamps, write, shift, 1 << (shift - LINE_SHIFT), size, region.starts, *box, *counts, memo)

    def _map(self, tensor: Tensor) -> tuple[np.ndarray, int]:
        tensor = tensor.whole
        found = self.maps.get(id(tensor))
        if found is None:
            size, shift = tensor.elements * tensor.dtype.itemsize, LINE_SHIFT
            while size >> shift >= MAX_LINES:
                shift += 1
            found = self.maps[id(tensor)] = (np.zeros((size >> shift) + 2, np.uint32), shift)
        return found


def _part(new: np.ndarray, total: np.ndarray) -> np.ndarray:
    part: np.ndarray = new / np.maximum(total, 1)
    part[new >= total - 2] = 1.0
    part[new <= np.minimum(2, total // 4)] = 0.0
    part[(new == 0) | (total == 0)] = 0.0
    return part

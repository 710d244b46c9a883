"""Sets of bytes of memory, as runs [low, high) that are sorted and apart."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


class MemoryRuns:
    """low, high: int64 addresses; run k is low[k] <= byte < high[k] <= low[k + 1]."""

    __slots__ = ("high", "low")

    def __init__(self, low: np.ndarray, high: np.ndarray) -> None:
        self.low, self.high = low, high

    @classmethod
    def union(cls, parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> MemoryRuns:
        """All bytes of the runs given, in any order, as (low, high) arrays."""
        pairs = [p for p in parts if len(p[0])]
        if not pairs:
            return cls(np.empty(0, np.int64), np.empty(0, np.int64))
        low, high = (np.concatenate(x) for x in zip(*pairs, strict=True))
        order = np.argsort(low, kind="stable")
        low, top = low[order], np.maximum.accumulate(high[order])
        first = np.flatnonzero(np.r_[True, low[1:] > top[:-1]])
        return cls(low[first], top[np.r_[first[1:], len(low)] - 1])

    def __len__(self) -> int:
        return len(self.low)

    @property
    def bytes(self) -> int:
        return int((self.high - self.low).sum())

    def met(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the first run that each [low, high) meets, and behind the last; alike where it meets none."""
        first = np.searchsorted(self.high, low, side="right")
        return first, np.maximum(first, np.searchsorted(self.low, high, side="left"))

    def within(self, low: int, high: int) -> MemoryRuns:
        """The bytes of these that lie in [low, high)."""
        first, last = (int(x[0]) for x in self.met(np.array([low]), np.array([high])))
        return MemoryRuns(np.maximum(self.low[first:last], low), np.minimum(self.high[first:last], high))

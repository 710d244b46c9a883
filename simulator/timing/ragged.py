"""Lists of different lengths, one behind the other in one array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .engine import Lists


def join(parts: Sequence[Lists]) -> Lists:
    """The lists of all parts, in order."""
    counts = [np.diff(p.start) for p in parts]
    start = np.concatenate([np.zeros(1, np.int64), *counts]).cumsum()
    return Lists(start, np.concatenate([np.empty(0, np.int32), *(p.item for p in parts)]))


def pick(lists: Sequence[Sequence[int]], chosen: np.ndarray) -> Lists:
    """`lists[k]` for each k of `chosen`, in order."""
    lengths = np.array([len(x) for x in lists], np.int64)
    first = lengths.cumsum() - lengths
    items = np.array([i for x in lists for i in x], np.int32)
    counts = lengths[chosen]
    start = np.concatenate([np.zeros(1, np.int64), counts.cumsum()])
    return Lists(start, items[np.repeat(first[chosen] - start[:-1], counts) + np.arange(start[-1])])


def pick_lists(lists: Lists, chosen: np.ndarray) -> Lists:
    """The chosen ones of the lists, in order."""
    counts = np.diff(lists.start)[chosen]
    start = np.append(0, counts.cumsum())
    return Lists(
        start, lists.item[np.repeat(lists.start[:-1][chosen] - start[:-1], counts) + np.arange(start[-1])]
    )

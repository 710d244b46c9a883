"""Lists of different lengths, one behind the other in one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Ragged(NamedTuple):
    """As the fields of `Lists`, of arrays that are known to be right: int64 and int32."""

    start: np.ndarray
    item: np.ndarray

    def of(self, record: int) -> list[int]:
        """The numbers of one record."""
        found: list[int] = self.item[self.start[record] : self.start[record + 1]].tolist()
        return found


def join(parts: Sequence[Ragged]) -> Ragged:
    """The lists of all parts, in order."""
    if len(parts) == 1:
        return parts[0]
    starts, first = [np.zeros(1, np.int64)], 0
    for start, item in parts:
        starts.append(start[1:] + first)
        first += len(item)
    return Ragged(np.concatenate(starts), np.concatenate([np.empty(0, np.int32), *(x for _, x in parts)]))


def pick_lists(lists: Ragged, chosen: np.ndarray) -> Ragged:
    """The chosen ones of the lists, in order."""
    counts = np.diff(lists.start)[chosen]
    start = np.append(0, counts.cumsum())
    return Ragged(
        start, lists.item[np.repeat(lists.start[:-1][chosen] - start[:-1], counts) + np.arange(start[-1])]
    )

"""Records that repeat: the kinds of records a trace has, and the order in which a program meets them.

A loop of ten million turns is one run: the kinds of its turn, and the record from which they repeat. What a record waits for
is told by how far back it is, so that all turns are alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

CROSSES = 4  # bit of a dependency's kind: the other record is on another pipe


@dataclass(frozen=True, slots=True)
class Runs:
    """The order of a trace's records. Its arrays are those of the kinds, each of which may be met many times.

    Record r of run s (start[s] <= r < start[s + 1]) is of kind order[first[s] + (r - start[s]) % length[s]].

    Args:
        records: how many records there are.
        start, first, length: [S] per run its first record, where its kinds begin in `order`, and how many there are.
        order: numbers of kinds.
        keep: records that others ask for from far behind, in ascending order.
    """

    records: int
    start: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]
    order: npt.NDArray[np.int32]
    keep: npt.NDArray[np.int64]

    def kinds_of(self, records: npt.NDArray[np.integer]) -> npt.NDArray[np.int32]:
        """Kinds of the records with these numbers."""
        s = np.searchsorted(self.start, records, side="right") - 1
        return self.order[self.first[s] + (records - self.start[s]) % self.length[s]]

    def counts(self, kinds: int) -> npt.NDArray[np.int64]:
        """How often each of so many kinds is met."""
        out = np.zeros(kinds, np.int64)
        ends = np.append(self.start, self.records)[1:]
        for start, end, first, length in zip(self.start, ends, self.first, self.length, strict=True):
            whole, rest = divmod(int(end - start), int(length))
            body = self.order[first : first + length]
            out += np.bincount(body, minlength=kinds) * whole
            out += np.bincount(body[:rest], minlength=kinds)
        return out

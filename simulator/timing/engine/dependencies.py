"""Which earlier records each record of a trace must wait for, from the buffer slots that records use.

A slot is one copy of one buffer. A value in a slot ends when another record overwrites the same bytes, be it
under the same slot number (a write) or under another one that shares bytes with it (a clobber).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.timing.engine import _dependencies
from ascendtile.simulator.timing.engine.ragged import Ragged

Ints = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Lists:
    """One list of numbers per record: record r has item[start[r] : start[r + 1]]."""

    start: Ints
    item: Ints

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", np.ascontiguousarray(self.start, np.int64))
        object.__setattr__(self, "item", np.ascontiguousarray(self.item, np.int32))
        if not len(self.start) or self.start[0] != 0 or self.start[-1] != len(self.item):
            raise UsageError(f"lists: start is {self.start}, it must run from 0 to {len(self.item)}")
        if (np.diff(self.start) < 0).any():
            r = int(np.diff(self.start).argmin())
            raise UsageError(
                f"lists: start[{r + 1}] is {self.start[r + 1]}, less than {self.start[r]} before it"
            )

    @classmethod
    def empty(cls, records: int) -> Lists:
        """No number for any record."""
        return cls(np.zeros(records + 1, np.int64), np.empty(0, np.int32))


class Dependencies(NamedTuple):
    """Fields of a Trace: Trace(..., **dependencies(...)._asdict())."""

    dep_start: npt.NDArray[np.int64]
    dep: npt.NDArray[np.int32]
    dep_kind: npt.NDArray[np.int8]


def dependencies(
    reads: Lists | Ragged,
    writes: Lists | Ragged,
    slots: int,
    clobbers: Lists | Ragged | None = None,
    conditional: npt.NDArray[np.bool_] | None = None,
    flags: Collection[int] = (),
) -> Dependencies:
    """Find the dependencies of all records.

    A read waits for the slot's last writer (data). A write waits for all readers of the slot since then and
    for the last writer (buffer). A clobber waits like a write, but leaves writer and readers of the slot as
    they were.
    A dependency is left out when another one implies it: a reader has waited for the writer; the last writer
    of our own slot has clobbered what we clobber, and nobody has touched that since. A record that a program
    may skip implies nothing.

    Args:
        reads, writes: slots per record.
        slots: number of slots.
        clobbers: other slots whose contents the record's result overwrites.
        conditional: [R] records that some program skips; None if there are none.
        flags: slots that hold no bytes but stand for flags; who waits there waits for a flag.

    Raises:
        UsageError: a slot number outside 0 to slots - 1, or lists of different lengths.
    """
    records = len(reads.start) - 1
    clobbers = Lists.empty(records) if clobbers is None else clobbers
    skippable = np.zeros(records, np.int8) if conditional is None else np.asarray(conditional).astype(np.int8)
    _check(records, slots, {"reads": reads, "writes": writes, "clobbers": clobbers}, skippable)
    marked = np.zeros(slots + 1, np.int8)
    marked[list(flags)] = 1
    return _scanned(reads, writes, clobbers, skippable, marked).dependencies


class Scanned(NamedTuple):
    """Dependencies, and per slot who touches it after the last record.

    writer: [slots] the last writer. readers: [slots] the latest node of a chain of reads since then, next_read and reader
    per node: the one before, and the record. -1 for none.
    """

    dependencies: Dependencies
    writer: npt.NDArray[np.int32]
    readers: npt.NDArray[np.int64]
    next_read: npt.NDArray[np.int64]
    reader: npt.NDArray[np.int32]


def scanned(
    reads: Lists | Ragged,
    writes: Lists | Ragged,
    clobbers: Lists | Ragged,
    slots: int,
    conditional: npt.NDArray[np.int8],
    flags: Collection[int],
) -> Scanned:
    """As `dependencies`, of lists that are known to be right; flags may name slots that nobody uses."""
    marked = np.zeros(slots + 1, np.int8)
    marked[[s for s in flags if s < slots]] = 1
    return _scanned(reads, writes, clobbers, conditional, marked)


def _scanned(
    reads: Lists | Ragged,
    writes: Lists | Ragged,
    clobbers: Lists | Ragged,
    conditional: npt.NDArray[np.int8],
    flags: npt.NDArray[np.int8],
) -> Scanned:
    counted = _scan(reads, writes, clobbers, conditional, flags, 0)
    total = int(counted.dependencies.dep_start[-1])
    return _scan(reads, writes, clobbers, conditional, flags, total) if total else counted


def _check(
    records: int, slots: int, lists: dict[str, Lists | Ragged], conditional: npt.NDArray[np.int8]
) -> None:
    sizes = {name: len(value.start) - 1 for name, value in lists.items()} | {"conditional": len(conditional)}
    for name, size in sizes.items():
        if size != records:
            raise UsageError(f"dependencies: {name} has {size} records, reads has {records}")
    for name, value in lists.items():
        bad = (value.item < 0) | (value.item >= slots)
        if bad.any():
            raise UsageError(
                f"dependencies: {name} has slot {value.item[bad.argmax()]}, there are {slots} slots"
            )


def _scan(
    reads: Lists | Ragged,
    writes: Lists | Ragged,
    clobbers: Lists | Ragged,
    conditional: npt.NDArray[np.int8],
    flags: npt.NDArray[np.int8],
    total: int,
) -> Scanned:
    """One pass: it only counts when `total` is 0, so that the arrays can then be made to measure."""
    records, slots = len(conditional), len(flags) - 1
    found = Dependencies(np.zeros(records + 1, np.int64), np.empty(total, np.int32), np.empty(total, np.int8))
    out = Scanned(
        found,
        np.full(slots + 1, -1, np.int32),
        np.full(slots + 1, -1, np.int64),
        np.empty(len(reads.item) + 1, np.int64),
        np.empty(len(reads.item) + 1, np.int32),
    )
    _dependencies.scan(
        reads.start,
        reads.item,
        writes.start,
        writes.item,
        clobbers.start,
        clobbers.item,
        conditional,
        flags,
        out.writer,
        out.readers,
        np.full(slots + 1, -1, np.int32),
        out.next_read,
        out.reader,
        np.full(records, -1, np.int32),
        *found,
    )
    return out

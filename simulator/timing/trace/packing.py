"""Packs the records of a long walk while it goes on: each kind of record once, and the order in which they come as runs.

Records are taken in pieces; what a later one may have to wait for is carried from piece to piece. A kind has a record's
costs, line and amount and how far back it waits for whom, so in a steady loop every turn has the same kinds, and the loop is
one run of them. What does not repeat costs four bytes a record as long as its kinds do.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np

from ..engine.dependencies import Scanned, scanned
from ..engine.inputs import Trace
from ..engine.layout import RECORD
from ..engine.ragged import Ragged, join, pick_lists
from ..engine.runs import Runs
from . import _packing

NEAR = 4096  # records back; whoever is waited for from farther is kept
LEAST = 4096  # records that repeat before they count as a run
MOST = 1 << 20  # kinds of a run
PLACES = 1 << 16  # where some kinds in a row were last
COSTS = ("occupancy", "latency", "amount", "column", "instructions", "line", "pipe", "channel")


class Piece(NamedTuple):
    """Records in a row: fields by name, which of them programs skip, and the slots that they use."""

    columns: dict[str, np.ndarray]
    conditional: np.ndarray
    reads: Ragged
    writes: Ragged
    clobbers: Ragged


class Carried(NamedTuple):
    """Records that later ones may have to wait for, in order: those that still read slots, or wrote them last.

    Their lists are what makes the scan of dependencies go on as if it had seen everything before.
    """

    number: np.ndarray
    pipe: np.ndarray
    latency: np.ndarray
    conditional: np.ndarray
    waited: np.ndarray
    kept: np.ndarray
    reads: Ragged
    writes: Ragged
    clobbers: Ragged


class Packer:
    """Takes pieces, gives the trace. near, least: in place of `NEAR` and `LEAST`."""

    def __init__(self, near: int = 0, least: int = 0) -> None:
        self.near, self.least = near or NEAR, least or LEAST
        self.records = 0
        self.carried = _nobody()
        self.most = np.zeros(16)
        self.keep, self.keeps = np.zeros(64, np.int64), 0
        self.kinds, self.known = np.zeros(1024, RECORD), 0
        self.kind_start = np.zeros(1025, np.int64)
        self.kind_back, self.kind_kind = np.zeros(1024, np.int32), np.zeros(1024, np.int8)
        self.hashes, self.table = np.zeros(1024, np.uint64), np.full(4096, -1, np.int32)
        self.state, self.places = np.zeros(_packing.STATE, np.int64), np.zeros(PLACES, np.int64)
        self.order = np.zeros(1024, np.int32)
        self.runs, self.run_count = np.zeros((64, 3), np.int64), 0

    def add(self, piece: Piece, flags: Collection[int]) -> None:
        """Append records. flags: slots that stand for flags."""
        count = len(piece.conditional)
        if not count:
            return
        old = self.carried
        reads, writes, clobbers = (
            join([getattr(old, n), getattr(piece, n)]) for n in ("reads", "writes", "clobbers")
        )
        slots = 1 + max(int(x.item.max(initial=0)) for x in (reads, writes, clobbers))
        now = old._replace(
            number=np.append(old.number, self.records + np.arange(count)),
            pipe=np.append(old.pipe, piece.columns["pipe"]),
            latency=np.append(old.latency, piece.columns["latency"]),
            conditional=np.append(old.conditional, piece.conditional.astype(np.int8)),
            waited=np.append(old.waited, np.zeros(count, np.uint16)),
            kept=np.append(old.kept, np.full(count, -1, np.int32)),
            reads=reads,
            writes=writes,
            clobbers=clobbers,
        )
        np.maximum.at(self.most, piece.columns["pipe"], piece.columns["latency"])
        found = scanned(reads, writes, clobbers, slots, now.conditional, flags)
        self._take(piece, now, found, len(old.number))
        self.carried = self._alive(now, found)
        self.records += count

    def _take(self, piece: Piece, now: Carried, found: Scanned, first: int) -> None:
        """Kinds of the new records, and their place in the order."""
        count, deps = len(piece.conditional), found.dependencies
        start = np.zeros(count + 1, np.int64)
        size = int(deps.dep_start[-1] - deps.dep_start[first])
        back, kind = np.zeros(size + 1, np.int32), np.zeros(size + 1, np.int8)
        self.keep = _grown(self.keep, self.keeps + len(now.number))
        self.keeps = _packing.relate(
            first, self.near, now.number, now.pipe, now.latency, now.conditional, self.most, *deps, now.waited,
            now.kept, self.keep, self.keeps, start, back, kind,
        )  # fmt: skip
        rows = np.zeros(count, RECORD)
        for name in COSTS:
            rows[name] = piece.columns[name]
        self._make_room(count, size)
        codes = np.empty(count, np.int32)
        self.known = _packing.intern(
            rows, start, back, kind, self.kinds, self.kind_start, self.kind_back, self.kind_kind, self.hashes,
            self.table, self.known, codes,
        )  # fmt: skip
        self.order = _grown(self.order, int(self.state[0]) + count)
        self.runs = _grown(self.runs, self.run_count + 2 + 2 * count // self.least)
        self.run_count = _packing.fold(
            codes, self.least, MOST, self.state, self.order, self.places, self.runs, self.run_count
        )

    def _make_room(self, count: int, deps: int) -> None:
        """For that many new kinds."""
        self.kinds, self.hashes = (_grown(x, self.known + count) for x in (self.kinds, self.hashes))
        self.kind_start = _grown(self.kind_start, self.known + count + 1)
        size = int(self.kind_start[self.known]) + deps
        self.kind_back, self.kind_kind = (_grown(x, size + 1) for x in (self.kind_back, self.kind_kind))
        if 2 * (self.known + count) > len(self.table):
            self.table = np.full(1 << (4 * (self.known + count)).bit_length(), -1, np.int32)
            _packing.rebuild(self.hashes, self.known, self.table)

    def _alive(self, now: Carried, found: Scanned) -> Carried:
        """What is carried on: the last writer of each slot, and who reads it since."""
        slots, records = (np.empty(len(found.reader), np.int32) for _ in range(2))
        size = _packing.alive(
            found.readers, found.next_read, found.reader, now.pipe, now.latency, now.conditional, self.most, slots,
            records,
        )  # fmt: skip
        slots, records = slots[:size], records[:size]
        written = np.flatnonzero(found.writer >= 0).astype(np.int32)
        writers = found.writer[written]
        ids = np.unique(np.concatenate([records, writers]))
        chosen = {n: getattr(now, n)[ids] for n in Carried._fields[:6]}
        return Carried(
            **chosen,
            reads=_lists(ids, records, slots),
            writes=_lists(ids, writers, written),
            clobbers=pick_lists(now.clobbers, ids),
        )

    def trace(self, table: np.ndarray) -> Trace:
        """All records."""
        size, _, literal, base, *_, running, _, _ = self.state.tolist()
        rows = self.runs[: self.run_count]
        if not running and size > literal:
            rows = np.append(rows, [[base, literal, size - literal]], axis=0)
        keep, place = np.unique(self.keep[: self.keeps], return_inverse=True)
        deps = int(self.kind_start[self.known])
        back = self.kind_back[:deps]
        far = back < 0
        dep = back.copy()
        dep[far] = -1 - place[-1 - back[far]]
        kinds: dict[str, Any] = {n: self.kinds[n][: self.known].copy() for n in COSTS}
        return Trace(
            **kinds,
            table=table,
            dep_start=self.kind_start[: self.known + 1].copy(),
            dep=dep,
            dep_kind=self.kind_kind[:deps].copy(),
            runs=Runs(
                records=self.records,
                start=rows[:, 0].copy(),
                first=rows[:, 1].copy(),
                length=rows[:, 2].copy(),
                order=self.order[:size].copy(),
                keep=keep,
            ),
        )


def _nobody() -> Carried:
    none = Ragged(np.zeros(1, np.int64), np.empty(0, np.int32))
    types = (np.int64, np.int8, np.float64, np.int8, np.uint16, np.int32)
    fields: dict[str, Any] = {n: np.zeros(0, t) for n, t in zip(Carried._fields[:6], types, strict=True)}
    return Carried(**fields, reads=none, writes=none, clobbers=none)


def _grown(array: np.ndarray, size: int) -> np.ndarray:
    """With room for so many entries, at least twice as many as before if there was none."""
    if len(array) >= size:
        return array
    out = np.zeros((max(size, 2 * len(array)), *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out


def _lists(ids: np.ndarray, records: np.ndarray, items: np.ndarray) -> Ragged:
    """Per record of `ids` the items that stand beside it."""
    order = np.argsort(records, kind="stable")
    counts = np.bincount(np.searchsorted(ids, records), minlength=len(ids))
    return Ragged(np.append(0, counts.cumsum()).astype(np.int64), items[order].astype(np.int32))

"""Collects instruction records while a program is walked, and makes the engine's trace of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np

from .engine import Lists, Trace, dependencies
from .ragged import join

Row = tuple[int, float, float, int, float, int, int, int]
# Fields of a row, in its order, with their types in the trace.
ROW = {
    "pipe": np.int8,
    "occupancy": np.float64,
    "latency": np.float64,
    "channel": np.int8,
    "amount": np.float64,
    "column": np.int32,
    "instructions": np.int32,
    "line": np.int32,
}


class Part(NamedTuple):
    """Records in a row, as arrays. columns: by field of `ROW`; slots: which each record reads, writes and clobbers."""

    columns: dict[str, np.ndarray]
    conditional: np.ndarray
    reads: Lists
    writes: Lists
    clobbers: Lists


class Recorder:
    """One linear list of records for a number of programs; amounts that differ between programs go to a table."""

    def __init__(self, programs: int) -> None:
        self.programs = programs
        self.table: list[np.ndarray] = []
        self.drains: dict[
            int, int
        ] = {}  # slot that every record of a pipe reads, so that one can wait for all of them
        self.shared: dict[tuple[float, int], tuple[int, np.ndarray | None]] = {}
        self.parts: list[Part] = []
        self._begin()

    def _begin(self) -> None:
        """An empty list of rows."""
        self.rows: list[Row] = []
        self.reads: list[int] = []
        self.read_start = [0]
        self.writes: list[int] = []
        self.write_start = [0]
        self.clobbers: list[int] = []
        self.clobber_start = [0]
        self.conditional: list[int] = []

    def add(
        self,
        pipe: int,
        line: int,
        *,
        occupancy: float,
        latency: float = 0.0,
        channel: int = -1,
        amount: Any = 0,
        instructions: int = 1,
        reads: tuple[int, ...] = (),
        writes: tuple[int, ...] = (),
        clobbers: tuple[int, ...] = (),
        active: np.ndarray | None = None,
    ) -> None:
        """Append a record. `amount` is bytes of a transfer, one number or one per active program.

        active: numbers of the programs that execute it; None for all.
        """
        column = -1
        if active is None and isinstance(amount, np.ndarray) and amount.ndim and (amount == amount[0]).all():
            amount = amount[0]
        if active is not None or (isinstance(amount, np.ndarray) and amount.ndim):
            column = self._column(amount if channel >= 0 else occupancy, active)
            amount = 0
        self.rows.append((pipe, occupancy, latency, channel, amount, column, instructions, line))
        self.reads.extend(reads)
        if pipe in self.drains:
            self.reads.append(self.drains[pipe])
        self.writes.extend(writes)
        self.clobbers.extend(clobbers)
        self.read_start.append(len(self.reads))
        self.write_start.append(len(self.writes))
        self.clobber_start.append(len(self.clobbers))

    def add_fixed(
        self,
        pipe: int,
        line: int,
        occupancy: float,
        latency: float,
        instructions: int,
        reads: tuple[int, ...],
        writes: tuple[int, ...],
        clobbers: tuple[int, ...],
        active: np.ndarray | None,
    ) -> None:
        """`add` for a fixed cost, with everything given: the common case, kept short."""
        column = -1 if active is None else self._column(occupancy, active)
        self.rows.append((pipe, occupancy, latency, -1, 0, column, instructions, line))
        self.reads += reads
        if pipe in self.drains:
            self.reads.append(self.drains[pipe])
        self.writes += writes
        self.clobbers += clobbers
        self.read_start.append(len(self.reads))
        self.write_start.append(len(self.writes))
        self.clobber_start.append(len(self.clobbers))

    def append(self, part: Part) -> None:
        """Append records that are arrays already; their columns are those of the table."""
        self._finish_rows()
        self.parts.append(part)

    def _column(self, amount: Any, active: np.ndarray | None) -> int:
        if active is not None:
            self.conditional.append(len(self.rows))
        if isinstance(amount, np.ndarray):
            return self.new_column(amount, active)
        return self.shared_column(float(amount), active)

    def shared_column(self, amount: float, active: np.ndarray | None) -> int:
        """Row of the table with one amount for the active programs; the one that is there if there is one."""
        found = self.shared.get((amount, id(active)))
        if found is not None:
            return found[0]
        column = self.new_column(amount, active)
        self.shared[amount, id(active)] = (column, active)  # keeps `active` alive, and so its id its own
        return column

    def new_column(self, amount: Any, active: np.ndarray | None) -> int:
        """New row of the table; -1 for programs that skip the record."""
        row = np.full(self.programs, -1.0)
        row[slice(None) if active is None else active] = amount
        self.table.append(row)
        return len(self.table) - 1

    def new_columns(self, rows: np.ndarray) -> np.ndarray:
        """Numbers in the table of those rows, one value for each program."""
        first = len(self.table)
        self.table.extend(rows)
        return np.arange(first, len(self.table))

    def _finish_rows(self) -> None:
        """Make a part of the rows so far."""
        if not self.rows:
            return
        fields = zip(ROW.items(), zip(*self.rows, strict=True), strict=True)
        conditional = np.zeros(len(self.rows), bool)
        conditional[self.conditional] = True
        self.parts.append(
            Part(
                {name: np.array(values, kind) for (name, kind), values in fields},
                conditional,
                Lists(np.array(self.read_start), np.array(self.reads, np.int32)),
                Lists(np.array(self.write_start), np.array(self.writes, np.int32)),
                Lists(np.array(self.clobber_start), np.array(self.clobbers, np.int32)),
            )
        )
        self._begin()

    def trace(self, slots: int, flags: Collection[int] = ()) -> Trace:
        """The records so far with their dependencies. flags: slots that stand for flags."""
        self._finish_rows()
        parts = self.parts
        conditional = np.concatenate([np.zeros(0, bool), *(p.conditional for p in parts)])
        found = dependencies(
            join([p.reads for p in parts]),
            join([p.writes for p in parts]),
            max(1, slots),
            join([p.clobbers for p in parts]),
            conditional if conditional.any() else None,
            flags,
        )
        return Trace(
            **{n: np.concatenate([np.zeros(0, k), *(p.columns[n] for p in parts)]) for n, k in ROW.items()},
            table=np.array(self.table, np.float64) if self.table else np.empty((0, 0)),
            **found._asdict(),
        )


class Redirected(Recorder):
    """A recorder whose `add` puts records elsewhere: those of a fixed cost go the same way."""

    def add_fixed(
        self,
        pipe: int,
        line: int,
        occupancy: float,
        latency: float,
        instructions: int,
        reads: tuple[int, ...],
        writes: tuple[int, ...],
        clobbers: tuple[int, ...],
        active: np.ndarray | None,
    ) -> None:
        cost: dict[str, Any] = {"occupancy": occupancy, "latency": latency, "instructions": instructions}
        self.add(pipe, line, active=active, reads=reads, writes=writes, clobbers=clobbers, **cost)

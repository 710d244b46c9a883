"""Collects instruction records while a program is walked, and makes the engine's trace of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from ..engine.engine import Trace, dependencies
from ..engine.ragged import Ragged, join
from .packing import Packer, Piece

CHUNK = 1 << 18  # records, after which those so far are packed

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

_ROWS = np.dtype(list(ROW.items()), align=True)  # a field of one row alone is read where it lies


class LaterPiece(Protocol):
    """Records that are known when all accesses of the programs are. records: how many, about."""

    records: int

    def piece(self) -> Piece:
        """The records; rows of the table have been added."""


class Recorder:
    """One linear list of records for a number of programs; amounts that differ between programs go to a table.

    A long list is packed while it grows (packing.py), so that it never lies in memory as a whole.
    numbers: of the programs in the grid; without, from 0 on. know: makes known what later pieces wait for.
    """

    chunk = CHUNK

    def __init__(self, programs: int, numbers: np.ndarray | None = None) -> None:
        self.programs = programs
        self.numbers = np.arange(programs) if numbers is None else numbers
        self.know: Callable[[], None] = _nothing
        self.table: list[np.ndarray] = []  # blocks of rows
        self.columns = 0  # rows in all of them
        self.drains: dict[
            int, int
        ] = {}  # slot that every record of a pipe reads, so that one can wait for all of them
        self.shared: dict[tuple[float, int], tuple[int, np.ndarray | None]] = {}
        self.parts: list[Piece | LaterPiece] = []
        self.part_records = 0
        self.packer: Packer | None = None
        self.uses: tuple[Ragged, Ragged, Ragged] | None = None  # slots of the first records (see `held.py`)
        self.known_rows: dict[bytes, int] = {}
        self.flag_slots: Callable[[], Collection[int]] = tuple  # slots that stand for flags, so far
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

    def append(self, part: Piece | LaterPiece) -> None:
        """Append records that are arrays already, or will be; their columns are those of the table."""
        self._finish_rows()
        self._put(part)

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
        row = np.full((1, self.programs), -1.0)
        row[0, slice(None) if active is None else active] = amount
        return self._row(row)

    def number_columns(self, column: np.ndarray, first: int, rows: np.ndarray) -> None:
        """Put rows into the table, one value for each program. column: numbers them from `first` on, and gets their own."""
        if not len(rows):
            return
        if self.packer is None and first == self.columns:
            self.table.append(rows)
            self.columns += len(rows)
            return
        numbers = np.array([self._row(rows[k : k + 1]) for k in range(len(rows))], np.int32)
        new = column >= first
        column[new] = numbers[column[new] - first]

    def _row(self, row: np.ndarray) -> int:
        """Number in the table of a row; in a long list a row that is there already."""
        if self.packer is not None:
            found = self.known_rows.setdefault(row.tobytes(), self.columns)
            if found < self.columns:
                return found
            row = row.copy()
        self.table.append(row)
        self.columns += 1
        return self.columns - 1

    @property
    def records(self) -> int:
        """How many records there are so far."""
        packed = 0 if self.packer is None else self.packer.records
        return packed + self.part_records + len(self.rows)

    def settle(self) -> None:
        """Pack the records so far if they are many."""
        if self.part_records + len(self.rows) < self.chunk:
            return
        self._finish_rows()
        piece = _joined(self._pieces())
        self.packer = self.packer or Packer()
        self.packer.add(piece, self.flag_slots())
        self.uses = self.uses or piece[2:]
        self.parts, self.part_records = [], 0
        self.shared.clear()  # it holds on to arrays of programs

    def _put(self, part: Piece | LaterPiece) -> None:
        self.parts.append(part)
        self.part_records += len(part.conditional) if isinstance(part, Piece) else part.records

    def _pieces(self) -> list[Piece]:
        """All parts as arrays."""
        self.know()
        return [p if isinstance(p, Piece) else p.piece() for p in self.parts]

    def _finish_rows(self) -> None:
        """Make a part of the rows so far."""
        if not self.rows:
            return
        rows = np.array(self.rows, _ROWS)
        conditional = np.zeros(len(self.rows), bool)
        conditional[self.conditional] = True
        self._put(
            Piece(
                {name: rows[name] for name in ROW},
                conditional,
                Ragged(np.array(self.read_start, np.int64), np.array(self.reads, np.int32)),
                Ragged(np.array(self.write_start, np.int64), np.array(self.writes, np.int32)),
                Ragged(np.array(self.clobber_start, np.int64), np.array(self.clobbers, np.int32)),
            )
        )
        self._begin()

    def trace(self, slots: int, flags: Collection[int] = ()) -> Trace:
        """The records so far with their dependencies. flags: slots that stand for flags."""
        self._finish_rows()
        part = _joined(self._pieces())
        table = np.concatenate(self.table) if self.table else np.empty((0, 0))
        if self.packer is not None:
            self.packer.add(part, flags)
            return replace(self.packer.trace(table), uses=self.uses)
        found = dependencies(
            part.reads,
            part.writes,
            max(1, slots),
            part.clobbers,
            part.conditional if part.conditional.any() else None,
            flags,
        )
        columns: dict[str, Any] = {**part.columns, **found._asdict()}
        return Trace(**columns, table=table, uses=part[2:])


def _nothing() -> None:
    """All is known."""


def _joined(parts: Sequence[Piece]) -> Piece:
    """The records of all parts."""
    if len(parts) == 1:
        return parts[0]
    return Piece(
        {n: np.concatenate([np.zeros(0, k), *(p.columns[n] for p in parts)]) for n, k in ROW.items()},
        np.concatenate([np.zeros(0, bool), *(p.conditional for p in parts)]),
        *(join([getattr(p, n) for p in parts]) for n in ("reads", "writes", "clobbers")),
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

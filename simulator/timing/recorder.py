"""Collects instruction records while a program is walked, and makes the engine's trace of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .engine import Lists, Trace, dependencies


class Recorder:
    """One linear list of records for a number of programs; amounts that differ between programs go to a table."""

    def __init__(self, programs: int) -> None:
        self.programs = programs
        self.rows: list[tuple[int, float, float, int, float, int, int, int]] = []
        self.reads: list[int] = []
        self.read_start = [0]
        self.writes: list[int] = []
        self.write_start = [0]
        self.clobbers: list[int] = []
        self.clobber_start = [0]
        self.table: list[np.ndarray] = []
        self.conditional: list[int] = []
        self.drains: dict[
            int, int
        ] = {}  # slot that every record of a pipe reads, so that one can wait for all of them
        self.shared: dict[tuple[float, int], tuple[int, np.ndarray | None]] = {}

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

    def _column(self, amount: Any, active: np.ndarray | None) -> int:
        key = None
        if not isinstance(amount, np.ndarray):
            key = (float(amount), id(active))
            found = self.shared.get(key)
            if found is not None:
                self.conditional.append(len(self.rows))
                return found[0]
        row = np.full(self.programs, -1.0)
        row[slice(None) if active is None else active] = amount
        if active is not None:
            self.conditional.append(len(self.rows))
        self.table.append(row)
        if key is not None:
            self.shared[key] = (
                len(self.table) - 1,
                active,
            )  # keeps `active` alive, so that its id stays its own
        return len(self.table) - 1

    def trace(self, slots: int) -> Trace:
        """The records so far with their dependencies."""
        columns = list(zip(*self.rows, strict=True)) if self.rows else [()] * 8
        pipe, occupancy, latency, channel, amount, column, instructions, line = columns
        conditional = np.zeros(len(self.rows), bool)
        conditional[self.conditional] = True
        found = dependencies(
            Lists(np.array(self.read_start), np.array(self.reads, np.int32)),
            Lists(np.array(self.write_start), np.array(self.writes, np.int32)),
            max(1, slots),
            Lists(np.array(self.clobber_start), np.array(self.clobbers, np.int32)),
            conditional if self.conditional else None,
        )
        return Trace(
            pipe=np.array(pipe, np.int8),
            occupancy=np.array(occupancy, np.float64),
            latency=np.array(latency, np.float64),
            channel=np.array(channel, np.int8),
            amount=np.array(amount, np.float64),
            column=np.array(column, np.int32),
            table=np.array(self.table, np.float64) if self.table else np.empty((0, 0)),
            instructions=np.array(instructions, np.int32),
            line=np.array(line, np.int32),
            **found._asdict(),
        )

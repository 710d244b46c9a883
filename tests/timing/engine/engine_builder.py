"""Writes machines and traces in one line per pipe and record, and reads results by record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ascendtile.simulator.timing.engine.engine import (
    BUFFER,
    DATA,
    Channel,
    EngineResult,
    Machine,
    PipeSpec,
    ProgramGroup,
    Resource,
    Trace,
    simulate,
)
from ascendtile.simulator.timing.engine.trace import BARRIER, FLAG, INSTRUCTION

S, MTE2, V, MTE3 = range(4)
LOAD, STORE = range(2)


def machine(
    *,
    cores: int = 1,
    depth: int = 1000,
    port: float = 8,
    hbm: float = 1e9,
    dispatch: float = 0,
    start: float = 0,
    core_start: float = 0,
    cross: float = 0,
    issue: float = 0,
) -> Machine:
    """One vector unit per core: S, MTE2, V, MTE3; loads and stores share HBM."""
    names = ("S", "MTE2", "V", "MTE3")
    return Machine(
        pipes=tuple(PipeSpec(name=n, unit="AIV", queue_depth=depth, scalar=n == "S") for n in names),
        cores=cores,
        channels=tuple(
            Channel(name=n, port_bytes_per_cycle=port, resources=(0,)) for n in ("GM->UB", "UB->GM")
        ),
        resources=(Resource(name="HBM", bytes_per_cycle=hbm),),
        dispatch_cycles=dispatch,
        start_cycles=start,
        core_start_cycles=core_start,
        cross_pipe_cycles=cross,
        issue_cycles=issue,
    )


@dataclass(frozen=True, kw_only=True)
class Records:
    """R records in a row, told by the records that each one waits for, as the reference simulator wants them.

    Fields of the columns as in INSTRUCTION; dep, dep_kind: record r waits for dep[dep_start[r]:dep_start[r + 1]].
    """

    pipe: np.ndarray
    occupancy: np.ndarray
    latency: np.ndarray
    channel: np.ndarray
    amount: np.ndarray
    instructions: np.ndarray
    line: np.ndarray
    dep_start: np.ndarray
    dep: np.ndarray
    dep_kind: np.ndarray
    column: np.ndarray | None = None
    table: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))

    @property
    def records(self) -> int:
        return len(self.pipe)

    def trace(self) -> Trace:
        """As slots: one for each record and kind, which that record writes (or reads) and later ones read (or clobber)."""
        count, slots = self.records, dict[tuple[int, int], int]()
        reads, writes, clobbers = ([[] for _ in range(count)] for _ in range(3))
        for r in range(count):
            for i in range(int(self.dep_start[r]), int(self.dep_start[r + 1])):
                q, kind = int(self.dep[i]), int(self.dep_kind[i])
                if (q, kind) not in slots:
                    slots[q, kind] = len(slots)
                    (reads if kind == BUFFER else writes)[q].append(slots[q, kind])
                (clobbers if kind == BUFFER else reads)[r].append(slots[q, kind])
        rows = np.zeros(count, INSTRUCTION)
        for name in ("pipe", "occupancy", "latency", "channel", "amount", "instructions", "line"):
            rows[name] = getattr(self, name)
        rows["column"] = -1 if self.column is None else self.column
        rows["cycles"] = -1
        used = [[*a, *b, *c] for a, b, c in zip(reads, writes, clobbers, strict=True)]
        rows["slot"] = np.cumsum([0, *(len(x) for x in used)])[:-1]
        for name, lists in (("reads", reads), ("writes", writes), ("clobbers", clobbers)):
            rows[name] = [len(x) for x in lists]
        return Trace(
            instructions=rows,
            code=np.arange(count, dtype=np.int32),
            length=count,
            slots=np.array([s for x in used for s in x], np.int32),
            flags=np.array([kind == FLAG for _, kind in slots], np.int8),
            table=np.ascontiguousarray(self.table, np.float64),
        )


class Part(NamedTuple):
    """Programs and their records."""

    records: Records
    programs: np.ndarray

    @property
    def group(self) -> ProgramGroup:
        return ProgramGroup(trace=self.records.trace(), programs=self.programs)


def of_parts(parts: Sequence[Part]) -> list[ProgramGroup]:
    return [part.group for part in parts]


@dataclass
class Builder:
    """Collects records; every method that adds one returns its number."""

    rows: list[tuple[float, ...]] = field(default_factory=list)
    deps: list[list[tuple[int, int]]] = field(default_factory=list)
    table: list[Sequence[float]] = field(default_factory=list)

    def fixed(
        self,
        pipe: int,
        cost: float = 0,
        *,
        latency: float = 0,
        data: Iterable[int] = (),
        buffer: Iterable[int] = (),
        line: int = 0,
        instructions: int = 1,
        programs: Sequence[float] | None = None,
    ) -> int:
        return self._add((pipe, cost, latency, -1, 0, instructions, line), data, buffer, programs)

    def transfer(
        self,
        pipe: int,
        amount: float = 0,
        *,
        channel: int | None = None,
        least: float = 0,
        latency: float = 0,
        data: Iterable[int] = (),
        buffer: Iterable[int] = (),
        line: int = 0,
        programs: Sequence[float] | None = None,
    ) -> int:
        channel = (LOAD if pipe == MTE2 else STORE) if channel is None else channel
        return self._add((pipe, least, latency, channel, amount, 1, line), data, buffer, programs)

    def barrier(self, pipe: int, *, kind: int = 0, latency: float = 0, data: Iterable[int] = ()) -> int:
        return self._add((pipe, 0, latency, BARRIER - kind, 0, 1, 0), data, (), None)

    def _add(
        self,
        row: tuple[float, ...],
        data: Iterable[int],
        buffer: Iterable[int],
        programs: Sequence[float] | None,
    ) -> int:
        column = -1
        if programs is not None:
            column = len(self.table)
            self.table.append(programs)
        self.rows.append((*row, column))
        self.deps.append([(q, DATA) for q in data] + [(q, BUFFER) for q in buffer])
        return len(self.rows) - 1

    def records(self) -> Records:
        names = ("pipe", "occupancy", "latency", "channel", "amount", "instructions", "line", "column")
        columns = np.array(self.rows, float).reshape(-1, len(names)).T
        whole = ("pipe", "channel", "instructions", "line", "column")
        flat = np.array([d for found in self.deps for d in found], np.int32).reshape(-1, 2)
        return Records(
            **{n: c.astype(np.int32) if n in whole else c for n, c in zip(names, columns, strict=True)},
            table=np.array(self.table, float) if self.table else np.empty((0, 0)),
            dep_start=np.cumsum([0, *(len(found) for found in self.deps)]),
            dep=flat[:, 0],
            dep_kind=flat[:, 1],
        )

    def trace(self) -> Trace:
        return self.records().trace()

    def part(self, programs: int | Sequence[int] = 1) -> Part:
        numbers = np.arange(programs) if isinstance(programs, int) else np.asarray(programs)
        return Part(self.records(), numbers)

    def group(self, programs: int | Sequence[int] = 1) -> ProgramGroup:
        return self.part(programs).group

    def run(self, on: Machine, programs: int = 1) -> EngineResult:
        return simulate(on, [self.group(programs)], timeline_limit=1_000_000)


class Times(NamedTuple):
    start: float
    end: float
    done: float


def times(result: EngineResult, record: int, program: int = 0) -> Times:
    """When the record had its pipe, and when its result could be used. Records of a builder are its instructions."""
    rows = result.timeline
    (row,) = rows[(rows["instruction"] == record) & (rows["program"] == program)]
    return Times(float(row["start"]), float(row["end"]), float(row["done"]))

"""Random trees of instructions and loops, and the same records in a row, unrolled in plain Python."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ascendtile.simulator.timing.engine.engine import EngineResult, Machine, Trace
from ascendtile.simulator.timing.engine.trace import GAIN, INSTRUCTION, LOOP, ROTATING

from .engine_strategies import numbers, some_cycles

SLOTS, COUNTERS, DEPTH = 6, 3, 3
LISTS = ("reads", "writes", "clobbers")


@dataclass(frozen=True)
class Unrolled:
    """One record: the instruction, the row that its numbers are in, and its slots."""

    instruction: int
    row: int
    reads: list[int]
    writes: list[int]
    clobbers: list[int]


def unrolled(trace: Trace, column: int | None = None) -> Iterator[Unrolled]:
    """All records of a program in order, those that it may skip among them; of no program in particular also those that
    some execute in the place of others."""
    for number, around in _of_code(trace, 0, trace.length, ()):
        x, other = _record(trace, number, around), int(trace.instructions["other"][number])
        first = int(trace.column[number])
        skipped = column is not None and first >= 0 and trace.table[first + x.row, column] < 0
        if not other or not skipped:
            yield x
        if other and (column is None or skipped):
            yield _record(trace, number + other, around)


Around = tuple[tuple[int, int], ...]


def _of_code(trace: Trace, first: int, end: int, around: Around) -> Iterator[tuple[int, Around]]:
    """`around`: the loops that the code is in and their iterations, the innermost first."""
    for number in trace.code[first:end].tolist():
        if number >= 0:
            yield number, around
            continue
        loop = trace.loops[-1 - number]
        for iteration in range(loop["trip_count"]):
            yield from _of_code(trace, loop["first"], loop["end"], ((-1 - number, iteration), *around))


def _record(trace: Trace, number: int, around: Around) -> Unrolled:
    x = trace.instructions[number]
    strides = trace.strides[x["stride"] : x["stride"] + x["depth"]].tolist()
    row = sum(s * iteration for s, (_, iteration) in zip(strides, around, strict=False))
    at, lists = int(x["slot"]), []
    for name in LISTS:
        used = trace.slots[at : at + x[name]].tolist()
        lists.append([s for slot in used for s in _slots(trace, slot, around)])
        at += int(x[name])
    return Unrolled(number, row, *lists)


def _slots(trace: Trace, slot: int, around: Around) -> list[int]:
    if slot >= 0:
        return [slot]
    x = trace.rotating[-1 - slot]
    count = int(x["base"])
    for k, iteration in around:
        loop = trace.loops[k]
        gains = trace.gains[loop["gain"] : loop["gain"] + loop["gains"]]
        count += iteration * int(gains["by"][gains["counter"] == x["counter"]].sum())
    k = int(x["choice"]) + count % int(x["copies"])
    found: list[int] = trace.items[trace.choices[k] : trace.choices[k + 1]].tolist()
    return found


def flat(trace: Trace, column: int) -> Trace:
    """The records of one program without loops: an instruction for each."""
    found = list(unrolled(trace, column))
    rows = trace.instructions[[x.instruction for x in found]]
    used = [[*x.reads, *x.writes, *x.clobbers] for x in found]
    for row, x in zip(rows, found, strict=True):
        if row["cycles"] >= 0:
            row["occupancy"] = trace.cycles[row["cycles"] + x.row]
        row["cycles"], row["depth"], row["stride"], row["other"] = -1, 0, 0, 0
        row["column"] += x.row if row["column"] >= 0 else 0
        for name in LISTS:
            row[name] = len(getattr(x, name))
    rows["slot"] = np.cumsum([0, *(len(x) for x in used)])[:-1]
    return Trace(
        instructions=rows,
        code=np.arange(len(rows), dtype=np.int32),
        length=len(rows),
        slots=np.array([s for x in used for s in x], np.int32),
        flags=trace.flags,
        table=np.ascontiguousarray(trace.table[:, column : column + 1]),
    )


def assert_same(a: EngineResult, b: EngineResult) -> None:
    """Bit for bit, but for the instructions, which are other templates of the same records."""
    for f in EngineResult._fields:
        x, y = np.array(getattr(a, f)), np.array(getattr(b, f))
        if f.startswith("line_"):  # a line whose instructions no program executes may be missing
            most = max(len(x), len(y))
            x, y = (np.concatenate([z, np.zeros((most - len(z), *z.shape[1:]))]) for z in (x, y))
        for name in set(x.dtype.names or ()) - {"instruction"}:
            assert x[name].tobytes() == y[name].tobytes(), name
        assert x.dtype.names or x.tobytes() == y.tobytes(), f


@dataclass
class Tree:
    """Collects a random tree. natural: iterations count through rows one by one, as nested loops through an array."""

    made: np.random.Generator
    machine: Machine
    natural: bool
    instructions: list[Any] = field(default_factory=list)
    bodies: list[list[int]] = field(default_factory=list)
    loops: list[tuple[int, int, int]] = field(default_factory=list)  # trip count, first gain, gains
    gains: list[tuple[int, int]] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    strides: list[int] = field(default_factory=list)
    rotating: list[tuple[int, int, int, int]] = field(default_factory=list)
    choices: list[list[int]] = field(default_factory=list)
    values: int = 0
    cycles: int = 0

    def number(self, low: int, high: int) -> int:
        return int(self.made.integers(low, high + 1))

    def code(self, around: list[int]) -> list[int]:
        """A body inside loops of these trip counts, the innermost first."""
        out: list[int] = []
        for _ in range(self.number(0 if around else 1, 4)):
            if len(around) < DEPTH and self.made.random() < 0.45:
                trip_count = self.number(1, 9 - 3 * len(around))
                out += [self.loop(self.code([trip_count, *around]), trip_count)] * self.number(1, 2)
            else:
                out += [self.instruction(around)] * self.number(1, 2)
        return out

    def loop(self, body: list[int], trip_count: int) -> int:
        gains = [(self.number(0, 4), c) for c in range(COUNTERS) if self.made.random() < 0.6]
        self.bodies.append(body)
        self.loops.append((trip_count, len(self.gains), len(gains)))
        self.gains += gains
        return -len(self.loops)

    def instruction(self, around: list[int], in_place: bool = False) -> int:
        """in_place: of another one."""
        other = self.instruction(around, True) if not in_place and self.made.random() < 0.3 else -1
        first, depth = len(self.strides), self.number(0, len(around))
        rows = 1
        for trip_count in around[:depth]:
            stride = rows * self.number(0, 1) if self.natural else self.number(0, 2)
            self.strides.append(stride)
            rows += stride * (trip_count - 1)
        column, cycles = self.values if self.made.random() < 0.5 else -1, self.cycles
        self.values += rows * (column >= 0)
        cycles = self.cycles if self.made.random() < 0.4 else -1
        self.cycles += rows * (cycles >= 0)
        start, counts = len(self.slots), [self.number(0, 2) for _ in LISTS]
        for name, count in zip(LISTS, counts, strict=True):
            self.slots += [self.slot(single=name != "clobbers") for _ in range(count)]
        occupancy, latency = some_cycles(self.made, 2)
        pipe, channel = (
            self.number(0, len(self.machine.pipes) - 1),
            self.number(-1, len(self.machine.channels) - 1),
        )
        self.instructions.append((
            occupancy, latency, self.number(0, 200), column, cycles, self.number(0, 3), self.number(0, 5), start,
            first, other - len(self.instructions) if other >= 0 else 0, *counts, depth, pipe, channel,
        ))  # fmt: skip
        return len(self.instructions) - 1

    def slot(self, single: bool) -> int:
        """One of the slots, or one that rotates."""
        if self.made.random() < 0.4:
            return self.number(0, SLOTS - 1)
        copies = self.number(1, 4)
        self.rotating.append((self.number(0, 5), self.number(0, COUNTERS - 1), copies, len(self.choices)))
        for _ in range(copies):
            count = 1 if single else self.number(0, 3)
            self.choices.append(self.made.integers(0, SLOTS, count).tolist())
        return -len(self.rotating)

    def trace(self, programs: int, skips: bool) -> Trace:
        code = self.code([])
        places = np.cumsum([len(code), *(len(x) for x in self.bodies)]).tolist()
        loops = [(a, b, *x) for a, b, x in zip(places, places[1:], self.loops, strict=False)]
        lists = self.choices
        return Trace(
            instructions=np.array(self.instructions, INSTRUCTION),
            code=np.array([*code, *(x for body in self.bodies for x in body)], np.int32),
            length=len(code),
            loops=np.array(loops, LOOP),
            gains=np.array(self.gains, GAIN),
            slots=np.array(self.slots, np.int32),
            rotating=np.array(self.rotating, ROTATING),
            choices=np.cumsum([0, *(len(x) for x in lists)]).astype(np.int64),
            items=np.array([s for x in lists for s in x], np.int32),
            strides=np.array(self.strides, np.int64),
            cycles=some_cycles(self.made, self.cycles),
            table=self.made.integers(-15 if skips else 0, 61, (self.values, programs)).astype(float),
            flags=self.made.integers(0, 2, SLOTS).astype(np.int8),
        )


@st.composite
def trees(
    draw: st.DrawFn, machine: Machine, programs: int = 1, natural: bool = False, skips: bool = True
) -> Trace:
    return Tree(numbers(draw), machine, natural).trace(programs, skips)

"""The records of traces in a row, whatever loops the traces have."""

from __future__ import annotations

import itertools
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
from ascendtile.simulator.timing.engine._code import unroll
from ascendtile.simulator.timing.engine.engine import BUFFER, DATA, FLAG, ProgramGroup, Trace
from ascendtile.simulator.timing.engine.layout import code_of

# What an instruction is, besides its slots and the places of its numbers.
FIELDS = ("pipe", "channel", "latency", "instructions")


class Records:
    """The records of the programs of a group.

    fields: by name, one entry a record. line: of each record. numbers: [records, programs, 2] occupancy and amount. done:
    [records, programs] whether a program does not skip it. slots: of each record those that it reads, writes and clobbers,
    one list after the other; start: where each of these lists begins.
    """

    def __init__(self, group: ProgramGroup) -> None:
        self.trace = trace = group.trace
        self.programs = len(group.programs)
        alone = ProgramGroup(trace=trace, programs=np.arange(self.programs))
        self.instruction, _, start, slots = unroll(code_of([alone]), 0, 1 << 40)
        self.start, self.slots = start.tolist(), slots.tolist()
        self.fields = {n: trace.instructions[n][self.instruction] for n in FIELDS}
        self.line = trace.line[self.instruction]
        self.numbers, self.done = _numbers(trace, self.instruction, self.programs)
        self.known: dict[bytes, Any] = {}

    def __len__(self) -> int:
        return len(self.instruction)

    def lines(self) -> list[list[int]]:
        """For each program the lines of what it does."""
        return [self.line[done].tolist() for done in self.done.T]

    def waits(self, program: int) -> list[list[tuple[int, int]]]:
        """For each record that a program does: (record, kind) of those that it waits for; -1 is the program's start.

        By the rules of engine.py, but for reads that the program skips; programs that skip the same records wait for the
        same ones.
        """
        done = self.done[:, program]
        found = self.known.get(done.tobytes())
        if found is None:
            found = self.known[done.tobytes()] = self._waits(done.tolist())
        return found  # type: ignore[no-any-return]

    def _waits(self, done: list[bool]) -> list[list[tuple[int, int]]]:
        out: list[list[tuple[int, int]]] = []
        writer: dict[int, int] = {}
        readers: dict[int, set[int]] = {}
        last: dict[int, int] = {}  # of each pipe
        flags, pipes = self.trace.flags.tolist(), self.fields["pipe"].tolist()
        for r, (pipe, mine) in enumerate(zip(pipes, done, strict=True)):
            places = self.start[3 * r : 3 * r + 4]
            reads, writes, clobbers = (self.slots[a:b] for a, b in itertools.pairwise(places))
            if mine:
                found = {(writer[s], FLAG if flags[s] else DATA) for s in reads if s in writer}
                for s in (*writes, *clobbers):
                    before = readers.get(s, set()) | ({writer[s]} if s in writer else set())
                    found |= {(q, FLAG if flags[s] else BUFFER) for q in before}
                last[pipe] = len(out)
                out.append(sorted(found))
            which = last.get(pipe, -1)
            for s in writes:
                writer[s], readers[s] = which, set()
            for s in set(reads) - set(writes) if mine else ():
                readers.setdefault(s, set()).add(which)
        return out


def assert_same(a: Records, b: Records) -> None:
    """Each program does the same, and each of its records waits for the same; what programs skip may differ, and lines have
    numbers of their own."""
    assert a.programs == b.programs
    for p in range(a.programs):
        mine, its = a.done[:, p], b.done[:, p]
        for name in FIELDS:
            assert np.array_equal(a.fields[name][mine], b.fields[name][its]), name
        assert np.array_equal(a.numbers[mine, p], b.numbers[its, p])
        assert a.waits(p) == b.waits(p)


def assert_same_launch(x: sim.Launch, y: sim.Launch) -> None:
    """All of it; what is a sum over instructions but for rounding: each trace of the same records has its own order."""
    for f in fields(x):
        a, b = getattr(x, f.name), getattr(y, f.name)
        if f.name in ("bounds", "lifted", "core_bytes"):
            assert a.keys() == b.keys(), f.name
            for n in a:
                assert a[n] == pytest.approx(b[n], rel=1e-12), (f.name, n)
        elif f.name in ("low_us", "high_us"):  # made of the bounds, see `error_model.features`
            assert (a is None) == (b is None)
            assert a is None or a == pytest.approx(b, rel=1e-12), f.name
        elif f.name == "timeline":
            assert_same_timeline(a, b)
        elif f.name == "pipes":
            assert {n: replace(p, core_conflicts={}) for n, p in a.items()} == {
                n: replace(p, core_conflicts={}) for n, p in b.items()
            }
            for n, pipe in a.items():
                for kind, cycles in pipe.core_conflicts.items():
                    assert b[n].core_conflicts[kind] == pytest.approx(cycles, rel=1e-12), (n, kind)
        else:
            assert a == b, f.name


def assert_same_timeline(x: Any, y: Any) -> None:
    assert (x is None) == (y is None)
    if x is None:
        return
    for f in fields(x):
        if f.name not in ("name", "names"):
            assert np.array_equal(getattr(x, f.name), getattr(y, f.name)), f.name
    assert [x.names[k] for k in x.name.tolist()] == [y.names[k] for k in y.name.tolist()]


def _numbers(trace: Trace, instruction: np.ndarray, programs: int) -> tuple[np.ndarray, np.ndarray]:
    """`numbers` and `done` of `Records`."""
    row = rows_in_order(trace)
    x = trace.instructions[instruction]
    cycles = x["occupancy"].copy()
    varies = x["cycles"] >= 0
    cycles[varies] = trace.cycles[(x["cycles"] + row)[varies]]
    out = np.empty((len(row), programs, 2))
    out[:, :, 0], out[:, :, 1] = cycles[:, None], x["amount"][:, None]
    done = np.ones((len(row), programs), bool)
    own = np.flatnonzero(x["column"] >= 0)
    if len(own):
        values = trace.table[(x["column"] + row)[own]]
        out[own, :, np.where(x["channel"][own] >= 0, 1, 0)] = values
        done[own] = values >= 0
    return out, done


def rows_in_order(trace: Trace) -> np.ndarray:
    """Of each record, how many rows after the first one of its instruction its numbers are."""
    which, iterations, _ = _iterations(trace, 0, trace.length)
    out = np.zeros(len(which), np.int64)
    for k in range(iterations.shape[1]):
        deep = np.flatnonzero(trace.instructions["depth"][which] > k)
        stride = trace.instructions["stride"][which[deep]] + k
        out[deep] += trace.strides[stride] * iterations[deep, k]
    return out


def _iterations(trace: Trace, first: int, end: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(instruction, iterations of the loops around it, the innermost first, number of these) of each record of some code."""
    found: list[tuple[Any, Any, Any]] = []
    for number in trace.code[first:end].tolist():
        if number >= 0:
            found.append((np.array([number]), np.zeros((1, trace.depth), np.int64), np.zeros(1, np.int64)))
            continue
        loop = trace.loops[-1 - number]
        trip_count = int(loop["trip_count"])
        which, iterations, depth = _iterations(trace, int(loop["first"]), int(loop["end"]))
        all_of_them = np.tile(iterations, (trip_count, 1))
        every = np.tile(depth, trip_count)
        all_of_them[np.arange(len(every)), every] = np.repeat(np.arange(trip_count), len(which))
        found.append((np.tile(which, trip_count), all_of_them, every + 1))
    if not found:
        return np.zeros(0, np.int64), np.zeros((0, trace.depth), np.int64), np.zeros(0, np.int64)
    which, iterations, depth = (np.concatenate(x) for x in zip(*found, strict=True))
    return which, iterations, depth

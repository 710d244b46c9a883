"""A tree of loops is its records in a row: same bits, same counts, and memory that trips do not grow."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.timing.engine._code import unroll
from ascendtile.simulator.timing.engine.engine import Group, Machine, Trace, simulate
from ascendtile.simulator.timing.engine.layout import code_of
from ascendtile.simulator.timing.engine.trace import INSTRUCTION, LOOP, ROTATING, GAIN

from .engine_builder import MTE2, MTE3, V, machine
from .engine_strategies import machines
from .engine_trees import assert_same, flat, trees, unrolled


@st.composite
def launches(draw: st.DrawFn, **limits: int) -> tuple[Machine, list[Group]]:
    """A machine and one or two trees, each run by some programs."""
    machine = draw(machines(**limits))
    total = draw(st.integers(1, 5))
    order = draw(st.permutations(range(total)))
    split = draw(st.integers(1, total))
    parts = [np.array(p) for p in (order[:split], order[split:]) if p]
    return machine, [Group(trace=draw(trees(machine, len(p))), programs=p) for p in parts]


def unrolled_groups(groups: list[Group]) -> list[Group]:
    return [Group(trace=flat(g.trace), programs=g.programs) for g in groups]


@given(launches(), st.sampled_from([0, 10, 1_000_000]), st.booleans(), st.booleans())
def test_a_tree_runs_as_its_records_in_a_row_do(
    launch: tuple[Machine, list[Group]], limit: int, by_line: bool, buffers: bool
) -> None:
    on, groups = launch
    assert_same(
        simulate(on, groups, limit, by_line, buffers),
        simulate(on, unrolled_groups(groups), limit, by_line, buffers),
    )


@given(launches())
def test_the_engine_unrolls_as_plain_loops_do(launch: tuple[Machine, list[Group]]) -> None:
    _, groups = launch
    code = code_of(groups)
    for g in groups:
        found = list(unrolled(g.trace))
        for column, program in enumerate(g.programs.tolist()):
            instruction, skipped, start, slots = unroll(code, program, 1 << 40)
            lists = np.split(slots, start[1:-1]) if len(start) > 1 else []
            assert instruction.tolist() == [x.instruction for x in found]
            assert [x.tolist() for x in lists] == [s for x in found for s in (x.reads, x.writes, x.clobbers)]
            columns = [(int(g.trace.column[x.instruction]), x.row) for x in found]
            assert skipped.tolist() == [c >= 0 and g.trace.table[c + row, column] < 0 for c, row in columns]


@given(launches(), st.integers(0, 30))
def test_to_unroll_the_first_records_is_the_beginning_of_all(
    launch: tuple[Machine, list[Group]], limit: int
) -> None:
    code = code_of(launch[1])
    some, every = unroll(code, 0, limit), unroll(code, 0, 1 << 40)
    count = min(limit, len(every[0]))
    for a, b, size in zip(some, every, (count, count, 3 * count + 1, every[2][3 * count]), strict=True):
        assert a.tolist() == b[:size].tolist()


def nesting(trace: Trace, first: int, end: int) -> int:
    inner = [trace.loops[-1 - c] for c in trace.code[first:end].tolist() if c < 0]
    return max((1 + nesting(trace, x["first"], x["end"]) for x in inner), default=0)


@given(launches())
def test_counts_records_and_depth_are_those_of_the_records(launch: tuple[Machine, list[Group]]) -> None:
    for trace in (g.trace for g in launch[1]):
        found = Counter(x.instruction for x in unrolled(trace))
        assert trace.counts.tolist() == [found[i] for i in range(len(trace.instructions))]
        assert trace.records == sum(found.values())
        assert trace.depth == nesting(trace, 0, trace.length)


@given(launches())
def test_rows_go_up_to_the_last_one_that_a_record_uses(launch: tuple[Machine, list[Group]]) -> None:
    for trace in (g.trace for g in launch[1]):
        last = Counter[int]()
        for x in unrolled(trace):
            last[x.instruction] = max(last[x.instruction], x.row)
        met = [i for i in range(len(trace.instructions)) if trace.counts[i]]
        assert [trace.rows[i] for i in met] == [1 + last[i] for i in met]


@given(machines().flatmap(lambda on: trees(on, natural=True)))
def test_what_is_met_is_how_often_records_use_each_row(trace: Trace) -> None:
    found = Counter[tuple[int, int, float]]()
    for x in unrolled(trace):
        row = trace.instructions[x.instruction]
        column = int(row["column"]) + x.row if row["column"] >= 0 else -1
        cycles = row["occupancy"] if row["cycles"] < 0 else trace.cycles[row["cycles"] + x.row]
        found[x.instruction, column, float(cycles)] += 1
    told = Counter[tuple[int, int, float]]()
    for which, column, cycles, times in zip(*(x.tolist() for x in trace.met()), strict=True):
        told[which, column, cycles] += times
    assert {k: n for k, n in told.items() if n} == found


def ping_pong(trips: int) -> Trace:
    """Load, compute, store; each tile in one of two buffers, a skip for each program in its table."""
    rows = np.zeros(3, INSTRUCTION)
    rows["pipe"], rows["occupancy"], rows["latency"] = (MTE2, V, MTE3), (40, 30, 20), (5, 3, 2)
    rows["channel"], rows["column"], rows["cycles"] = -1, -1, -1
    rows["slot"], rows["reads"], rows["writes"] = (0, 1, 3), (0, 1, 1), (1, 1, 0)
    return Trace(
        instructions=rows,
        code=np.array([-1, 0, 1, 2], np.int32),
        length=1,
        loops=np.array([(1, 4, trips, 0, 1)], LOOP),
        gains=np.array([(1, 0)], GAIN),
        slots=np.array([-1, -1, -2, -2], np.int32),
        rotating=np.array([(0, 0, 2, 0), (0, 0, 2, 2)], ROTATING),
        choices=np.arange(5),
        items=np.arange(4, dtype=np.int32),
        flags=np.zeros(4, np.int8),
    )


def peak_growth_mb() -> float:
    """How far the process went beyond what it holds now since `forget_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    size = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.startswith("Vm")}
    return (size["VmHWM"] - size["VmRSS"]) / 1024


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


@pytest.mark.parametrize(
    "trips", [100_000, pytest.param(10_000_000, marks=pytest.mark.exhaustive)], ids=["usual", "many"]
)
def test_memory_does_not_grow_with_trips(trips: int) -> None:
    """Loads of 40 cycles one behind the other; the last tile is computed 5 and stored 3 cycles after the one before."""
    trace = ping_pong(trips)
    group = [Group(trace=trace, programs=np.arange(1))]
    forget_peak()
    result = simulate(machine(depth=4), group)
    assert peak_growth_mb() < 4
    assert result.records_run == 3 * trips
    assert result.cycles == 40 * trips + 5 + 30 + 3 + 20 + 2
    assert result.stalls[0, MTE2, :3].sum() == 0
    assert trace.records == 3 * trips

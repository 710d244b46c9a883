"""A tree of loops is its records in a row: same bits, same counts, and memory that does not grow with trip counts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.timing.engine._code import unroll
from ascendtile.simulator.timing.engine.engine import Machine, PipeSpec, ProgramGroup, Trace, simulate
from ascendtile.simulator.timing.engine.layout import code_of
from ascendtile.simulator.timing.engine.trace import GAIN, INSTRUCTION, LOOP, ROTATING
from ascendtile.simulator.timing.results.bounds import add_work

from .engine_builder import MTE2, MTE3, V, machine
from .engine_strategies import machines
from .engine_trees import assert_same, flat, trees, unrolled


@st.composite
def launches(draw: st.DrawFn, **limits: int) -> tuple[Machine, list[ProgramGroup]]:
    """A machine and one or two trees, each run by some programs."""
    machine = draw(machines(**limits))
    total = draw(st.integers(1, 5))
    order = draw(st.permutations(range(total)))
    split = draw(st.integers(1, total))
    parts = [np.array(p) for p in (order[:split], order[split:]) if p]
    return machine, [ProgramGroup(trace=draw(trees(machine, len(p))), programs=p) for p in parts]


def unrolled_groups(groups: list[ProgramGroup]) -> list[ProgramGroup]:
    """Each program for itself."""
    return [
        ProgramGroup(trace=flat(g.trace, k), programs=np.array([program]))
        for g in groups
        for k, program in enumerate(g.programs.tolist())
    ]


@given(launches(), st.sampled_from([0, 10, 1_000_000]), st.booleans(), st.booleans())
def test_a_tree_runs_as_its_records_in_a_row_do(
    launch: tuple[Machine, list[ProgramGroup]], limit: int, by_line: bool, buffers: bool
) -> None:
    on, groups = launch
    assert_same(
        simulate(on, groups, limit, by_line, buffers),
        simulate(on, unrolled_groups(groups), limit, by_line, buffers),
    )


@given(launches())
def test_the_engine_unrolls_as_plain_loops_do(launch: tuple[Machine, list[ProgramGroup]]) -> None:
    _, groups = launch
    code = code_of(groups)
    for g in groups:
        for column, program in enumerate(g.programs.tolist()):
            found = list(unrolled(g.trace, column))
            instruction, skipped, start, slots = unroll(code, program, 1 << 40)
            lists = np.split(slots, start[1:-1]) if len(start) > 1 else []
            assert instruction.tolist() == [x.instruction for x in found]
            assert [x.tolist() for x in lists] == [s for x in found for s in (x.reads, x.writes, x.clobbers)]
            columns = [(int(g.trace.column[x.instruction]), x.row) for x in found]
            assert skipped.tolist() == [c >= 0 and g.trace.table[c + row, column] < 0 for c, row in columns]


@given(launches(), st.integers(0, 30))
def test_to_unroll_the_first_records_is_the_beginning_of_all(
    launch: tuple[Machine, list[ProgramGroup]], limit: int
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
def test_counts_records_and_depth_are_those_of_the_records(
    launch: tuple[Machine, list[ProgramGroup]],
) -> None:
    for trace in (g.trace for g in launch[1]):
        found = Counter(x.instruction for x in unrolled(trace))
        assert trace.counts.tolist() == [found[i] for i in range(len(trace.instructions))]
        assert trace.records == sum(found.values())
        assert trace.depth == nesting(trace, 0, trace.length)


@given(launches())
def test_rows_go_up_to_the_last_one_that_a_record_uses(launch: tuple[Machine, list[ProgramGroup]]) -> None:
    for trace in (g.trace for g in launch[1]):
        last = Counter[int]()
        for x in unrolled(trace):
            last[x.instruction] = max(last[x.instruction], x.row)
        met = [i for i in range(len(trace.instructions)) if trace.counts[i]]
        assert [trace.rows[i] for i in met] == [1 + last[i] for i in met]


@given(machines().flatmap(lambda on: trees(on, 3, natural=True)), st.booleans())
def test_work_is_what_all_records_ask_for(trace: Trace, floor: bool) -> None:
    count = len(trace.instructions)
    place, rate = np.arange(count) % 4 - 1, np.where(trace.channel < 0, 1.0, 1.0 + np.arange(count) % 3)
    expected, out = np.zeros((3, 3)), np.zeros((3, 3))
    for x in (x for x in unrolled(trace) if place[x.instruction] >= 0):
        row = trace.instructions[x.instruction]
        least = floor * (row["occupancy"] if row["cycles"] < 0 else trace.cycles[row["cycles"] + x.row])
        varies, transfer = row["column"] >= 0, row["channel"] >= 0
        given = trace.table[row["column"] + x.row] if varies else np.full(3, row["amount"])
        asked = given if varies else np.full(3, least)
        if transfer:
            asked = np.maximum(least, given / rate[x.instruction])
        expected[place[x.instruction]] += np.where(given < 0, 0.0, asked)
    add_work(trace, place, rate, floor, out)
    assert out == pytest.approx(expected)


def ping_pong(trip_count: int) -> Trace:
    """Load, compute, store; each tile in one of two buffers, a skip for each program in its table."""
    rows = np.zeros(3, INSTRUCTION)
    rows["pipe"], rows["occupancy"], rows["latency"] = (MTE2, V, MTE3), (40, 30, 20), (5, 3, 2)
    rows["channel"], rows["column"], rows["cycles"] = -1, -1, -1
    rows["slot"], rows["reads"], rows["writes"] = (0, 1, 3), (0, 1, 1), (1, 1, 0)
    return Trace(
        instructions=rows,
        code=np.array([-1, 0, 1, 2], np.int32),
        length=1,
        loops=np.array([(1, 4, trip_count, 0, 1)], LOOP),
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
    "trip_count", [100_000, pytest.param(10_000_000, marks=pytest.mark.exhaustive)], ids=["usual", "many"]
)
def test_memory_does_not_grow_with_trip_counts(trip_count: int) -> None:
    """Loads of 40 cycles one behind the other; the last tile is computed 5 and stored 3 cycles after the one before."""
    trace = ping_pong(trip_count)
    group = [ProgramGroup(trace=trace, programs=np.arange(1))]
    forget_peak()
    result = simulate(machine(depth=4), group)
    assert peak_growth_mb() < 4
    assert result.records_run == 3 * trip_count
    assert result.cycles == 40 * trip_count + 5 + 30 + 3 + 20 + 2
    assert result.stalls[0, MTE2, :3].sum() == 0
    assert trace.records == 3 * trip_count


def in_a_loop(trip_count: int, last: int, **first: int) -> Trace:
    """A record that writes slot 0, a loop of records on other slots, and one on pipe `last` that reads slot 0."""
    rows = np.zeros(4, INSTRUCTION)
    rows["pipe"] = (MTE3, first["between"], first["between"], last)
    rows["occupancy"], rows["channel"], rows["column"], rows["cycles"] = (
        (first["cycles"], 2, 1, 7),
        -1,
        -1,
        -1,
    )
    rows["slot"], rows["reads"], rows["writes"] = (0, 1, 2, 3), (0, 0, 1, 1), (1, 1, 0, 0)
    return Trace(
        instructions=rows,
        code=np.array([0, -1, 3, 1, 2], np.int32),
        length=3,
        loops=np.array([(3, 5, trip_count, 0, 0)], LOOP),
        slots=np.array([0, 1, 1, 0], np.int32),
        flags=np.zeros(2, np.int8),
    )


@pytest.mark.parametrize(
    "trip_count", [100_000, pytest.param(2_000_000, marks=pytest.mark.exhaustive)], ids=["usual", "many"]
)
def test_a_slot_is_remembered_for_as_long_as_the_program_lasts(trip_count: int) -> None:
    """The first record is done after all of the loop, or long before the last record reads what it wrote."""
    for cycles in (3 * trip_count + 1000, 5):
        trace = in_a_loop(trip_count, MTE2, between=V, cycles=cycles)
        forget_peak()
        result = simulate(machine(depth=4), [ProgramGroup(trace=trace, programs=np.arange(1))], 10)
        assert peak_growth_mb() < 4
        assert result.cycles == max(3 * trip_count, cycles + 7)
        # the last one is issued when the fifth from the end of the loop has started
        assert result.stalls[0, MTE2, :4].sum() == max(cycles, 3 * trip_count - 7)


def test_a_slot_that_is_rewritten_after_the_loop_waits_for_its_reader_in_the_loop() -> None:
    """The loop reads slot 0 in every iteration; the writer after it waits for the last one."""
    trace = in_a_loop(50_000, V, between=MTE2, cycles=5)
    trace.instructions["reads"], trace.instructions["writes"] = (0, 1, 1, 0), (1, 0, 0, 1)
    trace.slots[:] = 0
    result = simulate(machine(depth=4), [ProgramGroup(trace=trace, programs=np.arange(1))], 1_000_000)
    (row,) = result.timeline[result.timeline["instruction"] == 3]
    assert (row["start"], row["waited"]) == (5 + 150_000, 100_000)


@pytest.mark.parametrize("trip_count", [10_000])
def test_units_may_be_as_far_apart_as_they_like(trip_count: int) -> None:
    """One unit is through with its loop while the other, which is slow, has hardly begun; then the first waits for it.

    Unit A works 3 cycles an iteration, unit B, whose loop comes after it in the program, 7; the last record of A waits for
    the last of B.
    """
    on = Machine(pipes=tuple(PipeSpec(name=n, unit=n, queue_depth=2) for n in "AB"), cores=1)
    rows = np.zeros(3, INSTRUCTION)
    rows["pipe"], rows["occupancy"] = (0, 1, 0), (3, 7, 1)
    rows["channel"], rows["column"], rows["cycles"] = -1, -1, -1
    rows["slot"], rows["reads"], rows["writes"] = (0, 0, 1), (0, 0, 1), (0, 1, 0)
    trace = Trace(
        instructions=rows,
        code=np.array([-1, -2, 2, 0, 1], np.int32),
        length=3,
        loops=np.array([(3, 4, trip_count, 0, 0), (4, 5, trip_count, 0, 0)], LOOP),
        slots=np.zeros(2, np.int32),
        flags=np.zeros(1, np.int8),
    )
    result = simulate(on, [ProgramGroup(trace=trace, programs=np.arange(1))])
    assert result.cycles == 7 * trip_count + 1
    assert result.busy[0].tolist() == [3 * trip_count + 1, 7 * trip_count]
    assert_same(result, simulate(on, [ProgramGroup(trace=flat(trace, 0), programs=np.arange(1))]))

"""Every gap before a record says what it waited for: to the cycle, and for which record."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.timing.engine.engine import (
    BUFFER,
    DATA,
    FLAG,
    REASONS,
    EngineResult,
    Group,
    Lists,
    Machine,
    Trace,
    dependencies,
    simulate,
)

from .engine_builder import MTE2, MTE3, Builder, S, V, machine
from .engine_strategies import cases, machines

ROWS = 10_000
ISSUE, BANDWIDTH, TAIL = (REASONS.index(r) for r in ("issue", "bandwidth", "tail"))


def row_of(result: EngineResult, record: int) -> Any:
    (row,) = result.timeline[result.timeline["record"] == record]
    return row


def test_the_kinds_of_dependencies_are_the_first_reasons() -> None:
    assert (REASONS[DATA], REASONS[BUFFER], REASONS[FLAG]) == ("data", "buffer", "flag")


@pytest.mark.parametrize("kind", [DATA, BUFFER, FLAG])
@pytest.mark.parametrize("before", [19, 20, 21])
def test_a_gap_is_from_the_pipe_being_free_to_the_dependency(kind: int, before: int) -> None:
    """V is free at `before`; what it waits for is done at 20: a gap of one cycle, or none that has no reason."""
    b = Builder()
    load = b.fixed(MTE2, 12, latency=8)
    b.fixed(V, before)
    waiting = b.fixed(V, 5)
    b.deps[waiting].append((load, kind))
    row = row_of(b.run(machine()), waiting)
    assert row["start"] == max(20, before)
    expected = (1, kind, load) if before == 19 else (0, -1, -1)
    assert (row["gap"], row["reason"], row["waited"]) == expected


def test_of_several_dependencies_the_last_one_is_named() -> None:
    b = Builder()
    first, last = b.fixed(MTE2, 10), b.fixed(MTE3, 11)
    waiting = b.fixed(V, 1, data=[first], buffer=[last])
    row = row_of(b.run(machine()), waiting)
    assert (row["gap"], row["reason"], row["waited"]) == (11, BUFFER, last)


def test_a_skipped_record_stands_for_the_one_before_it() -> None:
    b = Builder()
    load = b.fixed(MTE2, 10)
    skipped = b.fixed(MTE2, 10, programs=[-1.0])
    waiting = b.fixed(V, 1, data=[skipped])
    row = row_of(b.run(machine()), waiting)
    assert (row["gap"], row["reason"], row["waited"]) == (10, DATA, load)


def test_issue_names_what_the_scalar_stage_waited_for() -> None:
    """In line: a scalar record of 30 cycles. In queues: the record whose start made room, MTE2's second at 10."""
    b = Builder()
    scalar = b.fixed(S, 30)
    late = b.fixed(V, 1)
    row = row_of(b.run(machine(issue=1)), late)
    assert (row["gap"], row["reason"], row["waited"]) == (32, ISSUE, scalar)
    b = Builder()
    b.fixed(MTE2, 10)
    second = b.fixed(MTE2, 10)
    b.fixed(MTE2, 10)
    late = b.fixed(V, 1)
    row = row_of(b.run(machine(depth=1)), late)
    assert (row["gap"], row["reason"], row["waited"]) == (10, ISSUE, second)


def test_a_transfer_says_what_sharing_cost_it_and_what_it_moved() -> None:
    """80 bytes at 8 a cycle are 10 cycles; two cores over 8 bytes a cycle need 20."""
    b = Builder()
    b.transfer(MTE2, 80)
    rows = simulate(machine(cores=2, hbm=8), [b.group(2)], ROWS).timeline
    assert rows["beyond"].tolist() == [10, 10]
    assert rows["amount"].tolist() == [80, 80]
    alone = simulate(machine(cores=2, hbm=16), [b.group(2)], ROWS).timeline
    assert alone["beyond"].tolist() == [0, 0]


def test_slots_of_flags_make_waits_for_flags() -> None:
    """Record 1 reads what 0 wrote, 2 overwrites what 1 has read."""
    reads, writes = Lists([0, 0, 1, 1], [0]), Lists([0, 1, 1, 2], [0, 0])
    assert dependencies(reads, writes, 1).dep_kind.tolist() == [DATA, BUFFER]
    assert dependencies(reads, writes, 1, flags=[0]).dep_kind.tolist() == [FLAG, FLAG]


def gaps_by_pipe(machine: Machine, result: EngineResult) -> None:
    """Rows of a pipe and program follow each other: previous end + gap = start, from the program's start on."""
    rows = result.timeline
    for program in np.unique(rows["program"]):
        for p in range(len(machine.pipes)):
            mine = rows[(rows["program"] == program) & (rows["pipe"] == p)]
            mine = mine[np.argsort(mine["record"], kind="stable")]
            before = np.concatenate([[result.programs["start"][program]], mine["end"][:-1]])
            assert (before + mine["gap"]).tolist() == mine["start"].tolist()
            assert ((mine["gap"] > 0) == (mine["reason"] >= 0)).all()


def sums(rows: Any, shape: tuple[int, ...], *by: Any) -> Any:
    found = np.zeros(shape)
    np.add.at(found, (*by, rows["reason"]), np.where(rows["gap"] > 0, rows["gap"], 0.0))
    return found


@given(cases(channels=0))
def test_busy_and_stalls_by_reason_are_the_total_time_exactly(case: tuple[Machine, list[Group]]) -> None:
    """Quarters of cycles are exact in a double: no tolerance, per core and pipe."""
    machine, groups = case
    result = simulate(machine, groups, ROWS)
    gaps_by_pipe(machine, result)
    total = result.busy + result.stalls.sum(axis=2) + result.core_dispatch[:, None]
    assert (total == result.core_cycles[:, None]).all()
    rows = result.timeline
    without_tail = [r for r in range(len(REASONS)) if r != TAIL]
    by_pipe = sums(rows, result.stalls.shape, rows["core"], rows["pipe"])
    assert (by_pipe[:, :, without_tail] == result.stalls[:, :, without_tail]).all()
    line = np.zeros(len(rows), int)
    for g in groups:
        mine = np.isin(rows["program"], g.programs)
        line[mine] = g.trace.line[rows["record"][mine]]
    by_line = sums(rows, result.line_stalls.shape, line, rows["pipe"])
    assert (by_line == result.line_stalls).all()
    assert (
        result.line_stalls.sum(axis=0)[:, without_tail] == result.stalls.sum(axis=0)[:, without_tail]
    ).all()


@given(cases())
def test_busy_and_stalls_add_up_with_transfers(case: tuple[Machine, list[Group]]) -> None:
    """Shares of bandwidth are rounded: the same sums, to nine digits. Bandwidth is a part of busy."""
    machine, groups = case
    result = simulate(machine, groups, ROWS)
    waits = np.delete(result.stalls, BANDWIDTH, axis=2).sum(axis=2)
    total = result.busy + waits + result.core_dispatch[:, None]
    np.testing.assert_allclose(
        total, np.broadcast_to(result.core_cycles[:, None], total.shape), rtol=1e-9, atol=1e-9
    )
    lines = np.delete(result.line_stalls.sum(axis=0), TAIL, axis=1)
    np.testing.assert_allclose(
        lines, np.delete(result.stalls.sum(axis=0), TAIL, axis=1), rtol=1e-9, atol=1e-9
    )
    beyond = np.bincount(result.timeline["pipe"], result.timeline["beyond"], len(machine.pipes))
    np.testing.assert_allclose(beyond, result.stalls[:, :, BANDWIDTH].sum(axis=0), rtol=1e-9, atol=1e-9)


@given(cases(channels=0))
def test_a_gap_ends_when_what_it_waited_for_is_done(case: tuple[Machine, list[Group]]) -> None:
    machine, groups = case
    rows = simulate(machine, groups, ROWS).timeline
    known = {(r["program"], r["record"]): r for r in rows}
    for g in groups:
        for r in rows[np.isin(rows["program"], g.programs) & (rows["waited"] >= 0)]:
            other = known_before(known, g.trace, r["program"], r["waited"])
            if other is None:  # nothing but skipped records before: done at the start of the program
                assert r["reason"] != ISSUE
                continue
            if r["reason"] == ISSUE:
                assert min(other["start"], other["end"]) <= r["start"]
                continue
            crosses = other["pipe"] != r["pipe"]
            choices = {other["done"] + c * machine.cross_pipe_cycles for c in {crosses, True}}
            assert r["start"] in choices
            kinds = kinds_between(g.trace, r["record"], r["waited"])
            assert r["reason"] in kinds


def known_before(known: dict[Any, Any], trace: Trace, program: int, record: int) -> Any:
    """The row of the record; of one that is skipped, that of the one before it on its pipe."""
    same = (q for q in range(record, -1, -1) if trace.pipe[q] == trace.pipe[record])
    return next((known[program, q] for q in same if (program, q) in known), None)


def kinds_between(trace: Trace, record: int, waited: int) -> set[int]:
    """Kinds of the dependencies of a record on another, or on one that programs skip and that follows it on its pipe."""
    out = set()
    for i in range(trace.dep_start[record], trace.dep_start[record + 1]):
        q = int(trace.dep[i])
        if q == waited or (trace.column[q] >= 0 and trace.pipe[q] == trace.pipe[waited]):
            out.add(int(trace.dep_kind[i]))
    return out


@given(cases(), st.integers(1, 40))
def test_all_that_starts_before_the_end_of_the_timeline_is_in_it(
    case: tuple[Machine, list[Group]], limit: int
) -> None:
    machine, groups = case
    whole, short = simulate(machine, groups, ROWS), simulate(machine, groups, limit)
    until = short.timeline_until
    assert whole.timeline_until == np.inf
    assert (until == np.inf) == (len(short.timeline) == short.records_run)
    early = whole.timeline[whole.timeline["start"] < until]
    kept = short.timeline[short.timeline["start"] < until]
    assert sorted(map(tuple, early.tolist())) == sorted(map(tuple, kept.tolist()))
    assert until == np.inf or until in whole.timeline["start"]


@given(machines(channels=0))
def test_a_machine_without_work_stalls_for_the_tail_only(machine: Machine) -> None:
    b = Builder()
    b.fixed(0, 10, instructions=0)
    result = simulate(machine, [b.group(1)], ROWS)
    assert result.stalls[0, 1:, TAIL].tolist() == [10] * (len(machine.pipes) - 1)
    assert result.stalls[0].sum() == 10 * (len(machine.pipes) - 1)

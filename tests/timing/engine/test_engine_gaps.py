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
    Machine,
    simulate,
)

from .engine_builder import MTE2, MTE3, Builder, Part, Records, S, V, machine, of_parts
from .engine_strategies import cases, machines

ROWS = 10_000
ISSUE, BANDWIDTH, TAIL = (REASONS.index(r) for r in ("issue", "bandwidth", "tail"))


def row_of(result: EngineResult, record: int) -> Any:
    (row,) = result.timeline[result.timeline["instruction"] == record]
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
def test_busy_and_stalls_by_reason_are_the_total_time_exactly(case: tuple[Machine, list[Part]]) -> None:
    """Quarters of cycles are exact in a double: no tolerance, per core and pipe."""
    machine, parts = case
    result = simulate(machine, of_parts(parts), ROWS)
    gaps_by_pipe(machine, result)
    total = result.busy + result.stalls.sum(axis=2) + result.core_dispatch[:, None]
    assert (total == result.core_cycles[:, None]).all()
    rows = result.timeline
    without_tail = [r for r in range(len(REASONS)) if r != TAIL]
    by_pipe = sums(rows, result.stalls.shape, rows["core"], rows["pipe"])
    assert (by_pipe[:, :, without_tail] == result.stalls[:, :, without_tail]).all()
    line = np.zeros(len(rows), int)
    for g in parts:
        mine = np.isin(rows["program"], g.programs)
        line[mine] = g.records.line[rows["instruction"][mine]]
    by_line = sums(rows, result.line_stalls.shape, line, rows["pipe"])
    assert (by_line == result.line_stalls).all()
    assert (
        result.line_stalls.sum(axis=0)[:, without_tail] == result.stalls.sum(axis=0)[:, without_tail]
    ).all()


@given(cases())
def test_busy_and_stalls_add_up_with_transfers(case: tuple[Machine, list[Part]]) -> None:
    """Shares of bandwidth are rounded: the same sums, to nine digits. Bandwidth is a part of busy."""
    machine, parts = case
    result = simulate(machine, of_parts(parts), ROWS)
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
def test_a_gap_ends_when_what_it_waited_for_is_done(case: tuple[Machine, list[Part]]) -> None:
    machine, parts = case
    result = simulate(machine, of_parts(parts), ROWS)
    rows = {(r["program"], r["record"]): r for r in result.timeline}
    for part in parts:
        for column, program in enumerate(part.programs):
            for r in [r for (n, _), r in rows.items() if n == program and r["reason"] >= 0]:
                if r["waited"] >= 0:
                    other = rows[program, r["waited"]]
                    check_end_of_gap(machine, r, other, waits_for(part.records, column, r["instruction"]))
                elif (
                    r["reason"] != ISSUE
                ):  # nothing but skipped records before it: done at the start of the program
                    assert r["start"] == result.programs["start"][program] + machine.cross_pipe_cycles
                    assert (-1, r["reason"]) in waits_for(part.records, column, r["instruction"])


def check_end_of_gap(machine: Machine, row: Any, other: Any, waits: set[tuple[int, int]]) -> None:
    if row["reason"] == ISSUE:
        assert min(other["start"], other["end"]) <= row["start"]
        return
    assert row["start"] == other["done"] + (other["pipe"] != row["pipe"]) * machine.cross_pipe_cycles
    assert (other["instruction"], row["reason"]) in waits


def waits_for(records: Records, column: int, record: int) -> set[tuple[int, int]]:
    """What a program's record waits for, and in which way; in place of one that is skipped the one before it on its pipe."""

    def is_skipped(q: int) -> bool:
        return records.column[q] >= 0 and records.table[records.column[q], column] < 0

    out = set()
    for i in range(records.dep_start[record], records.dep_start[record + 1]):
        q = int(records.dep[i])
        while q >= 0 and is_skipped(q):
            q = next((k for k in range(q - 1, -1, -1) if records.pipe[k] == records.pipe[q]), -1)
        out.add((q, int(records.dep_kind[i])))
    return out


@given(cases(), st.integers(1, 40))
def test_all_that_starts_before_the_end_of_the_timeline_is_in_it(
    case: tuple[Machine, list[Part]], limit: int
) -> None:
    machine, groups = case[0], of_parts(case[1])
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

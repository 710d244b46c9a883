"""The scoreboard: who waits for whom follows from the slots that records read, write and clobber."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.timing.engine.engine import (
    BUFFER,
    DATA,
    FLAG,
    EngineResult,
    Machine,
    PipeSpec,
    ProgramGroup,
    Trace,
    simulate,
)
from ascendtile.simulator.timing.engine.trace import INSTRUCTION

Sets = list[list[int]]
PIPES, COST, LATENCY = 16, 10.0, 3.0


def trace_of(
    reads: Sets,
    writes: Sets,
    clobbers: Sets | None = None,
    pipes: list[int] | None = None,
    skipped: set[int] | None = None,
    flags: set[int] | None = None,
    slots: int = 8,
) -> Trace:
    """Records of ten cycles and three of latency; each on a pipe of its own, if pipes are not told."""
    clobbers, count = clobbers or [[] for _ in reads], len(reads)
    rows = np.zeros(count, INSTRUCTION)
    rows["occupancy"], rows["latency"], rows["channel"], rows["cycles"] = COST, LATENCY, -1, -1
    rows["pipe"] = range(count) if pipes is None else pipes
    rows["column"] = [0 if r in (skipped or set()) else -1 for r in range(count)]
    for name, sets in (("reads", reads), ("writes", writes), ("clobbers", clobbers)):
        rows[name] = [len(s) for s in sets]
    used = [[*a, *b, *c] for a, b, c in zip(reads, writes, clobbers, strict=True)]
    rows["slot"] = np.cumsum([0, *(len(s) for s in used)])[:-1]
    return Trace(
        instructions=rows,
        code=np.arange(count, dtype=np.int32),
        length=count,
        slots=np.array([s for found in used for s in found], np.int32),
        flags=np.array([s in (flags or set()) for s in range(slots)], np.int8),
        table=np.full((1, 1), -1.0),
    )


def machine(cross: float = 0, pipes: int = PIPES) -> Machine:
    return Machine(
        pipes=tuple(PipeSpec(name=f"P{p}", unit="U") for p in range(pipes)), cores=1, cross_pipe_cycles=cross
    )


def run(trace: Trace, cross: float = 0, buffers: bool = True) -> EngineResult:
    return simulate(machine(cross), [ProgramGroup(trace=trace, programs=np.arange(1))], 1000, True, buffers)


def waits(trace: Trace, cross: float = 0, buffers: bool = True) -> list[tuple[float, int, int]]:
    """(start, waited, reason) of each record that runs, in program order."""
    rows = np.sort(run(trace, cross, buffers).timeline, order="record")
    return [(float(r["start"]), int(r["waited"]), int(r["reason"])) for r in rows]


FREE = (0.0, -1, -1)


def test_a_read_waits_for_the_last_writer_only() -> None:
    """Record 1 overwrites what 0 wrote and waits for it; 2 reads what 1 wrote."""
    assert waits(trace_of([[], [], [0]], [[0], [0], []])) == [FREE, (13, 0, BUFFER), (26, 1, DATA)]


def test_a_read_does_not_wait_for_reads() -> None:
    assert waits(trace_of([[], [0], [0]], [[0], [], []])) == [FREE, (13, 0, DATA), (13, 0, DATA)]


def test_a_write_waits_for_all_readers_since_the_last_write() -> None:
    """Record 3 is longest on its way of those that read the first contents; 5 reads the second ones."""
    reads, writes = [[], [0], [1], [0, 3], [], [0], []], [[0], [1], [3], [], [0], [], [0]]
    assert waits(trace_of(reads, writes)) == [
        FREE, (13, 0, DATA), (26, 1, DATA), (39, 2, DATA), (52, 3, BUFFER), (65, 4, DATA), (78, 5, BUFFER),
    ]  # fmt: skip


def test_a_write_waits_for_the_writer_whose_readers_are_skipped() -> None:
    reads: Sets = [[], [0], []]
    assert waits(trace_of(reads, [[0], [], [0]])) == [FREE, (13, 0, DATA), (26, 1, BUFFER)]
    assert waits(trace_of(reads, [[0], [], [0]], skipped={1})) == [FREE, (13, 0, BUFFER)]


def test_a_read_of_a_slot_that_nobody_wrote_waits_for_nothing_but_is_waited_for() -> None:
    assert waits(trace_of([[0], []], [[], [0]])) == [FREE, (13, 0, BUFFER)]


def test_an_update_in_place_waits_for_data() -> None:
    assert waits(trace_of([[], [0], [0]], [[0], [0], [0]])) == [FREE, (13, 0, DATA), (26, 1, DATA)]


def test_a_clobber_waits_like_a_write_but_does_not_become_the_writer() -> None:
    """Slots 0 and 1 share bytes. Record 2 writes slot 1; a read of slot 0 after that still waits for record 0 alone."""
    trace = trace_of([[], [0], [], [0]], [[0], [], [1], []], [[], [], [0], []])
    assert waits(trace) == [FREE, (13, 0, DATA), (26, 1, BUFFER), (13, 0, DATA)]


def test_two_halves_of_an_old_buffer_each_wait_for_its_readers_and_not_for_each_other() -> None:
    trace = trace_of([[], [0], [], []], [[0], [], [1], [2]], [[], [], [0], [0]])
    assert waits(trace)[2:] == [(26, 1, BUFFER)] * 2


def test_buffers_that_alternate_wait_for_each_other() -> None:
    reads: Sets = [[], [0], [], [1], [], [0]]
    writes: Sets = [[0], [], [1], [], [0], []]
    clobbers: Sets = [[1], [], [0], [], [1], []]
    assert waits(trace_of(reads, writes, clobbers)) == [
        FREE, (13, 0, DATA), (26, 1, BUFFER), (39, 2, DATA), (52, 3, BUFFER), (65, 4, DATA),
    ]  # fmt: skip


def test_other_pipes_are_waited_for_by_a_flag_more() -> None:
    reads: Sets = [[], [0], [0]]
    assert waits(trace_of(reads, [[0], [], []], pipes=[0, 0, 1]), cross=5)[1:] == [
        (13, 0, DATA),
        (18, 0, DATA),
    ]


def test_a_slot_that_stands_for_a_flag_is_waited_for_as_one() -> None:
    """Be it what was set (a read) or what has been taken (a write)."""
    reads: Sets = [[], [0], []]
    trace = trace_of(reads, [[0], [], [0]], flags={0})
    assert waits(trace) == [FREE, (13, 0, FLAG), (26, 1, FLAG)]


def test_without_buffers_data_and_flags_are_waited_for_as_before() -> None:
    """Slot 0 holds bytes, slot 1 is a flag. Records 2 and 3 would write them again, 4 and 5 clobber them."""
    reads: Sets = [[], [0, 1], [], [], [], []]
    writes: Sets = [[0, 1], [], [0], [1], [], []]
    trace = trace_of(reads, writes, [[], [], [], [], [0], [1]], flags={1})
    assert waits(trace)[2:] == [(26, 1, BUFFER), (26, 1, FLAG), (39, 2, BUFFER), (39, 3, FLAG)]
    assert waits(trace, buffers=False)[2:] == [FREE, (26, 1, FLAG), FREE, (39, 3, FLAG)]


@pytest.mark.parametrize("first", ["reads", "writes"])
def test_whoever_waits_for_a_skipped_record_waits_for_the_one_before_it_on_its_pipe(first: str) -> None:
    """Records 0 and 1 are on pipe 0 and 1 is skipped; it would write what 2 reads, or read what 2 overwrites."""
    touched: Sets = [[], [0], []]
    waiting: Sets = [[], [], [0]]
    reads, writes = (waiting, touched) if first == "writes" else (touched, waiting)
    kind = DATA if first == "writes" else BUFFER
    assert waits(trace_of(reads, writes, pipes=[0, 0, 1], skipped={1})) == [FREE, (13, 0, kind)]


def test_a_skipped_write_hides_the_writer_before_it() -> None:
    """Record 1 on pipe 1 does not run: slot 0 is as old as pipe 1, on which nothing ran; the flag alone is waited for."""
    trace = trace_of([[], [], [0]], [[0], [0], []], skipped={1})
    assert waits(trace, cross=5) == [FREE, (5, -1, DATA)]


def test_of_the_readers_on_a_pipe_the_one_that_is_done_last_is_waited_for() -> None:
    """Record 1 reads first, and its latency is longer: done at 113; record 2 of its pipe is done at 36 already."""
    trace = trace_of([[], [0], [0], []], [[0], [], [], [0]], pipes=[0, 1, 1, 2])
    trace.instructions["latency"][1] = 90
    assert waits(trace)[3] == (113, 1, BUFFER)


def test_a_dead_buffer_with_many_readers_takes_no_longer_than_its_records() -> None:
    """Thirty thousand reads of slot 0 on two pipes, then as many writes of slot 1 in its bytes: not a billion looks."""
    n = 30_000
    reads: Sets = [[], *[[0]] * n, *[[]] * n]
    writes: Sets = [[0], *[[]] * n, *[[1]] * n]
    clobbers: Sets = [[], *[[]] * n, *[[0]] * n]
    pipes = [0, *[1, 2] * (n // 2), *[3] * n]
    result = run(trace_of(reads, writes, clobbers, pipes))
    read = 13 + n // 2 * COST + LATENCY
    assert result.cycles == read + (n - 1) * (COST + LATENCY) + COST + LATENCY


def hazards(reads: Sets, writes: Sets, clobbers: Sets) -> list[list[tuple[int, int]]]:
    """What each record has to wait for by the definition of a hazard, nothing left out: (record, kind)."""
    found_by_rule = []
    for r in range(len(reads)):
        mine: list[tuple[int, int]] = []
        for slot in reads[r]:
            mine += [(q, DATA) for q in [q for q in range(r) if slot in writes[q]][-1:]]
        for slot in [*writes[r], *clobbers[r]]:
            last = max((q for q in range(r) if slot in writes[q]), default=-1)
            mine += [(q, BUFFER) for q in range(last, r) if q >= 0 and (q == last or slot in reads[q])]
        found_by_rule.append(mine)
    return found_by_rule


def starts_by_rule(
    found: list[list[tuple[int, int]]], rows: np.ndarray, skips: Callable[[int], bool], cross: float
) -> dict[int, float]:
    """Pipes in order, each record once its hazards are done; one that is skipped is done with the one before it."""
    done = dict.fromkeys(range(-1, len(rows)), 0.0)
    free, last, starts = [0.0] * PIPES, [0.0] * PIPES, {}
    for r, row in enumerate(rows):
        p = int(row["pipe"])
        if not skips(r):
            ready = [done[q] + cross * (rows["pipe"][q] != p) for q, _ in found[r]]
            starts[r] = max([free[p], *ready])
            free[p] = starts[r] + float(row["occupancy"])
            last[p] = free[p] + float(row["latency"])
        done[r] = last[p]
    return starts


slot_sets = st.lists(st.integers(0, 4), max_size=3)


@given(
    st.lists(st.tuples(slot_sets, slot_sets, slot_sets, st.integers(0, 4)), max_size=14),
    st.sets(st.integers(0, 13)),
    st.sampled_from([0.0, 2.5]),
    st.lists(st.integers(0, 40), min_size=14, max_size=14),
    st.booleans(),
)
def test_records_start_when_the_hazards_of_the_definition_are_over(
    records: list[tuple[list[int], list[int], list[int], int]],
    skipped: set[int],
    cross: float,
    latencies: list[int],
    buffers: bool,
) -> None:
    """Whatever the engine leaves out because it is implied, no record starts earlier or later."""
    reads, writes, clobbers = ([list(record[i]) for record in records] for i in range(3))
    trace = trace_of(reads, writes, clobbers, [r[3] for r in records], skipped)
    trace.instructions["latency"] = latencies[: len(records)]
    kinds = {DATA, BUFFER} if buffers else {DATA}
    found = [[d for d in mine if d[1] in kinds] for mine in hazards(reads, writes, clobbers)]
    expected = starts_by_rule(found, trace.instructions, lambda r: r in skipped, cross)
    rows = run(trace, cross, buffers).timeline
    assert {int(r["instruction"]): float(r["start"]) for r in rows} == expected


def test_no_records_have_no_dependencies() -> None:
    assert waits(trace_of([], [])) == []

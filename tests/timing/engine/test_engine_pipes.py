"""One core: what makes a record start, exact to the cycle. Where it matters: not ready at t - 1, ready at
t."""

from __future__ import annotations

import pytest

from ascendtile.simulator.timing.engine.engine import BUFFER, DATA, Machine, PipeSpec

from .engine_builder import LOAD, MTE2, MTE3, Builder, S, V, machine, times

DATA_STALL, BUFFER_STALL, FLAG_STALL, ISSUE_STALL, BANDWIDTH_STALL, TAIL_STALL = range(6)


def waiting_pair(kind: int, done: float, busy_until: float) -> Builder:
    """Record 2 on V waits for a load that is done at `done`, and for a vector record that ends at
    `busy_until`."""
    b = Builder()
    load = b.fixed(MTE2, done - 3, latency=3)
    b.fixed(V, busy_until)
    b.fixed(V, 10, data=[load] if kind == DATA else [], buffer=[load] if kind == BUFFER else [])
    return b


@pytest.mark.parametrize("kind", [DATA, BUFFER])
def test_a_dependency_gates_at_its_done_time_latency_included(kind: int) -> None:
    for busy_until, start in ((19, 20), (20, 20), (21, 21)):
        result = waiting_pair(kind, 20, busy_until).run(machine())
        assert times(result, 2).start == start
        assert result.stalls[0, V, kind] == max(0, 20 - busy_until)


@pytest.mark.parametrize("kind", [DATA, BUFFER])
def test_a_dependency_on_another_pipe_costs_the_flag(kind: int) -> None:
    for busy_until, start in ((26, 27), (27, 27), (28, 28)):
        assert times(waiting_pair(kind, 20, busy_until).run(machine(cross=7)), 2).start == start


def test_a_dependency_on_the_same_pipe_costs_no_flag_but_its_latency() -> None:
    b = Builder()
    first = b.fixed(V, 10, latency=5)
    b.fixed(V, 10, data=[first])
    assert times(b.run(machine(cross=7)), 1) == (15, 25, 25)


def test_a_pipe_executes_in_order_even_if_a_later_record_is_ready_first() -> None:
    b = Builder()
    load = b.fixed(MTE2, 50)
    b.fixed(V, 10, data=[load])
    b.fixed(V, 10)
    result = b.run(machine())
    assert [times(result, r).start for r in (1, 2)] == [50, 60]


def test_independent_records_on_different_pipes_overlap() -> None:
    b = Builder()
    for pipe in (MTE2, V, MTE3):
        b.fixed(pipe, 30)
    assert b.run(machine()).cycles == 30


def test_a_chain_over_pipes_does_not_overlap() -> None:
    b = Builder()
    load = b.fixed(MTE2, 30, latency=1)
    add = b.fixed(V, 30, latency=2, data=[load])
    b.fixed(MTE3, 30, latency=3, data=[add])
    assert b.run(machine(cross=5)).cycles == 31 + 5 + 32 + 5 + 33


def test_independent_vector_records_hide_their_latency_and_a_chain_does_not() -> None:
    independent, chain = Builder(), Builder()
    for r in range(4):
        independent.fixed(V, 10, latency=20)
        chain.fixed(V, 10, latency=20, data=[r - 1] if r else [])
    assert independent.run(machine()).cycles == 4 * 10 + 20
    assert chain.run(machine()).cycles == 4 * 30


def test_back_to_back_copies_overlap_their_latency() -> None:
    b = Builder()
    for _ in range(3):
        b.transfer(MTE2, 800, latency=100)
    result = b.run(machine(port=8))
    assert [times(result, r) for r in range(3)] == [(0, 100, 200), (100, 200, 300), (200, 300, 400)]


def test_a_short_copy_takes_its_pipe_for_the_least_cycles() -> None:
    for amount, end in ((79, 10), (80, 10), (88, 11)):
        b = Builder()
        b.transfer(MTE2, amount, least=10, latency=2)
        assert times(b.run(machine(port=8)), 0) == (0, end, end + 2)


def test_a_copy_of_nothing_takes_the_least_cycles_only() -> None:
    b = Builder()
    b.transfer(MTE2, 0, least=10, latency=2)
    result = b.run(machine())
    assert times(result, 0) == (0, 10, 12)
    assert result.channel_bytes[LOAD] == 0


def tiles(count: int, slots: int) -> Builder:
    """Each tile is loaded in 100 cycles and computed on in 60; its buffer is one of `slots`."""
    b = Builder()
    for i in range(count):
        load = b.transfer(MTE2, 800, buffer=[2 * (i - slots) + 1] if i >= slots else [])
        b.fixed(V, 60, data=[load])
    return b


def test_two_slots_overlap_load_with_compute_and_one_slot_does_not() -> None:
    one, two = (tiles(5, slots).run(machine(port=8)) for slots in (1, 2))
    assert one.cycles == 5 * (100 + 60)
    assert two.cycles == 5 * 100 + 60
    assert one.stalls[0, MTE2, BUFFER_STALL] == 4 * 60
    assert two.stalls[0, MTE2, BUFFER_STALL] == 0
    assert two.stalls[0, V, DATA_STALL] == 100 + 4 * 40


def test_two_slots_are_not_enough_when_compute_is_longer() -> None:
    """Loads of 100, computes of 150: load i starts when compute i - 2 is done."""
    b = Builder()
    for i in range(4):
        load = b.transfer(MTE2, 800, buffer=[2 * (i - 2) + 1] if i >= 2 else [])
        b.fixed(V, 150, data=[load])
    result = b.run(machine(port=8))
    assert [times(result, 2 * i).start for i in range(4)] == [0, 100, 250, 400]
    assert result.cycles == 100 + 4 * 150


def test_issue_takes_its_cycles_per_instruction() -> None:
    b = Builder()
    b.fixed(V, 1, instructions=4)
    b.fixed(MTE3, 1, instructions=3)
    result = b.run(machine(issue=2))
    assert [times(result, r).start for r in range(2)] == [8, 14]
    assert result.stalls[0, V, ISSUE_STALL] == 8
    assert result.instructions_run == 7


def test_a_full_queue_stalls_the_issue_of_everything_behind_it() -> None:
    """Record k of V is issued when k - 2 has started; the store behind them is issued after record 3."""
    b = Builder()
    for _ in range(4):
        b.fixed(V, 10)
    store = b.fixed(MTE3, 1)
    assert times(b.run(machine(depth=2)), store).start == 10
    assert times(b.run(machine(depth=3)), store).start == 0
    assert b.run(machine(depth=2)).stalls[0, MTE3, ISSUE_STALL] == 10


def test_a_queue_of_one_issues_a_record_when_the_one_before_has_started() -> None:
    b = Builder()
    for _ in range(3):
        b.fixed(V, 10)
    store = b.fixed(MTE3, 1)
    result = b.run(machine(depth=1, issue=1))
    assert [times(result, r).start for r in range(3)] == [1, 11, 21]
    assert times(result, store).start == 12  # issue of the third record at 11, of the store a cycle later


def test_a_scalar_record_waits_in_line_and_holds_what_is_issued_after_it() -> None:
    b = Builder()
    before = b.fixed(V, 20)
    scalar = b.fixed(S, 5, latency=100, data=[before])
    after = b.fixed(MTE2, 10)
    result = b.run(machine(cross=3))
    assert times(result, scalar) == (23, 28, 128)
    assert times(result, after).start == 28  # the stage goes on after the occupancy, not the latency


def test_a_scalar_transfer_holds_the_stage_until_its_last_byte() -> None:
    b = Builder()
    b.transfer(S, 80, channel=LOAD)
    after = b.fixed(V, 1)
    assert times(b.run(machine(port=8)), after).start == 10


def test_each_unit_issues_on_its_own() -> None:
    two = Machine(
        pipes=(
            PipeSpec(name="S", unit="AIC", scalar=True),
            PipeSpec(name="M", unit="AIC"),
            PipeSpec(name="S", unit="AIV0", scalar=True),
            PipeSpec(name="V", unit="AIV0"),
        ),
        cores=1,
        issue_cycles=1,
    )
    b = Builder()
    b.fixed(0, 50)
    cube = b.fixed(1, 10)
    vector = b.fixed(3, 10)
    waits = b.fixed(3, 10, data=[cube])
    result = b.run(two)
    assert times(result, cube).start == 52
    assert times(result, vector).start == 1
    assert times(result, waits).start == 62


def test_a_skipped_record_takes_no_time_and_is_done_with_the_record_before_it() -> None:
    b = Builder()
    first = b.transfer(MTE2, 80, latency=3)
    second = b.transfer(MTE2, 0, programs=[160, -1])
    b.fixed(V, 10, data=[second])
    result = b.run(machine(cores=2, port=8, issue=1), programs=2)
    assert times(result, first, program=0) == (1, 11, 14)
    assert times(result, 2, program=0).start == 31
    assert times(result, 2, program=1) == (14, 24, 24)
    assert result.records_run == 5
    assert result.instructions_run == 5
    assert result.channel_bytes[LOAD] == 80 + 160 + 80


def test_a_row_of_skipped_records_is_done_with_the_last_that_ran() -> None:
    b = Builder()
    b.fixed(V, 10, latency=5)
    skipped = [b.fixed(V, programs=[-1]) for _ in range(3)]
    b.fixed(MTE3, 1, data=[skipped[-1]])
    assert times(b.run(machine()), 4).start == 15


def test_a_skipped_record_with_none_before_it_is_done_at_the_start_of_its_program() -> None:
    b = Builder()
    skipped = b.fixed(V, programs=[-1, -1])
    b.fixed(MTE3, 10, data=[skipped])
    result = b.run(machine(dispatch=100), programs=2)
    assert [times(result, 1, program=n).start for n in range(2)] == [0, 110]


def test_a_skipped_record_has_no_place_in_the_queue() -> None:
    b = Builder()
    b.fixed(V, 10)
    for _ in range(5):
        b.fixed(V, programs=[-1])
    store = b.fixed(MTE3, 1)
    assert times(b.run(machine(depth=1)), store).start == 0


def test_the_table_gives_each_program_its_own_cost() -> None:
    b = Builder()
    b.fixed(V, 99, programs=[10, 0, 30])
    b.transfer(MTE3, 99, programs=[80, 160, 0])
    result = b.run(machine(cores=3, port=8), programs=3)
    assert [times(result, 0, n).end for n in range(3)] == [10, 0, 30]
    assert [times(result, 1, n).end for n in range(3)] == [10, 20, 0]


def test_busy_pipes_share_the_time_that_is_charged_to_their_lines() -> None:
    b = Builder()
    load = b.transfer(MTE2, 800, line=1)
    b.fixed(V, 60, line=2, latency=5, data=[load])
    b.transfer(MTE2, 400, line=3)  # busy from 100 to 150, beside line 2, which is busy from 100 to 160
    b.fixed(V, 10, line=4)  # busy from 160 to 170
    result = b.run(machine(port=8))
    assert result.line_exposed.tolist() == [0, 100, 25 + 10, 25, 10]
    assert result.line_busy[:, MTE2].tolist() == [0, 100, 0, 50, 0]
    assert result.line_busy[:, V].tolist() == [0, 0, 60, 0, 10]
    assert result.cycles == 170


def test_a_long_run_of_fixed_records_equals_its_sum() -> None:
    b = Builder()
    for r in range(5000):
        b.fixed(V, 2, latency=1, data=[r - 1] if r else [])
    result = b.run(machine(depth=3, issue=1))
    assert result.cycles == 1 + 5000 * 3
    assert result.busy[0, V] == 10_000
    assert result.stalls[0, V].tolist() == [4999, 0, 0, 1, 0, 1]

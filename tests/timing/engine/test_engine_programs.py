"""How programs go to cores, what a run reports about them, and what a hang looks like."""

from __future__ import annotations

import signal

import pytest

from ascendtile.simulator.errors import RunError
from ascendtile.simulator.timing.engine.engine import simulate

from .engine_builder import MTE2, MTE3, Builder, V, machine, times


def lasting(*cycles: float) -> tuple[Builder, int]:
    """One vector record per program, with these costs."""
    b = Builder()
    b.fixed(V, programs=cycles)
    return b, len(cycles)


def test_the_first_free_core_takes_the_next_program() -> None:
    b, programs = lasting(50, 10, 30, 5, 5, 5)
    result = b.run(machine(cores=3), programs)
    assert result.programs["core"].tolist() == [0, 1, 2, 1, 1, 1]
    assert result.programs["start"].tolist() == [0, 0, 0, 10, 15, 20]
    assert result.programs["end"].tolist() == [50, 10, 30, 15, 20, 25]
    assert result.core_programs.tolist() == [1, 4, 1]
    assert result.core_cycles.tolist() == [50, 25, 30]
    assert result.cycles == 50


def test_of_cores_free_at_the_same_time_the_lowest_goes_first() -> None:
    b, programs = lasting(20, 10, 20, 10, 7, 8, 9)
    result = b.run(machine(cores=4), programs)
    assert result.programs["core"].tolist() == [0, 1, 2, 3, 1, 3, 1]


def test_a_core_is_free_when_the_latency_of_its_last_record_is_over() -> None:
    b = Builder()
    b.fixed(V, 10, latency=90)
    b.fixed(MTE3, 20)
    result = b.run(machine(), programs=2)
    assert result.programs["start"].tolist() == [0, 100]


def test_cores_start_one_after_the_other() -> None:
    b, programs = lasting(10, 10, 10, 10)
    result = b.run(machine(cores=3, core_start=4, dispatch=3), programs)
    assert result.core_cycles.tolist() == [23, 14, 18]
    assert result.core_dispatch.tolist() == [3, 4, 8]


def test_dispatch_is_charged_from_the_second_program_of_a_core_on() -> None:
    b, programs = lasting(10, 10, 10, 10, 10)
    result = b.run(machine(cores=2, dispatch=3), programs)
    assert result.programs["start"].tolist() == [0, 0, 13, 13, 26]
    assert result.core_dispatch.tolist() == [6, 3]
    assert result.core_cycles.tolist() == [36, 23]


def test_cores_without_a_program_stay_at_zero() -> None:
    b, programs = lasting(10, 10)
    result = b.run(machine(cores=5), programs)
    assert result.core_cycles.tolist() == [10, 10, 0, 0, 0]
    assert result.core_programs.tolist() == [1, 1, 0, 0, 0]
    assert result.stalls[2:].sum() == 0


def test_an_empty_program_takes_no_time() -> None:
    result = Builder().run(machine(cores=2, dispatch=4), programs=5)
    assert result.cycles == 8
    assert result.records_run == 0


def test_groups_run_their_own_traces_in_one_launch_order() -> None:
    loads, vectors = Builder(), Builder()
    loads.transfer(MTE2, programs=[80, 160])
    vectors.fixed(V, 7)
    vectors.fixed(V, programs=[1, 2, -1])
    groups = [loads.group([3, 0]), vectors.group([1, 4, 2])]
    result = simulate(machine(port=8), groups, timeline_limit=100)
    assert result.programs["end"].tolist() == [20, 28, 35, 45, 54]


def test_dependencies_of_a_second_group_are_its_own() -> None:
    first, second = Builder(), Builder()
    for _ in range(3):
        first.fixed(V, 100)
    load = second.fixed(MTE2, 10)
    second.fixed(V, 10, data=[load])
    result = simulate(machine(cores=2), [first.group([0]), second.group([1])], timeline_limit=100)
    assert times(result, 1, program=1) == (10, 20, 20)


def test_the_timeline_stops_at_its_limit_and_changes_nothing() -> None:
    b, programs = lasting(*range(20))
    whole = b.run(machine(cores=3), programs)
    short = simulate(machine(cores=3), [b.group(programs)], timeline_limit=5)
    assert len(whole.timeline) == 20
    assert short.timeline.tobytes() == whole.timeline[:5].tobytes()
    assert short.cycles == whole.cycles
    assert len(simulate(machine(), [b.group(programs)]).timeline) == 0


def test_charges_and_dispatch_add_up_to_the_cycles_of_the_core() -> None:
    b = Builder()
    load = b.transfer(MTE2, 800, line=1)
    add = b.fixed(V, line=2, data=[load], programs=[10, 20, 30])
    b.transfer(MTE3, 400, line=3, latency=5, data=[add])
    result = b.run(machine(port=8, dispatch=11, cross=2), programs=3)
    # a wait is charged to the record that it waits for: two cycles of flags after each load and each addition
    assert result.line_exposed.tolist() == [0, 300 + 6, 60 + 6, 150 + 15]
    assert result.line_exposed.sum() + result.core_dispatch[0] == result.core_cycles[0] == result.cycles


def test_a_long_run_can_be_interrupted() -> None:
    """The loop looks for signals every quarter of a million events; this run has 200 million."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    b = Builder()
    for _ in range(2000):
        b.transfer(MTE2, 8)
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            simulate(machine(), [b.group(100_000)])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_hang_names_core_program_and_record() -> None:
    """Records wait for earlier ones only, so that nothing but a barrier can hang: the second program never arrives."""
    b = Builder()
    b.fixed(V, 1)
    b.transfer(MTE2, 80)
    b.barrier(V, data=[0])
    b.fixed(V, 1)
    with pytest.raises(RunError, match=r"hang: core 0 cannot go on with program 0 at record 2"):
        b.run(machine(port=8), programs=2)

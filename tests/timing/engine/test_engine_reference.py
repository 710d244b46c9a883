"""Random programs: the engine agrees with the slow reference, its sums hold, no closed bound is beaten."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.timing.engine.engine import REASONS, EngineResult, Machine, simulate

from .engine_builder import Part, of_parts
from .engine_reference import Flow, Reference, fair
from .engine_strategies import cases, machines

ROWS = 10_000
DATA, BUFFER, FLAG, ISSUE, BANDWIDTH, TAIL = range(6)


@given(machines(), st.lists(st.integers(0, 2), min_size=1, max_size=8))
def test_the_reference_shares_max_min_fairly(machine: Machine, channels: list[int]) -> None:
    """By definition: each flow meets a full limit, its port or a resource where no other flow is faster."""
    flows = [Flow(c % len(machine.channels), 1.0) for c in channels if machine.channels]
    fair(flows, machine)
    on = [
        (r.bytes_per_cycle, [f for f in flows for k in machine.channels[f.channel].resources if k == j])
        for j, r in enumerate(machine.resources)
    ]
    assert all(sum(f.rate for f in users) <= capacity * (1 + 1e-12) for capacity, users in on)
    for flow in flows:
        full = [users for capacity, users in on if sum(f.rate for f in users) >= capacity * (1 - 1e-12)]
        port = machine.channels[flow.channel].port_bytes_per_cycle
        assert flow.rate == port or any(
            flow in users and max(f.rate for f in users) <= flow.rate * (1 + 1e-12) for users in full
        )


def agree(result: EngineResult, expected: Reference, tolerance: float) -> None:
    near = {"rel": tolerance, "abs": tolerance}
    assert result.late_starts == 0
    assert result.cycles == pytest.approx(expected.cycles, **near)
    for number, run in expected.runs.items():
        assert result.programs["start"][number] == pytest.approx(run.begin, **near)
        assert result.programs["end"][number] == pytest.approx(expected.ends[number], **near)
    numbers = {
        n: dict(zip(sorted(run.start), range(len(run.start)), strict=True))
        for n, run in expected.runs.items()
    }
    assert len(result.timeline) == sum(len(run.start) for run in expected.runs.values())
    for row in result.timeline:
        run, r = expected.runs[int(row["program"])], int(row["instruction"])
        assert row["record"] == numbers[run.number][r]
        assert (row["start"], row["end"], row["done"]) == pytest.approx(
            (run.start[r], run.end[r], run.done[r]), **near
        )


@given(cases())
def test_engine_agrees_with_the_reference(case: tuple[Machine, list[Part]]) -> None:
    machine, parts = case
    agree(simulate(machine, of_parts(parts), ROWS), Reference(machine, parts), 1e-9)


@given(cases(channels=0))
def test_engine_equals_the_reference_where_nothing_is_transferred(case: tuple[Machine, list[Part]]) -> None:
    """Quarters of cycles are exact in a double: no tolerance, and ties must be broken alike."""
    machine, parts = case
    result, expected = simulate(machine, of_parts(parts), ROWS), Reference(machine, parts)
    agree(result, expected, 0)
    assert {n: int(core) for n, core in enumerate(result.programs["core"])} == expected.core_of


@given(cases())
def test_stalls_and_charges_add_up_to_the_cycles_of_each_core(case: tuple[Machine, list[Part]]) -> None:
    machine, groups = case[0], of_parts(case[1])
    result = simulate(machine, groups)
    gaps = result.stalls[:, :, [DATA, BUFFER, FLAG, ISSUE, TAIL]].sum(axis=2)
    used = result.busy + gaps + result.core_dispatch[:, None]
    np.testing.assert_allclose(
        used, np.broadcast_to(result.core_cycles[:, None], used.shape), rtol=1e-9, atol=1e-9
    )
    charged = result.line_exposed.sum() + result.core_dispatch.sum()
    assert charged == pytest.approx(result.core_cycles.sum(), rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(result.line_busy.sum(axis=0), result.busy.sum(axis=0), rtol=1e-9, atol=1e-9)
    assert (result.line_exposed >= 0).all()
    assert (result.stalls >= -1e-9).all()
    assert len(REASONS) == result.stalls.shape[2]


@given(cases())
def test_no_run_beats_a_closed_form_bound(case: tuple[Machine, list[Part]]) -> None:
    """Cycles >= busy time of each pipe and bytes / rate of each resource; busy >= bytes / port rate."""
    machine, groups = case[0], of_parts(case[1])
    result = simulate(machine, groups)
    rounding = 1 + 1e-9
    assert result.busy.max() <= result.cycles * rounding
    for resource, amount in zip(machine.resources, result.resource_bytes, strict=True):
        assert amount / resource.bytes_per_cycle <= result.cycles * rounding
    ports = np.array([c.port_bytes_per_cycle * c.ports for c in machine.channels])
    assert (result.channel_bytes / ports).sum() <= result.busy.sum() * rounding
    assert result.busy.sum() >= result.stalls[:, :, BANDWIDTH].sum() * (1 - 1e-9)


@given(cases())
def test_the_same_input_gives_the_same_bits(case: tuple[Machine, list[Part]]) -> None:
    machine, groups = case[0], of_parts(case[1])
    first, second = simulate(machine, groups, ROWS), simulate(machine, groups, ROWS)
    for name in EngineResult.__slots__:
        assert np.asarray(getattr(first, name)).tobytes() == np.asarray(getattr(second, name)).tobytes(), name


@given(cases())
def test_without_costs_by_line_all_else_is_the_same(case: tuple[Machine, list[Part]]) -> None:
    machine, groups = case[0], of_parts(case[1])
    whole, brief = simulate(machine, groups, ROWS), simulate(machine, groups, ROWS, by_line=False)
    assert not brief.line_exposed.any()
    for name in set(EngineResult.__slots__) - {"line_exposed"}:
        assert np.asarray(getattr(whole, name)).tobytes() == np.asarray(getattr(brief, name)).tobytes(), name


@given(cases(cores=1, channels=0), st.integers(1, 3))
def test_a_deeper_queue_is_never_slower(case: tuple[Machine, list[Part]], more: int) -> None:
    """Without contention every time is a maximum of sums, so taking a limit away can only make it earlier."""
    machine, groups = case[0], of_parts(case[1])
    pipes = tuple(replace(p, queue_depth=p.queue_depth + more) for p in machine.pipes)
    assert simulate(replace(machine, pipes=pipes), groups).cycles <= simulate(machine, groups).cycles


@given(cases(cores=1), st.integers(2, 8))
def test_more_bandwidth_is_never_slower_on_an_uncontended_core(
    case: tuple[Machine, list[Part]], more: int
) -> None:
    """Ports alone limit the transfers: where they compete, an earlier start of one can delay another."""
    machine, groups = case[0], of_parts(case[1])
    slow = tuple(replace(c, resources=()) for c in machine.channels)
    fast = tuple(replace(c, port_bytes_per_cycle=c.port_bytes_per_cycle * more) for c in slow)
    before = simulate(replace(machine, channels=slow), groups).cycles
    assert simulate(replace(machine, channels=fast), groups).cycles <= before * (1 + 1e-12)

"""Shared bandwidth: exact answers of the fluid model, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendtile.simulator.timing.engine.engine import (
    Channel,
    Machine,
    PipeSpec,
    ProgramGroup,
    Resource,
    simulate,
)

from .engine_builder import LOAD, MTE2, MTE3, Builder, V, machine, times

BANDWIDTH_STALL = 4


def test_equal_transfers_of_all_cores_share_the_resource_equally() -> None:
    b = Builder()
    b.transfer(MTE2, 800)
    for cores, cycles in ((1, 100), (4, 100), (8, 200), (20, 500)):
        result = b.run(machine(cores=cores, port=8, hbm=32), programs=cores)
        assert result.core_cycles.tolist() == [cycles] * cores


def test_two_cores_with_different_arrival_times() -> None:
    """HBM 10, ports 8. A: 800 bytes from 0. B: 800 bytes from 50.

    0..50: A at 8 (400 left). 50..130: both at 5; A ends. B has 400 left, at 8: ends at 180.
    """
    b = Builder()
    wait = b.fixed(V, programs=[0, 50])
    copy = b.transfer(MTE2, 800, data=[wait])
    result = b.run(machine(cores=2, port=8, hbm=10), programs=2)
    assert times(result, copy, 0) == (0, 130, 130)
    assert times(result, copy, 1) == (50, 180, 180)
    assert result.stalls[:, MTE2, BANDWIDTH_STALL].tolist() == [30, 30]
    assert result.resource_bytes.tolist() == [1600]


def test_three_flows_with_port_caps_are_max_min_fair() -> None:
    """HBM 12. Ports 2, 8, 8: the slow one gets 2, the others (12 - 2) / 2 = 5."""
    three = Machine(
        pipes=tuple(PipeSpec(name=f"P{p}", unit="U") for p in range(3)),
        cores=1,
        channels=(
            Channel(name="slow", port_bytes_per_cycle=2, resources=(0,)),
            Channel(name="fast", port_bytes_per_cycle=8, resources=(0,)),
        ),
        resources=(Resource(name="HBM", bytes_per_cycle=12),),
    )
    b = Builder()
    b.transfer(0, 200, channel=0)
    b.transfer(1, 500, channel=1)
    b.transfer(2, 500, channel=1)
    result = b.run(three)
    assert [times(result, r).end for r in range(3)] == [100, 100, 100]
    b.transfer(0, 200, channel=0)
    b.transfer(1, 600, channel=1)  # alone with the slow one, one fast flow gets its port's 8
    b.transfer(2, 100, channel=1)  # 100..120 at 5; the other then has 500 left
    assert [times(b.run(three), r).end for r in (3, 4, 5)] == [200, 120 + 500 / 8, 120]


def test_hits_and_misses_use_different_resources() -> None:
    """Ports 100. HBM 10, L2 40. A miss draws on both, a hit on L2 only: misses 5 each, hits (40 - 10) / 2
    each."""
    cache = Machine(
        pipes=(PipeSpec(name="MTE2", unit="U"),),
        cores=4,
        channels=(
            Channel(name="miss", port_bytes_per_cycle=100, resources=(0, 1)),
            Channel(name="hit", port_bytes_per_cycle=100, resources=(1,)),
        ),
        resources=(Resource(name="HBM", bytes_per_cycle=10), Resource(name="L2", bytes_per_cycle=40)),
    )
    b = Builder()
    b.transfer(0, channel=0, programs=[500, 500, -1, -1])
    b.transfer(0, channel=1, programs=[-1, -1, 1500, 1500])
    result = b.run(cache, programs=4)
    assert result.core_cycles.tolist() == [100, 100, 100, 100]
    assert result.resource_bytes.tolist() == [1000, 4000]
    assert result.channel_bytes.tolist() == [1000, 3000]


@given(
    amounts=st.lists(st.integers(1, 1000), min_size=1, max_size=6),
    other=st.integers(0, 1000),
    hbm=st.integers(1, 100),
)
@settings(max_examples=30)
def test_a_transfer_of_two_ports_takes_what_two_transfers_at_once_take(
    amounts: list[int], other: int, hbm: int
) -> None:
    """Also beside one of a single port; memory gives the bytes of both."""
    two = Machine(
        pipes=tuple(PipeSpec(name=f"P{p}", unit="U") for p in range(3)),
        cores=len(amounts),
        channels=tuple(Channel(name=f"{n}", port_bytes_per_cycle=8, resources=(0, 1) * n) for n in (1, 2)),
        resources=(Resource(name="HBM", bytes_per_cycle=hbm), Resource(name="L2", bytes_per_cycle=2 * hbm)),
    )
    apart, as_one = Builder(), Builder()
    for b, pipes, channel in ((apart, 2, 0), (as_one, 1, 1)):
        for pipe in range(pipes):
            b.transfer(pipe, channel=channel, programs=amounts)
        b.transfer(2, other, channel=0)
    expected, found = apart.run(two, programs=len(amounts)), as_one.run(two, programs=len(amounts))
    np.testing.assert_allclose(found.core_cycles, expected.core_cycles, rtol=1e-12)
    assert found.resource_bytes.tolist() == expected.resource_bytes.tolist()
    assert found.channel_bytes.sum() == expected.channel_bytes.sum()


def test_a_twin_runs_the_instructions_of_its_pipe_and_shares_the_time_with_all_that_are_busy() -> None:
    b = Builder()
    b.fixed(V, 30, line=1)
    b.fixed(MTE2, 30)
    one = machine()
    both = replace(one, pipes=tuple(replace(p, twin="AIV1" * (p.name == "V")) for p in one.pipes))
    assert (b.run(one).instructions_run, b.run(both).instructions_run) == (2, 3)
    assert b.run(both).cycles == b.run(one).cycles == 30
    assert b.run(one).line_exposed.tolist() == pytest.approx([15, 15])
    assert b.run(both).line_exposed.tolist() == pytest.approx([10, 20])


def test_rates_recover_when_a_transfer_ends() -> None:
    """HBM 12, ports 8, three flows of 400, 800, 1200: 4 each until 100, 6 each until 166 2/3, then 8."""
    b = Builder()
    b.transfer(MTE2, programs=[400, 800, 1200])
    result = b.run(machine(cores=3, port=8, hbm=12), programs=3)
    second = 100 + 400 / 6
    expected = [100, second, second + 400 / 8]
    assert result.core_cycles.tolist() == pytest.approx(expected, rel=1e-15)
    assert result.core_cycles[0] == 100


def test_loads_and_stores_of_one_core_share_the_resource() -> None:
    b = Builder()
    b.transfer(MTE2, 400)
    b.transfer(MTE3, 800)
    result = b.run(machine(port=8, hbm=8))
    assert times(result, 0) == (0, 100, 100)
    assert times(result, 1) == (0, 150, 150)


def test_a_flow_that_replaces_another_leaves_the_rates_alone() -> None:
    b = Builder()
    for _ in range(10):
        b.transfer(MTE2, 40)
    result = b.run(machine(cores=2, port=8, hbm=8), programs=2)
    assert result.core_cycles.tolist() == [100, 100]
    assert [times(result, r, 1).end for r in range(10)] == [10.0 * (r + 1) for r in range(10)]


def test_a_transfer_that_starts_later_waits_for_the_clock() -> None:
    """B is known to start at 70 from the outset; until then A has all of HBM."""
    b = Builder()
    wait = b.fixed(V, 0, latency=70, programs=[-1, 0])
    copy = b.transfer(MTE2, data=[wait], programs=[1000, 80])
    result = b.run(machine(cores=2, port=8, hbm=8), programs=2)
    assert times(result, copy, 1) == (70, 90, 90)
    assert times(result, copy, 0) == (0, 135, 135)


def test_the_counts_of_bytes_stay_exact_over_a_long_run() -> None:
    """A million tiles of 3 cycles each: the end is exact although each transfer adds 24 bytes to a count."""
    b = Builder()
    for _ in range(1000):
        b.transfer(MTE2, 24)
    result = simulate(machine(port=8), [ProgramGroup(trace=b.trace(), programs=np.arange(1000))])
    assert result.cycles == 3_000_000
    assert result.channel_bytes[LOAD] == 24_000_000


@pytest.mark.parametrize("channels", [1, 5, 16])
def test_every_channel_has_its_own_rate(channels: int) -> None:
    """Ports 1, 2, ... and no shared resource: channel c needs 960 / (c + 1) cycles."""
    many = Machine(
        pipes=tuple(PipeSpec(name=f"P{p}", unit="U") for p in range(channels)),
        cores=1,
        channels=tuple(Channel(name=f"C{c}", port_bytes_per_cycle=c + 1) for c in range(channels)),
    )
    b = Builder()
    for c in range(channels):
        b.transfer(c, 960, channel=c)
    result = b.run(many)
    assert [times(result, c).end for c in range(channels)] == [960 / (c + 1) for c in range(channels)]

"""The timeline of a launch: gaps, reasons, names, and what it says of what it leaves out."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

PRODUCT = "ascend910b3"


@sim.jit
def doubled(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n)
        tl.store(out_ptr + at, tl.exp(x), mask=at < n)


def launch_of(timeline: int, n: int = 200_000) -> sim.Launch:
    with sim.device(PRODUCT, timeline=timeline, values=False):
        shape = sim.shape((n,), "float16")
        return doubled.time((4,), shape, shape, n, BLOCK=2048).launches[0]


def test_gaps_name_line_and_reason() -> None:
    """exp waits for the load of the line before it; the store for exp."""
    launch = launch_of(100_000)
    t = launch.timeline
    assert t is not None
    assert t.complete
    assert t.until == launch.cycles
    text = [launch.lines[k].source for k in t.line]
    seen = set()
    for i in np.flatnonzero(t.waited >= 0).tolist():
        seen.add((t.names[t.name[i]], t.reasons[t.reason[i]], text[i][:1], text[t.waited[i]][:1]))
    assert ("exp", "data", "t", "x") in seen
    assert any(reason == "data" and mine == other == "t" for _, reason, mine, other in seen)


def test_pipes_of_a_launch_account_for_all_its_cycles() -> None:
    launch = launch_of(100_000)
    t = launch.timeline
    assert t is not None
    for k, name in enumerate(t.pipes):
        pipe = launch.pipes[name]
        waits = sum(x for reason, x in pipe.stalls.items() if reason != "bandwidth")
        assert pipe.busy_cycles + waits == pytest.approx(launch.cycles, rel=1e-12)
        mine = t.pipe == k
        for number, reason in enumerate(t.reasons):
            gaps = t.gap[mine & (t.reason == number)].sum() / launch.cores_used
            if reason not in ("bandwidth", "tail"):
                assert gaps == pytest.approx(pipe.stalls[reason], rel=1e-12, abs=1e-9)
                by_line = sum(x.stalls.get(name, {}).get(reason, 0.0) for x in launch.lines)
                assert by_line == pytest.approx(pipe.stalls[reason], rel=1e-12, abs=1e-9)
        assert t.bandwidth[mine].sum() / launch.cores_used == pytest.approx(
            pipe.stalls["bandwidth"], rel=1e-9, abs=1e-9
        )


def test_one_pipe_of_one_core_in_order_of_time() -> None:
    t = launch_of(100_000).timeline
    assert t is not None
    for core in range(4):
        for pipe in range(len(t.pipes)):
            rows = t.select(core, pipe)
            assert set(t.core[rows]) <= {core}
            assert set(t.pipe[rows]) <= {pipe}
            assert (np.diff(t.start[rows]) >= 0).all()
            assert np.allclose(t.start[rows][1:], t.end[rows][:-1] + t.gap[rows][1:], rtol=1e-12)
    assert sum(len(t.select(c, p)) for c in range(4) for p in range(len(t.pipes))) == len(t.pipe)


def test_bytes_are_those_that_passed() -> None:
    launch = launch_of(100_000)
    t = launch.timeline
    assert t is not None
    assert t.bytes.sum() == launch.resources["L2"]
    moved = np.array([n.startswith(("GM to UB", "UB to")) for n in t.names])[t.name]
    assert ((t.bytes > 0) <= moved).all()


def test_a_timeline_that_is_cut_says_so_and_the_totals_stay() -> None:
    whole = launch_of(100_000)
    slowest = int(np.argmax(whole.core_cycles))
    for limit, what in (
        (20, f"the first 20 of .* of core {slowest}, the slowest of 4"),
        (300, "2 of 4 cores"),
    ):
        short = launch_of(limit)
        assert short.timeline is not None
        assert len(short.timeline.pipe) <= limit
        assert not short.timeline.complete
        (words,) = set(short.notes) - set(whole.notes)
        assert re.search(f"^timeline: .*{what}", words)
        assert (whole.pipes, whole.cycles) == (short.pipes, short.cycles)
    assert not any(n.startswith("timeline") for n in launch_of(0).notes)


@given(st.integers(1, 600))
def test_a_timeline_that_is_cut_has_the_slowest_core_and_of_each_core_all_until_its_end(limit: int) -> None:
    whole, short = launch_of(100_000), launch_of(limit)
    every, kept = whole.timeline, short.timeline
    assert every is not None
    assert kept is not None
    cores = set(kept.core.tolist())
    assert int(np.argmax(whole.core_cycles)) in cores
    expected = np.isin(every.core, list(cores)) & (every.start < kept.until)
    assert sorted(every.start[expected]) == sorted(kept.start[kept.start < kept.until])
    assert kept.complete == (cores == set(every.core.tolist()) and kept.until == whole.cycles)
    assert kept.until == whole.cycles or len(cores) == 1

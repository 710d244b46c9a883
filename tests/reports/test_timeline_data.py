"""What the page's timeline is drawn from, unpacked and set beside the record."""

from __future__ import annotations

import base64
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.reports.facts.timelines import MOST_LANES, sort_lanes
from ascendtile.reports.html import timeline_data as data
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.record.run import Timeline

from ..support import sample_runs


def unpacked(column: dict[str, Any]) -> np.ndarray:
    """As the script reads it."""
    letter, bits = column["kind"][0], int(column["kind"][1:])
    kind = np.dtype(f"<{letter}{bits // 8}")
    raw = np.frombuffer(zlib.decompress(base64.b64decode(column["data"])), np.uint8)
    out = np.ascontiguousarray(raw.reshape(kind.itemsize, -1).T).view(kind).reshape(-1)
    return np.cumsum(out, dtype=kind) if column["delta"] else out


@given(
    st.sampled_from([np.uint8, np.uint16, np.uint32, np.int32]),
    st.integers(0, 300),
    st.booleans(),
    st.integers(0, 99),
)
def test_numbers_come_back(kind: Any, n: int, delta: bool, seed: int) -> None:
    limits = np.iinfo(kind)
    values = np.random.default_rng(seed).integers(limits.min, limits.max, n, kind, endpoint=True)
    np.testing.assert_array_equal(unpacked(data.packed(values, delta)), values)


def busy_timeline(seed: int, n: int, cores: int = 3) -> Timeline:
    """Instructions of some pipes, none of which does two things at once, in a mixed order."""
    rng = np.random.default_rng(seed)
    core, pipe = rng.integers(0, cores, n), rng.integers(0, 2, n)
    start, end, clock = np.zeros(n), np.zeros(n), np.zeros((cores, 2))
    for i in range(n):
        start[i] = clock[core[i], pipe[i]] + rng.exponential(20)
        end[i] = clock[core[i], pipe[i]] = start[i] + rng.exponential(30)
    mixed = rng.permutation(n)
    whole = {
        "core": core,
        "pipe": pipe,
        "program": np.arange(n),
        "record": np.arange(n),
        "line": rng.integers(0, 2, n),
    }
    return Timeline(
        ("AIV.V", "AIV.MTE2"), **{k: v[mixed].astype(np.int32) for k, v in whole.items()}, start=start[mixed],
        end=end[mixed], done=end[mixed], complete=True,
    )  # fmt: skip


@given(st.integers(0, 10_000), st.integers(1, 400), st.integers(1, 64))
def test_shares_of_buckets_are_the_time_in_them(seed: int, n: int, buckets: int) -> None:
    t = busy_timeline(seed, n)
    lanes = sort_lanes(t)
    shares = data.busy_shares(lanes, buckets)
    width = lanes.span / buckets
    for k in range(len(lanes.keys)):
        mine = slice(lanes.first[k], lanes.first[k + 1])
        for b in range(buckets):
            inside = np.minimum(lanes.end[mine], (b + 1) * width) - np.maximum(lanes.start[mine], b * width)
            assert shares[k, b] * width == pytest.approx(np.maximum(inside, 0).sum(), abs=1e-6)


@given(st.integers(0, 10_000), st.integers(1, 300))
def test_every_instruction_is_in_its_lane_at_its_time(seed: int, n: int) -> None:
    t = busy_timeline(seed, n)
    lanes = sort_lanes(t)
    for k, (core, pipe) in enumerate(lanes.keys):
        mine = slice(lanes.first[k], lanes.first[k + 1])
        order = lanes.order[mine]
        assert (t.core[order] == core).all()
        assert (t.pipe[order] == pipe).all()
        np.testing.assert_allclose(
            lanes.start[mine] * lanes.cycles_per_tick, t.start[order], atol=lanes.cycles_per_tick
        )
        assert (np.diff(lanes.start[mine]) >= 0).all()
        assert (lanes.end[mine][:-1] <= lanes.start[mine][1:]).all()
    assert sorted(lanes.order) == list(range(n))


def test_long_timelines_have_levels_from_coarse_to_fine() -> None:
    t = busy_timeline(1, 60_000, cores=2)
    found = data.timeline_data(sample_runs.launch(timeline=t))
    widths = [level["width"] for level in found["levels"]]
    assert widths == sorted(widths, reverse=True)
    assert len(widths) >= 2
    for level in found["levels"]:
        assert (
            len(unpacked(level["busy"]))
            == level["buckets"] * len(found["lanes"])
            == len(unpacked(level["line"]))
        )
    assert data.timeline_data(sample_runs.launch(timeline=busy_timeline(1, 500)))["levels"] == []


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -5.0, 1e300])
def test_strange_times_are_cut_to_what_can_be_drawn(bad: float) -> None:
    t = sample_runs.timeline(9)
    t = replace(
        t,
        complete=True,
        start=np.where(np.arange(9) == 4, bad, t.start),
        end=np.where(np.arange(9) == 5, bad, t.end),
    )
    found = data.timeline_data(sample_runs.launch(timeline=t))
    assert found["span"] >= 1
    assert len(unpacked(found["columns"]["length"])) == 9


def test_lines_that_the_record_does_not_have_are_none() -> None:
    t = replace(sample_runs.timeline(4), line=np.array([0, 1, 2, -7], np.int32))
    line = unpacked(data.timeline_data(sample_runs.launch(timeline=t))["columns"]["line"])
    assert sorted(line) == [0, 1, data.NO_LINE, data.NO_LINE]


def test_a_record_that_claims_a_million_cores_is_refused() -> None:
    n = MOST_LANES + 1
    t = replace(sample_runs.timeline(n), core=np.arange(n, dtype=np.int32))
    with pytest.raises(UsageError, match=f"names {n} pipes of cores"):
        data.timeline_data(sample_runs.launch(timeline=t))

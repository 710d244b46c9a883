"""Values and holes at the peak of a buffer: addresses of real plans, and what of them a record keeps."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.reports.facts.json_view import run_json
from ascendtile.reports.facts.launch_figures import holes_bytes
from ascendtile.simulator.record.run import Buffer, LiveValue


@st.composite
def packed(draw):
    """Values without overlap, in any order, with gaps between them."""
    sizes = draw(
        st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9), st.integers(1, 3)), min_size=1, max_size=6)
    )
    at, values = 0, []
    for gap, size, copies in sizes:
        values.append(LiveValue("v", "f", 1, (), "fp32", 32 * size, copies, at + 32 * gap))
        at += 32 * (gap + size * copies)
    above = draw(st.integers(0, 3))
    return Buffer(at + 32 * above, 2**20, tuple(draw(st.permutations(values))), placed_bytes=at + 32 * above)


@given(packed())
def test_values_and_holes_fill_a_buffer_up_to_its_peak_and_meet_nowhere(b):
    spans = sorted([*b.holes, *(x for v in b.peak for x in v.spans)])
    assert spans[0][0] == 0
    assert spans[-1][1] == b.peak_bytes
    assert all(last == first for (_, last), (first, _) in pairwise(spans))
    assert sum(last - first for first, last in b.holes) == holes_bytes(b)


@given(packed(), st.integers(1, 1000))
def test_where_values_are_spread_over_more_than_they_need_no_place_is_told(b, more):
    wide = Buffer(b.peak_bytes, b.capacity_bytes, b.peak, placed_bytes=b.peak_bytes + more)
    assert wide.holes == ()
    assert holes_bytes(wide) == holes_bytes(b)


@sim.jit
def scaled(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        tl.store(out_ptr + at, (x * 2 + 1).to(tl.float16), mask=at < n)


@pytest.fixture(scope="module", params=["ascendc", "triton-ascend"])
def timed(request):
    n = 1 << 20
    with sim.device("ascend910b3", values=False, explain=True, compiler=request.param):
        return scaled.time((8,), sim.shape(n, "float16"), sim.shape(n, "float16"), n, BLOCK=8192)


def test_a_change_that_frees_is_tried_and_true(timed):
    """What the page promises is what the launch with that change needs."""
    ub = timed.launches[0].buffers["UB"]
    assert all(need < ub.peak_bytes for need in ub.freed.values())
    assert list(ub.freed.values()) == sorted(ub.freed.values())
    n = 1 << 20
    compiler = "triton-ascend" if "with BLOCK 8192 -> 4096" in ub.freed else "ascendc"
    with sim.device("ascend910b3", values=False, compiler=compiler):
        args = sim.shape(n, "float16"), sim.shape(n, "float16"), n
        once = scaled.time((8,), *args, BLOCK=8192, multibuffer=1).launches[0].buffers["UB"].peak_bytes
        assert ub.freed["without second copies"] == once
        if compiler == "triton-ascend":
            half = scaled.time((8,), *args, BLOCK=4096).launches[0].buffers["UB"].peak_bytes
            assert ub.freed["with BLOCK 8192 -> 4096"] == half


def test_bits_beside_bytes_and_reasons_in_the_json(timed):
    ub = json.loads(json.dumps(run_json(timed)))["buffers"]["UB"]
    assert (ub["peak_bits"], ub["capacity_bits"]) == (8 * ub["peak_bytes"], 8 * ub["capacity_bytes"])
    assert ub["holes_bytes"] + sum(v["bytes"] * v["copies"] for v in ub["peak"]) >= ub["peak_bytes"]
    assert all("why" in v for v in ub["peak"])


def test_each_buffer_of_a_hand_written_kernel_says_what_it_is_for(timed):
    if "with BLOCK 8192 -> 4096" not in timed.launches[0].buffers["UB"].freed:
        assert all(v.why for v in timed.launches[0].buffers["UB"].peak if v.bytes)

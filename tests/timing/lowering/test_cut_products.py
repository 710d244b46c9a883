"""Code by hand multiplies what its masked loads bring, in whole fractals; triton-ascend's multiplies whole tiles."""

from __future__ import annotations

import re
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.timing import estimate

BASE = (64, 64, 64)
BLOCK = 128
MULTIPLIES = ("AIC.M", "AIC.MTE1")


@sim.jit
def product(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    LOOP: tl.constexpr = 0, OTHER: tl.constexpr = 0.0, TRANSPOSED: tl.constexpr = False,
):  # fmt: skip
    """One program: a (M, K) b (K, N), tile by tile of M, each in steps of BK; LOOP: how often all of it is done."""
    cols = tl.arange(0, BN)
    for _once in range(LOOP + 1):
        for top in range(0, M, BM):
            rows = top + tl.arange(0, BM)
            acc = tl.zeros((BM, BN), tl.float32)
            for k in range(0, K, BK):
                deep = k + tl.arange(0, BK)
                a = tl.load(
                    a_ptr + rows[:, None] * K + deep[None, :],
                    mask=(rows < M)[:, None] & (deep < K)[None, :],
                    other=OTHER,
                )
                if TRANSPOSED:
                    mask = (cols < N)[:, None] & (deep < K)[None, :]
                    b = tl.trans(tl.load(b_ptr + cols[:, None] * K + deep[None, :], mask=mask))
                else:
                    mask = (deep < K)[:, None] & (cols < N)[None, :]
                    b = tl.load(b_ptr + deep[:, None] * N + cols[None, :], mask=mask)
                acc = tl.dot(a, b, acc)
            mask = (rows < M)[:, None] & (cols < N)[None, :]
            tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


def busy(m, n, k, blocks, compiler="ascendc", dtype="float16", **more):
    """Cycles of the Cube and of what fills L0, of one program."""
    options = {"product": "ascend910b3", "values": False, "compiler": compiler, "l0_tile": BASE}
    with sim.device(**options):
        given = sim.shape((m, k), dtype), sim.shape((k, n), dtype), sim.shape((m, n), "float32"), m, n, k
        launch = product.time((1,), *given, **dict(zip(("BM", "BN", "BK"), blocks, strict=True)), **more)
    return [round(launch.pipes[p].busy_cycles, 6) for p in MULTIPLIES]


def whole(n, to=16):
    return -(-n // to) * to


@pytest.mark.parametrize("transposed", [False, True])
@given(st.integers(1, BLOCK), st.integers(1, BLOCK), st.integers(1, BLOCK))
def test_a_tile_takes_what_one_of_the_size_that_is_there_takes(transposed, m, n, k):
    padded = busy(m, n, k, (BLOCK, BLOCK, BLOCK), TRANSPOSED=transposed)
    assert padded == busy(m, n, k, (whole(m), whole(n), whole(k)), TRANSPOSED=transposed)


@given(st.integers(1, 300), st.integers(1, BLOCK), st.integers(1, 300))
def test_a_row_of_tiles_takes_no_less_than_its_fractals(m, n, k):
    (cube, _), fractals = busy(m, n, k, (BLOCK, BLOCK, BLOCK)), whole(m) * whole(n) * whole(k) // 16**3
    steps = -(-m // 64) * -(-n // 64) * -(-k // 64)
    assert cube >= fractals
    assert cube - fractals <= 64 * steps  # start-ups and drains


@pytest.mark.parametrize("sizes", [(1, 1, 1), (17, 100, 65)])
def test_triton_ascend_multiplies_whole_tiles(sizes):
    blocks = (BLOCK, BLOCK, BLOCK)
    assert busy(*sizes, blocks, "triton-ascend") == busy(BLOCK, BLOCK, BLOCK, blocks, "triton-ascend")


def test_padding_that_is_not_zero_is_multiplied():
    blocks = (BLOCK, BLOCK, BLOCK)
    whole_tile = busy(BLOCK, BLOCK, BLOCK, blocks)
    assert busy(BLOCK, BLOCK, 20, blocks, OTHER=1.0) != whole_tile  # b still cuts the depth
    assert busy(20, BLOCK, BLOCK, blocks, OTHER=1.0) == whole_tile
    assert busy(20, BLOCK, BLOCK, blocks)[0] < whole_tile[0]


@pytest.mark.parametrize("sizes", [(300, 100, 200), (130, 17, 1000)])
def test_iterations_lowered_at_once_are_cut_as_one_by_one(sizes):
    lower = estimate._estimate
    together = busy(*sizes, (64, 64, 64), LOOP=5)
    with mock.patch.object(estimate, "_estimate", lambda call, at_once, leaves: lower(call, False, leaves)):
        assert np.allclose(busy(*sizes, (64, 64, 64), LOOP=5), together, rtol=1e-12)


@sim.jit
def of_loaded_sizes(a_ptr, b_ptr, c_ptr, sizes_ptr, BLOCK: tl.constexpr):
    rows, edge = tl.arange(0, BLOCK), tl.load(sizes_ptr)
    mask = (rows < edge)[:, None] & (rows < BLOCK)[None, :]
    a = tl.load(a_ptr + rows[:, None] * BLOCK + rows[None, :], mask=mask, other=0.0)
    b = tl.load(b_ptr + rows[:, None] * BLOCK + rows[None, :])
    tl.store(c_ptr + rows[:, None] * BLOCK + rows[None, :], tl.dot(a, b))


def test_sizes_that_are_data_cut_as_well():
    def cube(edge):
        a, c = np.ones((64, 64), np.float16), np.zeros((64, 64), np.float32)
        with sim.device("ascend910b3", compiler="ascendc"):
            run = of_loaded_sizes[(1,)](a, a, c, np.array([edge], np.int32), BLOCK=64)
        assert (c[:edge] == 64).all()
        assert not c[edge:].any()
        return run.pipes["AIC.M"].busy_cycles

    assert cube(16) == cube(3) < cube(17) < cube(64)


def told_padding(m, n, k, compiler, blocks=(BLOCK, BLOCK, BLOCK)):
    """(share of padding in per cent, what is there) of the warnings."""
    with sim.device("ascend910b3", values=False, compiler=compiler):
        given_ = sim.shape((m, k), "float16"), sim.shape((k, n), "float16"), sim.shape((m, n), "float32")
        run = product.time((1,), *given_, m, n, k, **dict(zip(("BM", "BN", "BK"), blocks, strict=True)))
    found = [
        re.search(r"(\d+)% of the Cube's work is padding; on average (.*) are there", w) for w in run.warnings
    ]
    return [(int(x[1]), x[2]) for x in found if x]


@given(st.integers(1, 300), st.integers(1, BLOCK), st.integers(1, 300))
def test_the_share_of_padding_is_told(m, n, k):
    whole_tiles = whole(m, BLOCK) * BLOCK * whole(k, BLOCK)
    for compiler, work in (("triton-ascend", whole_tiles), ("ascendc", whole(m) * whole(n) * whole(k))):
        share, found = 1 - m * n * k / work, told_padding(m, n, k, compiler)
        assert bool(found) == (share >= 0.1)
        if found:
            assert abs(found[0][0] - 100 * share) <= 0.51
            for name, size in (("rows", m), ("columns", n), ("deep", k)):
                mean = size / -(-size // BLOCK)
                assert (f"{mean:.3g} of {BLOCK} {name}" in found[0][1]) == (size % BLOCK > 0)


def test_a_page_and_the_record_name_the_share(tmp_path):
    with sim.device("ascend910b3", values=False):
        given_ = sim.shape((1, 64), "float16"), sim.shape((64, 64), "float16"), sim.shape((1, 64), "float32")
        run = product.time((1,), *given_, 1, 64, 64, BM=16, BN=64, BK=64)
    text = "94% of the Cube's work is padding; on average 1 of 16 rows are there"
    run.html(tmp_path / "page.html")
    run.save(tmp_path / "x.run")
    assert text in " ".join(str(run).split())
    assert text in (tmp_path / "page.html").read_text().replace("&#39;", "'").replace("&#x27;", "'")
    assert any(text in w for w in sim.load_run(tmp_path / "x.run").warnings)

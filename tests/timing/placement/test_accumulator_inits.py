"""What accumulators start from: a row through the bias table, or what the Vector unit adds when the product has left L0C."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

SPLIT, COUPLED = "ascend910b3", "ascend310p"


@sim.jit
def linear(x, w, b, out, K, M: tl.constexpr, N: tl.constexpr, B: tl.constexpr, WIDEN: tl.constexpr):
    """out = x w + b, with the accumulator started from the row b."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, B)
    bias = tl.load(b + j)
    if WIDEN:
        bias = bias.to(tl.float32)
    acc = tl.broadcast_to(bias[None, :], (M, N))
    for first in range(0, K, B):
        u = tl.load(x + i[:, None] * K + (first + k)[None, :])
        v = tl.load(w + (first + k)[:, None] * N + j[None, :])
        acc = tl.dot(u, v, acc)
    tl.store(out + i[:, None] * N + j[None, :], acc)


@sim.jit
def after(x, w, b, out, K, M: tl.constexpr, N: tl.constexpr, B: tl.constexpr):
    """The same with the row added to the product."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, B)
    acc = tl.zeros((M, N), tl.float32)
    for first in range(0, K, B):
        u = tl.load(x + i[:, None] * K + (first + k)[None, :])
        v = tl.load(w + (first + k)[:, None] * N + j[None, :])
        acc = tl.dot(u, v, acc)
    tl.store(out + i[:, None] * N + j[None, :], acc + tl.load(b + j)[None, :])


@sim.jit
def once(x, b, out, M: tl.constexpr, ROW: tl.constexpr):
    """One product, on a row or on a whole tile."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    start = tl.broadcast_to(tl.load(b + j), (M, M)) if ROW else tl.load(b + i * M + j)
    u = tl.load(x + i * M + j)
    tl.store(out + i * M + j, tl.dot(u, u, start))


@sim.jit
def nested(x, out, iterations, K, M: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, M)
    acc = tl.zeros((M, M), tl.float32)
    for t in range(iterations):
        for first in range(0, K, M):
            u = tl.load(x + (t * M + i)[:, None] * K + (first + j)[None, :])
            acc = tl.dot(u, u, acc)
    tl.store(out + i[:, None] * M + j[None, :], acc)


@sim.jit
def weighted(x, out, iterations, M: tl.constexpr):
    """As fused attention does: the sum so far is scaled before the next product is added."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    acc = tl.zeros((M, M), tl.float32)
    for _ in range(iterations):
        u = tl.load(x + i * M + j)
        acc = tl.dot(u, u, acc * 0.5)
    tl.store(out + i * M + j, acc)


def half(*shape):
    return sim.shape(shape, "float16")


def single(*shape):
    return sim.shape(shape, "float32")


def timed(product=SPLIT, m=64, n=64, k=256, kernel=linear, bias="float32", **more):
    shapes = (half(m, k), half(k, n), sim.shape((n,), bias), single(m, n))
    if kernel is linear:
        more = {"WIDEN": bias == "float16", **more}
    with sim.device(product, timeline=1000):
        return kernel.time((1,), *shapes, k, M=m, N=n, B=64, **more)


# -- the bias table ----------------------------------------------------------------------------------------------------


def test_a_row_goes_through_the_bias_table_and_no_vector_core_is_asked():
    run = timed()
    assert {name.partition(".")[0] for name in run.pipes} == {"AIC"}
    table = run.buffers["BT"]
    assert (table.peak_bytes, table.capacity_bytes) == (64 * 4, 1024)
    assert (table.peak[0].name, table.peak[0].shape, table.peak[0].dtype) == ("bias", (64,), "fp32")
    product, plain = sim.load_product(SPLIT), timed(kernel=after)
    way = product.number("path.l1_to_bt.fixed_cycles") + 64 * 4 / product.number(
        "path.l1_to_bt.bytes_per_cycle"
    )
    assert run.pipes["AIC.MTE1"].busy_cycles == pytest.approx(plain.pipes["AIC.MTE1"].busy_cycles + way)
    assert run.cycles < plain.cycles  # the product need not pass UB


def test_the_first_product_waits_for_the_table_and_later_ones_do_not():
    t = timed().launches[0].timeline
    pipes = [t.pipes[p] for p in t.pipe]
    table = next(k for k, p in enumerate(pipes) if p == "AIC.MTE1")  # before any operand
    first = next(k for k, p in enumerate(pipes) if p == "AIC.M")
    assert t.start[first] >= t.done[table]


@pytest.mark.parametrize(
    ("product", "bias", "there"), [(SPLIT, "float16", True), ("ascend310b", "float32", True), (COUPLED, "float32", False)]
)  # fmt: skip
def test_products_without_a_table_add_on_the_vector_unit(product, bias, there):
    run = timed(product, bias=bias)
    assert ("BT" in run.buffers) == there
    if not there:
        row = sim.load_product(product).number("vector.op.add.per_repeat.fp32")
        plain = timed(product, kernel=after)
        assert run.pipes["AICORE.V"].busy_cycles == pytest.approx(
            plain.pipes["AICORE.V"].busy_cycles, rel=0.2
        )
        assert run.pipes["AICORE.V"].busy_cycles > 64 * row


def test_what_nobody_published_of_the_way_is_named():
    notes = " ".join(timed("ascend310b").notes)
    assert "path.l1_to_bt.bytes_per_cycle" in notes
    assert "path.l1_to_bt.bytes_per_cycle" not in " ".join(timed().notes)


def test_a_row_that_the_table_does_not_hold_is_an_overflow_with_both_numbers():
    words = (
        r"bt overflow, requires 16384 bits while 8192 bits available \(2048 against 1024 bytes\)[\s\S]*"
        r"2048 B  bias \[512\] fp32[\s\S]*N = 256 \(now 512, a length of w: "
    )
    with pytest.raises(sim.RunError, match=words):
        timed(m=32, n=512)
    assert timed(m=32, n=256).buffers["BT"].peak_bytes == 1024


@given(
    st.sampled_from([SPLIT, COUPLED]),
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(1, 4),
    st.booleans(),
    st.integers(0, 9),
)
def test_values_are_those_of_a_product_and_a_row(product, m, n, iterations, widen, seed):
    rng = np.random.default_rng(seed)
    k = 64 * iterations
    x, w = (rng.integers(-4, 5, s).astype(np.float16) for s in ((m, k), (k, n)))
    b = rng.integers(-9, 10, n).astype(np.float16 if widen else np.float32)
    out = np.empty((m, n), np.float32)
    with sim.device(product, time=False):
        linear[(1,)](x, w, b, out, k, M=m, N=n, B=64, WIDEN=widen)
    assert (out == x.astype(np.float64) @ w.astype(np.float64) + b).all()


# -- other starts --------------------------------------------------------------------------------------------------------


def test_a_tile_is_added_by_the_vector_unit_when_the_product_has_left_l0c():
    """Nothing brings a tile into L0C: on a split core the product goes through memory, and the sum leaves from UB."""
    with sim.device(SPLIT):
        tile, row = (
            once.time((1,), half(64, 64), single(64, 64), single(64, 64), M=64, ROW=r) for r in (False, True)
        )
    assert tile.pipes["AIC.FIXP"].busy_cycles > 0
    assert (
        sum(tile.pipes[f"{core}.V"].busy_cycles for core in ("AIV", "AIV1")) >= 64
    )  # half of the rows on each
    assert tile.pipes["AIV.MTE3"].busy_cycles > 0
    assert "BT" in row.buffers
    assert "AIV.V" not in row.pipes
    assert row.cycles < 0.7 * tile.cycles


def test_a_sum_that_is_scaled_on_the_way_crosses_to_the_vector_core_in_each_iteration():
    iterations = 6
    with sim.device(SPLIT):
        run = weighted.time((1,), half(64, 64), single(64, 64), iterations, M=64)
        less = weighted.time((1,), half(64, 64), single(64, 64), iterations // 2, M=64)
    assert run.pipes["AIC.FIXP"].busy_cycles == pytest.approx(2 * less.pipes["AIC.FIXP"].busy_cycles)
    crossed = 64 * 64 * 4 / sim.load_product(SPLIT).number("path.l0c_to_gm.nz2nd_bytes_per_cycle")
    assert run.pipes["AIC.FIXP"].busy_cycles >= 0.999 * iterations * crossed


@pytest.mark.parametrize("product", [SPLIT, COUPLED])
def test_a_sum_over_nested_loops_stays_in_l0c(product):
    m, iterations, k = 32, 3, 96
    x = np.random.default_rng(0).integers(-3, 4, (m * iterations, k)).astype(np.float16)
    out = np.empty((m, m), np.float32)
    with sim.device(product):
        run = nested[(1,)](x, out, iterations, k, M=m)
    blocks = x.astype(np.float64).reshape(iterations, m, k // m, m).transpose(0, 2, 1, 3)
    assert (out == sum(b @ b for b in blocks.reshape(-1, m, m))).all()
    if product == SPLIT:
        assert set(run.buffers) == {"L1", "L0A", "L0B", "L0C"}
        stored = m * m * 4
        assert run.launches[0].resources["L2"] == pytest.approx(x.size * 2 + stored)

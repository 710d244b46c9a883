"""A tile of one number, or of a repeated row, as the operand of a product: the Vector unit writes it out first."""

from __future__ import annotations

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import BufferOverflowError

PRODUCTS = ("ascend910b3", "ascend910a", "ascend310p")
M, K, N = 32, 48, 64


@sim.jit
def filled(x, out, LEFT: tl.constexpr, HOW: tl.constexpr, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    """Sums of the columns of x (LEFT: it is (K, N)) or of the rows (it is (M, K)), by a product with ones."""
    rows: tl.constexpr = K if LEFT else M
    cols: tl.constexpr = N if LEFT else K
    tile = tl.load(x + tl.arange(0, rows)[:, None] * cols + tl.arange(0, cols)[None, :])
    shape: tl.constexpr = (M, K) if LEFT else (K, N)
    if HOW == "full":
        ones = tl.full(shape, 1.0, tl.float16)
    elif HOW == "row":
        row = (tl.arange(0, shape[1]) >= 0).to(tl.float16)
        ones = tl.broadcast_to(row[None, :], shape)
    else:
        ones = tl.trans(tl.full((shape[1], shape[0]), 1.0, tl.float16))
    product = tl.dot(ones, tile) if LEFT else tl.dot(tile, ones)
    tl.store(out + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], product)


@sim.jit
def loaded_row(x, y, out, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    tile = tl.load(x + tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :])
    row = tl.load(y + tl.arange(0, N))
    product = tl.dot(tile, tl.broadcast_to(row[None, :], (K, N)))
    tl.store(out + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], product)


@sim.jit
def square(out, S: tl.constexpr):
    at = tl.arange(0, S)[:, None] * S + tl.arange(0, S)[None, :]
    tl.store(out + at, tl.dot(tl.full((S, S), 2.0, tl.float16), tl.full((S, S), 3.0, tl.float16)))


@sim.jit
def loaded(x, y, out, S: tl.constexpr):
    at = tl.arange(0, S)[:, None] * S + tl.arange(0, S)[None, :]
    tl.store(out + at, tl.dot(tl.load(x + at), tl.load(y + at)))


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float16)


@pytest.mark.drawn(6)
@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("how", ["full", "row", "turned"])
@pytest.mark.parametrize("left", [False, True])
def test_a_product_with_ones_sums_rows_or_columns(product: str, how: str, left: bool) -> None:
    x, out = numbers(*((K, N) if left else (M, K))), np.zeros((M, N), np.float32)
    with sim.device(product):
        run = filled[(1,)](x, out, LEFT=left, HOW=how, M=M, K=K, N=N)
    sums = x.astype(np.float64).sum(axis=0 if left else 1, keepdims=True)
    assert np.allclose(out, np.broadcast_to(sums, out.shape), rtol=1e-5, atol=1e-5)
    assert run.time_us > 0


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_row_that_is_loaded_and_repeated_goes_through_the_vector_unit(product: str) -> None:
    x, y, out = numbers(M, K), numbers(N), np.zeros((M, N), np.float32)
    with sim.device(product):
        run = loaded_row[(1,)](x, y, out, M=M, K=K, N=N)
    expected = x.astype(np.float64).sum(axis=1, keepdims=True) * y.astype(np.float64)
    assert np.allclose(out, expected, rtol=1e-5, atol=1e-4)
    assert pipes(run).get("V", 0) > 0


def pipes(run: sim.Run) -> dict[str, float]:
    """Busy cycles by the last part of a pipe's name."""
    return {name.rpartition(".")[2]: pipe.busy_cycles for name, pipe in run.pipes.items()}


@pytest.mark.parametrize("product", PRODUCTS)
def test_filling_takes_the_vector_unit_and_a_way_to_l1(product: str) -> None:
    with sim.device(product):
        small, large = (square.time((1,), sim.shape(s * s, "float32"), S=s) for s in (32, 128))
        plain = loaded.time(
            (1,), *[sim.shape(128 * 128, d) for d in ("float16", "float16", "float32")], S=128
        )
    filling, more, drained = (pipes(run) for run in (small, large, plain))
    assert more["V"] - drained.get("V", 0) > filling["V"] > 0
    assert more["MTE3"] > drained.get("MTE3", 0)


@pytest.mark.parametrize("compiler", ["ascendc", "triton-ascend"])
def test_a_filled_tile_needs_room_in_ub_for_the_half_that_each_vector_core_has(compiler: str) -> None:
    need = 128 // 2 * 128 * 2
    with sim.device("ascend910b3", overrides={"buffers.ub": need}, compiler=compiler):
        square.time((1,), sim.shape(128 * 128, "float32"), S=128)
    with (
        sim.device("ascend910b3", overrides={"buffers.ub": need - 32}, compiler=compiler),
        pytest.raises(BufferOverflowError, match="ub overflow"),
    ):
        square.time((1,), sim.shape(128 * 128, "float32"), S=128)

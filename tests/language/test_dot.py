"""tl.dot of batches and of small sides, in values, time and buffers; what the Run says about precision."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import CompileError


@sim.jit
def batched(
    out, a, b, c, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TRANSPOSED: tl.constexpr
):
    pid = tl.program_id(0)
    x = tl.load(a + pid * B * M * K + tl.arange(0, B * M * K)).reshape(B, M, K)
    y = tl.load(b + tl.arange(0, B * K * N))
    y = tl.trans(y.reshape(B, N, K), 0, 2, 1) if TRANSPOSED else y.reshape(B, K, N)
    z = tl.load(c + tl.arange(0, B * M * N)).reshape(B, M, N)
    first = x.dot(y)
    tl.store(
        out + pid * B * M * N + tl.arange(0, B * M * N), tl.dot(x, y, acc=z + first * 0).reshape((B * M * N,))
    )


SIDE = st.integers(1, 20)


@given(
    st.integers(1, 4), SIDE, SIDE, SIDE, st.booleans(),
    st.sampled_from([np.float16, ml_dtypes.bfloat16, np.float32, np.int8]), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_each_product_of_a_batch(
    B: int, M: int, N: int, K: int, transposed: bool, dtype: Any, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    a = rng.integers(-8, 8, (2, B, M, K)).astype(dtype)
    b = rng.integers(-8, 8, (B, N, K) if transposed else (B, K, N)).astype(dtype)
    c = rng.integers(-8, 8, (B, M, N)).astype(np.int32 if dtype == np.int8 else np.float32)
    out = np.zeros((2, B, M, N), c.dtype)
    run = batched[(2,)](out, a, b, c, B=B, M=M, N=N, K=K, TRANSPOSED=transposed)
    right = b.astype(float).swapaxes(1, 2) if transposed else b.astype(float)
    np.testing.assert_array_equal(out, np.matmul(a.astype(float), right) + c)
    assert run.pipes["AIC.M"].busy_cycles > 0


@sim.jit
def loaded(out, a, b, B: tl.constexpr, S: tl.constexpr, ORDER: tl.constexpr):
    i, j, k = tl.arange(0, B)[:, None, None], tl.arange(0, S)[None, :, None], tl.arange(0, S)[None, None, :]
    x = tl.load(a + (i * S + j) * S + k)
    y = tl.load(b + (i * S + j) * S + k)
    if ORDER is not None:
        y = tl.permute(y, ORDER)
    tl.store(out + (i * S + j) * S + k, tl.dot(x, y))


@pytest.mark.parametrize("order", [None, (0, 2, 1)])
def test_a_batch_costs_that_many_products_and_goes_the_cubes_way(order) -> None:
    rng = np.random.default_rng(0)
    one, four = (
        loaded[(1,)](np.zeros((n, 32, 32), np.float32), x := rng.standard_normal((n, 32, 32)).astype(np.float16), x, B=n,
                     S=32, ORDER=order)
        for n in (1, 4)
    )  # fmt: skip
    assert four.pipes["AIC.M"].busy_cycles == pytest.approx(4 * one.pipes["AIC.M"].busy_cycles)
    assert four.buffers["L0C"].peak_bytes == 4 * one.buffers["L0C"].peak_bytes == 4 * 32 * 32 * 4
    assert four.buffers["L1"].peak_bytes == 4 * one.buffers["L1"].peak_bytes
    assert "UB" not in four.buffers, "matrices go from memory to L1 and back through the fixpipe"


def test_axes_that_the_cube_cannot_iteration_are_turned_in_ub() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((16, 16, 16)).astype(np.float16) for _ in range(2))
    out = np.zeros((16, 16, 16), np.float32)
    run = loaded[(1,)](out, a, b, B=16, S=16, ORDER=(1, 0, 2))
    expected = np.matmul(a.astype(float), b.astype(float).transpose(1, 0, 2))
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)
    assert run.buffers["UB"].peak_bytes >= b.nbytes


@sim.jit
def wrong_batches(out, a, P: tl.constexpr, Q: tl.constexpr):
    x = tl.load(a + tl.arange(0, 4096))
    tl.store(out + tl.arange(0, 4096), tl.dot(x.reshape(P), x.reshape(Q)).reshape((4096,)))


@pytest.mark.parametrize(
    ("p", "q", "words"),
    [
        ((16, 16, 16), (8, 16, 32), "must have the same batch axis"),
        ((64, 64), (1, 64, 64), "must have the same batch axis"),
        ((16, 16, 16), (16, 32, 8), "the inner sizes differ"),
        ((1, 1, 64, 64), (1, 1, 64, 64), "a tile with two axes, or three for a batch"),
    ],
)
def test_operands_that_do_not_fit(p, q, words) -> None:
    with pytest.raises(CompileError, match=words):
        wrong_batches[(1,)](np.zeros(4096, np.float32), np.zeros(4096, np.float32), P=p, Q=q)


@sim.jit
def asked(out, a, PRECISION: tl.constexpr, TF32: tl.constexpr, HALF: tl.constexpr):
    i = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    x = tl.load(a + i)
    if HALF:
        r = tl.dot(x, x, input_precision=PRECISION, allow_tf32=TF32, out_dtype=tl.float16)
    else:
        r = tl.dot(x, x, input_precision=PRECISION, allow_tf32=TF32)
    tl.store(out + i, r)


@pytest.mark.parametrize(
    ("dtype", "precision", "tf32", "half", "words", "coarse"),
    [
        (np.float32, None, None, False, "dot of fp32 runs in ieee precision", False),
        (np.float32, None, True, False, "ieee precision (allow_tf32 has no effect on Ascend", False),
        (np.float32, "tf32", None, False, "runs in hf32 precision (tf32 means hf32 here)", True),
        (np.float32, "hf32", None, False, "runs in hf32 precision", True),
        (
            np.float32,
            "hf32",
            None,
            True,
            "ieee precision (hf32 is ignored: the result is not float32)",
            False,
        ),
        (np.float16, "hf32", None, False, "dot of fp16: hf32 is ignored: operands are fp16", None),
        (np.float16, None, None, False, None, None),
    ],
)
def test_the_run_says_which_precision_a_product_had(dtype, precision, tf32, half, words, coarse) -> None:
    a = (np.random.default_rng(5).standard_normal((16, 16)) + 3).astype(dtype)
    out = np.zeros((16, 16), np.float16 if half else np.float32)
    run = asked[(1,)](out, a, PRECISION=precision, TF32=tf32, HALF=half)
    notes = [n for n in run.notes if ": dot of" in n]
    assert len(notes) == (words is not None)
    if words:
        assert words in notes[0]
        assert notes[0].split(":")[0].endswith("test_dot.py")
    if coarse is not None and not half:
        error = np.abs(out / (a.astype(float) @ a.astype(float)) - 1).max()
        assert (error > 1e-5) == coarse


@sim.jit
def summed(out, a, b, B: tl.constexpr, S: tl.constexpr, ITERATIONS: tl.constexpr):
    i, j, k = tl.arange(0, B)[:, None, None], tl.arange(0, S)[None, :, None], tl.arange(0, S)[None, None, :]
    acc = tl.zeros((B, S, S), tl.float32)
    for iteration in range(ITERATIONS):
        x = tl.load(a + ((iteration * B + i) * S + j) * S + k)
        acc += tl.dot(x, tl.load(b + ((iteration * B + i) * S + j) * S + k))
    tl.store(out + (i * S + j) * S + k, acc.to(tl.float16))


@pytest.mark.parametrize("product", ["ascend910b3", "ascend310p", "ascend910a"])
def test_a_batch_is_accumulated_in_l0c(product: str) -> None:
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-3, 4, (4, 3, 16, 16)).astype(np.float16) for _ in range(2))
    out = np.zeros((3, 16, 16), np.float16)
    with sim.device(product):
        run = summed[(1,)](out, a, b, B=3, S=16, ITERATIONS=4)
    np.testing.assert_array_equal(out, np.matmul(a.astype(float), b.astype(float)).sum(0))
    assert run.buffers["L0C"].peak_bytes == 3 * 16 * 16 * 4
    assert ("UB" in run.buffers) == (product != "ascend910b3"), "only coupled cores need UB on the way out"

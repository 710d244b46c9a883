"""What the Triton interpreter gets wrong on bf16 and on dot precisions (triton-lang/triton issues 4972, 10945, 11584) is
right here: one test for each fault."""

import ml_dtypes
import numpy as np

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

BF16 = ml_dtypes.bfloat16


@sim.jit
def elementwise(x_ptr, y_ptr, sum_ptr, less_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    y = tl.load(y_ptr + at)
    tl.store(sum_ptr + at, x + y)
    tl.store(less_ptr + at, (x < y).to(tl.int32))


@sim.jit
def narrow(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at).to(tl.bfloat16))


@sim.jit
def product(a_ptr, b_ptr, out_ptr, N: tl.constexpr, PRECISION: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    out = tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at), input_precision=PRECISION)
    tl.store(out_ptr + at, out)


def random(shape, dtype, seed):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def test_bf16_addition_works_on_values_not_on_bit_patterns():
    x, y = random(64, BF16, 1), random(64, BF16, 2)
    total, less = np.zeros(64, BF16), np.zeros(64, np.int32)
    elementwise[(1,)](x, y, total, less, BLOCK=64)
    assert (total == (x.astype(np.float32) + y.astype(np.float32)).astype(BF16)).all()


def test_bf16_comparison_orders_values():
    x, y = random(64, BF16, 3), random(64, BF16, 4)
    total, less = np.zeros(64, BF16), np.zeros(64, np.int32)
    elementwise[(1,)](x, y, total, less, BLOCK=64)
    assert (less == (x.astype(np.float32) < y.astype(np.float32))).all()


def test_a_cast_to_bf16_rounds_to_nearest_even():
    x = np.concatenate([random(4094, np.float32, 5), np.array([1.998, 1.00390625], np.float32)])
    out = np.zeros(4096, BF16)
    narrow[(1,)](x, out, BLOCK=4096)
    assert (out == x.astype(BF16)).all()
    truncated = (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32).astype(BF16)
    assert (out != truncated).mean() > 0.4


def test_a_bf16_dot_multiplies_values():
    a, b = random((16, 16), BF16, 6), random((16, 16), BF16, 7)
    out = np.zeros((16, 16), np.float32)
    product[(1,)](a, b, out, N=16, PRECISION="ieee")
    assert np.abs(out - a.astype(np.float64) @ b.astype(np.float64)).max() < 1e-5


def test_hf32_and_ieee_products_differ_and_tf32_means_hf32():
    a, b = random((64, 64), np.float32, 8), random((64, 64), np.float32, 9)
    found = {}
    for precision in ("ieee", "hf32", "tf32"):
        found[precision] = np.zeros((64, 64), np.float32)
        product[(1,)](a, b, found[precision], N=64, PRECISION=precision)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    bits = {p: -np.log2(np.abs(x - exact).mean() / np.abs(exact).mean()) for p, x in found.items()}
    assert bits["ieee"] > 23
    assert 12 < bits["hf32"] < 13.5
    assert (found["hf32"] == found["tf32"]).all()

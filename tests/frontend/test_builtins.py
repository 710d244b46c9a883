"""Every builtin of the language inside a kernel, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

from .values import output

X = np.array([[1.5, -2.0, 3.25], [0.5, 4.0, -1.0]], np.float32)


@sim.jit
def elementwise(out, x, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.abs(tl.load(x + i))
    tl.store(out + 0 * B + i, tl.exp(v) + v.exp())
    tl.store(out + 1 * B + i, tl.log(v) + v.log())
    tl.store(out + 2 * B + i, tl.sqrt(v) + tl.sqrt_rn(v))
    tl.store(out + 3 * B + i, tl.rsqrt(v))
    tl.store(out + 4 * B + i, tl.sigmoid(v))
    tl.store(out + 5 * B + i, tl.maximum(v, 2.0) + tl.minimum(v, 1))
    tl.store(out + 6 * B + i, tl.fdiv(v, 3.0) + tl.div_rn(1, v))
    tl.store(out + 7 * B + i, tl.where(v > 2, v, -1) + abs(-v) + tl.abs(-2))
    tl.store(out + 8 * B + i, tl.cdiv(i, 4) + tl.cast(v, tl.int32) + v.to(tl.float16))


def test_elementwise_builtins() -> None:
    v = np.abs(X.reshape(-1))
    one = np.float32(1)
    got = output(elementwise, 54, X, B=6).reshape(9, 6)
    i = np.arange(6)
    np.testing.assert_allclose(got[0], 2 * np.exp(v), rtol=1e-6)
    np.testing.assert_allclose(got[1], 2 * np.log(v), rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(got[2], 2 * np.sqrt(v))
    np.testing.assert_array_equal(got[3], one / np.sqrt(v))
    np.testing.assert_allclose(got[4], 1 / (1 + np.exp(-v)), rtol=1e-6)
    np.testing.assert_array_equal(got[5], np.maximum(v, 2) + np.minimum(v, 1))
    np.testing.assert_array_equal(got[6], v / np.float32(3) + one / v)
    np.testing.assert_array_equal(got[7], np.where(v > 2, v, -1) + v + 2)
    np.testing.assert_array_equal(got[8], -(-i // 4) + v.astype(int) + v)


@sim.jit
def shapes(out, x, R: tl.constexpr, C: tl.constexpr):
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    v = tl.load(x + at)
    flat = tl.arange(0, R * C)
    tl.store(out + flat, tl.ravel(tl.trans(v)))
    tl.store(out + 1 * R * C + flat, v.T.reshape(R * C))
    tl.store(out + 2 * R * C + flat, tl.view(tl.permute(v, (1, 0)), (R * C,)))
    tl.store(out + 3 * R * C + flat, tl.reshape(tl.expand_dims(v, 0), R * C))
    wide = tl.broadcast_to(tl.sum(v, axis=1, keep_dims=True), (R, C))
    tl.store(out + 4 * R * C + at, wide + tl.zeros_like(v) + tl.full((1, C), 2, tl.float32))


def test_builtins_that_change_the_shape() -> None:
    got = output(shapes, 30, X, R=2, C=3).reshape(5, 6)
    for k in range(3):
        assert got[k].tolist() == X.T.reshape(-1).tolist()
    assert got[3].tolist() == X.reshape(-1).tolist()
    assert got[4].reshape(2, 3).tolist() == [[2.75 + 2] * 3, [3.5 + 2] * 3]


@sim.jit
def reductions(out, x, b, R: tl.constexpr, C: tl.constexpr):
    v = tl.load(x + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :])
    tl.store(out, tl.sum(v) + v.sum(0).sum(0) + tl.max(v, 0, keep_dims=True).max())
    tl.store(out + 1, tl.min(v))
    flags = tl.load(b + tl.arange(0, R * C)) > 0
    tl.store(out + 2, tl.sum(flags))
    small = tl.load(b + tl.arange(0, R * C))
    tl.static_assert(tl.sum(small).dtype == tl.int32)
    tl.static_assert(tl.sum(small, dtype=tl.int8).dtype == tl.int8)
    tl.static_assert(tl.max(v.to(tl.float16)).dtype == tl.float32)
    tl.store(out + 3, tl.sum(small))
    tl.store(out + 4, tl.sum(small, dtype=tl.int8))


def test_reductions_and_the_types_they_sum_in() -> None:
    b = np.array([100, 100, -3, 0, 5, 6], np.int8)
    got = output(reductions, 5, X, b, R=2, C=3)
    assert got.tolist() == [2 * X.sum() + 4, -2, 4, 208, 208 - 256]


@sim.jit
def types(out, h: Any, b: Any):
    x, y = tl.load(h), tl.load(b)
    tl.static_assert((x + 0.1).dtype == tl.float16 and (x / 2).dtype == tl.float32)
    tl.static_assert((x * y).dtype == tl.float16, f"{(x * y).dtype}")
    tl.static_assert(h.dtype.element_ty == tl.float16 and h.dtype.is_ptr() and not x.dtype.is_int())
    tl.static_assert(x.dtype.primitive_bitwidth == 16 and x.dtype.is_floating() and x.shape == ())
    tl.store(out, (x + 0.1).to(tl.float32))
    tl.store(out + 1, x * 3 + 2049)


def test_numbers_beside_a_half_are_rounded_to_it() -> None:
    h = np.array([1.0], np.float16)
    got = output(types, 2, h, h)
    assert got[0] == np.float16(1) + np.float16(0.1)
    assert got[1] == np.float16(3) + np.float16(2049)

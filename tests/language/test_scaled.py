"""tl.dot_scaled: operands times powers of two, then the product."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import CompileError

from .values import output


@sim.jit
def product(
    out, a, sa, b, sb, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, G: tl.constexpr, F: tl.constexpr
):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    g = tl.arange(0, K // G)
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    left = tl.load(sa + m[:, None] * (K // G) + g[None, :])
    right = None
    if sb is not None:
        right = tl.load(sb + n[:, None] * (K // G) + g[None, :])
    acc = tl.full((M, N), 1.0, tl.float32)
    acc = tl.dot_scaled(x, left, F, y, right, F, acc=acc)
    tl.store(out + m[:, None] * N + n[None, :], acc)


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("exponents", [np.int8, np.uint8])
@pytest.mark.parametrize(("name", "kind"), [("fp16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_groups_are_scaled_by_powers_of_two(name: str, kind: Any, exponents: Any, both: bool) -> None:
    """Small integers times small powers of two: everything is exact, so the float64 product must be met."""
    rng = np.random.default_rng(1)
    m, n, k, g = 16, 8, 96, 32
    a, b = rng.integers(-3, 4, (m, k)).astype(kind), rng.integers(-3, 4, (k, n)).astype(kind)
    powers = [rng.integers(-3, 3, shape) for shape in ((m, k // g), (n, k // g))]
    sa, sb = ((p + (127 if exponents is np.uint8 else 0)).astype(exponents) for p in powers)
    got = output(product, m * n, a, sa, b, sb if both else None, M=m, N=n, K=k, G=g, F=name).reshape(m, n)
    left = a.astype(float) * np.repeat(2.0 ** powers[0], g, 1)
    right = b.astype(float) * (np.repeat(2.0 ** powers[1], g, 1).T if both else 1)
    np.testing.assert_array_equal(got, 1 + left @ right)


def test_what_is_refused() -> None:
    half, wrong = np.zeros((16, 16), np.float16), np.zeros((16, 4), np.int32)
    with pytest.raises(
        CompileError, match=r"scales of lhs must be int8 or uint8 of shape \[16, a divisor of 16\]"
    ):
        output(product, 256, half, wrong, half, None, M=16, N=16, K=16, G=4, F="fp16")
    with pytest.raises(CompileError, match="lhs must be a bf16 tile with two axes, got a fp16 tile"):
        output(product, 256, half, wrong, half, None, M=16, N=16, K=16, G=4, F="bf16")

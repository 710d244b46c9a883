"""An oracle of the Cube that shares nothing with it: rational arithmetic, one element at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

GRIDS = {
    "fp32": (23, -126, 127),
    "fp16": (10, -14, 15),
}  # stored mantissa bits, exponents of the normal range


def round_exactly(x: Fraction, grid: str, mode: str, saturate: bool) -> float:
    """x rounded to the grid from the definition; too large is the largest finite value, or infinity."""
    mantissa, least, most = GRIDS[grid]
    magnitude = abs(x)
    exponent = max(magnitude.numerator.bit_length() - magnitude.denominator.bit_length(), least)
    exponent -= exponent > least and Fraction(2) ** exponent > magnitude
    ulp = Fraction(2) ** (exponent - mantissa)
    units = round(magnitude / ulp) if mode == "RINT" else math.floor(magnitude / ulp)  # round: ties to even
    largest = (2 - Fraction(1, 2**mantissa)) * Fraction(2) ** most
    if units * ulp > largest:
        return math.copysign(float(largest) if saturate or mode == "TRUNC" else math.inf, x)
    return math.copysign(float(units * ulp), x)


def cube_exactly(
    a: NDArray[Any],
    b: NDArray[Any],
    c: NDArray[Any],
    kb: int,
    grid: str = "fp32",
    mode: str = "RINT",
    saturate: bool = False,
    flush: bool = True,
) -> NDArray[np.float32]:
    """(M, K) @ (K, N) + c for finite operands that are on their grid already."""
    out = np.empty((a.shape[0], b.shape[1]), np.float32)
    for i, j in np.ndindex(out.shape):
        total = float(c[i, j])
        for k in range(0, a.shape[1], kb):
            if math.isinf(total):
                break  # finite products cannot bring it back
            products = zip(a[i, k : k + kb].tolist(), b[k : k + kb, j].tolist(), strict=True)
            exact = sum((Fraction(x) * Fraction(y) for x, y in products), Fraction(total))
            total = round_exactly(exact, grid, mode, saturate)
            if flush and grid == "fp32" and abs(total) < 2.0**-126:
                total = 0.0
        out[i, j] = total
    return out


@pytest.fixture(scope="session")
def by_fractions() -> Callable[..., NDArray[np.float32]]:
    return cube_exactly


def bits(x: NDArray[np.float32]) -> NDArray[np.uint32]:
    return np.ascontiguousarray(x, np.float32).view(np.uint32)


@pytest.fixture(scope="session")
def word() -> Callable[[NDArray[np.float32]], NDArray[np.uint32]]:
    """FP32 words of an array, for comparisons that tell zeros and NaN apart."""
    return bits

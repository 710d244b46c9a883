"""exp and log are the correctly rounded results."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import mpmath
import numpy as np
import pytest

from ascendtile.simulator.precision import dtypes as ty

from ..support.elementwise import unary

HALVES: dict[str, Any] = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16}
FUNCTIONS: dict[str, Any] = {"exp": (np.exp, mpmath.exp), "log": (np.log, mpmath.log)}


def correct(name: str, x: np.ndarray, kind: Any) -> np.ndarray:
    """Correctly rounded values in `kind`, held in float32.

    numpy's double result is good to 2^-51; where all doubles that near round alike, that is the answer, and the few
    others are decided with 60 digits.
    """
    double, exact = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        y = double(x.astype(np.float64))
        slack = np.where(np.isfinite(y), np.abs(y) * 2.0**-50, 0)
        low, high = ((y - s * slack).astype(kind).astype(np.float32) for s in (1, -1))
    out = np.array(low)
    for k in np.flatnonzero((low != high) & ~(np.isnan(low) & np.isnan(high))):
        out[k] = _decide(exact(mpmath.mpf(float(x[k]))), low[k], high[k])
    return out


def _decide(value: Any, low: np.float32, high: np.float32) -> np.float32:
    """The one of two neighbours that is nearer."""
    with mpmath.workdps(60):
        return low if abs(value - mpmath.mpf(float(low))) < abs(mpmath.mpf(float(high)) - value) else high


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("half", HALVES)
def test_every_half(name: str, half: str) -> None:
    x = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(HALVES[half]).astype(np.float32)
    dtype = ty.from_name(half)
    assert dtype is not None
    np.testing.assert_array_equal(unary(name, x, dtype), correct(name, x, HALVES[half]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_single_precision_on_many_points(name: str) -> None:
    rng = np.random.default_rng(4)
    bits = rng.integers(0, 1 << 32, 100_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    usual = rng.uniform(-104, 89, 100_000).astype(np.float32)
    near_one = (1 + rng.uniform(-1e-3, 1e-3, 50_000)).astype(np.float32)
    edges = np.array(
        [0, -0.0, np.inf, -np.inf, np.nan, 88.72283, 88.72284, -103.97208, -103.97209, -87.33655, 1, 1e-45],
        np.float32,
    )
    x = np.concatenate([bits, usual if name == "exp" else np.abs(usual), near_one, -near_one, edges])
    with mpmath.workdps(60):
        np.testing.assert_array_equal(unary(name, x, ty.float32), correct(name, x, np.float32))


def test_logarithms_of_numbers_below_the_normal_range() -> None:
    x = (np.arange(1, 2000, 7) * 2.0**-149).astype(np.float32)
    with mpmath.workdps(60):
        np.testing.assert_array_equal(unary("log", x, ty.float32), correct("log", x, np.float32))


def test_special_values() -> None:
    x = np.array([0, -0.0, 1, np.inf, -np.inf, -1, np.nan], np.float32)
    for dtype in (ty.float16, ty.bfloat16, ty.float32):
        assert unary("exp", x[:5], dtype).tolist()[:2] == [1, 1]
        assert unary("exp", x[3:5], dtype).tolist() == [np.inf, 0]
        assert unary("log", x[:4], dtype).tolist() == [-np.inf, -np.inf, 0, np.inf]
        assert np.isnan(unary("log", x[4:], dtype)).all()
        assert np.isnan(unary("exp", x[6:], dtype)).all()

"""Casts between all types: one rounding to floats, toward zero and no further than the limits to integers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ascendtile.simulator.precision import dtypes as ty
from ascendtile.simulator.units import vector

FLOATS: dict[str, Any] = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp32": np.float32}
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DIGITS = {
    "fp16": (11, -24, 65504.0),
    "bf16": (8, -133, 3.3895313892515355e38),
    "fp32": (24, -149, 3.4028234663852886e38),
}


def cast(x: np.ndarray, source: str, target: str) -> np.ndarray:
    a, b = ty.from_name(source), ty.from_name(target)
    assert a is not None
    assert b is not None
    return vector.cast(x, a, b)


def nearest(x: Fraction, name: str) -> float:
    """Round to nearest even in the format, exactly."""
    if x == 0:
        return 0.0
    digits, lowest, largest = DIGITS[name]
    exponent = max(len(bin(abs(x.numerator))) - len(bin(x.denominator)) - 1 - digits, lowest)
    while abs(x) >= Fraction(2) ** (exponent + digits):
        exponent += 1
    rounded = round(x / Fraction(2) ** exponent) * Fraction(2) ** exponent
    return float(rounded) if abs(rounded) <= largest else float("inf") if x > 0 else -float("inf")


@pytest.mark.parametrize("target", ["fp16", "bf16"])
def test_single_to_half_on_and_around_every_boundary(target: str) -> None:
    grid = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(FLOATS[target]).astype(np.float32)
    grid = np.sort(grid[np.isfinite(grid)])
    with np.errstate(over="ignore", invalid="ignore"):
        middles = ((grid[1:].astype(np.float64) + grid[:-1]) / 2).astype(np.float32)
    around = [np.nextafter(middles, np.float32(s), dtype=np.float32) for s in (-np.inf, np.inf)]
    x = np.concatenate(
        [grid, middles, *around, np.array([np.inf, -np.inf, np.nan, 65520, 65519.996], np.float32)]
    )
    with np.errstate(over="ignore", invalid="ignore"):
        want = x.astype(FLOATS[target]).astype(np.float32)
    np.testing.assert_array_equal(cast(x, "fp32", target), want)


@pytest.mark.parametrize("source", ["fp16", "bf16"])
@pytest.mark.parametrize("target", ["fp16", "bf16", "fp32", "fp64"])
def test_every_half_to_other_floats(source: str, target: str) -> None:
    x = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(FLOATS[source]).astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        want = x.astype(FLOATS[target]).astype(np.float32) if target in FLOATS else x.astype(np.float64)
    np.testing.assert_array_equal(cast(x, source, target), want)


def integers(name: str) -> np.ndarray:
    """The corners of a type and numbers beside halfway points of every format."""
    info = np.iinfo(name)
    known = {int(info.min), int(info.max), int(info.max) - 1, 0, 1, 65504, 65519, 65520, 65521}
    for bit in range(8, 64):
        for cut in (8, 11, 24):
            if bit > cut:
                middle = (1 << bit) + (1 << (bit - cut))
                known |= {s * (middle + d) for s in (1, -1) for d in (-1, 0, 1)}
                known |= {s * (middle + (1 << (bit - cut + 1)) + d) for s in (1, -1) for d in (-1, 0, 1)}
    return np.array([k for k in sorted(known) if info.min <= k <= info.max], name)


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("target", FLOATS)
def test_integers_to_floats_round_once(source: str, target: str) -> None:
    x = integers(source)
    got = cast(x, source, target)
    assert got.dtype == np.float32
    assert got.tolist() == [nearest(Fraction(int(k)), target) for k in x]


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", FLOATS)
def test_floats_to_integers_go_toward_zero_and_stop_at_the_limits(source: str, target: str) -> None:
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 1 << 32, 3000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    known = [
        0.5,
        -0.5,
        0.99,
        -0.99,
        1.5,
        -1.5,
        127.9,
        128,
        -128.9,
        -129,
        255.9,
        256,
        2.0**31,
        2.0**63,
        2.0**64,
        np.inf,
    ]
    x = np.r_[bits, np.array([*known, *(-k for k in known), np.nan], np.float32)]
    with np.errstate(over="ignore", invalid="ignore"):
        x = x.astype(FLOATS[source]).astype(np.float32)
    info = np.iinfo(target)
    want = [0 if np.isnan(v) else int(info.max if v > 0 else info.min) if np.isinf(v) else
            min(max(int(v), int(info.min)), int(info.max)) for v in x.tolist()]  # fmt: skip
    assert cast(x, source, target).tolist() == want


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("target", INTEGERS)
def test_integers_to_integers_keep_the_low_bits(source: str, target: str) -> None:
    x = integers(source)
    info = np.iinfo(target)
    want = [(int(k) - int(info.min)) % (1 << info.bits) + int(info.min) for k in x]
    assert cast(x, source, target).tolist() == want


@pytest.mark.parametrize("target", ["fp16", "bf16"])
def test_double_to_half_rounds_once(target: str) -> None:
    one = Fraction(1) + Fraction(1, 1 << DIGITS[target][0])  # halfway above 1
    just_above = float(one + Fraction(1, 1 << 40))  # float32 would lose the last bit and tie to even
    assert cast(np.array([just_above]), "fp64", target)[0] == nearest(Fraction(just_above), target) > 1


def test_anything_but_zero_is_true() -> None:
    x = np.array([0.0, -0.0, 1e-45, np.nan, -3], np.float32)
    assert cast(x, "fp32", "int1").tolist() == [False, False, True, True, True]
    assert cast(np.array([True, False]), "int1", "fp16").tolist() == [1, 0]
    assert cast(np.array([True, False]), "int1", "int8").tolist() == [1, 0]


@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_memory_holds_what_the_kernel_holds(name: str) -> None:
    dtype = ty.from_name(name)
    assert dtype is not None
    stored = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(FLOATS[name])
    held = vector.decode(stored, dtype)
    np.testing.assert_array_equal(held, stored.astype(np.float32))
    numbers = ~np.isnan(held)
    np.testing.assert_array_equal(
        vector.encode(held, dtype).view(np.uint16)[numbers], stored.view(np.uint16)[numbers]
    )

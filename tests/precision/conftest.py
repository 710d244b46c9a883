"""Oracles that share no code with the simulator: all values of a format, and exact rational arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

MODES = ("RINT", "FLOOR", "CEIL", "ROUND", "TRUNC", "ODD", "RNZ")


@dataclass(frozen=True)
class Grid:
    """A format by its two numbers."""

    name: str
    exponent: int
    mantissa: int

    @property
    def emin(self) -> int:
        return 2 - 2 ** (self.exponent - 1)

    @property
    def infinity_code(self) -> int:
        return (2**self.exponent - 1) << self.mantissa

    def values(self) -> NDArray[np.float64]:
        """Every magnitude by code; the one after the largest is what it would be, not infinity."""
        codes = np.arange(self.infinity_code + 1)
        exponent, fraction = codes >> self.mantissa, codes & (2**self.mantissa - 1)
        significand = np.where(exponent > 0, 2.0**self.mantissa, 0.0) + fraction
        return np.ldexp(significand, np.maximum(exponent, 1) - 1 + self.emin - self.mantissa)


GRIDS = (
    Grid("fp16", 5, 10),
    Grid("bf16", 8, 7),
    Grid("hf32", 8, 11),
    Grid("tf32", 8, 10),
    Grid("fp32", 8, 23),
)


def nearest_code(position: Fraction, mode: str) -> int:
    """The integer that a nearest mode picks for a position on the number line of codes."""
    low = math.floor(position)
    part = position - low
    if part != Fraction(1, 2):
        return low + (part > Fraction(1, 2))
    return {"RINT": low + low % 2, "ROUND": low + 1, "RNZ": low}[mode]


def exact_magnitude(x: Fraction, grid: Grid, mode: str, negative: bool) -> Fraction | None:
    """Magnitude x rounded to the grid, straight from the definition; None for infinity."""
    exponent = max(x.numerator.bit_length() - x.denominator.bit_length(), grid.emin)
    if exponent > grid.emin and Fraction(2) ** exponent > x:
        exponent -= 1
    ulp = Fraction(2) ** (exponent - grid.mantissa)
    position = x / ulp
    low, inexact = math.floor(position), position.denominator != 1
    away = (mode == "FLOOR" and negative) or (mode == "CEIL" and not negative)
    if mode in ("RINT", "ROUND", "RNZ"):
        low = nearest_code(position, mode)
    elif inexact and (away or (mode == "ODD" and low % 2 == 0)):
        low += 1
    if low * ulp < Fraction(2) ** (2 - grid.emin):
        return low * ulp
    largest = (2 - Fraction(1, 2**grid.mantissa)) * Fraction(2) ** (1 - grid.emin)
    return None if away or mode in ("RINT", "ROUND", "RNZ") else largest


def exact_round(
    x: float, grid: Grid, mode: str, overflow: str = "inf_nan", subnormals: str = "keep"
) -> float:
    """One value by rational arithmetic, with the special values of both overflow modes."""
    sign = math.copysign(1.0, x)
    largest = (2 - 2.0**-grid.mantissa) * 2.0 ** (1 - grid.emin)
    top = math.inf if overflow == "inf_nan" else largest
    if math.isnan(x):
        return 0.0 if overflow == "saturate" else x
    if math.isinf(x):
        return sign * top
    if subnormals == "flush" and abs(x) < 2.0**grid.emin:
        return sign * 0.0
    magnitude = exact_magnitude(Fraction(abs(x)), grid, mode, sign < 0)
    return sign * (top if magnitude is None else float(magnitude))


def same(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Bit equality, any NaN equal to any other."""
    nan = np.isnan(a) & np.isnan(b)
    return nan | (np.asarray(a).view(np.uint32) == np.asarray(b).view(np.uint32))


@pytest.fixture(scope="session", params=GRIDS[:4], ids=lambda grid: grid.name)
def grid(request: pytest.FixtureRequest) -> Grid:
    return request.param


@pytest.fixture(scope="session", params=GRIDS, ids=lambda grid: grid.name)
def any_grid(request: pytest.FixtureRequest) -> Grid:
    return request.param


@pytest.fixture(scope="session")
def any_grids() -> dict[str, Grid]:
    return {grid.name: grid for grid in GRIDS}


@pytest.fixture(scope="session", params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="session")
def by_fractions() -> Callable[..., float]:
    return exact_round


@pytest.fixture(scope="session")
def same_bits() -> Callable[..., NDArray[np.bool_]]:
    return same


@pytest.fixture(scope="session")
def words() -> NDArray[np.float32]:
    """FP32 words of every kind: random patterns, and each corner with its neighbours, in both signs."""
    random = np.random.default_rng(20240607).integers(0, 2**32, 20_000, dtype=np.uint32)
    corners = [
        0,
        0x800000,
        0x38800000,
        0x33000000,
        0x33800000,
        0x477FE000,
        0x477FF000,
        0x47800000,
        0x7F7FF800,
    ]
    corners += [0x7F7F8000, 0x7F800000, 0x7FC00000, 0x3F800000, 0x00000800, 0x00008000]
    near = np.array([c + d for c in corners for d in range(-3, 4) if c + d >= 0], np.uint32)
    return np.concatenate([random, near, near | np.uint32(0x80000000)]).view(np.float32)

"""Rounding to any format from its table of values alone, in rational numbers; it shares no code with the loops."""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ascendtile.simulator.precision.formats import Format

TOWARD_ZERO = ("TRUNC", "ODD")


@lru_cache
def magnitudes(fmt: Format, negative: bool) -> tuple[list[Fraction], list[int]]:
    """The finite magnitudes in ascending order and their codes, one each; last the number that is too large."""
    rows: dict[Fraction, int] = {}
    for code, value in enumerate(fmt.values[: 1 << fmt.magnitude_bits]):
        if math.isfinite(value):
            rows.setdefault(Fraction(float(value)), code)
    if negative and not fmt.is_float:  # two's complement reaches one step further below zero
        rows[Fraction(-float(fmt.min))] = len(rows)
    values = sorted(rows)
    codes = [rows[v] for v in values]
    return [*values, values[-1] + Fraction(float(fmt.ulp(float(values[-1]))))], [*codes, codes[-1] + 1]


def nearest(low: Fraction, high: Fraction, code: int, x: Fraction, mode: str, bits: int) -> bool:
    """Whether a nearest mode goes up. Ties: to the even code; with one significant digit to the larger number (IEEE
    754-2019, 4.3.1), and to zero where that is even, too."""
    middle = (low + high) / 2
    if x != middle or mode == "ROUND":
        return x >= middle
    if mode == "RNZ":
        return False
    return code % 2 == 1 or (bits == 0 and low > 0)


def mantissa_at(fmt: Format, x: Fraction) -> int:
    """Mantissa bits of the binade of x; below the first that of the first."""
    exponent = math.frexp(float(x))[1] - 1  # x is a float
    return [m for start, m in fmt.spacing if start <= max(exponent, fmt.spacing[0][0])][-1]


def rounded(x: float, fmt: Format, mode: str, overflow: str = "inf_nan") -> float:
    """One value in `mode`; see `round_to`."""
    beyond = math.inf if fmt.infinities else math.nan if fmt.nan != "none" else float(fmt.max)
    sign = math.copysign(1.0, x)
    largest = float(fmt.max) if sign > 0 or fmt.is_float else -float(fmt.min)
    beyond = beyond if overflow == "inf_nan" and fmt.is_float else largest
    if math.isnan(x):
        return math.nan if fmt.nan != "none" and overflow != "saturate" else 0.0
    if math.isinf(x):
        return sign * beyond
    (values, codes), m, negative = magnitudes(fmt, sign < 0), Fraction(abs(x)), sign < 0
    at = bisect_right(values, m) - 1
    if values[at] != m and at < len(values) - 1:
        bits = mantissa_at(fmt, m)
        up = {
            "TRUNC": False,
            "FLOOR": negative,
            "CEIL": not negative,
            "ODD": codes[at] % 2 == 0 and (bits > 0 or values[at] == 0),
        }
        at += up[mode] if mode in up else nearest(values[at], values[at + 1], codes[at], m, mode, bits)
    if at < len(values) - 1:
        return sign * float(values[at])
    held = mode in TOWARD_ZERO or mode == ("CEIL" if negative else "FLOOR")
    return sign * (largest if held else beyond)


def same_values(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Equal numbers, any NaN equal to any other, zeros of either sign alike."""
    return (a == b) | (np.isnan(a) & np.isnan(b))

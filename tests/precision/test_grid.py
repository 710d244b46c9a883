"""Rounding to a grid: exhaustive over every gap between neighbours, then against two independent oracles.

test_every_gap proves the modes: all values of FP16, BF16, HF32 and TF32, all half-way points, and the
float32 numbers next to both, in both signs. The rational oracle covers the rest: specials, saturation,
flushing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import gfloat
import numpy as np
import pytest
from gfloat.formats import format_info_bfloat16, format_info_binary16, format_info_binary32
from numpy.typing import NDArray

from ascendtile.simulator.precision.rounding import MODES, OVERFLOWS, SUBNORMALS, round_to

Words = NDArray[np.float32]


@lru_cache
def grid_values(grid: Any) -> tuple[NDArray[np.float64], Words]:
    """All magnitudes with the one after the largest, and the same as results: the last is infinity."""
    values = grid.values()
    results = values.copy()
    results[-1] = np.inf
    with np.errstate(over="ignore"):
        return values, results.astype(np.float32)


def expected_codes(place: str, low: NDArray[np.int64], mode: str) -> NDArray[np.int64]:
    """Code for a point between codes low and low + 1, for a positive value."""
    high = low + 1
    even = low + low % 2
    half_way = {"RINT": even, "ROUND": high, "RNZ": low}
    nearer = {"below half": low, "half": half_way.get(mode), "above half": high}
    nearer |= {"just above": low, "just below": high}
    directed = {"TRUNC": low, "FLOOR": low, "CEIL": high, "ODD": low + (low + 1) % 2}
    return directed[mode] if mode in directed else nearer[place]


def points(place: str, values: NDArray[np.float64]) -> Words:
    """float32 points of each gap."""
    low, high = values[:-1], values[1:]
    middle = ((low + high) / 2).astype(np.float32)
    assert np.array_equal(middle, (low + high) / 2)
    zero, top = np.float32(0), np.float32(np.inf)
    with np.errstate(over="ignore"):
        return {
            "half": lambda: middle,
            "below half": lambda: np.nextafter(middle, zero),
            "above half": lambda: np.nextafter(middle, top),
            "just above": lambda: np.nextafter(low.astype(np.float32), top),
            "just below": lambda: np.nextafter(high.astype(np.float32), zero),
        }[place]()


@pytest.mark.drawn(8)
@pytest.mark.parametrize("place", ["half", "below half", "above half", "just above", "just below"])
def test_every_gap(grid: Any, mode: str, place: str) -> None:
    values, results = grid_values(grid)
    x = points(place, values)
    mirrored = {"FLOOR": "CEIL", "CEIL": "FLOOR"}.get(mode, mode)
    codes = expected_codes(place, np.arange(len(x)), mode)
    assert np.array_equal(round_to(x, grid.name, mode), results[codes])
    codes = expected_codes(place, np.arange(len(x)), mirrored)
    assert np.array_equal(round_to(-x, grid.name, mode), -results[codes])


def test_every_value_of_the_grid_stays(grid: Any, mode: str) -> None:
    for x in (grid_values(grid)[1], -grid_values(grid)[1]):
        assert np.array_equal(round_to(x, grid.name, mode).view(np.uint32), x.view(np.uint32))


@pytest.mark.drawn(8)
@pytest.mark.parametrize("overflow", OVERFLOWS)
@pytest.mark.parametrize("subnormals", SUBNORMALS)
def test_any_word_against_rational_arithmetic(
    any_grid: Any, mode: str, overflow: str, subnormals: str, words: Words, by_fractions: Any, same_bits: Any
) -> None:
    x = words[-400:]  # the corners and random words
    got = round_to(x, any_grid.name, mode, overflow, subnormals)
    expected = [by_fractions(float(v), any_grid, mode, overflow, subnormals) for v in x]
    assert same_bits(got, np.array(expected, np.float32)).all()


GFLOAT_MODES = {
    "RINT": gfloat.RoundMode.TiesToEven,
    "ROUND": gfloat.RoundMode.TiesToAway,
    "TRUNC": gfloat.RoundMode.TowardZero,
    "FLOOR": gfloat.RoundMode.TowardNegative,
    "CEIL": gfloat.RoundMode.TowardPositive,
}


def gfloat_format(grid: Any) -> gfloat.FormatInfo:
    known = {"fp16": format_info_binary16, "bf16": format_info_bfloat16, "fp32": format_info_binary32}
    wide = gfloat.FormatInfo(
        grid.name,
        1 + grid.exponent + grid.mantissa,
        grid.mantissa + 1,
        bias=127,
        is_signed=True,
        domain=gfloat.Domain.Extended,
        has_nz=True,
        num_high_nans=2**grid.mantissa - 1,
        has_subnormals=True,
        is_twos_complement=False,
    )
    return known.get(grid.name, wide)


@pytest.mark.parametrize("gfloat_mode", GFLOAT_MODES)
def test_any_word_against_gfloat(grid: Any, gfloat_mode: str, words: Words) -> None:
    x = words[~np.isnan(words)]
    with np.errstate(all="ignore"):
        expected = gfloat.round_ndarray(gfloat_format(grid), x.astype(np.float64), GFLOAT_MODES[gfloat_mode])
        got = round_to(x, grid.name, gfloat_mode)
        assert np.array_equal(got.view(np.uint32), expected.astype(np.float32).view(np.uint32))


def test_a_row_of_any_length_is_rounded_as_its_elements_are(grid: Any, words: Words, same_bits: Any) -> None:
    """Vector loops have a head and a tail, blocks have an end: no length and no offset changes a value."""
    whole = round_to(words, grid.name)
    for start, stop in ((0, 1), (1, 4), (2, 17), (3, 2050), (5, 4099), (7, 6149)):
        assert same_bits(round_to(words[start:stop], grid.name), whole[start:stop]).all()


def test_the_default_path_is_the_general_path(grid: Any, words: Words, same_bits: Any) -> None:
    """RINT, inf_nan, keep has a loop of its own: float64 goes through the other."""
    with np.errstate(invalid="ignore"):
        general = round_to(words.astype(np.float64), grid.name)
    assert same_bits(round_to(words, grid.name), general).all()


def test_nan_is_quiet_and_keeps_its_sign(any_grid: Any) -> None:
    for name_of_mode in MODES:
        for bits in (0x7F800001, 0xFF800001, 0xFFFFFFFF):
            x = np.array(bits, np.uint32).view(np.float32)
            got = int(round_to(x, any_grid.name, name_of_mode, subnormals="flush").view(np.uint32))
            assert got & 0x7FC00000 == 0x7FC00000
            assert got >> 31 == bits >> 31


def test_hf32_against_rational_arithmetic_on_random_words(
    by_fractions: Callable[..., float], grid: Any
) -> None:
    rng = np.random.default_rng(7)
    x = rng.integers(0, 0x7F800000, 500, dtype=np.uint32).view(np.float32)
    for name_of_mode in MODES:
        expected = [by_fractions(float(v), grid, name_of_mode) for v in x]
        assert np.array_equal(round_to(x, grid.name, name_of_mode), np.array(expected, np.float32))

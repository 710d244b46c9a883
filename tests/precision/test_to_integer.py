"""Floating-point to integer casts: all modes, both overflow rules, against exact integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.precision.rounding import MODES, to_integer

TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def exact(x: float, mode: str) -> int:
    """x as an integer, from the definition of the mode."""
    value = Fraction(x)
    low, part = math.floor(value), value - math.floor(value)
    if mode in ("RINT", "ROUND", "RNZ") and part == Fraction(1, 2):
        toward_zero, away = (low, low + 1) if x > 0 else (low + 1, low)
        return {"RINT": low + low % 2, "ROUND": away, "RNZ": toward_zero}[mode]
    return {
        "RINT": math.floor(value + Fraction(1, 2)),
        "ROUND": math.floor(value + Fraction(1, 2)),
        "RNZ": math.floor(value + Fraction(1, 2)),
        "FLOOR": low,
        "CEIL": math.ceil(value),
        "TRUNC": math.trunc(value),
        "ODD": low if part == 0 or low % 2 else low + 1,
    }[mode]


@given(
    x=st.one_of(
        st.floats(allow_nan=False, allow_infinity=False),
        st.floats(-300, 300),
        st.integers(-(2**9), 2**9).map(lambda n: n / 2),
        st.sampled_from([2.0**e + d for e in (7, 8, 15, 16, 31, 32, 52, 53, 63, 64) for d in (-0.5, 0, 0.5)]),
    ),
    name=st.sampled_from(TYPES),
    mode=st.sampled_from(MODES),
)
def test_both_overflow_rules(x: float, name: str, mode: str) -> None:
    info = np.iinfo(name)
    value = exact(x, mode)
    assert to_integer(x, name, mode) == min(max(value, info.min), info.max)
    wrapped = (value - info.min) % (info.max - info.min + 1) + info.min
    assert to_integer(x, name, mode, overflow="wrap") == wrapped


@pytest.mark.parametrize("name", TYPES)
def test_specials(name: str) -> None:
    info = np.iinfo(name)
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45], np.float32)
    assert to_integer(x, name).tolist() == [0, info.max, info.min, 0, 0]
    assert to_integer(x, name, overflow="wrap").tolist() == [0, 0, 0, 0, 0]


def test_the_default_truncates_as_languages_do() -> None:
    x = np.array([[1.9, -1.9], [300, -300]], np.float16)
    assert to_integer(x, "int8").tolist() == [[1, -1], [127, -128]]
    assert to_integer(x, "int8").dtype == np.int8


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: to_integer([1.0], "fp16"), r"to_integer: fp16 is not an integer format"),
        (lambda: to_integer([1.0], "bool"), r"to_integer: bool is not an integer format"),
        (lambda: to_integer([1], "int8"), r"the values are integers already"),
        (
            lambda: to_integer([1.0], "int8", overflow="inf_nan"),
            r"overflow 'inf_nan': known are saturate, wrap",
        ),
    ],
    ids=range(4),
)
def test_error_texts(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        call()

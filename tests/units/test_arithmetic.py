"""Elementwise arithmetic is correctly rounded in every type, against ml_dtypes, numpy and exact fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ascendtile.simulator.precision import dtypes as ty
from ascendtile.simulator.units import vector

from ..support.elementwise import binary, unary

HALVES = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16}
ALL_BITS = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
OPERATIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}


def held(bits: np.ndarray, name: str) -> np.ndarray:
    return bits.view(HALVES[name]).astype(np.float32)


def equal(got: np.ndarray, want: np.ndarray) -> None:
    """The same numbers; a NaN for a NaN, zeros with their sign."""
    np.testing.assert_array_equal(got, want)
    there = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[there]), np.signbit(want[there]))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize("op", OPERATIONS)
def test_halves_round_once(name: str, op: str) -> None:
    """Every half against 40 others of all sizes; float64 holds sums, products and quotients of halves closely enough
    (53 bits are more than twice 11 plus 2) that one rounding of it is the right one."""
    rng = np.random.default_rng(1)
    a = held(ALL_BITS, name)[None, :]
    picks = rng.choice(ALL_BITS, 36)
    b = held(np.r_[picks, [0, 0x8000, 1, 0x7BFF]].astype(np.uint16), name)[:, None]
    got = binary(op, a, b, getattr(ty, {"fp16": "float16", "bf16": "bfloat16"}[name]))
    with np.errstate(all="ignore"):
        exact = OPERATIONS[op](a.astype(np.float64), b.astype(np.float64))
        want = exact.astype(HALVES[name]).astype(np.float32)
    near = np.isfinite(exact) & (np.abs(want) > 0)
    assert near.sum() > a.size
    equal(got, want)


@pytest.mark.parametrize("op", OPERATIONS)
def test_single_precision_rounds_exactly(op: str) -> None:
    rng = np.random.default_rng(2)
    bits = rng.integers(0, 1 << 32, 4000, dtype=np.uint64).astype(np.uint32)
    a, b = bits.view(np.float32).reshape(2, -1)
    keep = np.isfinite(a) & np.isfinite(b) & (b != 0)
    a, b = a[keep], b[keep]
    got = binary(op, a, b, ty.float32)
    for x, y, r in zip(a[:600].tolist(), b[:600].tolist(), got[:600].tolist(), strict=True):
        x_, y_ = Fraction(x), Fraction(y)
        exact = {"add": x_ + y_, "sub": x_ - y_, "mul": x_ * y_, "div": x_ / y_}[op]
        if not np.isfinite(r):
            assert abs(exact) >= Fraction(2) ** 128 - Fraction(2) ** 103
            continue
        neighbours = [np.nextafter(np.float32(r), np.float32(s), dtype=np.float32) for s in (-np.inf, np.inf)]
        distance = abs(Fraction(r) - exact)
        assert all(distance <= abs(Fraction(float(n)) - exact) for n in neighbours if np.isfinite(n))


@pytest.mark.parametrize("name", ["fp16", "bf16", "fp32"])
def test_maximum_and_minimum_skip_nan_and_compare_does_not(name: str) -> None:
    dtype = ty.from_name(name)
    assert dtype is not None
    x = np.array([1, np.nan, np.nan, -np.inf, 2, -0.5], np.float32)
    y = np.array([np.nan, 3, np.nan, 5, -2, -0.25], np.float32)
    equal(binary("max", x, y, dtype), np.array([1, 3, np.nan, 5, 2, -0.25], np.float32))
    equal(binary("min", x, y, dtype), np.array([1, 3, np.nan, -np.inf, -2, -0.5], np.float32))
    want = {"lt": [4], "le": [4], "gt": [], "ge": [], "eq": [], "ne": [0, 1, 2, 3, 4]}
    a, b = x[[0, 1, 2, 4, 3]], y[[0, 1, 2, 5, 3]]
    for op, hits in {**want, "gt": [3], "ge": [3]}.items():
        assert np.flatnonzero(vector.compare(op, a, b)).tolist() == hits


INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


def corners(kind: Any) -> np.ndarray:
    info = np.iinfo(kind)
    known = {
        int(info.min),
        int(info.min) + 1,
        int(info.max),
        int(info.max) - 1,
        0,
        1,
        2,
        3,
        7,
        100,
        -1,
        -2,
        -3,
        -7,
    }
    return np.array(sorted(k for k in known if info.min <= k <= info.max), kind)


def wrapped(x: int, kind: Any) -> int:
    info = np.iinfo(kind)
    return (x - int(info.min)) % (1 << info.bits) + int(info.min)


def toward_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


EXACT: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "max": max,
    "min": min,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "floordiv": toward_zero,
    "mod": lambda a, b: a - toward_zero(a, b) * b,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
}


@pytest.mark.parametrize("kind", INTEGERS, ids=lambda k: np.dtype(k).name)
@pytest.mark.parametrize("op", EXACT)
def test_integers_wrap_and_divide_toward_zero(kind: Any, op: str) -> None:
    a, b = (x.reshape(-1) for x in np.meshgrid(corners(kind), corners(kind)))
    keep = (b > 0) & (b < np.iinfo(kind).bits) if op in ("shl", "shr") else b != 0
    a, b = a[keep], b[keep]
    got = binary(op, a, b, ty.from_numpy(np.dtype(kind)))  # type: ignore[arg-type]
    assert got.dtype == kind
    want = [wrapped(EXACT[op](int(x), int(y)), kind) for x, y in zip(a, b, strict=True)]
    assert got.tolist() == want


@pytest.mark.parametrize("name", HALVES)
def test_square_roots_and_signs_of_every_half(name: str) -> None:
    dtype, x = ty.from_name(name), held(ALL_BITS, name)
    assert dtype is not None
    with np.errstate(invalid="ignore"):
        want = np.sqrt(x.astype(np.float64)).astype(HALVES[name]).astype(np.float32)
    equal(unary("sqrt", x, dtype), want)
    equal(unary("neg", x, dtype), -x)
    equal(unary("abs", x, dtype), np.abs(x))


def test_select_takes_elements_and_broadcasts() -> None:
    condition = np.array([[True, False, True]])
    out = vector.select(condition, np.array([[1.0], [2.0]], np.float32), np.array([[9.0]], np.float32))
    assert out.tolist() == [[1, 9, 1], [2, 9, 2]]

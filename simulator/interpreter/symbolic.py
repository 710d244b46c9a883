"""Arithmetic on integer scalars, index tiles and box masks: exact, for all programs of a chunk at once.

Values and timing share it. Every function gives None where the result leaves the symbolic form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._numbers import divide, ends
from .values import Affine, Box, Int


def _floordiv(a: Int, b: Int) -> Int:
    """Quotient toward zero, as C and Triton have it."""
    if isinstance(a, int) and isinstance(b, int):
        q = abs(a) // abs(b)
        return q if (a >= 0) == (b >= 0) else -q
    return _divide(a, b, False)


def _mod(a: Int, b: Int) -> Int:
    return a - _floordiv(a, b) * b if isinstance(a, int) and isinstance(b, int) else _divide(a, b, True)


def _divide(a: Int, b: Int, remainder: bool) -> np.ndarray:
    x, y = (np.atleast_1d(np.ascontiguousarray(n, np.int64)) for n in (a, b))
    out = np.empty(max(len(x), len(y)), np.int64)
    divide(x, y, out, remainder)
    return out


def _max(a: Int, b: Int) -> Int:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else np.maximum(a, b)


def _min(a: Int, b: Int) -> Int:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else np.minimum(a, b)


def _shl(a: Int, b: Int) -> Int:
    """`a << b`; a distance outside of the register gives 0, as numpy has it."""
    if isinstance(a, int) and isinstance(b, int):
        return a << b if 0 <= b < 64 else 0
    return np.left_shift(a, b)


def _shr(a: Int, b: Int) -> Int:
    """`a >> b`, arithmetic; a distance outside of the register leaves the sign only."""
    if isinstance(a, int) and isinstance(b, int):
        return a >> (b if 0 <= b < 64 else 63)
    return np.right_shift(a, b)


INTEGER: dict[str, Callable[[Int, Int], Int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": _floordiv,
    "mod": _mod,
    "max": _max,
    "min": _min,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": _shl,
    "shr": _shr,
}
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


_ADD, _SUB = INTEGER["add"], INTEGER["sub"]


def wrap(x: Int, bits: int, signed: bool) -> Int:
    """`x` as an integer of that width: what does not fit wraps, as in the register."""
    if isinstance(x, int):
        x &= (1 << bits) - 1
        return x - (1 << bits) if signed and x >> (bits - 1) else x
    if bits >= 64:
        return x
    mask = np.int64((1 << bits) - 1)
    low = x & mask
    return np.where(low >> (bits - 1), low - (1 << bits), low) if signed else low


def fits(x: Int, bits: int, signed: bool = True) -> bool:
    """Whether all of a result fits; the common case, tested before wrapping."""
    lo, hi = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if isinstance(x, int):
        return lo <= x <= hi
    if not x.size:
        return True
    least, most = ends(x)
    return lo <= least and most <= hi


def fit_in(x: Int, bits: int, signed: bool) -> Int:
    """`x` in a register of that width. An unsigned number of 64 bits is kept as the int64 of the same bits."""
    signed = signed or bits == 64
    return x if fits(x, bits, signed) else wrap(x, bits, signed)


def affine_binary(name: str, a: Affine, b: Affine) -> Affine | None:
    """add, sub, and mul by a tile without axes, modulo 2^64: `spans` tells whether a narrower type would wrap."""
    if name in ("add", "sub"):
        op = _ADD if name == "add" else _SUB
        strides = tuple([in_64(op(x, y)) for x, y in zip(a.strides, b.strides, strict=True)])
        return Affine(in_64(op(a.base, b.base)), strides, a.shape)
    if name != "mul":
        return None
    if flat(b):
        return Affine(in_64(a.base * b.base), tuple(in_64(s * b.base) for s in a.strides), a.shape)
    return affine_binary("mul", b, a) if flat(a) else None


def in_64(x: Int) -> Int:
    """A Python number as numpy's int64 would hold it; arrays wrap by themselves."""
    return wrap(x, 64, True) if isinstance(x, int) and not -(1 << 63) <= x < 1 << 63 else x


def flat(a: Affine) -> bool:
    """Whether the tile is one number per program."""
    return all([isinstance(s, int) and s == 0 for s in a.strides])


def inside(a: Affine, low: int, high: int) -> bool:
    """Whether every element lies in low..high, so that a register with those limits holds it without wrapping."""
    least, most = extremes(a)
    return low <= least and most <= high


def extremes(a: Affine) -> tuple[int, int]:
    """A range that all elements of all programs lie in; the smallest one, if programs differ in their base only."""
    least, most = _ends(a.base)
    for s, n in zip(a.strides, a.shape, strict=True):
        smallest, largest = _ends(s)
        least += min(0, smallest * (n - 1))
        most += max(0, largest * (n - 1))
    return least, most


def span(a: Affine) -> tuple[Int, Int]:
    """Smallest and largest element, of each program where they differ."""
    low = high = a.base
    for s, n in zip(a.strides, a.shape, strict=True):
        low, high = low + _min(0, s * (n - 1)), high + _max(0, s * (n - 1))
    return low, high


def _ends(x: Int) -> tuple[int, int]:
    return (x, x) if isinstance(x, int) else ends(x)


def affine_compare(name: str, a: Affine, b: Affine) -> Box | None:
    """Where `a op b`: a box if the difference varies along one axis at most, with a stride that is the same everywhere."""
    base = a.base - b.base
    strides = [x - y for x, y in zip(a.strides, b.strides, strict=True)]
    varying = [k for k, s in enumerate(strides) if not (isinstance(s, int) and s == 0)]
    if len(varying) > 1 or name == "ne":
        return None
    rank = len(a.shape)
    if not varying:
        return constant_box(COMPARE[name](base, 0), a.shape)
    k = varying[0]
    s = strides[k]
    if not isinstance(s, int):
        return None
    lo, hi = _plain_ends(*_interval(name, base, s, a.shape[k]), a.shape[k])
    lows: list[Int] = [0] * rank
    highs: list[Int] = list(a.shape)
    lows[k], highs[k] = lo, hi
    return Box(tuple(lows), tuple(highs), a.shape)


def _plain_ends(lo: Int, hi: Int, n: int) -> tuple[Int, Int]:
    """Ends that cut nothing off in any program become plain numbers: most masks are full nearly everywhere."""
    if isinstance(lo, np.ndarray) and (lo <= 0).all():
        lo = 0
    if isinstance(hi, np.ndarray) and (hi >= n).all():
        hi = n
    return lo, hi


def _interval(name: str, base: Int, s: int, n: int) -> tuple[Int, Int]:
    """Indices i with base + s*i `name` 0, as lo <= i < hi (s is not zero)."""
    if s < 0:  # mirror: -base + (-s)*i with the comparison turned round
        turned = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}[name]
        return _interval(turned, -base, -s, n)
    first_ge = -((base) // s)  # smallest i with base + s*i >= 0
    first_gt = (-base) // s + 1  # smallest i with base + s*i > 0
    if name == "lt":
        return 0, first_ge
    if name == "le":
        return 0, first_gt
    if name == "ge":
        return first_ge, n
    if name == "gt":
        return first_gt, n
    return first_ge, first_gt


def constant_box(truth: Any, shape: tuple[int, ...]) -> Box:
    """A mask that is one truth value per program."""
    highs = list(shape)
    if isinstance(truth, np.ndarray):
        return Box((0,) * len(shape), (np.where(truth, shape[0], 0), *highs[1:]), shape)
    return Box((0,) * len(shape), tuple(highs) if truth else (0, *highs[1:]), shape)


def box_and(a: Box, b: Box) -> Box:
    """Intersection."""
    lows = tuple(_max(x, y) for x, y in zip(a.lows, b.lows, strict=True))
    highs = tuple(_min(x, y) for x, y in zip(a.highs, b.highs, strict=True))
    return Box(lows, highs, a.shape)

"""Elementary and special functions of tiles, correctly rounded: the loops of `_functions.pyx` on arrays of the host.

Values of halves are float32 arrays on the grid of their format; a function of them is rounded once, to that grid. float32
and float64 results are the double rounded once; in float64 that is the C library's own accuracy, below one unit in the
last place.
"""

from __future__ import annotations

import numpy as np

from ..precision.dtypes import DType
from . import _functions

UNARY = frozenset(_functions.UNARY)
BINARY = frozenset(_functions.BINARY)
MOST_STEPS = 4000  # of ldexp: beyond the range of doubles, so nothing is cut off


def unary(name: str, x: np.ndarray, dtype: DType) -> np.ndarray:
    """name(x); for halves a float32 rounded to odd, which the caller brings to the grid."""
    out = np.empty(x.shape, dtype.host_dtype)
    _functions.unary(name, _flat(x), out.reshape(-1), dtype.bits == 16)
    return out


def binary(name: str, x: np.ndarray, y: np.ndarray, dtype: DType) -> np.ndarray:
    """name(x, y), elementwise after broadcasting; rounded as in `unary`."""
    x, y = np.broadcast_arrays(x, y)
    out = np.empty(x.shape, dtype.host_dtype)
    _functions.binary(name, _flat(x), _flat(y), out.reshape(-1), dtype.bits == 16)
    return out


def fma(x: np.ndarray, y: np.ndarray, z: np.ndarray, dtype: DType) -> np.ndarray:
    """x * y + z with one rounding; rounded as in `unary`."""
    x, y, z = np.broadcast_arrays(x, y, z)
    out = np.empty(x.shape, dtype.host_dtype)
    if dtype.bits == 64:
        _functions.fma_f64(_flat(x), _flat(y), _flat(z), out.reshape(-1))
    else:
        _functions.fma_f32(_flat(x), _flat(y), _flat(z), out.reshape(-1), dtype.bits == 16)
    return out


def high_product(x: np.ndarray, y: np.ndarray, dtype: DType) -> np.ndarray:
    """The upper half of the product of two integers of `dtype`."""
    if dtype.bits <= 32:
        wide = np.int64 if dtype.kind == "int" else np.uint64
        return np.asarray((x.astype(wide) * y.astype(wide)) >> wide(dtype.bits)).astype(dtype.host_dtype)
    high = _unsigned_high(x.astype(np.uint64), y.astype(np.uint64))
    if dtype.kind == "int":  # two's complement: each negative factor has taken 2^64 times the other too much
        high -= np.where(x < 0, y.astype(np.uint64), np.uint64(0))
        high -= np.where(y < 0, x.astype(np.uint64), np.uint64(0))
    return high.astype(dtype.host_dtype)


def _unsigned_high(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Upper 64 bits of x * y, from four products of 32-bit halves."""
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    x1, x0, y1, y0 = x >> half, x & low, y >> half, y & low
    middle = x1 * y0 + (x0 * y0 >> half)
    return np.asarray(x1 * y1 + (middle >> half) + (((middle & low) + x0 * y1) >> half))


def next_after(x: np.ndarray, y: np.ndarray, dtype: DType) -> np.ndarray:
    """The value of `dtype` next to x in the direction of y."""
    stepped = np.nextafter(x.astype(dtype.storage), y.astype(dtype.storage))
    return np.asarray(stepped.astype(dtype.host_dtype))


def scaled(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    """x * 2^n, in double; n holds integers."""
    steps = np.clip(n, -MOST_STEPS, MOST_STEPS).astype(np.int64)
    return np.asarray(np.ldexp(x.astype(np.float64), steps))


def bits_set(x: np.ndarray, dtype: DType) -> np.ndarray:
    """How many bits of each integer are one."""
    return np.asarray(np.bitwise_count(_raw(x, dtype)))


def leading_zeros(x: np.ndarray, dtype: DType) -> np.ndarray:
    """Zero bits above the highest one; all of them for 0."""
    raw, spread = _raw(x, dtype), 1
    while spread < dtype.bits:
        raw = raw | (raw >> raw.dtype.type(spread))
        spread *= 2
    return np.asarray(dtype.bits - np.bitwise_count(raw))


def first_set(x: np.ndarray, dtype: DType) -> np.ndarray:
    """Place of the lowest one, counted from 1; 0 for 0."""
    raw = _raw(x, dtype)
    return np.where(raw == 0, 0, np.bitwise_count((raw - (raw != 0)) & ~raw) + 1)


def reversed_bits(x: np.ndarray, dtype: DType) -> np.ndarray:
    """Each integer with its bits in the opposite order."""
    raw = _raw(x, dtype).astype(np.uint64)
    out = np.zeros_like(raw)
    one = np.uint64(1)
    for k in range(dtype.bits):
        out |= (raw >> np.uint64(k) & one) << np.uint64(dtype.bits - 1 - k)
    return out.astype(f"u{dtype.itemsize}").view(dtype.host_dtype)


def _raw(x: np.ndarray, dtype: DType) -> np.ndarray:
    """The bits of integers, as unsigned ones."""
    return np.ascontiguousarray(x).view(f"u{dtype.itemsize}")


def _flat(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).reshape(-1)

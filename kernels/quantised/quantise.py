"""How floating-point numbers become quantised ones, on the host: symmetric, by the largest of a tensor, channel, token
or group.

    weight, scale = quantised(w, 8, axis=0)              # a scale for each column of w (K, N)
    weight, scale = quantised(w, 4, axis=0, group=128)   # for each 128 terms of a column, (K / 128, N)
    packed = pack_int4(weight)                           # two a byte

The scale of n bits is the largest magnitude over 2^(n-1) - 1, and a code is the nearest whole number, ties to even, of
the value over the scale (round-to-nearest quantisation, as in LLM.int8, arXiv 2208.07339, section 2). It is what drawn
inputs are made by.
"""

from __future__ import annotations

import numpy as np

from ...simulator.errors import UsageError

Array = np.ndarray


def quantised(values: Array, bits: int, axis: int | None = None, group: int = 0) -> tuple[Array, Array]:
    """(codes as int8, scales as float32) of finite values of any shape.

    bits: 4 or 8. axis: along which values share a scale, None for all of them; the scales have the other axes. group: so
    many neighbours along the axis share one, and the scales keep the axis, so much shorter. Raises `UsageError` for
    other bits, an axis that is not there, values that are not finite, and a group that does not divide the axis.
    """
    x = np.asarray(values, np.float32)
    if bits not in (4, 8):
        raise UsageError(f"quantised: bits is {bits!r}; it must be 4 or 8")
    if not np.isfinite(x).all():
        raise UsageError(
            "quantised: the values hold NaN or infinities, which have no code; they must be finite"
        )
    if axis is not None and not -x.ndim <= axis < x.ndim:
        raise UsageError(f"quantised: axis is {axis}; values of shape {x.shape} have axes 0 to {x.ndim - 1}")
    if group:
        return _by_group(x, bits, axis, group)
    largest = np.abs(x).max() if axis is None else np.abs(x).max(axis=axis, keepdims=True)
    scale = _scale(largest, bits)
    return _codes(x, scale, bits), np.asarray(scale if axis is None else scale.squeeze(axis)).reshape(
        _shape(x, axis)
    )


def _shape(x: Array, axis: int | None) -> tuple[int, ...]:
    return (1,) if axis is None else tuple(np.delete(x.shape, axis))


def _by_group(x: Array, bits: int, axis: int | None, group: int) -> tuple[Array, Array]:
    axis = 0 if axis is None else axis % x.ndim
    length = x.shape[axis]
    if group < 1 or length % group:
        raise UsageError(f"quantised: groups of {group} do not divide the {length} values of axis {axis}")
    shape = (*x.shape[:axis], length // group, group, *x.shape[axis + 1 :])
    parts = x.reshape(shape)
    scale = _scale(np.abs(parts).max(axis=axis + 1, keepdims=True), bits)
    return _codes(parts, scale, bits).reshape(x.shape), scale.squeeze(axis + 1)


def _scale(largest: Array, bits: int) -> Array:
    """1 where all values are zero."""
    found = np.asarray(largest, np.float32) / np.float32(2 ** (bits - 1) - 1)
    return np.where(found > 0, found, np.float32(1))


def _codes(x: Array, scale: Array, bits: int) -> Array:
    most = 2 ** (bits - 1) - 1
    codes: Array = np.clip(np.rint(x / scale), -most, most).astype(np.int8)
    return codes


def pack_int4(codes: Array) -> Array:
    """Codes from -8 to 7 as uint8, two neighbours of the last axis a byte, the first in its low four bits.

    Raises `UsageError` for an axis of odd length and for codes out of range.
    """
    x = np.asarray(codes)
    if not x.ndim or x.shape[-1] % 2:
        raise UsageError(f"pack_int4: the last axis of {x.shape} is odd; int4 is stored in pairs")
    if x.size and (x.min() < -8 or x.max() > 7):
        raise UsageError(f"pack_int4: codes from {x.min()} to {x.max()}; an int4 holds -8 to 7")
    nibbles = x.astype(np.int16) & 15
    return (nibbles[..., ::2] | nibbles[..., 1::2] << 4).astype(np.uint8)


def unpack_int4(packed: Array) -> Array:
    """The codes as int8, twice as many along the last axis."""
    bits = np.asarray(packed).view(np.uint8)
    pairs = np.stack([bits & 15, bits >> 4], axis=-1).astype(np.int8)
    codes: Array = np.where(pairs > 7, pairs - 16, pairs).astype(np.int8)
    return codes.reshape(*bits.shape[:-1], -1)

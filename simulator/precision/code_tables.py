"""Codes of formats up to 16 bits: tables from codes to values and back, and codes of 4 and 6 bits packed into bytes.

pack(codes, 4), unpack(packed, 4, n)     # two a byte, the first in the low half; of 6 bits four in three bytes
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UsageError
from .formats import Format

Words = NDArray[np.uint32]
Codes = NDArray[Any]


@lru_cache(maxsize=256)
def value_table(fmt: Format) -> NDArray[np.float32]:
    """float32 values of all codes of a format, (2^bits,)."""
    return fmt.values.astype(np.float32)


def codes_of(grid: NDArray[np.float32], fmt: Format) -> Codes:
    """Codes, uint8 or uint16, of contiguous float32 values that lie on the grid of `fmt`, as `round_to` leaves them."""
    words = grid.view(np.uint32)
    if fmt.bits <= 8 and not (value_table(fmt).view(np.uint32) & 0xFFFF).any():
        return np.asarray(_short_codes(fmt)[words >> 16])
    if not fmt.is_float:  # two's complement
        whole = (grid * np.float64(2.0**fmt.bias)).astype(np.int64)
        return np.asarray(whole & ((1 << fmt.bits) - 1)).astype(f"u{fmt.dtype.itemsize}")
    magnitudes, codes = _sorted(fmt)
    signs = (words >> 31).astype(np.uint16) << fmt.magnitude_bits if fmt.signed else np.uint16(0)
    found = codes[np.minimum(np.searchsorted(magnitudes, words & 0x7FFFFFFF), len(codes) - 1)]
    nan = np.isnan(grid) & (fmt.nan == "zero")
    return np.where(nan, np.uint16(1 << fmt.magnitude_bits), found | signs).astype(f"u{fmt.dtype.itemsize}")


@lru_cache(maxsize=256)
def _short_codes(fmt: Format) -> NDArray[np.uint8]:
    """By the upper 16 bits of a float32: values of 8 bits have no more, but for some below 2^-126."""
    table = np.full(1 << 16, _nan_code(fmt), np.uint8)
    sign = (
        (np.arange(1 << 16) >> 15).astype(np.uint8) << fmt.magnitude_bits
        if fmt.signed and fmt.nan != "zero"
        else 0
    )
    table |= sign if fmt.nan != "none" else np.uint8(0)
    for code in reversed(range(1 << fmt.bits)):  # of equal values the lowest code
        value = value_table(fmt)[code]
        if not np.isnan(value):
            table[value.view(np.uint32) >> 16] = code
    return table


@lru_cache(maxsize=64)
def _sorted(fmt: Format) -> tuple[Words, NDArray[np.uint16]]:
    """Words of the magnitudes in ascending order with their codes; a NaN's is last."""
    magnitudes = value_table(fmt)[: 1 << fmt.magnitude_bits]
    codes = np.flatnonzero(~np.isnan(magnitudes))
    words, first = np.unique(magnitudes[codes].view(np.uint32), return_index=True)
    codes = codes[first]
    if fmt.nan not in ("none", "zero"):
        words, codes = np.append(words, np.uint32(0x7FFFFFFF)), np.append(codes, _nan_code(fmt))
    return words, codes.astype(np.uint16)


def _nan_code(fmt: Format) -> int:
    """The quiet NaN without its sign; 0 for formats without."""
    ones = (1 << fmt.magnitude_bits) - 1
    quiet = ones & ~((1 << fmt.mantissa) - 1) | 1 << fmt.mantissa >> 1
    return {"ieee": quiet, "one": ones, "zero": 1 << fmt.magnitude_bits}.get(fmt.nan, 0)


# ---- less than a byte


def pack(codes: Codes, bits: int) -> NDArray[np.uint8]:
    """Codes of 4 or 6 bits along the last axis as bytes: 2 a byte, 4 in 3 bytes, the first in the lowest bits.

    codes: (..., n) in any dtype of one byte; the bits above a code are zeros, or repeat its sign. Gives (..., ceil(n bits /
    8)); what is missing in the last bytes is zeros. Raises `UsageError` for codes of more bits.
    """
    _check_width(bits)
    if codes.dtype.itemsize != 1 or codes.ndim == 0:
        raise UsageError(f"pack: codes of {codes.dtype} {codes.shape}; they are one a byte, along an axis")
    raw = np.ascontiguousarray(codes).view(np.uint8)
    long = raw >> bits > 0
    if codes.dtype.kind != "u":
        long &= raw >> (bits - 1) < 0xFF >> (bits - 1)
    if long.any():
        raise UsageError(f"pack: a code is {raw[long][0]}; codes of {bits} bits are below {1 << bits}")
    flat = np.unpackbits(raw[..., None], axis=-1, count=bits, bitorder="little")
    return np.packbits(flat.reshape(*raw.shape[:-1], raw.shape[-1] * bits), axis=-1, bitorder="little")


def unpack(packed: NDArray[np.uint8], bits: int, count: int) -> NDArray[np.uint8]:
    """The first `count` codes of the last axis of what `pack` made, one a byte."""
    _check_width(bits)
    if packed.dtype != np.uint8 or packed.ndim == 0 or not isinstance(count, int | np.integer):
        raise UsageError(
            f"unpack: {packed.dtype} {packed.shape} and {count!r} codes; it takes uint8 along an axis, and a whole number"
        )
    have = packed.shape[-1] * 8 // bits
    if count > have or count < 0:
        raise UsageError(f"unpack: {packed.shape[-1]} bytes hold {have} codes of {bits} bits, not {count}")
    flat = np.unpackbits(packed, axis=-1, bitorder="little")[..., : count * bits]
    return np.packbits(flat.reshape(*packed.shape[:-1], count, bits), axis=-1, bitorder="little")[..., 0]


def _check_width(bits: int) -> None:
    if bits not in (2, 4, 6):
        raise UsageError(
            f"pack: codes of {bits} bits; those of 2, 4 and 6 bits are packed, others take whole bytes"
        )

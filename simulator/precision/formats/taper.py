"""Tapered formats: a prefix code says how many bits the exponent takes, the mantissa has the rest.

A row is (prefix, exponent bits). The exponent is a sign and a magnitude whose leading 1 is not stored: 0 bits stand for 0,
1 bit for -1 and 1, 3 bits for -7 to -4 and 4 to 7. A row with -1 exponent bits has no exponent field: its mantissa counts
powers of two below the smallest normal number, and code 0 is zero. HiF8 is such a format (arXiv 2409.16626, section 2).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...errors import UsageError

Row = tuple[str, int]
Magnitudes = NDArray[np.float64]


def tapered_magnitudes(rows: Sequence[Row], bits: int) -> Magnitudes:
    """The value of each of the 2^bits codes without a sign, those that stand for infinity or NaN by their place."""
    values = np.empty(1 << bits)
    for prefix, width in rows:
        rest = bits - len(prefix)
        codes = np.arange(1 << rest)
        values[(int(prefix, 2) << rest) + codes] = _normal(codes, width, rest) if width >= 0 else codes
    for prefix, width in rows:
        if width < 0:
            _extend_down(values, 1 << bits - len(prefix))
    return values


def _normal(codes: NDArray[np.int64], width: int, rest: int) -> Magnitudes:
    mantissa_bits = rest - width
    field, mantissa = codes >> mantissa_bits, codes & ((1 << mantissa_bits) - 1)
    half = 1 << width - 1 if width else 0  # the sign of the exponent, and its hidden leading bit
    exponent = (field & half - 1 | half) * np.where(field & half, -1, 1) if width else field
    values: Magnitudes = np.ldexp(1.0 + mantissa / (1 << mantissa_bits), exponent)
    return values


def _extend_down(values: Magnitudes, size: int) -> None:
    """The first `size` codes, of the row without an exponent: powers of two that end below the smallest of the others."""
    lowest = np.frexp(values[size:].min())[1] - 1
    values[:size] = np.ldexp(1.0, lowest - size + np.arange(size))
    values[0] = 0.0


def check_rows(name: str, rows: Sequence[Row], bits: int) -> None:
    """Every code has one reading: prefixes of 0 and 1, none the start of another, all codes used, fields that fit."""
    for row in rows:
        if not (isinstance(row, tuple) and [type(x) for x in row] == [str, int]):
            raise UsageError(
                f'format {name}: row {row!r} of taper: rows are (prefix, exponent bits), as ("01", 2)'
            )
        prefix, width = row
        if not prefix or set(prefix) - {"0", "1"} or len(prefix) + max(width, 0) > bits or width < -1:
            raise UsageError(
                f"format {name}: row {prefix!r} with {width} exponent bits: a prefix of 0 and 1 and its exponent have "
                f"{bits} bits together"
            )
    share = sum(2.0 ** -len(prefix) for prefix, _ in rows)
    firsts = [p for p, _ in rows for q, _ in rows if p is not q and q.startswith(p)]
    if share != 1 or firsts:
        raise UsageError(
            f"format {name}: the prefixes {', '.join(p for p, _ in rows)} must use each code once; they use {share:g} of all"
        )
    if sum(width < 0 for _, width in rows) != 1 or not all(p.strip("0") == "" for p, w in rows if w < 0):
        raise UsageError(f"format {name}: one row, of zeros only, has -1 exponent bits: that of zero")

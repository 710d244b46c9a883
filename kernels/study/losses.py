"""What becomes of the numbers of an input on their way into the format in which they are multiplied."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...simulator.precision.block_formats import Blocks
from ...simulator.precision.formats import Format
from ...simulator.precision.rounding import decode


@dataclass(frozen=True)
class OperandLosses:
    """Counts of elements of one input.

    fmt: the format in which it is multiplied, or computed with where nothing is multiplied. overflow: too large for it: they
    became infinite, NaN or its largest value. underflow: became zero and were not. subnormal: below its smallest normal
    number. nan: came as NaN.
    bits: -log2(mean |error| / mean |value|) of the finite elements; infinite where all are exact, NaN where none is finite.
    """

    fmt: str
    elements: int
    overflow: int
    underflow: int
    subnormal: int
    nan: int
    bits: float

    @property
    def lost(self) -> int:
        """Elements that are not simply rounded."""
        return self.overflow + self.underflow + self.subnormal + self.nan


def losses(exact: NDArray[np.floating], seen: NDArray[np.floating], fmt: Format) -> OperandLosses:
    """Of an input: what it was (float32 or float64), and what it became in the format."""
    limit = np.float64(fmt.max) + fmt.ulp(fmt.max) / 2  # from here on what is nearest is not finite
    return counted(exact, seen, fmt.name, limit, fmt.min_normal)


def block_losses(exact: NDArray[np.floating], blocks: Blocks) -> OperandLosses:
    """Of an input in blocks: too large and subnormal are elements as their own scale has them."""
    fmt, axis = blocks.format.element, blocks.axis or 0
    scales = np.repeat(decode(blocks.scales).astype(np.float64) * blocks.tensor_scale, blocks.block, axis)
    each = np.take(scales, np.arange(exact.shape[axis]), axis)
    limit = np.where(each > 0, each * (float(fmt.max) + float(fmt.ulp(fmt.max)) / 2), np.inf)
    return counted(exact, blocks.values(), blocks.format.name, limit, each * fmt.min_normal)


def counted(
    exact: NDArray[np.floating],
    seen: NDArray[np.floating],
    name: str,
    limit: np.float64 | NDArray[np.float64],
    normal: float | NDArray[np.floating],
) -> OperandLosses:
    """limit: magnitude from which on an element is too large; normal: the smallest normal number; for all, or of each."""
    size, value = np.abs(exact), np.abs(seen)
    known = np.isfinite(exact)
    finite = known & np.isfinite(seen)
    return OperandLosses(
        fmt=name,
        elements=exact.size,
        overflow=int(np.count_nonzero(known & ((size >= limit) | ~np.isfinite(seen)))),
        underflow=int(np.count_nonzero(known & (size > 0) & (value == 0))),
        subnormal=int(np.count_nonzero(finite & (value > 0) & (value < normal))),
        nan=int(np.count_nonzero(np.isnan(exact))),
        bits=_bits(exact[finite], seen[finite]),
    )


def _bits(exact: NDArray[np.floating], seen: NDArray[np.floating]) -> float:
    if not exact.size:
        return float("nan")
    right = exact.astype(np.float64)
    error, whole = np.abs(seen - right).sum(), np.abs(right).sum()
    with np.errstate(divide="ignore"):
        return float(np.log2(whole) - np.log2(error)) if error else float("inf")

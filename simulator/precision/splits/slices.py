"""FP32 numbers as the slices of a mode have them, in numpy: what the kernels that cut operands are tested against."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rounding import round_to
from .modes import Split

FIELD_BITS, FIELD_MAX, BIAS = 23, 254, 127  # of FP32's exponent


def scales(x: np.ndarray, split: Split, axis: int | None) -> np.ndarray:
    """Powers of two, float32 with the axes of x, that bring the largest element along `axis` (None: of all) to
    [2^top, 2^(top + 1)); ones where the mode does not scale. The smallest is 2^(top - 127), for FP32's largest numbers."""
    largest = np.abs(np.float32(x)).max(axis=axis, keepdims=True)
    if split.top is None:
        return np.ones_like(largest)
    field = np.clip(largest.view(np.int32) >> FIELD_BITS, split.top + 1, FIELD_MAX)
    power: np.ndarray = ((FIELD_MAX + split.top - field) << FIELD_BITS).astype(np.int32)
    return power.view(np.float32)


def slices_of(x: np.ndarray, split: Split, count: int, axis: int | None) -> list[np.ndarray]:
    """The slices of x, float32 that the format of slices holds, each as it is multiplied: scaled by `scales`."""
    with np.errstate(invalid="ignore", over="ignore"):
        rest, found = np.float32(x) * scales(x, split, axis), []
        for _ in range(count):
            found.append(np.rint(rest) if split.step else round_to(rest, split.slices))
            rest = (rest - found[-1]) * np.float32(2.0**split.step)
    return found


def slice_sums(x: np.ndarray, split: Split, operand: int = 0, axis: int | None = None) -> np.ndarray:
    """x as a product with that split has it: the sum of its slices, float64.

    operand: 0 for the first, 1 for the second one. axis: of the sum of the product; None where all of x has one scale.
    """
    parts = slices_of(x, split, split.counts[operand], axis)
    total: Any = sum(np.float64(p) * 2.0 ** (-split.step * i) for i, p in enumerate(parts))
    return np.asarray(total / scales(x, split, axis))


def beyond(x: np.ndarray, split: Split) -> bool:
    """Whether x has elements that no slice holds: infinities, NaN, and for BF16 what rounds beyond its largest number."""
    most = (2.0 - 2.0**-8) * 2.0**127 if split.slices == "bf16" else np.inf
    return not bool((np.abs(np.float32(x)) < most).all())

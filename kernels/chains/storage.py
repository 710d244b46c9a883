"""How the tensors of a chain are stored: types that memory has, and formats that are a what-if.

A tensor in a format that the product stores is an array of that type. In any other one its values are rounded to the format
when they are stored, and held in float32: what that takes is a launch that writes elements of as many bytes, and another one
for every step that reads it, as no operator of ours loads such a type.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...simulator.errors import UsageError
from ...simulator.precision.formats import Format, get_format
from ...simulator.precision.rounding import decode, encode, round_to
from ...simulator.products import Product
from ..operator.tensors import DTYPE_NAMES

STAND_INS = {
    1: "int8",
    2: "float16",
    4: "float32",
}  # types whose transfers take as long as those of a what-if
WIDTHS = ("float16", "bfloat16", "float32")


@dataclass(frozen=True)
class Storage:
    """A format of a tensor. dtype: the type that memory holds, as users write it; of a what-if, one as wide."""

    name: str
    fmt: Format
    dtype: str
    what_if: bool

    def stored(self, x: np.ndarray) -> np.ndarray:
        """Float32 or float64 values as they are stored: an array of the type, or float32 on the grid of a what-if."""
        with np.errstate(over="ignore", invalid="ignore"):
            return round_to(x, self.fmt) if self.what_if else encode(x, self.fmt)

    def carriers(self, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        """Those of some types that hold every value, the narrowest first."""
        found = [d for d in WIDTHS if d in dtypes and holds(get_format(d), self.fmt)]
        return tuple(found)

    def lost(self, x: np.ndarray) -> dict[str, float]:
        """Shares of the elements of x, in float64, that are too large, become zero, or lie below the normal numbers."""
        size, kept = np.abs(x), np.abs(values_of(self.stored(x)))
        largest = float(self.fmt.max)
        with np.errstate(invalid="ignore"):
            over = np.isfinite(size) & (size >= largest + 0.5 * self.fmt.ulp(largest))
            under = (size > 0) & (kept == 0)
            below = (kept > 0) & (kept < self.fmt.min_normal)
        return {
            n: float(np.mean(a)) for n, a in (("overflow", over), ("underflow", under), ("subnormal", below))
        }


def values_of(stored: np.ndarray) -> np.ndarray:
    """Stored values as float64."""
    wide = stored if stored.dtype in (np.float32, np.float64) else decode(stored)
    return wide.astype(np.float64)


def storage_of(given: str, product: Product) -> Storage:
    """The storage of that name on a product. Raises `UsageError`, also for a type of the vendor's that it does not have."""
    fmt = get_format(given)
    if not fmt.is_float or fmt.name == "fp64":
        raise UsageError(f"a tensor is stored in a floating-point format of at most 32 bits, got {given!r}")
    known = DTYPE_NAMES.get(fmt.name)
    if known is None:
        width = 1 if fmt.bits <= 8 else 2 if fmt.bits <= 16 else 4
        return Storage(fmt.name, fmt, STAND_INS[width], True)
    if fmt.name not in product.texts("dtypes.storage"):
        have = [n for n in DTYPE_NAMES if n in product.texts("dtypes.storage")]
        raise UsageError(f"{product.name} does not store {fmt.name}; it stores {', '.join(have)}")
    return Storage(fmt.name, fmt, known, False)


def holds(wide: Format, narrow: Format) -> bool:
    """Whether every value of one format is one of another."""
    return (
        wide.mantissa >= narrow.mantissa
        and wide.max >= narrow.max
        and wide.min_subnormal <= narrow.min_subnormal
    )

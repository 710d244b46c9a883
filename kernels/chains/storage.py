"""How the tensors of a chain are stored: in types of the vendor's, or in any other number format, which is a what-if.

Memory holds the codes of a what-if. No operator of ours loads them: a cast of its own, before the step, makes a type of them
that the operator has, and one behind a step makes them. What such a cast takes the launch states (`simulator/call.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...simulator.errors import UsageError
from ...simulator.precision.dtypes import DType, of_format
from ...simulator.precision.formats import Format, get_format
from ...simulator.precision.rounding import decode, encode, round_to
from ...simulator.products import Product
from ..operator.tensors import DTYPE_NAMES

WIDTHS = ("float16", "bfloat16", "float32")


@dataclass(frozen=True)
class Storage:
    """A format of a tensor. what_if: whether it is none of the types that the product stores."""

    fmt: Format
    what_if: bool

    @property
    def name(self) -> str:
        """The format's name, which `get_format` knows."""
        return self.fmt.name

    @property
    def dtype(self) -> DType:
        """The element type that memory holds."""
        return of_format(self.fmt)

    @property
    def type_name(self) -> str:
        """Its name as users write it."""
        return DTYPE_NAMES.get(self.name, self.name)

    def stored(self, x: np.ndarray) -> np.ndarray:
        """Float32 or float64 values as they are stored: codes, or float32 on the grid of a format above 16 bits."""
        with np.errstate(over="ignore", invalid="ignore"):
            return encode(x, self.fmt) if self.fmt.stored else round_to(x, self.fmt)

    def carriers(self, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        """Those of some types that hold every value, the narrowest first."""
        return tuple(d for d in WIDTHS if d in dtypes and holds(get_format(d), self.fmt))

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
    if not fmt.is_float or not fmt.zero or fmt.bits > 32:
        raise UsageError(
            f"a tensor is stored in a floating-point format with a zero and at most 32 bits, got {given!r}"
        )
    if fmt.name in DTYPE_NAMES and fmt.name not in product.texts("dtypes.storage"):
        have = [n for n in DTYPE_NAMES if n in product.texts("dtypes.storage")]
        raise UsageError(f"{product.name} does not store {fmt.name}; it stores {', '.join(have)}")
    return Storage(fmt, fmt.name not in DTYPE_NAMES)


def holds(wide: Format, narrow: Format) -> bool:
    """Whether every value of one format is one of another."""
    return (
        wide.mantissa >= narrow.mantissa
        and wide.max >= narrow.max
        and wide.min_subnormal <= narrow.min_subnormal
    )

"""Number formats as data: what each can hold, and the numpy dtype that stores it.

HF32 is 1 + 8 + 11 bits: CANN reference of ENABLE_HF32_EXECUTION and `--allow_hf32` (mantissa of 11 bits
where FP16 has 10); hw-native-sys/pto-isa, include/pto/common/pto_tile.hpp (e8m11 for A2/A3). It exists only
where the Cube reads an operand (Ascend C "SetHF32Mode"); memory holds FP32. TF32, 1 + 8 + 10, belongs to
other machines and is here to compare with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import UsageError


@dataclass(frozen=True, slots=True)
class Format:
    """A number format. Integers have `exponent` 0; for them `mantissa` counts the bits without the sign."""

    name: str
    exponent: int
    mantissa: int
    signed: bool
    dtype: np.dtype[Any]
    aliases: tuple[str, ...] = ()

    @property
    def is_float(self) -> bool:
        return self.exponent > 0

    @property
    def bits(self) -> int:
        """Bits that carry information: 20 for HF32, although memory spends 32 on it."""
        return int(self.signed) + self.exponent + self.mantissa

    @property
    def min_exponent(self) -> int:
        """Exponent of the smallest normal number."""
        return 2 - (1 << self.exponent - 1) if self.is_float else 0

    @property
    def max(self) -> float | int:
        """The largest finite value."""
        if not self.is_float:
            return (1 << self.mantissa) - 1
        return (2.0 - 2.0**-self.mantissa) * 2.0 ** ((1 << self.exponent - 1) - 1)

    @property
    def min(self) -> float | int:
        """The lowest finite value."""
        if self.is_float:
            return -self.max
        return -(1 << self.mantissa) if self.signed else 0

    @property
    def min_normal(self) -> float:
        return 2.0**self.min_exponent if self.is_float else 1.0

    @property
    def min_subnormal(self) -> float:
        return 2.0 ** (self.min_exponent - self.mantissa) if self.is_float else 1.0

    @property
    def unit_roundoff(self) -> float:
        """Largest relative error of rounding to nearest in the normal range; 0.5 for integers (absolute)."""
        return 2.0 ** -(self.mantissa + 1) if self.is_float else 0.5

    def ulp(self, x: ArrayLike) -> NDArray[np.float64]:
        """Spacing at x: 2^(max(floor(log2 abs x), emin) - mantissa); NaN where x is not finite."""
        values = np.asarray(x, dtype=np.float64)
        if not self.is_float:
            return np.where(np.isfinite(values), 1.0, np.nan)
        exponents = np.where(values == 0, self.min_exponent, np.frexp(values)[1] - 1)  # frexp has 0 for 0
        exponents = np.maximum(exponents, self.min_exponent)
        return np.where(np.isfinite(values), np.ldexp(1.0, exponents - self.mantissa), np.nan)

    def __str__(self) -> str:
        return self.name


def _float(name: str, exponent: int, mantissa: int, dtype: Any, *aliases: str) -> Format:
    return Format(name, exponent, mantissa, True, np.dtype(dtype), aliases)


def _integer(bits: int, signed: bool) -> Format:
    name = f"{'' if signed else 'u'}int{bits}"
    return Format(name, 0, bits - signed, signed, np.dtype(name))


FP16 = _float("fp16", 5, 10, np.float16, "float16", "half")
BF16 = _float("bf16", 8, 7, ml_dtypes.bfloat16, "bfloat16")
FP32 = _float("fp32", 8, 23, np.float32, "float32", "float")
HF32 = _float("hf32", 8, 11, np.float32)
TF32 = _float("tf32", 8, 10, np.float32)
FP64 = _float("fp64", 11, 52, np.float64, "float64", "double")
INT8, INT16, INT32, INT64 = (_integer(bits, signed=True) for bits in (8, 16, 32, 64))
UINT8, UINT16, UINT32, UINT64 = (_integer(bits, signed=False) for bits in (8, 16, 32, 64))
BOOL = Format("bool", 0, 1, False, np.dtype(np.bool_), ("int1",))

FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        *(FP16, BF16, FP32, HF32, TF32, FP64),
        *(INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, BOOL),
    )
}
_BY_NAME = {alias: f for f in FORMATS.values() for alias in (f.name, *f.aliases)}


def get_format(which: object) -> Format:
    """A Format from itself, its name (fp16, float16, torch.float16), or a numpy, ml_dtypes or torch dtype."""
    if isinstance(which, Format):
        return which
    name = which if isinstance(which, str) else _dtype_name(which)
    found = _BY_NAME.get(name.removeprefix("torch.").lower())
    if found is None:
        raise UsageError(f"unknown number format {name!r}: known are {', '.join(FORMATS)}")
    return found


def _dtype_name(which: object) -> str:
    if isinstance(which, np.dtype):
        return which.name
    if isinstance(which, type):
        return which.__name__
    return str(which)

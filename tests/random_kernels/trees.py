"""An expression of a kernel: its text and, beside it, what numpy makes of the same tree.

Results are to be equal to the bit, so of each expression is known what that needs: `most`, the largest magnitude, so that
nothing overflows to infinity, and `grain`, of which all values are multiples (0: not known), so that sums are exact in any
order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

Env = Mapping[str, Any]
FLOATS: dict[str, Any] = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
SIGNED, UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")
INTEGERS: dict[str, Any] = {n: np.dtype(n).type for n in SIGNED + UNSIGNED}
NUMPY = FLOATS | INTEGERS
DIGITS = {"float32": 24, "float16": 11, "bfloat16": 8}  # of the significand
TOP = {"float32": 2.0**40, "float16": 2.0**14, "bfloat16": 2.0**40}
TABLE = 64  # elements of the tensor that gathers read


@dataclass(frozen=True)
class Expr:
    """dtype: a name of `NUMPY`, or "int1". shape: () for a scalar. value: from variables, tensors and "pid" to an array."""

    text: str
    dtype: str
    shape: tuple[int, ...]
    value: Callable[[Env], Any]
    most: float = 1.0
    grain: float = 0.0

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS

    @property
    def exact(self) -> bool:
        """Whether sums and products of such values are rounded nowhere."""
        return not self.is_float or (self.grain > 0 and self.most / self.grain <= 2 ** DIGITS[self.dtype])

    def named(self, name: str) -> Expr:
        """A variable that holds it."""
        return replace(self, text=name, value=lambda env: env[name])


def limit(dtype: str) -> float:
    """The largest magnitude that an expression may have."""
    return TOP[dtype] if dtype in FLOATS else float(np.iinfo(NUMPY[dtype]).max)


def made(text: str, like: Expr, shape: Any, value: Any, most: float, grain: float) -> Expr | None:
    """None where it could overflow. A float whose values need more digits than there are was rounded: no grain.
    An unsigned one may have gone below 0."""
    if like.is_float and most > limit(like.dtype):
        return None
    most = limit(like.dtype) if like.dtype in UNSIGNED else min(most, limit(like.dtype))
    found = Expr(text, like.dtype, shape, value, most, grain)
    return found if found.exact else replace(found, grain=0.0)


def numbered(x: Expr, count: int) -> Expr:
    """Integers as numbers from 0 below `count`, whatever their sign: `%` has that of its left side."""
    text = f"((({x.text}) % {count} + {count}) % {count})"
    return replace(x, text=text, value=lambda env: np.mod(x.value(env), np.int32(count)), most=count)


def whole(x: Any, dtype: str) -> Any:
    """Floats as integers: towards zero, and up to the limits of the type; as the device is set, other than numpy."""
    x, ends = np.trunc(np.asarray(x).astype(np.float64)), np.iinfo(NUMPY[dtype])
    above, below = x >= float(ends.max), x <= float(ends.min)
    fits = np.where(above | below, 0.0, x).astype(NUMPY[dtype])
    return np.where(above, NUMPY[dtype](ends.max), np.where(below, NUMPY[dtype](ends.min), fits))


def divided(a: Any, b: Any) -> Any:
    """Towards zero, as Triton divides."""
    floor = a // b
    return (floor + ((floor * b != a) & ((a < 0) != (b < 0))).astype(a.dtype)).astype(a.dtype)

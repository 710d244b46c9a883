"""Reductions along one axis, in the order of the hardware.

A sum along the last axis adds adjacent pairs inside a repeat (64 FP32 or 128 FP16 lanes), then the repeats' results; a sum
along another axis adds the upper half onto the lower half elementwise until one row is left.
"""

from __future__ import annotations

from typing import Any

from ..frontend import types as ty
from ..frontend.program import Value
from ..frontend.rules import Operand
from ..frontend.words import Builder, word
from .creation import element_type


@word(method=True)
def sum(
    b: Builder, input: Operand, axis: int | None = None, keep_dims: bool = False, dtype: Any = None
) -> Value:
    """Sum along `axis` (all axes if None). Integers narrower than 32 bits are summed in int32, as in Triton."""
    v = b.to_value(input)
    if dtype is not None:
        v = b.cast(v, element_type(dtype))
    elif isinstance(v.dtype, ty.DType) and v.dtype.is_int() and v.dtype.bits < 32:
        v = b.cast(v, ty.uint32 if v.dtype.kind == "uint" else ty.int32)
    return b.reduce("sum", v, axis, keep_dims)


def _widened(b: Builder, x: Operand) -> Value:
    """Triton widens halves to fp32 and short integers to int32 before a maximum."""
    v = b.to_value(x)
    t = v.dtype
    if isinstance(t, ty.DType) and t.bits < 32:
        return b.cast(v, ty.float32 if t.is_floating() else ty.int32)
    return v


@word(method=True)
def max(b: Builder, input: Operand, axis: int | None = None, keep_dims: bool = False) -> Value:
    """Maximum along `axis` (all axes if None); NaN is skipped, as on Ascend."""
    return b.reduce("max", _widened(b, input), axis, keep_dims)


@word(method=True)
def min(b: Builder, input: Operand, axis: int | None = None, keep_dims: bool = False) -> Value:
    """Minimum along `axis` (all axes if None); NaN is skipped, as on Ascend."""
    return b.reduce("min", _widened(b, input), axis, keep_dims)

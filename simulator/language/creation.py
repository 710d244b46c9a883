"""Tiles made from nothing, and casts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..frontend.program import Value
from ..frontend.rules import KernelError, Operand
from ..frontend.types import DType
from ..frontend.words import Builder, word


@word
def arange(b: Builder, start: int, end: int) -> Value:
    """int32 tile start, start+1, ..., end-1. Bounds are compile-time integers; any length is allowed, as on Ascend."""
    return b.arange(start, end)


@word
def full(b: Builder, shape: Sequence[int] | int, value: Operand, dtype: DType) -> Value:
    """Tile of `shape` filled with the scalar `value` in `dtype`."""
    return b.full(_shape(shape), value, element_type(dtype))


@word
def zeros(b: Builder, shape: Sequence[int] | int, dtype: DType) -> Value:
    """Tile of `shape` filled with zero in `dtype`."""
    return b.full(_shape(shape), 0, element_type(dtype))


@word
def zeros_like(b: Builder, input: Value) -> Value:
    """Tile of zeros with the shape and dtype of `input`."""
    return b.full(input.shape, 0, element_type(input.dtype))


@word(method=True, name="to")
def _to(b: Builder, x: Operand, dtype: DType) -> Value:
    """`x` in `dtype`: to floats with round to nearest even, to integers toward zero."""
    return b.cast(x, element_type(dtype))


@word
def cast(b: Builder, input: Operand, dtype: DType) -> Value:
    """`input` in `dtype`: to floats with round to nearest even, to integers toward zero."""
    return b.cast(input, element_type(dtype))


def _shape(shape: Sequence[int] | int) -> Sequence[int]:
    return shape if isinstance(shape, tuple | list) else (shape,)


def element_type(x: Any) -> DType:
    """`x` if it is an element type; `KernelError` if not."""
    if not isinstance(x, DType):
        raise KernelError(f"expected an element type such as tl.float32, got {x!r}")
    return x

"""Tensors of an operator, their element types by name, and what functions about operators take and give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...simulator.interpreter.tensors import Shape
from ...simulator.precision import dtypes as ty

Tensor = np.ndarray | Shape
Tensors = Mapping[str, Tensor]
Arrays = dict[str, np.ndarray]
Sizes = Mapping[str, int | tuple[int, ...]]

# Names of element types that users see, by the short names of the simulator.
DTYPE_NAMES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}
Knobs = Mapping[str, Any]  # of a tiling, by name
Options = Mapping[str, Any]  # arguments of the operator, by name
# Of many tilings: a column for each knob, or for each rule that they keep or not.
Columns = Mapping[str, np.ndarray]


def dims(x: int | tuple[int, ...]) -> tuple[int, ...]:
    """A size as dimensions."""
    return (x,) if isinstance(x, int) else tuple(x)


def dtype_of(tensor: Tensor) -> ty.DType:
    """Element type of an input (arrays have been checked to have one)."""
    found = tensor.dtype if isinstance(tensor, Shape) else ty.from_numpy(tensor.dtype)
    assert found is not None
    return found


def dtype_name(tensor: Tensor) -> str:
    """Element type as users write it."""
    found = dtype_of(tensor)
    return DTYPE_NAMES.get(found.name, found.format.name)


def reshaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The same elements in another shape."""
    return x.reshape(shape) if isinstance(x, np.ndarray) else Shape(shape, x.dtype)


def part_of(x: Tensor, number: int) -> Tensor:
    """What has that number on the first axis, as a tensor of its own."""
    if isinstance(x, np.ndarray):
        return np.asarray(x[number])
    part = Shape(x.shape[1:], x.dtype)
    owner, at = x.part_of or (x, 0)
    return Shape(part.shape, part.dtype, (owner, at + number * part.size * part.dtype.itemsize))


def element_type(name: str) -> ty.DType:
    """The element type of that name, short or as users write it, or of that number format."""
    return ty.element_type(name)

"""Changing the shape of a tile without changing its elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..frontend.program import Value
from ..frontend.rules import Operand
from ..frontend.words import Builder, word


def _flat(args: tuple[Any, ...]) -> Sequence[int]:
    return args[0] if len(args) == 1 and isinstance(args[0], tuple | list) else args


@word(method=True)
def reshape(b: Builder, input: Value, *shape: Any, can_reorder: bool = False) -> Value:
    """Same elements in row-major order under another shape of the same number of elements."""
    return b.reshape(input, _flat(shape))


@word(method=True)
def view(b: Builder, input: Value, *shape: Any) -> Value:
    """As `reshape`."""
    return b.reshape(input, _flat(shape))


@word(method=True)
def broadcast_to(b: Builder, input: Operand, *shape: Any) -> Value:
    """Stretch axes of size 1 to `shape`."""
    return b.broadcast_to(input, _flat(shape))


@word(method=True)
def expand_dims(b: Builder, input: Value, axis: int) -> Value:
    """Add an axis of size 1 at `axis`."""
    return b.expand_dims(input, axis)


@word(method=True)
def permute(b: Builder, input: Value, *dims: Any) -> Value:
    """Axes in the order `dims`."""
    return b.permute(input, _flat(dims))


@word(method=True)
def trans(b: Builder, input: Value, *dims: Any) -> Value:
    """Transpose: the last two axes swapped, or the axes in the order `dims`."""
    order = (
        list(_flat(dims))
        if dims
        else [*range(len(input.shape) - 2), len(input.shape) - 1, len(input.shape) - 2]
    )
    return b.permute(input, order)


@word(method=True)
def ravel(b: Builder, x: Value) -> Value:
    """All elements in one axis."""
    return b.reshape(x, (x.numel,))

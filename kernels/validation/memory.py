"""No row of measurements has a tensor that the memory of its product cannot hold: sizes like that would run for hours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.products import load_product

from .table import Row

_row: ContextVar[Row | None] = ContextVar("row", default=None)


@contextmanager
def in_memory_of(row: Row) -> Iterator[None]:
    """Inside, `check_fits` is about the product of that row."""
    token = _row.set(row)
    try:
        yield
    finally:
        _row.reset(token)


def check_fits(sizes: Sequence[int], itemsize: int) -> None:
    """Raise UsageError if a tensor of these sizes, of elements of so many bytes, is larger than the product's memory."""
    row = _row.get()
    if row is None:
        return
    product, taken = load_product(row.product), prod(sizes) * itemsize
    room = product.integer("memory.size")
    if taken > room:
        raise UsageError(
            f"{row.id}: {row.op} of {row.shapes} has a tensor of {' x '.join(map(str, sizes))} elements, {taken} bytes; "
            f"the memory of {product.name} has {room}: give smaller sizes"
        )

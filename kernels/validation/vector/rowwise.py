# mypy: disable-error-code="no-untyped-def"
"""Rows with a number of their own, or with one row of numbers for all of them; the greatest of each row with its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.jit_function import JitFunction
from ..registry import Prediction, predicts
from ..settings import (
    BYTES,
    Settings,
    dtypes_of,
    fitting,
    measured_time,
    note_of,
    roofline_us,
    sizes_of,
    tensor,
)
from ..table import Row
from .expressions import add, div, mul, sub
from .starts import larger_code_us
from .tiles import own_rows, tile_elements

JOINS: dict[str, JitFunction] = {"add": add, "sub": sub, "mul": mul, "div": div}


@sim.jit
def rows_joined(
    x_ptr, s_ptr, y_ptr, rows, n, FN: tl.constexpr, OWN: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr
):  # fmt: skip
    """OWN: each row is joined with its own number of s, else all of them with the numbers of s, one for each column."""
    start, end = own_rows(rows)
    for s in range(start, end, ROWS):
        row = s + tl.arange(0, ROWS)
        own = tl.load(s_ptr + row, mask=row < end).to(tl.float32)[:, None]
        for left in range(0, n, WIDE):
            column = left + tl.arange(0, WIDE)
            mask = (row < end)[:, None] & (column < n)[None, :]
            at = row[:, None] * n + column[None, :]
            x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
            if OWN:
                y = FN(x, own)
            if not OWN:
                y = FN(x, tl.load(s_ptr + column, mask=column < n).to(tl.float32)[None, :])
            tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=mask)


@sim.jit
def rows_spread(s_ptr, y_ptr, rows, n, OWN: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr):
    """OWN: each row is filled with its own number of s, else all rows are s."""
    start, end = own_rows(rows)
    for s in range(start, end, ROWS):
        row = s + tl.arange(0, ROWS)
        for left in range(0, n, WIDE):
            column = left + tl.arange(0, WIDE)
            y = tl.load(s_ptr + column, mask=column < n)[None, :]
            if OWN:
                y = tl.load(s_ptr + row, mask=row < end)[:, None]
            mask = (row < end)[:, None] & (column < n)[None, :]
            tl.store(y_ptr + row[:, None] * n + column[None, :], tl.broadcast_to(y, (ROWS, WIDE)), mask=mask)


@sim.jit
def row_maximum(x_ptr, y_ptr, place_ptr, rows, n, ROWS: tl.constexpr, WIDE: tl.constexpr):
    """Chunk after chunk of some rows is compared with what is kept; at the end the greatest of each row is looked for."""
    start, end = own_rows(rows)
    for s in range(start, end, ROWS):
        row = s + tl.arange(0, ROWS)
        kept = tl.full((ROWS, WIDE), float("-inf"), tl.float32)
        place = tl.zeros((ROWS, WIDE), tl.float32)
        for left in range(0, n, WIDE):
            column = left + tl.arange(0, WIDE)
            mask = (row < end)[:, None] & (column < n)[None, :]
            x = tl.load(x_ptr + row[:, None] * n + column[None, :], mask=mask).to(tl.float32)
            place = tl.where(x > kept, left * 1.0, place)
            kept = tl.maximum(x, kept)
        best = tl.max(kept, 1)
        tl.store(y_ptr + row, best, mask=row < end)
        first = tl.min(tl.where(kept == best[:, None], place, float("inf")), 1)
        tl.store(place_ptr + row, first.to(tl.int32), mask=row < end)


def tiled(
    row: Row,
    moved: tuple[int, int],
    bytes_of_one: int,
    sizes: tuple[int, int],
    kernel: JitFunction,
    *arguments: Any,
    start: Callable[[Row], float] = larger_code_us,
    **how: Any,
) -> Prediction:
    """A kernel of ROWS x WIDE tiles: whole rows where they fit, with as many in a tile as come out fastest.

    moved: bytes that are read and written; bytes_of_one: of each element of a tile in UB, with what is computed; sizes:
    rows and columns; start: what its start takes beyond that of an element-wise kernel, of `starts`.
    """
    (rows, n), cores = sizes, Settings(row).number("cores")
    room = tile_elements(row, bytes_of_one)

    def work(most: int) -> Any:
        wide = min(n, most)
        share = max(1, min(-(-rows // cores), most // wide))
        return kernel.time((cores,), *arguments, rows, n, **how, ROWS=share, WIDE=wide)

    run, most, count = fitting(row, room, 64, work)
    note = note_of(count, f"tiles of {most} elements")
    time = measured_time(row, run) + start(row)
    return Prediction(time, roofline_us(row, moved), note)


@predicts(*(f"{op} {kind}" for op in JOINS for kind in ("row", "columns")))
def _joined(row: Row) -> Prediction:
    """shapes: rows x columns. row: with a number of each row; columns: with one row of numbers."""
    (rows, n), (kind, *_), (result, *_) = sizes_of(row, "rows x columns"), *dtypes_of(row)
    op, own = row.op.split()[0], row.op.endswith("row")
    tensors = tensor(kind, rows * n), tensor(kind, max(rows, n)), tensor(result, rows * n)
    moved = (rows * n * BYTES[kind], rows * n * BYTES[result])
    return tiled(row, moved, 32, (rows, n), rows_joined, *tensors, FN=JOINS[op], OWN=own)


@predicts("broadcast row", "broadcast columns")
def _spread(row: Row) -> Prediction:
    """shapes: rows x columns of the result. row: a number of each row all along it; columns: one row many times."""
    (rows, n), (kind, *_) = sizes_of(row, "rows x columns"), dtypes_of(row)[0]
    tensors = tensor(kind, max(rows, n)), tensor(kind, rows * n)
    own = row.op.endswith("row")
    return tiled(row, (0, rows * n * BYTES[kind]), 16, (rows, n), rows_spread, *tensors, OWN=own)


@predicts("argmax row")
def _row_maximum(row: Row) -> Prediction:
    """shapes: rows x columns."""
    (rows, n), (kind, *_) = sizes_of(row, "rows x columns"), dtypes_of(row)[0]
    tensors = tensor(kind, rows * n), tensor("fp32", rows), tensor("int32", rows)
    return tiled(row, (rows * n * BYTES[kind], 0), 32, (rows, n), row_maximum, *tensors)

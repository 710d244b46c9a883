# mypy: disable-error-code="no-untyped-def"
"""Kernels that move elements: slices, concatenations, transpositions, picked rows, padding, repetition."""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.errors import UsageError
from ....simulator.products import load_product
from ....simulator.record.run import Run
from ..registry import Prediction, predicts
from ..settings import (
    BYTES,
    Settings,
    dtypes_of,
    fastest,
    fitting,
    measured_time,
    note_of,
    roofline_us,
    shape_of,
    sizes_of,
    tensor,
)
from ..table import Row
from .rowwise import tiled
from .starts import larger_code_us, slow_start_us
from .tiles import own_rows

BLOCK_BYTES = 32
SIDES = (16, 64, 128)  # rows of a transposed tile
MOST_SIDE = 1024
FAR = 40503  # picked rows lie that many rows apart, which is odd and far


@sim.jit
def copied(x_ptr, y_ptr, row, end, n, before, pitch, PITCH, WIDE: tl.constexpr):
    """n columns of some rows of x, whose rows are `pitch` apart, to where y, with rows PITCH apart, has `before` others."""
    for left in range(0, n, WIDE):
        column = left + tl.arange(0, WIDE)
        mask = (row < end)[:, None] & (column < n)[None, :]
        x = tl.load(x_ptr + row[:, None] * pitch + column[None, :], mask=mask)
        tl.store(y_ptr + row[:, None] * PITCH + before + column[None, :], x, mask=mask)


@sim.jit
def cut_out(x_ptr, y_ptr, rows, n, pitch, ROWS: tl.constexpr, WIDE: tl.constexpr):
    """The first n of the `pitch` elements of each row."""
    start, end = own_rows(rows)
    for s in range(start, end, ROWS):
        copied(x_ptr, y_ptr, s + tl.arange(0, ROWS), end, n, 0, pitch, n, WIDE)


@sim.jit
def put_beside(
    x_ptr, y_ptr, z_ptr, out_ptr, rows, n, NX: tl.constexpr, NY: tl.constexpr, NZ: tl.constexpr,
    ROWS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Rows of two or three tensors side by side, n elements in all; NZ 0: there is no third."""
    start, end = own_rows(rows)
    for s in range(start, end, ROWS):
        row = s + tl.arange(0, ROWS)
        copied(x_ptr, out_ptr, row, end, NX, 0, NX, n, NX if NX < WIDE else WIDE)
        copied(y_ptr, out_ptr, row, end, NY, NX, NY, n, NY if NY < WIDE else WIDE)
        if NZ > 0:
            copied(z_ptr, out_ptr, row, end, NZ, NX + NY, NZ, n, NZ if NZ < WIDE else WIDE)


@sim.jit
def transposed(x_ptr, y_ptr, batch, rows, columns, strip, HIGH: tl.constexpr, WIDE: tl.constexpr):
    """The last two of three axes change places. Cores take bands of HIGH rows in turn, of each `strip` columns."""
    down, across = tl.cdiv(rows, HIGH), tl.cdiv(columns, strip)
    for unit in range(tl.program_id(0), batch * down * across, tl.num_programs(0)):
        first, left = unit // (down * across) * rows * columns, unit % across * strip
        row, right = unit // across % down * HIGH + tl.arange(0, HIGH), min(left + strip, columns)
        for s in range(left, right, WIDE):
            column = s + tl.arange(0, WIDE)
            inside = (row < rows)[:, None] & (column < right)[None, :]
            x = tl.load(x_ptr + first + row[:, None] * columns + column[None, :], mask=inside)
            outside = (column < right)[:, None] & (row < rows)[None, :]
            tl.store(y_ptr + first + column[:, None] * rows + row[None, :], tl.trans(x), mask=outside)


@sim.jit
def rows_swapped(x_ptr, y_ptr, batch, rows, columns, n, HIGH: tl.constexpr, WIDE: tl.constexpr):
    """Rows and columns change places, each of n elements that stay together. Cores take bands of HIGH columns in turn."""
    across = tl.cdiv(columns, HIGH)
    for unit in range(tl.program_id(0), batch * rows * across, tl.num_programs(0)):
        item, row = unit // (rows * across), unit // across % rows
        column = unit % across * HIGH + tl.arange(0, HIGH)
        for left in range(0, n, WIDE):
            along = left + tl.arange(0, WIDE)
            inside = (column < columns)[:, None] & (along < n)[None, :]
            x = tl.load(
                x_ptr + ((item * rows + row) * columns + column[:, None]) * n + along[None, :], mask=inside
            )
            to = ((item * columns + column[:, None]) * rows + row) * n + along[None, :]
            tl.store(y_ptr + to, x, mask=inside)


@sim.jit
def picked(x_ptr, i_ptr, y_ptr, rows, n, size, STEP: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr):
    """Row after row of a table; where they lie is data: taken to be spread evenly. ROWS: indices read at once."""
    start, end = own_rows(rows)
    for s in range(start, end, ROWS):
        tl.load(i_ptr + s + tl.arange(0, ROWS), mask=s + tl.arange(0, ROWS) < end)
        for row in range(s, min(s + ROWS, end)):
            place = row * STEP % size
            for left in range(0, n, WIDE):
                column = left + tl.arange(0, WIDE)
                x = tl.load(x_ptr + place * n + column, mask=column < n)
                tl.store(y_ptr + row * n + column, x, mask=column < n)


@sim.jit
def widened(x_ptr, y_ptr, rows, wide, n, ROWS: tl.constexpr, WIDE: tl.constexpr):
    """Rows of n elements become rows of `wide`; what is beyond is filled with zeros."""
    start, end = own_rows(rows)
    for s in range(start, end, ROWS):
        row = s + tl.arange(0, ROWS)
        for left in range(0, wide, WIDE):
            column = left + tl.arange(0, WIDE)
            mask = (row < end)[:, None] & (column < n)[None, :]
            x = tl.load(x_ptr + row[:, None] * n + column[None, :], mask=mask, other=0.0)
            to = (row < end)[:, None] & (column < wide)[None, :]
            tl.store(y_ptr + row[:, None] * wide + column[None, :], x, mask=to)


@sim.jit
def repeated(x_ptr, y_ptr, rows, n, TIMES: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr):
    """Each row TIMES times, one copy after the other."""
    start, end = own_rows(rows)
    for s in range(start, end, ROWS):
        row = s + tl.arange(0, ROWS)
        for left in range(0, n, WIDE):
            column = left + tl.arange(0, WIDE)
            mask = (row < end)[:, None] & (column < n)[None, :]
            x = tl.load(x_ptr + row[:, None] * n + column[None, :], mask=mask)
            for k in range(0, TIMES):
                tl.store(y_ptr + (row[:, None] * TIMES + k) * n + column[None, :], x, mask=mask)


@predicts("slice")
def _slice(row: Row) -> Prediction:
    """shapes: rows x columns that stay x columns that were."""
    (m, n, pitch), (kind, *_) = (
        sizes_of(row, "rows x columns that stay x columns that were"),
        dtypes_of(row)[0],
    )
    if n > pitch:
        raise UsageError(
            f"{row.id}: {n} columns cannot stay of {pitch}; shapes must be rows x columns that stay x "
            f"columns that were, got {row.shapes!r}"
        )
    tensors, moved = (tensor(kind, m * pitch), tensor(kind, m * n)), (m * n * BYTES[kind],) * 2
    return tiled(row, moved, 4 * BYTES[kind], (m, n), cut_out, *tensors, pitch=pitch)


@predicts("concat")
def _concat(row: Row) -> Prediction:
    """shapes: rows x columns of each tensor; what is beyond the second counts as one."""
    (m, *widths), (kind, *_) = shape_of(row), dtypes_of(row)[0]
    if len(widths) < 2:
        raise UsageError(f"{row.id}: concat needs rows x columns of two tensors or more, got {row.shapes!r}")
    first, second, rest, n = widths[0], widths[1], sum(widths[2:]), sum(widths)
    tensors = [tensor(kind, m * max(1, k)) for k in (first, second, rest, n)]
    moved = (m * n * BYTES[kind],) * 2
    return tiled(row, moved, 4 * BYTES[kind], (m, n), put_beside, *tensors, NX=first, NY=second, NZ=rest)


@predicts("transpose")
def _transpose(row: Row) -> Prediction:
    """shapes: batch x rows x columns, or rows x columns: the last two change places. batch x rows x columns x n: the two in
    the middle do, as heads and places of attention.
    """
    if len(shape_of(row)) == 4:
        return _heads(row)
    sizes, (kind, *_), cores = shape_of(row), dtypes_of(row)[0], Settings(row).number("cores")
    if len(sizes) not in (2, 3):
        raise UsageError(f"{row.id}: shapes must be (batch x) rows x columns (x n); got {row.shapes!r}")
    batch, rows, columns = sizes if len(sizes) == 3 else (1, *sizes)
    size, room = batch * rows * columns, load_product(row.product).ub_bytes // (8 * BYTES[kind])
    block = BLOCK_BYTES // BYTES[kind]
    down, across = (min(-(-n // block) * block, MOST_SIDE) for n in (rows, columns))
    tiles = sorted(
        {(min(high, down), min(room // min(high, down) // block * block, across)) for high in SIDES}
    )

    def work(tile: tuple[int, int]) -> Run:
        high, wide = tile
        strips = max(1, min(-(-cores // (batch * -(-rows // high))), -(-columns // wide)))
        strip = -(-columns // (strips * wide)) * wide
        tensors = tensor(kind, size), tensor(kind, size)
        return transposed.time((cores,), *tensors, batch, rows, columns, strip, HIGH=high, WIDE=wide)  # type: ignore[no-any-return]

    run, tile, count = fastest(row, tiles, work)
    note = note_of(count, f"tiles of {tile[0]} x {tile[1]}")
    moved = (size * BYTES[kind],) * 2
    return Prediction(measured_time(row, run) + slow_start_us(row), roofline_us(row, moved), note)


def _heads(row: Row) -> Prediction:
    (batch, rows, columns, n), kind = shape_of(row), dtypes_of(row)[0][0]
    size, cores = batch * rows * columns * n, Settings(row).number("cores")
    tensors, room = (tensor(kind, size), tensor(kind, size)), load_product(row.product).ub_bytes

    def work(most: int) -> Run:
        wide = min(n, most)
        share = max(1, min(columns, most // wide, -(-batch * rows * columns // cores)))
        return rows_swapped.time((cores,), *tensors, batch, rows, columns, n, HIGH=share, WIDE=wide)  # type: ignore[no-any-return]

    run, most, count = fitting(row, room // (4 * BYTES[kind]), 64, work)
    time = measured_time(row, run) + slow_start_us(row)
    return Prediction(
        time, roofline_us(row, (size * BYTES[kind],) * 2), note_of(count, f"tiles of {most} elements")
    )


@predicts("gather")
def _gather(row: Row) -> Prediction:
    """shapes: picked rows x columns x rows of the table."""
    rows, n, size = sizes_of(row, "picked rows x columns x rows of the table")
    (kind, *_), cores = dtypes_of(row)[0], Settings(row).number("cores")
    wide = min(n, load_product(row.product).ub_bytes // (4 * BYTES[kind]))
    tensors = tensor(kind, size * n), tensor("int64", rows), tensor(kind, rows * n)
    step = FAR % size or 1

    def work(most: int) -> Run:
        return picked.time((cores,), *tensors, rows, n, size, STEP=step, WIDE=wide, ROWS=most)  # type: ignore[no-any-return]

    run, _, _ = fastest(row, [min(64, -(-rows // cores))], work)
    note = "rows one by one; the addresses are data: rows are taken to be spread evenly over the table"
    time = measured_time(row, run) + larger_code_us(row)
    return Prediction(time, roofline_us(row, (rows * n * BYTES[kind],) * 2), note)


@predicts("pad")
def _pad(row: Row) -> Prediction:
    """shapes: rows x columns that were x columns that become."""
    rows, n, wide = sizes_of(row, "rows x columns that were x columns that become")
    if n > wide:
        raise UsageError(
            f"{row.id}: {n} columns cannot be padded to {wide}; shapes must be rows x columns that were x "
            f"columns that become, got {row.shapes!r}"
        )
    kind = dtypes_of(row)[0][0]
    tensors = tensor(kind, rows * n), tensor(kind, rows * wide)
    moved = (rows * n * BYTES[kind], rows * wide * BYTES[kind])
    return tiled(row, moved, 16, (rows, wide), widened, *tensors, n=n)


@predicts("tile")
def _tile(row: Row) -> Prediction:
    """shapes: rows x columns x times: each row that many times."""
    (rows, n, times), (kind, *_) = sizes_of(row, "rows x columns x times"), dtypes_of(row)[0]
    tensors = tensor(kind, rows * n), tensor(kind, rows * n * times)
    one = rows * n * BYTES[kind]
    return tiled(row, (one, times * one), 16, (rows, n), repeated, *tensors, TIMES=times)

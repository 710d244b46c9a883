# mypy: disable-error-code="no-untyped-def"
"""Sums, products, maxima and minima so far, at each step along rows or columns.

Along rows a core has rows of its own and carries each one's last number from chunk to chunk; along columns it has a strip of
columns, whose rows follow each other. How the vendor's kernels scan within a tile nobody published: ours as compiled.
"""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.jit_function import JitFunction
from ....simulator.record.run import Run
from ..registry import Prediction, predicts
from ..settings import (
    BYTES,
    Settings,
    dtypes_of,
    fitting,
    matrices_of,
    measured_time,
    note_of,
    roofline_us,
    sizes_of,
    tensor,
)
from ..table import Row
from .expressions import add, maximum, minimum, mul
from .rowwise import tiled
from .starts import LANES
from .sums import added as total
from .sums import greatest, least
from .tiles import own_rows


@sim.jit
def product(x, axis: tl.constexpr):
    return tl.reduce(x, axis, mul)


# How two numbers are joined, and all of a row.
SCANS: dict[str, tuple[JitFunction, JitFunction]] = {
    "cumsum": (add, total),
    "cumprod": (mul, product),
    "cummax": (maximum, greatest),
    "cummin": (minimum, least),
}


@sim.jit
def along_rows(
    x_ptr, y_ptr, rows, n, JOIN: tl.constexpr, REDUCE: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr
):  # fmt: skip
    start, end = own_rows(rows)
    for s in range(start, end, ROWS):
        row = s + tl.arange(0, ROWS)
        before = tl.zeros((ROWS,), tl.float32)
        for left in range(0, n, WIDE):
            column = left + tl.arange(0, WIDE)
            mask = (row < end)[:, None] & (column < n)[None, :]
            at = row[:, None] * n + column[None, :]
            x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
            y = tl.associative_scan(x, 1, JOIN)
            if n > WIDE:
                y = JOIN(y, before[:, None])
                before = JOIN(before, REDUCE(x, 1))
            tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=mask)


@sim.jit
def along_columns(x_ptr, y_ptr, A, B, C, JOIN: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr):
    """The middle one of three axes: ROWS rows of a strip are loaded at once."""
    strips = tl.cdiv(C, WIDE)
    for unit in range(tl.program_id(0), A * strips, tl.num_programs(0)):
        column = unit % strips * WIDE + tl.arange(0, WIDE)
        before = tl.zeros((WIDE,), tl.float32)
        for s in range(0, B, ROWS):
            row = s + tl.arange(0, ROWS)
            mask = (row < B)[:, None] & (column < C)[None, :]
            at = (unit // strips * B + row[:, None]) * C + column[None, :]
            y = tl.associative_scan(tl.load(x_ptr + at, mask=mask).to(tl.float32), 0, JOIN)
            tl.store(y_ptr + at, JOIN(y, before[None, :]).to(y_ptr.dtype.element_ty), mask=mask)
            before = JOIN(before, tl.max(y, 0))


@predicts(*(f"{scan} rows" for scan in SCANS))
def _rows(row: Row) -> Prediction:
    """shapes: rows x columns, along each row."""
    (rows, n), (kind, *_), (result, *_) = sizes_of(row, "rows x columns"), *dtypes_of(row)
    join, reduce = SCANS[row.op.split()[0]]
    tensors, moved = (
        (tensor(kind, rows * n), tensor(result, rows * n)),
        (rows * n * BYTES[kind], rows * n * BYTES[result]),
    )
    return tiled(row, moved, 40, (rows, n), along_rows, *tensors, JOIN=join, REDUCE=reduce)


@predicts(*(f"{scan} {axis}" for scan in SCANS for axis in ("columns", "middle")))
def _columns(row: Row) -> Prediction:
    """shapes: a x b x c, along b; columns: b x c."""
    (a, b, c), (kind, *_), (result, *_) = matrices_of(row), *dtypes_of(row)
    cores, join = Settings(row).number("cores"), SCANS[row.op.split()[0]][0]
    strip = min(1024, (a * c // cores // LANES + 1) * LANES, -(-c // LANES) * LANES)
    tensors = tensor(kind, a * b * c), tensor(result, a * b * c)

    def work(most: int) -> Run:
        how = {"JOIN": join, "ROWS": max(1, min(b, most // strip)), "WIDE": strip}
        return along_columns.time((cores,), *tensors, a, b, c, **how)  # type: ignore[no-any-return]

    run, most, count = fitting(row, 4096, 64, work)
    moved = (a * b * c * BYTES[kind], a * b * c * BYTES[result])
    note = note_of(count, f"tiles of {most} elements, strips of {strip} columns")
    return Prediction(measured_time(row, run), roofline_us(row, moved), note)

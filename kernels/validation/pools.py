# mypy: disable-error-code="no-untyped-def"
"""Pools of images in blocks of channels (NC1HWC0), as a tile kernel each.

A core has rows of the pooled image and goes through the taps of its windows: maxima, and which tap is the first that is the
maximum (the vendor writes that as a mask for each tap, of about half as many bytes). The gradient adds what a tap selects to
the places that it met, plane by plane. An average over windows of one place is a copy; its gradient too.

How the vendor's kernels cut is not published. In their profiles the scalar unit works for half to four fifths of the time:
each vector instruction of a row and tap, or of a plane and tap, is a turn of a loop (`turns_us`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.errors import BufferOverflowError, UsageError
from ...simulator.language.extra.cann import extension as al
from ...simulator.record.run import Run
from .layouts import turns_us
from .registry import Prediction, predicts
from .settings import (
    BYTES,
    Settings,
    dtypes_of,
    fastest,
    measured_time,
    note_of,
    roofline_us,
    shape_of,
    sizes_of,
    tensor,
)
from .table import Row
from .vector.moves import copied
from .vector.starts import larger_code_us

C0 = 16
# Turns for each tap of a row and of each of its places (maximum), or of a plane or band of one (gradient): scalar cycles of
# an AlexNet step over those of a turn, 9 taps. maxpool-1: 0.607 of 165.4 us for 80 rows of 27 places a core; maxpool-3:
# 0.68 of 76.1 us for 66 rows of 6; maxpool_grad-1: 0.785 of 106.7 us for 16 planes.
TURNS_OF_ROW, TURNS_OF_COLUMN, TURNS_OF_PLANE = 9.9, 0.34, 80
MOST_ROWS = 16


@sim.jit
def maxima(
    x_ptr, y_ptr, first_ptr, items, W, OW: tl.constexpr, OH, H, K: tl.constexpr, STEP: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    """y (planes, OH, OW, 16) of x (planes, H, W, 16), ROWS rows an item (a divisor of OH): maxima of windows of K x K
    places, STEP apart. first: the number of the first tap that is the maximum, likewise.
    """
    SPAN: tl.constexpr = (OW - 1) * STEP + K
    DOWN: tl.constexpr = (ROWS - 1) * STEP + K
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        h, w, c = tl.arange(0, DOWN), tl.arange(0, SPAN), tl.arange(0, 16)
        top = item * ROWS // OH * H + item * ROWS % OH * STEP
        rows = tl.load(x_ptr + (top + h)[:, None, None] * (W * 16) + w[None, :, None] * 16 + c[None, None, :])
        most = tl.full((ROWS, OW, 16), float("-inf"), tl.float32)
        for i in tl.static_range(K):
            for j in tl.static_range(K):
                tap = al.extract_slice(rows, (i, j, 0), (ROWS, OW, 16), (STEP, STEP, 1))
                most = tl.maximum(most, tap)
        first = tl.zeros((ROWS, OW, 16), tl.float32)
        for k in tl.static_range(K * K):
            LAST: tl.constexpr = K * K - 1 - k
            tap = al.extract_slice(rows, (LAST // K, LAST % K, 0), (ROWS, OW, 16), (STEP, STEP, 1))
            first = tl.where(tap == most, 1.0 * LAST, first)
        out = (item * ROWS + tl.arange(0, ROWS))[:, None, None] * (OW * 16)
        out += tl.arange(0, OW)[None, :, None] * 16 + c[None, None, :]
        tl.store(y_ptr + out, most)
        tl.store(first_ptr + out, first.to(tl.float16))


@sim.jit
def maxima_gradient(
    dy_ptr, first_ptr, dx_ptr, items, H: tl.constexpr, W: tl.constexpr, OH: tl.constexpr, OW: tl.constexpr,
    K: tl.constexpr, STEP: tl.constexpr, ROWS: tl.constexpr, BANDS: tl.constexpr,
):  # fmt: skip
    """dx (planes, H, W, 16) of dy and first (planes, OH, OW, 16), see `maxima`; a band of a plane an item.

    ROWS: of dy for each band, OH with one band. A band of dx also gets what the windows above it add to it.
    """
    ABOVE: tl.constexpr = (K - 1) // STEP if BANDS > 1 else 0
    HIGH: tl.constexpr = ROWS * STEP if BANDS > 1 else H
    TALL: tl.constexpr = max((ABOVE + ROWS - 1) * STEP + K, ABOVE * STEP + HIGH)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        plane, top = item // BANDS, item % BANDS * ROWS
        h, w, c = top - ABOVE + tl.arange(0, ABOVE + ROWS), tl.arange(0, OW), tl.arange(0, 16)
        places = h[:, None, None] * (OW * 16) + w[None, :, None] * 16 + c[None, None, :]
        if BANDS > 1:
            there = (h >= 0)[:, None, None] & (h < OH)[:, None, None]
            dy = tl.load(dy_ptr + plane * (OH * OW * 16) + places, mask=there, other=0.0)
            first = tl.load(first_ptr + plane * (OH * OW * 16) + places, mask=there, other=0.0).to(tl.float32)
        else:
            dy = tl.load(dy_ptr + plane * (OH * OW * 16) + places)
            first = tl.load(first_ptr + plane * (OH * OW * 16) + places).to(tl.float32)
        dx = tl.zeros((TALL, W, 16), tl.float32)
        for i in tl.static_range(K):
            for j in tl.static_range(K):
                chosen = tl.where(first == 1.0 * (i * K + j), dy, 0.0)
                met = al.extract_slice(dx, (i, j, 0), (ABOVE + ROWS, OW, 16), (STEP, STEP, 1))
                dx = al.insert_slice(dx, met + chosen, (i, j, 0), (ABOVE + ROWS, OW, 16), (STEP, STEP, 1))
        all_h, all_w = top * STEP + tl.arange(0, HIGH), tl.arange(0, W)
        out = all_h[:, None, None] * (W * 16) + all_w[None, :, None] * 16 + c[None, None, :]
        own = al.extract_slice(dx, (ABOVE * STEP, 0, 0), (HIGH, W, 16), (1, 1, 1)) if BANDS > 1 else dx
        tl.store(dx_ptr + plane * (H * W * 16) + out, own, mask=(all_h < H)[:, None, None])


@sim.jit
def rows_moved(x_ptr, y_ptr, rows, N, BLOCK: tl.constexpr):
    """Averages over windows of one place: copies, a row of channels at a time."""
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        copied(x_ptr, y_ptr, row + tl.arange(0, 1), rows, N, 0, N, N, BLOCK)


class PoolSizes(NamedTuple):
    """images x channels x height x width x taps x stride of a pool; squares of taps, no padding."""

    n: int
    c: int
    height: int
    width: int
    taps: int
    stride: int

    @property
    def planes(self) -> int:
        return self.n * -(-self.c // C0)

    @property
    def out(self) -> tuple[int, int]:
        """Height and width of the pooled image."""
        h, w = ((x - self.taps) // self.stride + 1 for x in (self.height, self.width))
        return h, w


def _sizes(row: Row) -> PoolSizes:
    shape = shape_of(row)
    if len(shape) != len(PoolSizes._fields) or min(shape[2:4]) < shape[4]:
        fields = " x ".join(PoolSizes._fields)
        raise UsageError(f"{row.id}: shapes must be {fields}, taps within the image; got {row.shapes!r}")
    return PoolSizes(*shape)


@predicts("maxpool")
def _maxpool(row: Row) -> Prediction:
    s, cores = _sizes(row), Settings(row).number("cores")
    (out_h, out_w), whole = s.out, s.planes * s.height * s.width * C0
    items, y = s.planes * out_h, s.planes * out_h * out_w * C0
    tensors = tensor("fp32", whole), tensor("fp32", y), tensor("fp16", y)
    numbers = {"W": s.width, "OW": out_w, "OH": out_h, "H": s.height, "K": s.taps, "STEP": s.stride}

    def work(rows: int) -> Run:
        grid = (min(cores, items // rows),)
        return maxima.time(grid, *tensors, items // rows, **numbers, ROWS=rows)  # type: ignore[no-any-return]

    run, rows, count = fastest(row, [r for r in range(1, MOST_ROWS) if out_h % r == 0], work)
    turns = TURNS_OF_ROW + TURNS_OF_COLUMN * out_w
    time = measured_time(row, run) + larger_code_us(row)
    time += turns_us(row, -(-items // cores) * s.taps**2 * turns)
    return Prediction(time, roofline_us(row, (4 * whole, 6 * y)), note_of(count, f"{rows} rows at a time"))


@predicts("maxpool_grad")
def _maxpool_grad(row: Row) -> Prediction:
    """One plane at a time, or bands of one with as many rows of the pooled image as fit in UB."""
    s, cores = _sizes(row), Settings(row).number("cores")
    (out_h, out_w), whole = s.out, s.planes * s.height * s.width * C0
    y = s.planes * out_h * out_w * C0
    tensors = tensor("fp32", y), tensor("fp16", y), tensor("fp32", whole)
    numbers = {"H": s.height, "W": s.width, "OH": out_h, "OW": out_w, "K": s.taps, "STEP": s.stride}

    def work(rows: int) -> Run:
        bands = _bands(s, rows)
        items = s.planes * bands
        how = numbers | {"ROWS": rows, "BANDS": bands}
        return maxima_gradient.time((min(cores, items),), *tensors, items, **how)  # type: ignore[no-any-return]

    run, rows = _largest(row, out_h, work)
    items = s.planes * _bands(s, rows)
    time = measured_time(row, run) + larger_code_us(row)
    time += turns_us(row, -(-items // cores) * s.taps**2 * TURNS_OF_PLANE)
    note = "one plane at a time" if rows == out_h else f"{rows} rows of dy at a time"
    return Prediction(time, roofline_us(row, (6 * y, 4 * whole)), note)


def _bands(s: PoolSizes, rows: int) -> int:
    """Items of a plane with so many rows of dy each; rows below the last window belong to them, too."""
    return 1 if rows == s.out[0] else -(-s.height // (rows * s.stride))


def _largest(row: Row, most: int, work: Callable[[int], Run]) -> tuple[Run, int]:
    """With as many rows as fit in UB, halved until they do. Raises BufferOverflowError if one row does not fit."""
    while True:
        try:
            return fastest(row, (most,), work)[:2]
        except BufferOverflowError:
            if most == 1:
                raise
            most //= 2


@predicts("avgpool", "avgpool_grad")
def _average(row: Row) -> Prediction:
    """shapes: places x channels; windows of one place."""
    rows, n = sizes_of(row, "places x channels")
    source = dtypes_of(row)[0][0]
    tensors = tensor(source, rows * n), tensor(source, rows * n)

    def work(_: None) -> Run:
        grid, block = (min(Settings(row).number("cores"), rows),), min(-(-n // 64) * 64, 8192)
        return rows_moved.time(grid, *tensors, rows, n, BLOCK=block)  # type: ignore[no-any-return]

    run, _, _ = fastest(row, (None,), work)
    one = rows * n * BYTES[source]
    time = measured_time(row, run) + larger_code_us(row)
    return Prediction(time, roofline_us(row, (one, one)), "a row at a time")

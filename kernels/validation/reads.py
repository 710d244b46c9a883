# mypy: disable-error-code="no-untyped-def"
"""Kernels that only read: whole matrices tile by tile into UB, or into L1 in the layout of the Cube.

The vendor's example (data_copy) splits the rows of a matrix over the cores; each core reads its rows in tiles. Variants read
everything several times, in quarters, or let every core read all of it, in the same order or each from another place on.
"""

from __future__ import annotations

from typing import Any

from ... import simulator as sim
from ...simulator import language as tl
from .registry import Prediction, predicts
from .settings import BYTES, Settings, measured_time, roofline_us, sizes_of, tensor
from .table import Row


@sim.jit
def read_rows(x_ptr, y_ptr, out_ptr, N, rows, left, width, times, TM: tl.constexpr, TN: tl.constexpr):
    """Every core reads its `rows` rows, in strips of `width` columns, each strip `times` times.

    y_ptr None: into UB. Else into L1: the Cube multiplies each tile by 16 columns, which is less work than the way there.
    """
    first = tl.program_id(0) * rows
    if y_ptr is not None:
        small = tl.load(y_ptr + tl.arange(0, TN)[:, None] * 16 + tl.arange(0, 16)[None, :])
        total = tl.zeros((TM, 16), tl.float32)
    for strip in range(0, left, width):
        for _ in range(times):
            for i in range(0, rows, TM):
                for j in range(0, width, TN):
                    row, column = first + i + tl.arange(0, TM), strip + j + tl.arange(0, TN)
                    tile = tl.load(x_ptr + row[:, None] * N + column[None, :], mask=(column < N)[None, :])
                    if y_ptr is not None:
                        total = tl.dot(tile, small, total)
    if y_ptr is not None:
        tl.store(out_ptr + tl.arange(0, TM)[:, None] * 16 + tl.arange(0, 16)[None, :], total)


@sim.jit
def read_all(
    x_ptr, y_ptr, out_ptr, M, N, shifted, HOW: tl.constexpr, TM: tl.constexpr, TN: tl.constexpr
):  # fmt: skip
    """Every core reads the whole matrix; `shifted` 1: each starts at the block of rows after its neighbour's. HOW: ".cv"
    for reads past L2. y_ptr as above.
    """
    start = tl.program_id(0) * TM * shifted
    if y_ptr is not None:
        small = tl.load(y_ptr + tl.arange(0, TN)[:, None] * 16 + tl.arange(0, 16)[None, :])
        total = tl.zeros((TM, 16), tl.float32)
    for i in range(0, M, TM):
        for j in range(0, N, TN):
            row, column = (start + i) % M + tl.arange(0, TM), j + tl.arange(0, TN)
            tile = tl.load(x_ptr + row[:, None] * N + column[None, :], cache_modifier=HOW)
            if y_ptr is not None:
                total = tl.dot(tile, small, total)
    if y_ptr is not None:
        tl.store(out_ptr + tl.arange(0, TM)[:, None] * 16 + tl.arange(0, 16)[None, :], total)


@predicts("memcpy GM->UB", "memcpy GM->L1")
def _read(row: Row) -> Prediction:
    """tiling: cores, tile=rows x columns; times: passes; strips: parts along the columns; all=same or turned;
    l2=past: what all cores read is not kept in L2.
    """
    s, (m, n) = Settings(row), sizes_of(row, "rows x columns")
    tile_m, tile_n = s.numbers("tile", 2)
    cores, times, every = s.number("cores"), s.number("times", 1), s.one_of("all", ("same", "turned"))
    x, tiles = tensor("fp16", m, n), dict[str, Any](TM=tile_m, TN=tile_n)
    if every:
        sizes: tuple[int, ...] = (m, n, int(every == "turned"))
        kernel = read_all
        tiles["HOW"] = ".cv" if s.text("l2") == "past" else ""
    else:
        width = -(-n // s.number("strips", 1))
        sizes, kernel = (n, m // cores, n, width, times), read_rows
    of_l1 = (
        (None, None) if row.op.endswith("UB") else (tensor("fp16", tile_n, 16), tensor("fp32", tile_m, 16))
    )
    with sim.device(**s.device_options()):
        run = kernel.time((cores,), x, *of_l1, *sizes, **tiles)
    whole = BYTES["fp16"] * m * n
    passes = cores if every else times
    return Prediction(measured_time(row, run), roofline_us(row, (whole, 0), passes=passes))

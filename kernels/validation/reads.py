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
from .settings import BYTES, Settings, measured_time, roofline_us, shape_of, tensor
from .table import Row


@sim.jit
def read_to_ub(x_ptr, N, rows, left, width, times, TM: tl.constexpr, TN: tl.constexpr):
    """Every core reads its `rows` rows, in strips of `width` columns, each strip `times` times."""
    first = tl.program_id(0) * rows
    for strip in range(0, left, width):
        for _ in range(times):
            for i in range(0, rows, TM):
                for j in range(0, width, TN):
                    row, column = first + i + tl.arange(0, TM), strip + j + tl.arange(0, TN)
                    tl.load(x_ptr + row[:, None] * N + column[None, :], mask=(column < N)[None, :])


@sim.jit
def read_to_l1(x_ptr, y_ptr, out_ptr, N, rows, left, width, times, TM: tl.constexpr, TN: tl.constexpr):
    """The same into L1. The Cube multiplies each tile by 16 columns, which is less work than the way there."""
    first = tl.program_id(0) * rows
    small = tl.load(y_ptr + tl.arange(0, TN)[:, None] * 16 + tl.arange(0, 16)[None, :])
    total = tl.zeros((TM, 16), tl.float32)
    for strip in range(0, left, width):
        for _ in range(times):
            for i in range(0, rows, TM):
                for j in range(0, width, TN):
                    row, column = first + i + tl.arange(0, TM), strip + j + tl.arange(0, TN)
                    tile = tl.load(x_ptr + row[:, None] * N + column[None, :], mask=(column < N)[None, :])
                    total = tl.dot(tile, small, total)
    tl.store(out_ptr + tl.arange(0, TM)[:, None] * 16 + tl.arange(0, 16)[None, :], total)


@sim.jit
def all_read_to_ub(x_ptr, M, N, shifted, HOW: tl.constexpr, TM: tl.constexpr, TN: tl.constexpr):
    """Every core reads the whole matrix; `shifted` 1: each starts at the block of rows after its neighbour's. HOW: ".cv"
    for reads past L2.
    """
    start = tl.program_id(0) * TM * shifted
    for i in range(0, M, TM):
        for j in range(0, N, TN):
            row, column = (start + i) % M + tl.arange(0, TM), j + tl.arange(0, TN)
            tl.load(x_ptr + row[:, None] * N + column[None, :], cache_modifier=HOW)


@sim.jit
def all_read_to_l1(
    x_ptr, y_ptr, out_ptr, M, N, shifted, HOW: tl.constexpr, TM: tl.constexpr, TN: tl.constexpr
):
    start = tl.program_id(0) * TM * shifted
    small = tl.load(y_ptr + tl.arange(0, TN)[:, None] * 16 + tl.arange(0, 16)[None, :])
    total = tl.zeros((TM, 16), tl.float32)
    for i in range(0, M, TM):
        for j in range(0, N, TN):
            row, column = (start + i) % M + tl.arange(0, TM), j + tl.arange(0, TN)
            tile = tl.load(x_ptr + row[:, None] * N + column[None, :], cache_modifier=HOW)
            total = tl.dot(tile, small, total)
    tl.store(out_ptr + tl.arange(0, TM)[:, None] * 16 + tl.arange(0, 16)[None, :], total)


@predicts("memcpy GM->UB", "memcpy GM->L1")
def _read(row: Row) -> Prediction:
    """tiling: cores, tile=rows x columns; times: passes; strips: parts along the columns; all=same or turned;
    l2=past: what all cores read is not kept in L2.
    """
    s, (m, n) = Settings(row), shape_of(row)
    tile_m, tile_n = s.numbers("tile", 2)
    cores, times, every = s.number("cores"), s.number("times", 1), s.text("all")
    x, tiles = tensor("fp16", m, n), dict[str, Any](TM=tile_m, TN=tile_n)
    if every:
        sizes: tuple[int, ...] = (m, n, int(every == "turned"))
        to_ub, to_l1 = all_read_to_ub, all_read_to_l1
        tiles["HOW"] = ".cv" if s.text("l2") == "past" else ""
    else:
        width = -(-n // s.number("strips", 1))
        sizes, to_ub, to_l1 = (n, m // cores, n, width, times), read_to_ub, read_to_l1
    with sim.device(**s.device_options()):
        if row.op.endswith("UB"):
            run = to_ub.time((cores,), x, *sizes, **tiles)
        else:
            small, out = tensor("fp16", tile_n, 16), tensor("fp32", tile_m, 16)
            run = to_l1.time((cores,), x, small, out, *sizes, **tiles)
    moved = BYTES["fp16"] * m * n * (cores if every else times)
    return Prediction(measured_time(row, run), roofline_us(row, moved))

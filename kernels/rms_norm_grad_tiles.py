# mypy: disable-error-code="no-untyped-def"
"""Tile kernels of RmsNormGrad, what they need of UB, and the choice of a tiling; the mathematics is in rms_norm_grad.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import simulator as sim
from ..simulator import language as tl
from .combine import REPEAT
from .layout import up
from .operator import Tensor, Workshop, dtype_of

# -- kernels ---------------------------------------------------------------------------------------------------------


@sim.jit
def row_sums(x):
    """(rows, columns) fp32 -> (rows,): halving down to 64 lanes, then one tree; by repeats if columns are no multiple."""
    if x.shape[1] > 64 and x.shape[1] % 64 == 0:
        x = tl.sum(tl.reshape(x, (x.shape[0], x.shape[1] // 64, 64)), axis=1)
    return tl.sum(x, axis=1)


@sim.jit
def column_sums(x):
    """(rows, columns) fp32 -> (columns,), upper half of the rows onto the lower half."""
    return tl.reshape(x, (x.shape[1],)) if x.shape[0] == 1 else tl.sum(x, axis=0)


@sim.jit
def full_row(
    dy_ptr,
    x_ptr,
    rstd_ptr,
    gamma_ptr,
    dx_ptr,
    dgamma_ptr,
    row_count,
    rows_per_core,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    TWO_PHASE: tl.constexpr,
):
    """dx of a core's rows of COLS elements, and its part of dgamma: added to dgamma, or row `pid` of a workspace.

    Operations that do not need each other's result alternate, since the Vector unit hides no latency between two
    that do.
    """
    pid = tl.program_id(0)
    stop = min(pid * rows_per_core + rows_per_core, row_count)
    cols = tl.arange(0, COLS)
    row = tl.arange(0, ROWS)[:, None]
    tile = row * COLS + cols[None, :]
    gamma = tl.load(gamma_ptr + cols).to(tl.float32)
    dgamma = tl.zeros((COLS,), tl.float32)
    for first in range(pid * rows_per_core, stop, ROWS):
        alive = row < stop - first
        at = first * COLS
        rstd = tl.load(rstd_ptr + first + row, mask=alive, other=0.0)
        x = tl.load(x_ptr + at + tile, mask=alive, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + at + tile, mask=alive, other=0.0).to(tl.float32)
        xh = x * rstd
        t = dy * gamma[None, :]
        part = dy * xh
        weighted = t * xh
        dgamma += column_sums(part)
        c = row_sums(weighted) * (1.0 / COLS)
        dx = (t - xh * c[:, None]) * rstd
        tl.store(dx_ptr + at + tile, dx.to(dx_ptr.dtype.element_ty), mask=alive)
    if TWO_PHASE:
        tl.store(dgamma_ptr + pid * COLS + cols, dgamma)
    else:
        tl.atomic_add(dgamma_ptr + cols, dgamma)


@sim.jit
def split_row(
    dy_ptr,
    x_ptr,
    rstd_ptr,
    gamma_ptr,
    dx_ptr,
    dgamma_ptr,
    row_count,
    row_length,
    inverse_length,
    rows_per_core,
    part_stride,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    """As full_row, in chunks of COLS columns. Core `pid` adds to dgamma + pid * part_stride (0: all to the same)."""
    pid = tl.program_id(0)
    stop = min(pid * rows_per_core + rows_per_core, row_count)
    row, col = tl.arange(0, ROWS)[:, None], tl.arange(0, COLS)
    tile = row * row_length + col[None, :]
    part_ptr = dgamma_ptr + pid * part_stride
    for first in range(pid * rows_per_core, stop, ROWS):
        alive = row < stop - first
        rstd = tl.load(rstd_ptr + first + row, mask=alive, other=0.0)
        c = tl.zeros((ROWS,), tl.float32)
        for begin in range(0, row_length, COLS):
            inside = col < row_length - begin
            mask = alive & inside[None, :]
            at = first * row_length + begin
            x = tl.load(x_ptr + at + tile, mask=mask, other=0.0).to(tl.float32)
            xh = x * rstd
            dy = tl.load(dy_ptr + at + tile, mask=mask, other=0.0).to(tl.float32)
            gamma = tl.load(gamma_ptr + begin + col, mask=inside, other=0.0).to(tl.float32)
            tl.atomic_add(part_ptr + begin + col, column_sums(dy * xh), mask=inside)
            t = dy * gamma[None, :]
            c += row_sums(t * xh)
        c = c * inverse_length
        for begin in range(0, row_length, COLS):
            inside = col < row_length - begin
            mask = alive & inside[None, :]
            at = first * row_length + begin
            x = tl.load(x_ptr + at + tile, mask=mask, other=0.0).to(tl.float32)
            dy = tl.load(dy_ptr + at + tile, mask=mask, other=0.0).to(tl.float32)
            gamma = tl.load(gamma_ptr + begin + col, mask=inside, other=0.0).to(tl.float32)
            xh = x * rstd
            t = dy * gamma[None, :]
            dx = (t - xh * c[:, None]) * rstd
            tl.store(dx_ptr + at + tile, dx.to(dx_ptr.dtype.element_ty), mask=mask)


@sim.jit
def split_row_vendor(
    dy_ptr,
    x_ptr,
    rstd_ptr,
    gamma_ptr,
    dx_ptr,
    dgamma_ptr,
    row_count,
    row_length,
    inverse_length,
    rows_per_core,
    part_stride,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    """As split_row, a row at a time in blocks of ROWS: gamma and dgamma of a chunk serve all rows of a block."""
    pid = tl.program_id(0)
    stop = min(pid * rows_per_core + rows_per_core, row_count)
    col, place = tl.arange(0, COLS), tl.arange(0, ROWS).to(tl.float32)
    part_ptr = dgamma_ptr + pid * part_stride
    for first in range(pid * rows_per_core, stop, ROWS):
        c = tl.zeros((ROWS,), tl.float32)
        for begin in range(0, row_length, COLS):
            inside = col < row_length - begin
            gamma = tl.load(gamma_ptr + begin + col, mask=inside, other=0.0).to(tl.float32)
            dgamma = tl.zeros((COLS,), tl.float32)
            for row in range(first, min(first + ROWS, stop)):
                at = row * row_length + begin + col
                xh = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32) * tl.load(rstd_ptr + row)
                dy = tl.load(dy_ptr + at, mask=inside, other=0.0).to(tl.float32)
                dgamma += dy * xh
                weighted = row_sums(tl.reshape(dy * gamma * xh, (1, COLS)))
                c += tl.where(place == row - first, weighted, 0.0)
            tl.atomic_add(part_ptr + begin + col, dgamma, mask=inside)
        c = c * inverse_length
        for begin in range(0, row_length, COLS):
            inside = col < row_length - begin
            gamma = tl.load(gamma_ptr + begin + col, mask=inside, other=0.0).to(tl.float32)
            for row in range(first, min(first + ROWS, stop)):
                at = row * row_length + begin + col
                rstd = tl.load(rstd_ptr + row)
                xh = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32) * rstd
                dy = tl.load(dy_ptr + at, mask=inside, other=0.0).to(tl.float32)
                own = tl.sum(tl.where(place == row - first, c, 0.0), axis=0)
                dx = (dy * gamma - xh * own) * rstd
                tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=inside)


# -- what fits -------------------------------------------------------------------------------------------------------

BLOCK_BYTES = 32
SPLIT_COLUMNS = 1024  # a chunk of split_row is at most this long: longer ones leave no room for several rows
# What the latencies of one turn of the loop cost, in elements of a tile (fitted to the simulator's own times).
TURN_ELEMENTS = 500


def full_row_bytes(cols: int, rows: int, itemsize: int, copies: int) -> int:
    """UB bytes that full_row needs for tiles of rows x cols, at most (checked against the placement by a test).

    dy, x and dx in their own type, `copies` each; FP32 temporaries: 4 tiles for one row, up to half a tile more for
    several; FP32 tiles are computed on where they were loaded, which saves one. gamma, dgamma, a sum of columns.
    """
    cols = up(cols, BLOCK_BYTES // itemsize)
    transfers = 3 * itemsize * copies if copies > 1 else 0
    temporaries = (16 if rows == 1 else 19) - (4 if itemsize == 4 and copies > 1 else 0)
    return rows * cols * (transfers + temporaries) + (8 if rows == 1 else 12) * cols + 128 * rows


def split_row_bytes(cols: int, rows: int, itemsize: int, copies: int) -> int:
    """UB bytes that split_row needs for tiles of rows x cols, at most, as above; gamma comes anew with every chunk."""
    cols = up(cols, BLOCK_BYTES // itemsize)
    transfers = 3 * itemsize * copies if copies > 1 else 0
    temporaries = 15 if copies == 1 else 12 if itemsize == 2 else 6
    return rows * cols * (transfers + temporaries) + (8 + 4 * copies) * cols + 128 * rows


def choose(x: Tensor, gamma: Tensor, knobs: Mapping[str, Any], workshop: Workshop) -> dict[str, Any]:
    """Every knob: as given, or by the rules here; cut to what the shapes allow.

    strategy vendor: see `vendor_tile`. auto: full_row if one row fits UB by `full_row_bytes`, else split_row. rows: see
    `best_rows`.
    """
    row_count = x.size // gamma.size
    share = -(-row_count // min(workshop.cores(knobs["cores"]), row_count))
    capacity, itemsize, copies = workshop.product.ub_bytes, dtype_of(x).itemsize, knobs["buffers"]
    strategy = knobs["strategy"]
    if strategy == "vendor":
        rows, cols = vendor_tile(gamma.size, share, itemsize)
        # The vendor's kernel computes in place on buffers of FP32 width; ours needs more for a row.
        while cols == gamma.size and rows > 1 and full_row_bytes(cols, rows, itemsize, copies) > capacity:
            rows -= 1
        if cols == gamma.size and full_row_bytes(cols, rows, itemsize, copies) > capacity:
            knobs = {**knobs, "buffers": 1}
        return {**knobs, "rows": rows, "cols": cols, "cores": -(-row_count // share)}
    if strategy == "auto":
        one_row = full_row_bytes(gamma.size, 1, itemsize, copies)
        strategy = "full_row" if one_row <= capacity else "split_row"
    whole = strategy == "full_row"
    cols = gamma.size if whole else _chunk(gamma.size, knobs["cols"])
    needs = full_row_bytes if whole else split_row_bytes
    rows = knobs["rows"] or best_rows(share, cols, lambda n: needs(cols, n, itemsize, copies) <= capacity)
    return {
        **knobs,
        "strategy": strategy,
        "rows": min(rows, share),
        "cols": cols,
        "cores": -(-row_count // share),
    }


VENDOR_FULL_ROW, VENDOR_SMALL_ROW, VENDOR_CHUNK = 6080, 640, 4096  # columns
VENDOR_BLOCK = 32  # rows
VENDOR_UB = 195_584


def vendor_tile(length: int, share: int, itemsize: int) -> tuple[int, int]:
    """(rows, columns) of a tile by the vendor's rules (hicann/ops-nn, rms_norm_grad/op_host/rms_norm_grad_tiling.cpp).

    `share`: rows of a core. Rows of at most 640 columns go in blocks, up to 6080 one at a time, longer ones in chunks of
    4096 and blocks of 32 rows, whose sums are kept between the two sweeps.
    """
    cols = up(length, BLOCK_BYTES // itemsize)
    if cols > VENDOR_FULL_ROW:
        return VENDOR_BLOCK, VENDOR_CHUNK
    rows = (VENDOR_UB - 10 * cols) // (24 * cols + 268) if cols <= VENDOR_SMALL_ROW else 1
    return max(1, min(rows, share)), length


def _chunk(row_length: int, wanted: int | None) -> int:
    """Columns of a chunk: what was asked for in whole repeats, or the row in the fewest equal chunks."""
    if wanted is None:
        wanted = -(-row_length // -(-row_length // SPLIT_COLUMNS))
    return min(row_length, up(wanted, REPEAT))


def best_rows(share: int, cols: int, fits: Callable[[int], bool]) -> int:
    """Rows of a tile for a core with `share` rows: least work with the padding of the last tile; at least 1."""
    best, least = 1, share * (cols + TURN_ELEMENTS)
    for rows in range(2, share + 1):
        work = -(-share // rows) * (rows * cols + TURN_ELEMENTS)
        if not fits(rows):
            break
        if work <= least:
            best, least = rows, work
    return best

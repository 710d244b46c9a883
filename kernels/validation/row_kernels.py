# mypy: disable-error-code="no-untyped-def"
"""Kernels that work row by row: RmsNorm and its gradient, SwiGLU, rows that are cut out or put together."""

from __future__ import annotations

from typing import Any

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.jit_function import JitFunction
from ...simulator.products import load_product
from ..norm.rms.op import rms_norm_grad
from .registry import Prediction, predicts
from .settings import (
    BYTES,
    NAMES,
    Settings,
    dtypes_of,
    fastest,
    halves,
    measured_time,
    note_of,
    roofline_us,
    shape_of,
    tensor,
)
from .table import Row


@sim.jit
def own_rows(rows):
    """The first row of a core, and the one behind its last: all have a range of about the same length."""
    each = tl.cdiv(rows, tl.num_programs(0))
    start = tl.program_id(0) * each
    return start, min(start + each, rows)


@sim.jit
def rms_norm(x_ptr, g_ptr, y_ptr, r_ptr, rows, N: tl.constexpr, ROWS: tl.constexpr):
    """A core has one range of rows and goes through it in tiles of ROWS whole rows; 1 / rms goes out beside the result."""
    start, end = own_rows(rows)
    column = tl.arange(0, N)
    gamma = tl.load(g_ptr + column).to(tl.float32)
    for s in range(start, end, ROWS):
        row = s + tl.arange(0, ROWS)
        at = row[:, None] * N + column[None, :]
        mask = (row < end)[:, None]
        x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
        scale = tl.rsqrt(tl.sum(x * x, axis=1) / N + 1e-6)
        tl.store(r_ptr + row, scale, mask=row < end)
        tl.store(y_ptr + at, (x * scale[:, None] * gamma[None, :]).to(y_ptr.dtype.element_ty), mask=mask)


@sim.jit
def swiglu(x_ptr, y_ptr, rows, N: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr):
    """y = silu(a) * b, where a and b are the halves of a row of 2 N elements."""
    start, end = own_rows(rows)
    for s in range(start, end, ROWS):
        for left in range(0, N, WIDE):
            row, column = s + tl.arange(0, ROWS), left + tl.arange(0, WIDE)
            mask = (row < end)[:, None] & (column < N)[None, :]
            at = row[:, None] * (2 * N) + column[None, :]
            a = tl.load(x_ptr + at, mask=mask).to(tl.float32)
            b = tl.load(x_ptr + N + at, mask=mask).to(tl.float32)
            y = a / (1.0 + tl.exp(-a)) * b
            tl.store(y_ptr + row[:, None] * N + column[None, :], y.to(y_ptr.dtype.element_ty), mask=mask)


@sim.jit
def cut_out(x_ptr, y_ptr, rows, wide, N: tl.constexpr, ROWS: tl.constexpr):
    """The first N of the `wide` elements of each row."""
    start, end = own_rows(rows)
    for s in range(start, end, ROWS):
        row, column = s + tl.arange(0, ROWS), tl.arange(0, N)
        mask = (row < end)[:, None]
        x = tl.load(x_ptr + row[:, None] * wide + column[None, :], mask=mask)
        tl.store(y_ptr + row[:, None] * N + column[None, :], x, mask=mask)


@sim.jit
def put_beside(
    x_ptr, y_ptr, z_ptr, out_ptr, rows,
    NX: tl.constexpr, NY: tl.constexpr, NZ: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Rows of two or three tensors side by side; NZ 0: there is no third."""
    start, end = own_rows(rows)
    for s in range(start, end, ROWS):
        row = s + tl.arange(0, ROWS)
        mask = (row < end)[:, None]
        to = out_ptr + row[:, None] * (NX + NY + NZ)
        x, y = tl.arange(0, NX)[None, :], tl.arange(0, NY)[None, :]
        tl.store(to + x, tl.load(x_ptr + row[:, None] * NX + x, mask=mask), mask=mask)
        tl.store(to + NX + y, tl.load(y_ptr + row[:, None] * NY + y, mask=mask), mask=mask)
        if NZ > 0:
            z = tl.arange(0, NZ)[None, :]
            tl.store(to + NX + NY + z, tl.load(z_ptr + row[:, None] * NZ + z, mask=mask), mask=mask)


def _tile(row: Row, n: int, live: int) -> tuple[int, int]:
    """Rows and columns of a tile with so many bytes alive for each element, that fill UB as well as they can."""
    room = load_product(row.product).ub_bytes // live
    wide = min(n, max(128, room // 256 * 256))
    return max(1, room // wide), wide


@predicts("rmsnorm")
def _rms_norm(row: Row) -> Prediction:
    (m, n), kind = shape_of(row), dtypes_of(row)[0][0]
    tensors = (tensor(kind, m * n), tensor(kind, n), tensor(kind, m * n), tensor("fp32", m))
    most = min(_share(row, m), _tile(row, n, 24)[0])
    return _by_rows(row, 2 * m * n * BYTES[kind], most, rms_norm, *tensors, m, N=n)


@predicts("swiglu")
def _swiglu(row: Row) -> Prediction:
    """shapes: rows x (2 N), the input."""
    (m, two_n), kind = shape_of(row), dtypes_of(row)[0][0]
    n = two_n // 2
    most, wide = _tile(row, n, 40)
    tensors = tensor(kind, m * two_n), tensor(kind, m * n)
    most = min(_share(row, m), most)
    return _by_rows(row, 3 * m * n * BYTES[kind], most, swiglu, *tensors, m, N=n, WIDE=wide)


@predicts("slice")
def _slice(row: Row) -> Prediction:
    """shapes: rows x columns that stay x columns that were."""
    (m, n, wide), kind = shape_of(row), dtypes_of(row)[0][0]
    tensors = tensor(kind, m * wide), tensor(kind, m * n)
    most = _filling(row, m, n * BYTES[kind])
    return _by_rows(row, 2 * m * n * BYTES[kind], most, cut_out, *tensors, m, wide, N=n)


@predicts("concat")
def _concat(row: Row) -> Prediction:
    """shapes: rows x columns of each of two or three tensors."""
    (m, *widths), kind = shape_of(row), dtypes_of(row)[0][0]
    width = sum(widths) * BYTES[kind]
    sizes = dict(zip(("NX", "NY", "NZ"), (*widths, 0), strict=False))
    tensors = [tensor(kind, m * max(1, n)) for n in (*sizes.values(), sum(widths))]
    return _by_rows(row, 2 * m * width, _filling(row, m, width), put_beside, *tensors, m, **sizes)


def _share(row: Row, m: int) -> int:
    """Rows of a core."""
    return -(-m // Settings(row).number("cores"))


def _filling(row: Row, m: int, width: int) -> int:
    """Rows of `width` bytes of which two copies fill half of UB, of those of a core."""
    return max(1, min(_share(row, m), load_product(row.product).ub_bytes // (4 * width)))


def _by_rows(row: Row, moved: int, most: int, kernel: JitFunction, *arguments: Any, **how: Any) -> Prediction:
    """A kernel on the row's cores with as many rows in a tile, at most `most`, as come out fastest."""
    grid = (Settings(row).number("cores"),)
    run, rows, count = fastest(
        row, halves(most), lambda rows: kernel.time(grid, *arguments, **how, ROWS=rows)
    )
    note = note_of(count, f"tiles of {rows} row{'s' * (rows > 1)}")
    return Prediction(measured_time(row, run), roofline_us(row, moved), note)


@predicts("rmsnorm_grad")
def _rms_norm_grad(row: Row) -> Prediction:
    """The operator with the vendor's tiling; filling dgamma with zeros before is a launch of its own and not counted."""
    s, (m, n), kind = Settings(row), shape_of(row), NAMES[dtypes_of(row)[0][0]]
    tensors = [sim.shape(x, t) for x, t in (((m, n), kind), ((m, n), kind), ((m,), "float32"), ((n,), kind))]
    with sim.device(**s.device_options()):
        found = rms_norm_grad(*tensors, tiling={"strategy": "vendor"}, values=False)
    run = found.run
    time = sum(x.time_us for x in run.launches if x.kernel != "zero_fill")
    knobs = " ".join(f"{k}={v}" for k, v in found.tiling.items())
    return Prediction(
        time, roofline_us(row, 3 * m * n * BYTES[dtypes_of(row)[0][0]]), f"vendor's tiling: {knobs}"
    )

# mypy: disable-error-code="no-untyped-def"
"""Kernels that work row by row: RmsNorm and SwiGLU, forward."""

from __future__ import annotations

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.products import load_product
from .registry import Prediction, predicts
from .settings import BYTES, Settings, dtypes_of, measured_time, roofline_us, shape_of, tensor
from .table import Row


@sim.jit
def rms_norm(x_ptr, g_ptr, y_ptr, r_ptr, rows, N: tl.constexpr, ROWS: tl.constexpr):
    """A core has one stretch of rows and walks it in tiles of ROWS whole rows; 1 / rms goes out beside the result."""
    stretch = tl.cdiv(rows, tl.num_programs(0))
    start = tl.program_id(0) * stretch
    end = min(start + stretch, rows)
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
    stretch = tl.cdiv(rows, tl.num_programs(0))
    start = tl.program_id(0) * stretch
    end = min(start + stretch, rows)
    for s in range(start, end, ROWS):
        for left in range(0, N, WIDE):
            row, column = s + tl.arange(0, ROWS), left + tl.arange(0, WIDE)
            mask = (row < end)[:, None] & (column < N)[None, :]
            at = row[:, None] * (2 * N) + column[None, :]
            a = tl.load(x_ptr + at, mask=mask).to(tl.float32)
            b = tl.load(x_ptr + N + at, mask=mask).to(tl.float32)
            y = a / (1.0 + tl.exp(-a)) * b
            tl.store(y_ptr + row[:, None] * N + column[None, :], y.to(y_ptr.dtype.element_ty), mask=mask)


def _tile(row: Row, n: int, live: int) -> tuple[int, int]:
    """Rows and columns of a tile with so many bytes alive for each element, that fill UB as well as they can."""
    room = load_product(row.product).ub_bytes // live
    wide = min(n, max(128, room // 256 * 256))
    return max(1, room // wide), wide


@predicts("rmsnorm")
def _rms_norm(row: Row) -> Prediction:
    s, (m, n) = Settings(row), shape_of(row)
    kind, cores = dtypes_of(row)[0][0], s.number("cores")
    rows = s.number("rows", min(16, _tile(row, n, 24)[0]))
    with sim.device(**s.device_options()):
        tensors = (tensor(kind, m * n), tensor(kind, n), tensor(kind, m * n), tensor("fp32", m))
        run = rms_norm.time((cores,), *tensors, m, N=n, ROWS=rows)
    return Prediction(
        measured_time(row, run), roofline_us(row, 2 * m * n * BYTES[kind]), f"{rows} rows a tile: chosen"
    )


@predicts("swiglu")
def _swiglu(row: Row) -> Prediction:
    """shapes: rows x (2 N), the input."""
    s, (m, two_n) = Settings(row), shape_of(row)
    kind, cores, n = dtypes_of(row)[0][0], s.number("cores"), two_n // 2
    rows, wide = _tile(row, n, 40)
    with sim.device(**s.device_options()):
        run = swiglu.time(
            (cores,), tensor(kind, m * two_n), tensor(kind, m * n), m, N=n, ROWS=rows, WIDE=wide
        )
    return Prediction(
        measured_time(row, run), roofline_us(row, 3 * m * n * BYTES[kind]), f"{rows} rows a tile: chosen"
    )

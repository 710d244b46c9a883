# mypy: disable-error-code="no-untyped-def"
"""Kernels that work row by row: RmsNorm and SwiGLU with their gradients, rotary embeddings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.errors import UsageError
from ....simulator.jit_function import JitFunction
from ....simulator.language.extra.cann import extension as al
from ....simulator.products import load_product
from ....simulator.record.run import Run
from ...norm.rms.op import rms_norm_grad
from ..registry import Prediction, predicts
from ..settings import (
    BYTES,
    NAMES,
    Settings,
    dtypes_of,
    fastest,
    fitting,
    float_of,
    halves,
    measured_time,
    note_of,
    roofline_us,
    sizes_of,
    tensor,
)
from ..table import Row
from .starts import larger_code_us
from .tiles import own_rows


@sim.jit
def rms_norm(x_ptr, g_ptr, y_ptr, r_ptr, rows, N: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr):
    """A core has one range of rows and goes through it in tiles of ROWS rows; 1 / rms goes out beside the result.

    Rows longer than WIDE are read twice in chunks: for the sum of squares, and for the result.
    """
    start, end = own_rows(rows)
    column = tl.arange(0, WIDE)
    gamma = tl.load(g_ptr + column).to(tl.float32)
    for s in range(start, end, ROWS):
        row = s + tl.arange(0, ROWS)
        squares = tl.zeros((ROWS,), tl.float32)
        if WIDE < N:
            for left in range(0, N, WIDE):
                mask = (row < end)[:, None] & (left + column < N)[None, :]
                x = tl.load(x_ptr + row[:, None] * N + (left + column)[None, :], mask=mask).to(tl.float32)
                squares += tl.sum(x * x, axis=1)
        for left in range(0, N, WIDE):
            at = row[:, None] * N + (left + column)[None, :]
            mask = (row < end)[:, None] & (left + column < N)[None, :]
            x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
            if WIDE < N:
                gamma = tl.load(g_ptr + left + column, mask=left + column < N).to(tl.float32)
            else:
                squares = tl.sum(x * x, axis=1)
            scale = tl.rsqrt(squares / N + 1e-6)
            tl.store(y_ptr + at, (x * scale[:, None] * gamma[None, :]).to(y_ptr.dtype.element_ty), mask=mask)
        tl.store(r_ptr + row, tl.rsqrt(squares / N + 1e-6), mask=row < end)


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
def swiglu_grad(x_ptr, dy_ptr, dx_ptr, rows, N: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr):
    """Both halves of dx from both halves of x and from dy: s = sigmoid(a), da = dy b s (1 + a (1 - s)), db = dy a s."""
    start, end = own_rows(rows)
    for s in range(start, end, ROWS):
        for left in range(0, N, WIDE):
            row, column = s + tl.arange(0, ROWS), left + tl.arange(0, WIDE)
            mask = (row < end)[:, None] & (column < N)[None, :]
            at = row[:, None] * (2 * N) + column[None, :]
            dy = tl.load(dy_ptr + row[:, None] * N + column[None, :], mask=mask).to(tl.float32)
            a = tl.load(x_ptr + at, mask=mask).to(tl.float32)
            sigma = 1.0 / (1.0 + tl.exp(-a))
            db = dy * a * sigma
            tl.store(dx_ptr + N + at, db.to(dx_ptr.dtype.element_ty), mask=mask)
            b = tl.load(x_ptr + N + at, mask=mask).to(tl.float32)
            da = dy * b * sigma * (1.0 + a * (1.0 - sigma))
            tl.store(dx_ptr + at, da.to(dx_ptr.dtype.element_ty), mask=mask)


@sim.jit
def rotated(
    x_ptr, c_ptr, s_ptr, y_ptr, places, heads, LESS: tl.constexpr, HALF: tl.constexpr, ROWS: tl.constexpr
):  # fmt: skip
    """x cos + (halves of x changed, one of them negative) sin, with one cos and sin for all heads of a place.

    LESS: where the negative half begins, 0 or in a gradient HALF.

    As the vendor's kernel goes: cos and sin of some places, then head after head of these places, each a row of x that is
    `heads` rows from the next (ops-transformer, rotate_half_bf16.h, SingleStepProcess).
    """
    start, end = own_rows(places)
    for s in range(start, end, ROWS):
        place, angle = s + tl.arange(0, ROWS), tl.arange(0, 2 * HALF)
        turn, there = place[:, None] * (2 * HALF) + angle[None, :], (place < end)[:, None]
        cos = tl.load(c_ptr + turn, mask=there).to(tl.float32)
        sin = tl.load(s_ptr + turn, mask=there).to(tl.float32)
        negative = al.extract_slice(sin, (0, LESS), (ROWS, HALF), (1, 1)) * -1.0
        sin = al.insert_slice(sin, negative, (0, LESS), (ROWS, HALF), (1, 1))
        for h in range(0, heads):
            at = (place[:, None] * heads + h) * (2 * HALF) + angle[None, :]
            x = tl.load(x_ptr + at, mask=there).to(tl.float32)
            right = al.extract_slice(x, (0, HALF), (ROWS, HALF), (1, 1))
            left = al.extract_slice(x, (0, 0), (ROWS, HALF), (1, 1))
            y = x * cos
            x = al.insert_slice(x, right, (0, 0), (ROWS, HALF), (1, 1))
            x = al.insert_slice(x, left, (0, HALF), (ROWS, HALF), (1, 1))
            tl.store(y_ptr + at, (y + x * sin).to(y_ptr.dtype.element_ty), mask=there)


def _tile(row: Row, n: int, live: int) -> tuple[int, int]:
    """Rows and columns of a tile with so many bytes alive for each element, that fill UB as well as they can."""
    room = load_product(row.product).ub_bytes // live
    wide = min(n, max(128, room // 256 * 256))
    return max(1, room // wide), wide


SHORT_ROW = 2000  # columns up to which RmsNorm takes several rows at once
LONGEST_ROW = {"fp32": 10240, "fp16": 12288, "bf16": 12288}  # that it keeps whole


def _rms_tile(row: Row, n: int, kind: str) -> tuple[int, int]:
    """Rows and columns of a tile in the vendor's tiling of today (ops-nn, rms_norm_tiling.cpp, Tiling4RmsNorm)."""
    align, longest = 32 // BYTES[kind], LONGEST_ROW[kind]
    if n <= SHORT_ROW:
        wide = -(-n // align) * align
        return (load_product(row.product).ub_bytes - 1024) // (16 * wide + 260), n
    chunks = -(-n // longest)
    return 1, n if chunks == 1 else -(-n // (16 * chunks)) * 16


@predicts("rmsnorm")
def _rms_norm(row: Row) -> Prediction:
    """shapes: rows x columns. rows: of a tile, if it is not the vendor's tiling, whose queues have one buffer."""
    (m, n), kind, s = sizes_of(row, "rows x columns"), float_of(row), Settings(row)
    if not s.text("buffers"):
        row = replace(row, tiling=f"{row.tiling} buffers=1")
    rows, wide = _rms_tile(row, n, kind)
    rows = min(s.number("rows", rows), _share(row, m))
    tensors = (tensor(kind, m * n), tensor(kind, n), tensor(kind, m * n), tensor("fp32", m))
    grid, note = (s.number("cores"),), f"the vendor's tiling of today: tiles of {rows} x {wide}"
    run, _, _ = fastest(row, [rows], lambda rows: rms_norm.time(grid, *tensors, m, N=n, ROWS=rows, WIDE=wide))
    time = measured_time(row, run) + larger_code_us(row)
    return Prediction(time, roofline_us(row, (m * n * BYTES[kind],) * 2), note)


def _halves(row: Row) -> tuple[int, int]:
    """Rows, and columns of a half of them."""
    m, columns = sizes_of(row, "rows x columns of both halves")
    if columns % 2:
        raise UsageError(
            f"{row.id}: {row.op} takes two halves of a row: an even number of columns, got {row.shapes!r}"
        )
    return m, columns // 2


@predicts("swiglu")
def _swiglu(row: Row) -> Prediction:
    """shapes: rows x (2 N), the input."""
    (m, n), kind = _halves(row), dtypes_of(row)[0][0]
    most, wide = _tile(row, n, 40)
    tensors = tensor(kind, m * 2 * n), tensor(kind, m * n)
    most = min(_share(row, m), most)
    one = m * n * BYTES[kind]
    return _by_rows(row, (2 * one, one), most, swiglu, *tensors, m, N=n, WIDE=wide)


@predicts("swiglu_grad")
def _swiglu_grad(row: Row) -> Prediction:
    """shapes: rows x (2 N), the input."""
    (m, n), kind = _halves(row), dtypes_of(row)[0][0]
    most, wide = _tile(row, n, 64)
    tensors = tensor(kind, m * 2 * n), tensor(kind, m * n), tensor(kind, m * 2 * n)
    most = min(_share(row, m), most)
    one = m * n * BYTES[kind]
    return _by_rows(row, (3 * one, 2 * one), most, swiglu_grad, *tensors, m, N=n, WIDE=wide)


ROPE_BUFFERS = {
    "fp32": 8,
    "fp16": 8,
    "bf16": 24,
}  # parts of UB in the vendor's tiling, each of a tile in the tensors' type
ROPE_KEPT = 2048  # bytes of UB that it leaves free


@predicts("rope", "rope_grad")
def _rope(row: Row) -> Prediction:
    """shapes: places x heads x dim; the gradient turns the other way, and makes none of cos and sin.

    Places of a tile: the vendor's tiling of today (ops-transformer, rope_rotate_half_tiling.cpp, GetStoreLines).
    """
    (m, heads, dim), kind = sizes_of(row, "places x heads x dim"), float_of(row)
    if dim % 2:
        raise UsageError(
            f"{row.id}: {row.op} turns halves of dim, which must be even; got {dim} of {row.shapes!r}"
        )
    tensors = [tensor(kind, m * x * dim) for x in (heads, 1, 1, heads)]
    part = (load_product(row.product).ub_bytes - ROPE_KEPT) // ROPE_BUFFERS[kind]
    rows = max(1, min(_share(row, m), part // (BYTES[kind] * dim)))
    grid, less = (Settings(row).number("cores"),), dim // 2 if row.op == "rope_grad" else 0

    def work(rows: int) -> Run:
        return rotated.time(grid, *tensors, m, heads, LESS=less, HALF=dim // 2, ROWS=rows)  # type: ignore[no-any-return]

    run, rows, _ = fitting(row, rows, 1, work)
    time = measured_time(row, run) + larger_code_us(row)
    moved = ((heads + 2) * m * dim * BYTES[kind], heads * m * dim * BYTES[kind])
    return Prediction(time, roofline_us(row, moved), f"the vendor's tiling of today: {rows} places")


def _share(row: Row, m: int) -> int:
    """Rows of a core."""
    return -(-m // Settings(row).number("cores"))


def _by_rows(
    row: Row, moved: tuple[int, int], most: int, kernel: JitFunction, *arguments: Any, **how: Any
) -> Prediction:
    """A kernel on the row's cores with as many rows in a tile, at most `most`, as come out fastest."""
    grid = (Settings(row).number("cores"),)
    run, rows, count = fastest(
        row, halves(most), lambda rows: kernel.time(grid, *arguments, **how, ROWS=rows)
    )
    note = note_of(count, f"tiles of {rows} row{'s' * (rows > 1)}")
    return Prediction(measured_time(row, run) + larger_code_us(row), roofline_us(row, moved), note)


@predicts("rmsnorm_grad")
def _rms_norm_grad(row: Row) -> Prediction:
    """The operator with the vendor's tiling; filling dgamma with zeros before is a launch of its own and not counted."""
    s, (m, n), kind = Settings(row), sizes_of(row, "rows x columns"), NAMES[float_of(row)]
    tensors = [tensor(t, *x) for x, t in (((m, n), kind), ((m, n), kind), ((m,), "float32"), ((n,), kind))]
    with sim.device(**s.device_options()):
        found = rms_norm_grad(*tensors, tiling={"strategy": "vendor"}, values=False)
    run = found.run
    time = sum(x.time_us for x in run.launches if x.kernel != "zero_fill")
    knobs = " ".join(f"{k}={v}" for k, v in found.tiling.items())
    one = m * n * BYTES[dtypes_of(row)[0][0]]
    return Prediction(
        time + larger_code_us(row), roofline_us(row, (2 * one, one)), f"vendor's tiling: {knobs}"
    )

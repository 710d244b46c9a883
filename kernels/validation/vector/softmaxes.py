# mypy: disable-error-code="no-untyped-def"
"""Kernels that join a row's sums with its elements: softmax, its logarithm, layer norm, and their gradients.

Rows that fit in UB are read once; longer ones twice, in chunks: first for what is summed, then for the result.
"""

from __future__ import annotations

from collections.abc import Callable

from .... import simulator as sim
from ....simulator import language as tl
from ..registry import Prediction, predicts
from ..settings import BYTES, dtypes_of, sizes_of, tensor
from ..table import Row
from .rowwise import tiled
from .starts import slow_code_us, slow_start_us
from .tiles import own_rows


@sim.jit
def softmax(x_ptr, y_ptr, rows, n, LOG: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr):
    """Beyond one chunk: the greatest so far and the sum for it are corrected chunk by chunk, then all is read again."""
    start, end = own_rows(rows)
    for s in range(start, end, ROWS):
        row = s + tl.arange(0, ROWS)
        if n <= WIDE:
            column = tl.arange(0, WIDE)
            mask = (row < end)[:, None] & (column < n)[None, :]
            at = row[:, None] * n + column[None, :]
            x = tl.load(x_ptr + at, mask=mask, other=float("-inf")).to(tl.float32)
            x = x - tl.max(x, 1)[:, None]
            e = tl.exp(x)
            total = tl.sum(e, 1)
            y = x - tl.log(total)[:, None] if LOG else e / total[:, None]
            tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=mask)
        else:
            most, total = tl.full((ROWS,), -1e30, tl.float32), tl.zeros((ROWS,), tl.float32)
            for left in range(0, n, WIDE):
                column = left + tl.arange(0, WIDE)
                mask = (row < end)[:, None] & (column < n)[None, :]
                at = row[:, None] * n + column[None, :]
                x = tl.load(x_ptr + at, mask=mask, other=float("-inf")).to(tl.float32)
                now = tl.maximum(most, tl.max(x, 1))
                total = total * tl.exp(most - now) + tl.sum(tl.exp(x - now[:, None]), 1)
                most = now
            for left in range(0, n, WIDE):
                column = left + tl.arange(0, WIDE)
                mask = (row < end)[:, None] & (column < n)[None, :]
                at = row[:, None] * n + column[None, :]
                x = tl.load(x_ptr + at, mask=mask).to(tl.float32) - most[:, None]
                y = x - tl.log(total)[:, None] if LOG else tl.exp(x) / total[:, None]
                tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=mask)


@sim.jit
def softmax_grad(dy_ptr, y_ptr, dx_ptr, rows, n, LOG: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr):
    """y (dy - sum(dy y)), or of the logarithm dy - exp(y) sum(dy)."""
    start, end = own_rows(rows)
    for s in range(start, end, ROWS):
        row = s + tl.arange(0, ROWS)
        total = tl.zeros((ROWS,), tl.float32)
        if n > WIDE:
            for left in range(0, n, WIDE):
                column = left + tl.arange(0, WIDE)
                mask = (row < end)[:, None] & (column < n)[None, :]
                at = row[:, None] * n + column[None, :]
                dy = tl.load(dy_ptr + at, mask=mask).to(tl.float32)
                total += tl.sum(dy if LOG else dy * tl.load(y_ptr + at, mask=mask).to(tl.float32), 1)
        for left in range(0, n, WIDE):
            column = left + tl.arange(0, WIDE)
            mask = (row < end)[:, None] & (column < n)[None, :]
            at = row[:, None] * n + column[None, :]
            dy = tl.load(dy_ptr + at, mask=mask).to(tl.float32)
            y = tl.load(y_ptr + at, mask=mask).to(tl.float32)
            if n <= WIDE:
                total = tl.sum(dy if LOG else dy * y, 1)
            dx = dy - tl.exp(y) * total[:, None] if LOG else y * (dy - total[:, None])
            tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=mask)


@sim.jit
def layer_norm(x_ptr, g_ptr, b_ptr, y_ptr, rows, n, ROWS: tl.constexpr, WIDE: tl.constexpr):
    """(x - mean) / sqrt(variance + eps) gamma + beta."""
    start, end = own_rows(rows)
    for s in range(start, end, ROWS):
        row = s + tl.arange(0, ROWS)
        total, squares = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32)
        if n > WIDE:
            for left in range(0, n, WIDE):
                column = left + tl.arange(0, WIDE)
                mask = (row < end)[:, None] & (column < n)[None, :]
                x = tl.load(x_ptr + row[:, None] * n + column[None, :], mask=mask).to(tl.float32)
                total += tl.sum(x, 1)
                squares += tl.sum(x * x, 1)
        for left in range(0, n, WIDE):
            column = left + tl.arange(0, WIDE)
            mask = (row < end)[:, None] & (column < n)[None, :]
            at = row[:, None] * n + column[None, :]
            x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
            if n <= WIDE:
                x = x - (tl.sum(x, 1) / n)[:, None]
                scale = tl.rsqrt(tl.sum(x * x, 1) / n + 1e-5)
            else:
                mean = total / n
                scale = tl.rsqrt(squares / n - mean * mean + 1e-5)
                x = x - mean[:, None]
            g = tl.load(g_ptr + column, mask=column < n).to(tl.float32)
            b = tl.load(b_ptr + column, mask=column < n).to(tl.float32)
            y = x * scale[:, None] * g[None, :] + b[None, :]
            tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=mask)


@sim.jit
def layer_norm_grad(
    dy_ptr, x_ptr, g_ptr, m_ptr, r_ptr, dx_ptr, dg_ptr, rows, n, ROWS: tl.constexpr, WIDE: tl.constexpr
):  # fmt: skip
    """dx, and parts of dgamma and dbeta, which cores add into memory; mean and 1 / deviation come from the forward pass."""
    start, end = own_rows(rows)
    for s in range(start, end, ROWS):
        row = s + tl.arange(0, ROWS)
        mean, scale = tl.load(m_ptr + row, mask=row < end), tl.load(r_ptr + row, mask=row < end)
        total, along = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32)
        if n > WIDE:
            for left in range(0, n, WIDE):
                column = left + tl.arange(0, WIDE)
                mask = (row < end)[:, None] & (column < n)[None, :]
                at = row[:, None] * n + column[None, :]
                x = (tl.load(x_ptr + at, mask=mask).to(tl.float32) - mean[:, None]) * scale[:, None]
                t = tl.load(dy_ptr + at, mask=mask).to(tl.float32)
                t = t * tl.load(g_ptr + column, mask=column < n).to(tl.float32)[None, :]
                total += tl.sum(t, 1)
                along += tl.sum(t * x, 1)
        for left in range(0, n, WIDE):
            column = left + tl.arange(0, WIDE)
            mask = (row < end)[:, None] & (column < n)[None, :]
            at = row[:, None] * n + column[None, :]
            x = (tl.load(x_ptr + at, mask=mask).to(tl.float32) - mean[:, None]) * scale[:, None]
            dy = tl.load(dy_ptr + at, mask=mask).to(tl.float32)
            t = dy * tl.load(g_ptr + column, mask=column < n).to(tl.float32)[None, :]
            if n <= WIDE:
                total = tl.sum(t, 1)
                along = tl.sum(t * x, 1)
            dx = (t - (total[:, None] + x * along[:, None]) / n) * scale[:, None]
            tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=mask)
            tl.atomic_add(dg_ptr + column, tl.sum(dy * x, 0), mask=column < n)
            tl.atomic_add(dg_ptr + n + column, tl.sum(dy, 0), mask=column < n)


def _log_and_start(row: Row) -> tuple[bool, Callable[[Row], float]]:
    """Whether it is the logarithm's, and its start: both are kernels of one kind, with a schedule chosen when they run."""
    log = row.op.startswith("log")
    return log, slow_start_us if log else slow_code_us


@predicts("softmax", "log_softmax")
def _softmax(row: Row) -> Prediction:
    """shapes: rows x columns."""
    (rows, n), (kind, *_), (result, *_) = sizes_of(row, "rows x columns"), *dtypes_of(row)
    tensors, moved = (
        (tensor(kind, rows * n), tensor(result, rows * n)),
        (rows * n * BYTES[kind], rows * n * BYTES[result]),
    )
    log, start = _log_and_start(row)
    return tiled(row, moved, 24, (rows, n), softmax, *tensors, LOG=log, start=start)


@predicts("softmax_grad", "log_softmax_grad")
def _softmax_grad(row: Row) -> Prediction:
    """shapes: rows x columns."""
    (rows, n), (kind, *_) = sizes_of(row, "rows x columns"), dtypes_of(row)[0]
    tensors = [tensor(kind, rows * n) for _ in range(3)]
    one, (log, start) = rows * n * BYTES[kind], _log_and_start(row)
    return tiled(row, (2 * one, one), 32, (rows, n), softmax_grad, *tensors, LOG=log, start=start)


@predicts("layernorm")
def _layer_norm(row: Row) -> Prediction:
    """shapes: rows x columns; with gamma and beta."""
    (rows, n), (kind, *_) = sizes_of(row, "rows x columns"), dtypes_of(row)[0]
    tensors = tensor(kind, rows * n), tensor(kind, n), tensor(kind, n), tensor(kind, rows * n)
    one = rows * n * BYTES[kind]
    return tiled(row, (one, one), 32, (rows, n), layer_norm, *tensors)


@predicts("layernorm_backward", "layernorm_grad")
def _layer_norm_grad(row: Row) -> Prediction:
    """shapes: rows x columns; all three gradients."""
    (rows, n), (kind, *_) = sizes_of(row, "rows x columns"), dtypes_of(row)[0]
    big, small = tensor(kind, rows * n), tensor("fp32", rows)
    tensors = big, tensor(kind, rows * n), tensor(kind, n), small, tensor("fp32", rows)
    outputs = tensor(kind, rows * n), tensor("fp32", 2 * n)
    one = rows * n * BYTES[kind]
    return tiled(row, (2 * one, one), 48, (rows, n), layer_norm_grad, *tensors, *outputs)

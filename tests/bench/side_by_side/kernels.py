# mypy: disable-error-code="no-untyped-def"
"""Kernels that both engines run: this text is loaded once by each, with `tl` and `jit` bound to that engine.

`engine` is a module that the worker makes before it imports this file.
"""

from engine import jit, tl


@jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask)
    y = tl.load(y_ptr + at, mask=mask)
    tl.store(out_ptr + at, x + y, mask=mask)


@jit
def softmax(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    """Rows in turn: a program takes every num_programs-th."""
    col = tl.arange(0, BLOCK)
    mask = col < columns
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * columns + col, mask=mask, other=-float("inf"))
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * columns + col, e / tl.sum(e, axis=0), mask=mask)


@jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr
):
    """c (M, N) = a (M, K) b (K, N); tiles in bands of GROUP tile rows."""
    pid = tl.program_id(0)
    down, across = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = pid // (GROUP * across) * GROUP
    height = tl.minimum(down - first, GROUP)
    row = (first + pid % (GROUP * across) % height) * BM + tl.arange(0, BM)
    col = pid % (GROUP * across) // height * BN + tl.arange(0, BN)
    deep = tl.arange(0, BK)
    a_ptrs = a_ptr + row[:, None] * K + deep[None, :]
    b_ptrs = b_ptr + deep[:, None] * N + col[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = deep < K - k * BK
        a = tl.load(a_ptrs, mask=(row < M)[:, None] & left[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=left[:, None] & (col < N)[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK * N
    mask = (row < M)[:, None] & (col < N)[None, :]
    tl.store(c_ptr + row[:, None] * N + col[None, :], acc.to(tl.float16), mask=mask)


@jit
def layer_norm(x_ptr, w_ptr, b_ptr, y_ptr, mean_ptr, rstd_ptr, columns, eps, BLOCK: tl.constexpr):
    """One row a program, in blocks: mean, variance, result."""
    row = tl.program_id(0)
    x_ptr += row * columns
    y_ptr += row * columns
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        col = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + col, mask=col < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        col = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + col, mask=col < columns, other=0.0).to(tl.float32)
        d = tl.where(col < columns, x - mean, 0.0)
        squares += d * d
    rstd = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, columns, BLOCK):
        col = start + tl.arange(0, BLOCK)
        mask = col < columns
        w = tl.load(w_ptr + col, mask=mask)
        b = tl.load(b_ptr + col, mask=mask)
        x = tl.load(x_ptr + col, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + col, (x - mean) * rstd * w + b, mask=mask)


@jit
def layer_norm_backward(
    dy_ptr,
    x_ptr,
    w_ptr,
    mean_ptr,
    rstd_ptr,
    dx_ptr,
    dw_ptr,
    db_ptr,
    rows,
    columns,
    BLOCK: tl.constexpr,
):
    """dx of every num_programs-th row; this program's part of dw and db in its own row of (programs, columns)."""
    pid = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    mask = col < columns
    w = tl.load(w_ptr + col, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK,), dtype=tl.float32)
    db = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(pid, rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * columns + col, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * columns + col, mask=mask, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + row)
        rstd = tl.load(rstd_ptr + row)
        xhat = tl.where(mask, (x - mean) * rstd, 0.0)
        wdy = w * dy
        c1 = tl.sum(xhat * wdy, axis=0) / columns
        c2 = tl.sum(wdy, axis=0) / columns
        tl.store(dx_ptr + row * columns + col, (wdy - (xhat * c1 + c2)) * rstd, mask=mask)
        dw += dy * xhat
        db += dy
    tl.store(dw_ptr + pid * columns + col, dw, mask=mask)
    tl.store(db_ptr + pid * columns + col, db, mask=mask)


@jit
def rms_norm(x_ptr, w_ptr, y_ptr, rstd_ptr, columns, eps, BLOCK: tl.constexpr):
    """One row a program."""
    row = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    mask = col < columns
    x = tl.load(x_ptr + row * columns + col, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + col, mask=mask, other=0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / columns + eps)
    tl.store(rstd_ptr + row, rstd)
    tl.store(y_ptr + row * columns + col, x * rstd * w, mask=mask)


@jit
def rms_norm_backward(dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr, dw_ptr, rows, columns, BLOCK: tl.constexpr):
    """dx of a run of rows; this program's part of dw in its own row of (programs, columns)."""
    pid = tl.program_id(0)
    share = tl.cdiv(rows, tl.num_programs(0))
    col = tl.arange(0, BLOCK)
    mask = col < columns
    w = tl.load(w_ptr + col, mask=mask, other=0.0)
    dw = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(pid * share, tl.minimum(pid * share + share, rows)):
        dy = tl.load(dy_ptr + row * columns + col, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + row * columns + col, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        m = dy * w
        xhat = x * rstd
        c = tl.sum(m * xhat, axis=0) / columns
        tl.store(dx_ptr + row * columns + col, (m - xhat * c) * rstd, mask=mask)
        dw += dy * xhat
    tl.store(dw_ptr + pid * columns + col, dw, mask=mask)

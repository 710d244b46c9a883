# mypy: disable-error-code="no-untyped-def"
"""Layer norm forward and backward; the backward pass shows two ways to add up over programs.

    y = (x - mean) * rstd * w + b

Each row needs its own dx, which is easy, but dw and db are sums over all rows, which are in different programs:

* *partial*: few programs take many rows each and add in UB; every program writes one row of a workspace, and a
  second kernel adds those. No program waits for another. This is the form for a machine with few, large cores.
* *lock*: a program for each row, and `groups` rows of workspace that programs share. A program takes the lock
  of its row of the workspace (compare and swap until it was free), adds, and gives it back. It shows how
  programs wait for each other: the simulator runs them one by one, in order.
"""

from __future__ import annotations

import numpy as np

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.record.run import Run
from .showing import drawn, show

EPS = 1e-5


@sim.jit
def forward_kernel(x_ptr, w_ptr, b_ptr, y_ptr, mean_ptr, rstd_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    x = tl.load(x_ptr + row * columns + column, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(inside, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    w = tl.load(w_ptr + column, mask=inside).to(tl.float32)
    b = tl.load(b_ptr + column, mask=inside).to(tl.float32)
    y = centred * rstd * w + b
    tl.store(y_ptr + row * columns + column, y.to(y_ptr.dtype.element_ty), mask=inside)


@sim.jit
def row_gradient(x_ptr, dy_ptr, dx_ptr, mean_ptr, rstd_ptr, w, row, column, inside, columns):
    """Stores dx of a row; gives what the row adds to dw and db."""
    x = tl.load(x_ptr + row * columns + column, mask=inside, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * columns + column, mask=inside, other=0.0).to(tl.float32)
    mean, rstd = tl.load(mean_ptr + row), tl.load(rstd_ptr + row)
    xhat = tl.where(inside, (x - mean) * rstd, 0.0)
    wdy = w * dy
    c1 = tl.sum(xhat * wdy, axis=0) / columns
    c2 = tl.sum(wdy, axis=0) / columns
    dx = (wdy - (xhat * c1 + c2)) * rstd
    tl.store(dx_ptr + row * columns + column, dx.to(dx_ptr.dtype.element_ty), mask=inside)
    return dy * xhat, dy


@sim.jit
def partial_kernel(
    x_ptr, dy_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_ptr, db_ptr, rows, columns, BLOCK: tl.constexpr
):
    """Every num_programs-th row; row `pid` of dw and db (programs, columns)."""
    pid = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    w = tl.load(w_ptr + column, mask=inside, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK,), dtype=tl.float32)
    db = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(pid, rows, tl.num_programs(0)):
        more_dw, more_db = row_gradient(
            x_ptr, dy_ptr, dx_ptr, mean_ptr, rstd_ptr, w, row, column, inside, columns
        )
        dw += more_dw
        db += more_db
    tl.store(dw_ptr + pid * columns + column, dw, mask=inside)
    tl.store(db_ptr + pid * columns + column, db, mask=inside)


@sim.jit
def lock_kernel(
    x_ptr, dy_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_ptr, db_ptr, lock_ptr, columns,
    GROUPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Row `pid`; adds to row pid % GROUPS of dw and db (GROUPS, columns), which start as zeros."""
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    w = tl.load(w_ptr + column, mask=inside, other=0.0).to(tl.float32)
    more_dw, more_db = row_gradient(
        x_ptr, dy_ptr, dx_ptr, mean_ptr, rstd_ptr, w, row, column, inside, columns
    )
    group = row % GROUPS
    at = group * columns + column
    while tl.atomic_cas(lock_ptr + group, 0, 1) == 1:
        pass
    tl.store(dw_ptr + at, tl.load(dw_ptr + at, mask=inside) + more_dw, mask=inside)
    tl.store(db_ptr + at, tl.load(db_ptr + at, mask=inside) + more_db, mask=inside)
    tl.atomic_xchg(lock_ptr + group, 0)


@sim.jit
def columns_kernel(part_ptr, out_ptr, parts, columns, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """Sum of `parts` rows, a block of columns a program."""
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.arange(0, PARTS)
    inside = (part < parts)[:, None] & (column < columns)[None, :]
    tile = tl.load(part_ptr + part[:, None] * columns + column[None, :], mask=inside, other=0.0)
    out = tl.sum(tile, axis=0).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + column, out, mask=column < columns)


def power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


def forward(
    x: np.ndarray, w: np.ndarray, b: np.ndarray, eps: float = EPS
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Run]:
    """y like x (rows, columns), mean and rstd of each row in float32."""
    rows, columns = x.shape
    y = np.empty_like(x)
    mean, rstd = np.empty(rows, np.float32), np.empty(rows, np.float32)
    run: Run = forward_kernel[(rows,)](x, w, b, y, mean, rstd, columns, eps, BLOCK=power_of_two(columns))
    return y, mean, rstd, run


def backward(
    x: np.ndarray,
    dy: np.ndarray,
    w: np.ndarray,
    mean: np.ndarray,
    rstd: np.ndarray,
    way: str = "partial",
    groups: int = 8,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[Run]]:
    """dx, dw, db; way: "partial" or "lock"; groups: programs of the first way, rows of workspace of the second."""
    rows, columns = x.shape
    dx, dw, db = np.empty_like(x), np.empty_like(w), np.empty_like(w)
    parts = np.zeros((2, min(groups, rows), columns), np.float32)
    given = (x, dy, w, mean, rstd, dx, *parts)
    block = power_of_two(columns)
    if way == "lock":
        locks = np.zeros(groups, np.int32)
        runs = [lock_kernel[(rows,)](*given, locks, columns, GROUPS=parts.shape[1], BLOCK=block)]
    else:
        runs = [partial_kernel[(parts.shape[1],)](*given, rows, columns, BLOCK=block)]
    for part, out in zip(parts, (dw, db), strict=True):
        count = part.shape[0]
        launch = columns_kernel[(-(-columns // 128),)]
        runs.append(launch(part, out, count, columns, PARTS=power_of_two(count), BLOCK=128))
    return dx, dw, db, runs


def reference(
    x: np.ndarray, w: np.ndarray, b: np.ndarray, dy: np.ndarray, eps: float = EPS
) -> list[np.ndarray]:
    """y, dx, dw, db in float64."""
    x, w, b, dy = (v.astype(np.float64) for v in (x, w, b, dy))
    rstd = 1 / np.sqrt(x.var(axis=1, keepdims=True) + eps)
    xhat = (x - x.mean(axis=1, keepdims=True)) * rstd
    wdy = w * dy
    inner = wdy - xhat * (xhat * wdy).mean(axis=1, keepdims=True) - wdy.mean(axis=1, keepdims=True)
    return [xhat * w + b, inner * rstd, (dy * xhat).sum(axis=0), dy.sum(axis=0)]


def main() -> None:
    x, dy, w, b = drawn(1, 200, 700), drawn(2, 200, 700), drawn(3, 700), drawn(4, 700)
    y, dx, dw, _ = reference(x, w, b, dy)
    found, mean, rstd, run = forward(x, w, b)
    show("y", found, y, run)
    for way in ("partial", "lock"):
        found_dx, found_dw, _, runs = backward(x, dy, w, mean, rstd, way)
        show(f"dx, {way}", found_dx, dx)
        show(f"dw, {way}", found_dw, dw, *runs)


if __name__ == "__main__":
    main()

# mypy: disable-error-code="no-untyped-def"
"""A matrix product in tiles, with an activation on the way out.

A program computes one tile of c. It loops along K, loads a tile of a and one of b, and lets the Cube add their
product to an accumulator that stays in L0C over the whole loop. Pointers are moved rather than computed anew.

Programs that run at the same time should share operands. In row order, a band of cores reads one row of a but
all of b; in *groups* of a few tile rows, it reads a few of both, and L2 serves most of it.

The activation is a helper kernel that is inlined; which one is a compile-time argument.
"""

from __future__ import annotations

import numpy as np

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.record.run import Run
from .showing import drawn, show


@sim.jit
def leaky_relu(x):
    return tl.maximum(x, 0.01 * x)


@sim.jit
def tile_of(pid, down, across, GROUP: tl.constexpr):
    """Row and column of a program's tile: GROUP tile rows, column by column, then the next GROUP."""
    first = pid // (GROUP * across) * GROUP
    height = min(down - first, GROUP)
    return first + pid % (GROUP * across) % height, pid % (GROUP * across) // height


@sim.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    down, across = tile_of(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), GROUP)
    row, column = down * BM + tl.arange(0, BM), across * BN + tl.arange(0, BN)
    deep = tl.arange(0, BK)
    a_ptrs = a_ptr + row[:, None] * K + deep[None, :]
    b_ptrs = b_ptr + deep[:, None] * N + column[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptrs, mask=(row < M)[:, None] & (deep < K - k)[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=(deep < K - k)[:, None] & (column < N)[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK * N
    if ACTIVATION == "leaky_relu":
        acc = leaky_relu(acc)
    c_ptrs = c_ptr + row[:, None] * N + column[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(row < M)[:, None] & (column < N)[None, :])


def matmul(
    a: np.ndarray, b: np.ndarray, activation: str = "", block: tuple[int, int, int] = (128, 128, 64)
) -> tuple[np.ndarray, Run]:
    """a (M, K) times b (K, N), then `activation` ("" or "leaky_relu"); block: tile of M, N and K."""
    (m, k), n = a.shape, b.shape[1]
    bm, bn, bk = block
    out = np.empty((m, n), a.dtype)
    grid = (-(-m // bm) * -(-n // bn),)
    run: Run = matmul_kernel[grid](a, b, out, m, n, k, BM=bm, BN=bn, BK=bk, GROUP=8, ACTIVATION=activation)
    return out, run


def reference(a: np.ndarray, b: np.ndarray, activation: str = "") -> np.ndarray:
    """In float64."""
    c = a.astype(np.float64) @ b.astype(np.float64)
    return np.asarray(np.where(c >= 0, c, 0.01 * c) if activation else c)


def main() -> None:
    a, b = drawn(1, 512, 512, dtype=np.float16), drawn(2, 512, 512, dtype=np.float16)
    for activation in ("", "leaky_relu"):
        out, run = matmul(a, b, activation)
        show(f"a @ b {activation}".strip(), out, reference(a, b, activation), run)


if __name__ == "__main__":
    main()

"""Launches with a size that is known to be a bad one: tiles of one row, of few elements, of too little depth.

Each is a kernel, its arguments, its sizes, and which programs cover the work when those are other ones.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

CORES = 40


@dataclass(frozen=True)
class Launched:
    """grid: of the sizes, the programs. how: "function", "fixed" (numbers), or "persistent" (numbers that stay)."""

    kernel: Any
    arguments: tuple[Any, ...]
    sizes: dict[str, int]
    shapes: dict[str, int]
    grid: Callable[[dict[str, int]], tuple[int, ...]]
    how: str

    def grid_as_given(self) -> Any:
        """What the user writes."""
        whole = {**self.sizes, **self.shapes}
        return self.grid if self.how == "function" else self.grid(whole)


def up(n, block):
    return -(-n // block)


@sim.jit
def scaled(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2.0, mask=i < n)


@sim.jit
def gelu(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n).to(tl.float32)
    tl.store(out + i, (v / (1.0 + tl.exp(-1.702 * v))).to(tl.float16), mask=i < n)


@sim.jit
def added(x, y, out, n, B: tl.constexpr):
    for first in range(tl.program_id(0) * B, n, tl.num_programs(0) * B):
        i = first + tl.arange(0, B)
        tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@sim.jit
def softmax(x, out, rows, COLS: tl.constexpr, ROWS: tl.constexpr):
    columns = tl.arange(0, COLS)[None, :]
    for first in range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS):
        r = (first + tl.arange(0, ROWS))[:, None]
        v = tl.load(x + r * COLS + columns, mask=r < rows, other=0.0).to(tl.float32)
        e = tl.exp(v - tl.max(v, axis=1)[:, None])
        tl.store(out + r * COLS + columns, (e / tl.sum(e, axis=1)[:, None]).to(tl.float16), mask=r < rows)


@sim.jit
def rms_norm(x, gamma, out, rows, COLS: tl.constexpr, ROWS: tl.constexpr):
    columns = tl.arange(0, COLS)[None, :]
    r = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]
    v = tl.load(x + r * COLS + columns, mask=r < rows, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(v * v, axis=1) / COLS + 1e-6)[:, None]
    w = tl.load(gamma + columns).to(tl.float32)
    tl.store(out + r * COLS + columns, (v * scale * w).to(tl.float16), mask=r < rows)


@sim.jit
def row_sums(x, out, rows, columns, ROWS: tl.constexpr, COLS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS,), tl.float32)
    for first in range(0, columns, COLS):
        c = first + tl.arange(0, COLS)
        inside = (r < rows)[:, None] & (c < columns)[None, :]
        total += tl.sum(tl.load(x + r[:, None] * columns + c[None, :], mask=inside, other=0.0), axis=1)
    tl.store(out + r, total, mask=r < rows)


@sim.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    n = (tl.program_id(1) * BN + tl.arange(0, BN))[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for first in range(0, K, BK):
        k = first + tl.arange(0, BK)
        x = tl.load(a + m * K + k[None, :], mask=(m < M) & (k[None, :] < K), other=0.0)
        y = tl.load(b + k[:, None] * N + n, mask=(k[:, None] < K) & (n < N), other=0.0)
        total = tl.dot(x, y, total)
    tl.store(c + m * N + n, total.to(tl.float16), mask=(m < M) & (n < N))


@sim.jit
def tiles_of_matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """One program a core, which goes on to the next tile."""
    across = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0)):
        m = (tile // across * BM + tl.arange(0, BM))[:, None]
        n = (tile % across * BN + tl.arange(0, BN))[None, :]
        total = tl.zeros((BM, BN), tl.float32)
        for first in range(0, K, BK):
            k = first + tl.arange(0, BK)
            x = tl.load(a + m * K + k[None, :], mask=(m < M) & (k[None, :] < K), other=0.0)
            y = tl.load(b + k[:, None] * N + n, mask=(k[:, None] < K) & (n < N), other=0.0)
            total = tl.dot(x, y, total)
        tl.store(c + m * N + n, total.to(tl.float16), mask=(m < M) & (n < N))


@sim.jit
def attention(q, k, v, out, T, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    d = tl.arange(0, D)[None, :]
    query = tl.load(q + rows * D + d, mask=rows < T, other=0.0)
    most = tl.full((BM,), -1e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for first in range(0, T, BN):
        keys = (first + tl.arange(0, BN))[:, None]
        p = tl.dot(query, tl.trans(tl.load(k + keys * D + d, mask=keys < T, other=0.0)))
        new = tl.maximum(most, tl.max(p, axis=1))
        p, old = tl.exp(p - new[:, None]), tl.exp(most - new)
        values = tl.load(v + keys * D + d, mask=keys < T, other=0.0)
        acc = acc * old[:, None] + tl.dot(p.to(tl.float16), values)
        total, most = total * old + tl.sum(p, axis=1), new
    tl.store(out + rows * D + d, (acc / total[:, None]).to(tl.float16), mask=rows < T)


def flat(kernel, n, dtype, size, how, tensors=2):
    given = (*[sim.shape(n, dtype)] * tensors, n)
    grid = (lambda s: (CORES,)) if how == "persistent" else (lambda s: (up(n, s["B"]),))
    return Launched(kernel, given, {"B": size}, {}, grid, how)


def rows_of(kernel, rows, columns, size, how, more=()):
    x, extra = sim.shape((rows, columns), "float16"), tuple(sim.shape(n, "float16") for n in more)
    grid = (lambda s: (CORES,)) if how == "persistent" else (lambda s: (up(rows, s["ROWS"]),))
    return Launched(kernel, (x, *extra, x, rows), {"ROWS": size}, {"COLS": columns}, grid, how)


def sums(rows, columns, sizes, how):
    given = sim.shape((rows, columns), "float32"), sim.shape(rows, "float32"), rows, columns
    return Launched(
        row_sums, given, dict(zip(("ROWS", "COLS"), sizes, strict=True)), {},
        lambda s: (up(rows, s["ROWS"]),), how,
    )  # fmt: skip


def product(m, n, k, sizes, how):
    given = (*(sim.shape(x, "float16") for x in ((m, k), (k, n), (m, n))), m, n, k)
    named = dict(zip(("BM", "BN", "BK"), sizes, strict=True))
    if how == "persistent":
        return Launched(tiles_of_matmul, given, named, {}, lambda s: (20,), how)
    return Launched(matmul, given, named, {}, lambda s: (up(m, s["BM"]), up(n, s["BN"])), how)


def attended(length, width, sizes, how):
    given = (*[sim.shape((length, width), "float16")] * 4, length)
    named = dict(zip(("BM", "BN"), sizes, strict=True))
    return Launched(attention, given, named, {"D": width}, lambda s: (up(length, s["BM"]),), how)


LAUNCHES = {
    "scaled, function": flat(scaled, 300_000, "float32", 256, "function"),
    "scaled, fixed": flat(scaled, 300_000, "float32", 256, "fixed"),
    "scaled, half, fixed": flat(scaled, 98_432, "float16", 128, "fixed"),
    "scaled, one program": flat(scaled, 8192, "float32", 8192, "fixed"),
    "scaled, one program, function": flat(scaled, 16_384, "float32", 16_384, "function"),
    "gelu, function": flat(gelu, 200_000, "float16", 128, "function"),
    "gelu, fixed": flat(gelu, 200_001, "float16", 512, "fixed"),
    "gelu, few programs": flat(gelu, 65_536, "float16", 8192, "fixed"),
    "added, persistent": flat(added, 500_000, "float16", 256, "persistent", 3),
    "added, persistent, single": flat(added, 300_000, "float32", 64, "persistent", 3),
    "added, persistent, one element too many": flat(added, 81_921, "float32", 512, "persistent", 3),
    "softmax, one row": rows_of(softmax, 2048, 512, 1, "persistent"),
    "softmax, two rows": rows_of(softmax, 2048, 256, 2, "persistent"),
    "softmax, one long row": rows_of(softmax, 512, 2048, 1, "persistent"),
    "softmax, odd rows": rows_of(softmax, 1999, 128, 1, "persistent"),
    "rms_norm, function": rows_of(rms_norm, 1024, 1024, 1, "function", (1024,)),
    "rms_norm, fixed": rows_of(rms_norm, 1024, 1024, 1, "fixed", (1024,)),
    "rms_norm, fixed, odd rows": rows_of(rms_norm, 1001, 256, 2, "fixed", (256,)),
    "row sums, function": sums(1024, 1000, (1, 128), "function"),
    "row sums, fixed": sums(1024, 1000, (2, 128), "fixed"),
    "row sums, short pieces": sums(640, 4096, (16, 64), "fixed"),
    "row sums, few programs": sums(128, 2048, (32, 256), "fixed"),
    "product, function": product(512, 512, 512, (64, 64, 32), "function"),
    "product, fixed": product(512, 512, 512, (64, 64, 32), "fixed"),
    "product, fixed, uneven": product(500, 700, 300, (64, 64, 32), "fixed"),
    "product, flat": product(512, 512, 1024, (128, 128, 16), "fixed"),
    "product, few programs": product(256, 256, 1024, (128, 256, 64), "fixed"),
    "product, narrow": product(1024, 1024, 256, (128, 32, 64), "function"),
    "product, persistent": product(1024, 1024, 256, (64, 64, 64), "persistent"),
    "product, persistent, uneven": product(700, 900, 300, (32, 128, 64), "persistent"),
    "product, persistent, flat": product(512, 1024, 512, (128, 128, 16), "persistent"),
    "attention, fixed": attended(1024, 64, (32, 64), "fixed"),
    "attention, function": attended(1024, 64, (64, 32), "function"),
    "attention, wide head": attended(512, 128, (16, 64), "fixed"),
}

"""Needs that the compiler's own messages and tests tell, to the bit (open cases of published logs)."""

from __future__ import annotations

from typing import Any

import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import BufferOverflowError


@sim.jit
def add(x, y, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) + tl.load(y + i))


@sim.jit
def narrow(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i).to(tl.float16))


@sim.jit
def mover(dst, src, layers, H: tl.constexpr, V: tl.constexpr, K: tl.constexpr):
    at = (tl.arange(0, H)[:, None] * V + tl.arange(0, V)[None, :])[:, :, None] * K + tl.arange(0, K)[
        None, None, :
    ]
    for layer in range(layers):
        for part in range(layers):
            first = (layer * layers + part) * H * V * K
            tl.store(dst + first + at, tl.load(src + first + at))


@sim.jit
def weighted_sum(x, h, out, M, D, BM: tl.constexpr, BD: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    four, columns = tl.arange(0, 4), tl.arange(0, BD)
    weight = tl.load(h + rows[:, None] * 4 + four[None, :], mask=rows[:, None] < M, other=0.0)
    for _ in range(0, 1):
        d = tl.program_id(1) * BD + columns
        at = rows[:, None, None] * 4 * D + four[None, :, None] * D + d[None, None, :]
        keep = (rows < M)[:, None, None] & (d < D)[None, None, :]
        tile = tl.load(x + at, mask=keep, other=0.0).to(tl.float32)
        total = tl.sum(tile * weight[:, :, None], axis=1)
        tl.store(
            out + rows[:, None] * D + d[None, :],
            total.to(tl.bfloat16),
            mask=(rows < M)[:, None] & (d < D)[None, :],
        )


@sim.jit
def bias_silu(x, bias, rows, R: tl.constexpr, C: tl.constexpr):
    i, j = tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    for first in range(0, rows, R):
        at = (first + i) * C + j
        b = tl.load(bias + tl.arange(0, C)).to(tl.float32)
        v = tl.load(x + at).to(tl.float32) + b[None, :]
        tl.store(x + at, (v / (1.0 + tl.exp(-v))).to(tl.bfloat16))


@sim.jit
def product(a, b, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i, j, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for first in range(0, K, BK):
        u = tl.load(a + i[:, None] * K + (first + k)[None, :])
        v = tl.load(b + (first + k)[:, None] * N + j[None, :])
        acc = tl.dot(u, v, acc)
    tl.store(c + i[:, None] * N + j[None, :], acc)


@sim.jit
def paged(out, q, k, v, scale, rows, kv_rows, count, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """Attention over a cache of blocks; the causal and the extent test in one select."""
    r, d = tl.arange(0, M), tl.arange(0, D)
    ok = r < rows
    query = tl.load(q + r[:, None] * D + d[None, :], mask=ok[:, None] & (d < D)[None, :], other=0.0)
    top = tl.full((M,), float("-inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    acc = tl.zeros((M, D), tl.float32)
    for b in range(0, count):
        pos = b * N + tl.arange(0, N)
        valid = pos < kv_rows
        at = pos[:, None] * D + d[None, :]
        key = tl.load(k + at, mask=valid[:, None] & (d < D)[None, :], other=0.0)
        s = tl.dot(query, tl.trans(key)) * scale
        s = tl.where((pos[None, :] <= r[:, None]) & valid[None, :], s, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))
        shrink = tl.exp2(top - new)
        p = tl.exp2(s - new[:, None])
        val = tl.load(v + at, mask=valid[:, None] & (d < D)[None, :], other=0.0)
        total = total * shrink + tl.sum(p, 1)
        acc = acc * shrink[:, None] + tl.dot(p.to(tl.float16), val)
        top = new
    total = tl.where(total == 0.0, 1.0, total)
    acc = acc / total[:, None]
    tl.store(out + r[:, None] * D + d[None, :], acc.to(tl.float16), mask=ok[:, None] & (d < D)[None, :])


def bits(kernel: Any, space: str, *args: Any, **constants: Any) -> int:
    """The figure of the first message on a device that has next to nothing of a buffer."""
    small = {f"buffers.{space.lower()}": 16384}
    with (
        sim.device("ascend910b3", overrides=small, compiler_version="8.5"),
        pytest.raises(BufferOverflowError) as found,
    ):
        kernel.time((1,), *args, **constants)
    assert found.value.space == space
    return 8 * found.value.need_bytes


def single(n: int) -> Any:
    return sim.shape((n,), "float32")


def test_two_vectors_of_an_addition_outside_of_loops() -> None:
    """Once, the sum in place of an operand; each rounded up to 32 bytes, as in the planner's own test of 37 172."""
    assert bits(add, "UB", *[single(48000)] * 3, BLOCK=48000) == 2 * 48000 * 32 == 3_072_000
    assert bits(add, "UB", *[single(37172)] * 3, BLOCK=37172) == 2_379_264


def test_a_cast_that_narrows_is_in_place() -> None:
    assert bits(narrow, "UB", single(80000), sim.shape((80000,), "float16"), BLOCK=80000) == 2_560_000


def test_a_tile_that_is_loaded_and_stored_unchanged_is_one_buffer_twice() -> None:
    n = 2 * 128 * 128
    assert bits(mover, "UB", single(4 * n), single(4 * n), 2, H=2, V=128, K=128) == 2_097_152


@pytest.mark.parametrize(("columns", "need"), [(256, 2_625_536), (192, 1_970_176)])
def test_a_weighted_sum_counts_its_hole(columns: int, need: int) -> None:
    """10 bytes an element and the weights: the broadcast weights do not fit in the hole that x leaves."""
    rows, n = 32, 32 * 4 * columns
    args = (
        sim.shape((n,), "bfloat16"),
        single(rows * 4),
        sim.shape((rows * columns,), "bfloat16"),
        rows,
        columns,
    )
    assert bits(weighted_sum, "UB", *args, BM=rows, BD=columns) == 8 * (10 * n + 512) == need


def test_a_bias_and_a_sigmoid_in_a_loop() -> None:
    """8 bytes an element: two slots of x, x in fp32 and nothing for the sigmoid; the same for a line of bias."""
    n, rows = 16384, 2
    args = (sim.shape((4 * n * rows,), "bfloat16"), sim.shape((n,), "bfloat16"), 8)
    got = bits(bias_silu, "UB", *args, R=rows, C=n)
    assert got == pytest.approx(rows * n * 64 + n * 64, rel=1e-3)


def test_operands_of_products_are_twice_in_l1_and_the_sum_is_once_in_l0c() -> None:
    assert (
        bits(product, "L1", single(1 << 18), single(1 << 18), single(4096), 64, 4096, BM=64, BN=64, BK=1024)
        == 8_388_608
    )
    big = sim.shape((256 * 64,), "float16")
    assert bits(product, "L0C", big, big, single(65536), 256, 64, BM=256, BN=256, BK=16) == 2_097_152


def test_attention_over_a_paged_cache_with_one_mask() -> None:
    """306.5 KiB: nine tiles of 64 x 128 scores of 4 bytes (the masked scores, what they are made of, both operands of the
    comparison as int32 and as int64, the number of the select), the sum and some columns, which differ by 768 bytes."""
    rows = sim.shape((4 * 128 * 64,), "float16")
    got = bits(paged, "UB", rows, rows, rows, rows, 0.125, 128, 512, 4, M=128, N=128, D=64)
    assert got == pytest.approx(2_510_848, abs=8 * 1024)
    assert got > 9 * 64 * 128 * 32

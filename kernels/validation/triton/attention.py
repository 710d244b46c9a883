# mypy: disable-error-code="no-untyped-def"
"""Attention as a public Triton file has it: a persistent grid of one program a Cube core, which takes tile after tile."""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import device
from ....simulator import language as tl
from ....simulator.record.run import Run
from ..settings import Settings, dtypes_of, overhead_us, sizes_of, tensor
from ..table import Row


@sim.jit
def keys_seen(
    query, k_ptr, v_ptr, n, m, d, top, total, acc, D: tl.constexpr, MASK: tl.constexpr, RUNNING: tl.constexpr
):
    """One block of keys; RUNNING: with a maximum that grows, else scores are exponents as they are."""
    at = n[:, None] * D + d[None, :]
    s = tl.dot(query, tl.trans(tl.load(k_ptr + at))) * 0.125
    if MASK:
        s = tl.where(n[None, :] <= m[:, None], s, float("-inf"))
    if RUNNING:
        new = tl.maximum(top, tl.max(s, 1))
        p, shrink = tl.exp(s - new[:, None]), tl.exp(top - new)
        total = total * shrink + tl.sum(p, 1)
        acc = acc * shrink[:, None] + tl.dot(p.to(query.dtype), tl.load(v_ptr + at))
        top = new
    else:
        p = tl.exp(s)
        total += tl.sum(p, 1)
        acc = tl.dot(p.to(query.dtype), tl.load(v_ptr + at), acc)
    return top, total, acc


@sim.jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, LENGTH: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    CAUSAL: tl.constexpr, RUNNING: tl.constexpr,
):  # fmt: skip
    """Tiles go head by head, or, where causal, tile by tile over the heads; blocks below the diagonal take no mask."""
    tiles: tl.constexpr = LENGTH // BM
    for unit in range(tl.program_id(0), tiles * heads, tl.num_programs(0)):
        tile, head = unit % tiles, unit // tiles
        if CAUSAL:
            tile, head = unit // heads, unit % heads
        base = head * LENGTH * D
        m, d = tile * BM + tl.arange(0, BM), tl.arange(0, D)
        query = tl.load(q_ptr + base + m[:, None] * D + d[None, :])
        top = tl.full((BM,), float("-inf"), tl.float32)
        total = tl.zeros((BM,), tl.float32)
        acc = tl.zeros((BM, D), tl.float32)
        free = LENGTH
        if CAUSAL:
            free = tile * BM // BN * BN
        for first in range(0, free, BN):
            n = first + tl.arange(0, BN)
            top, total, acc = keys_seen(
                query, k_ptr + base, v_ptr + base, n, m, d, top, total, acc, D, False, RUNNING
            )
        if CAUSAL:
            for first in range(free, (tile + 1) * BM, BN):
                n = first + tl.arange(0, BN)
                top, total, acc = keys_seen(
                    query, k_ptr + base, v_ptr + base, n, m, d, top, total, acc, D, True, RUNNING
                )
        result = acc / total[:, None]
        tl.store(out_ptr + base + m[:, None] * D + d[None, :], result.to(out_ptr.dtype.element_ty))


def attention_time(row: Row, cores: int) -> float:
    """us of all heads; see `triton_kernels`."""
    s, (kind, *_) = Settings(row), dtypes_of(row)[0]
    heads, length, d = sizes_of(row, "heads x length x D")
    bm, bn = s.numbers("block", 2)
    causal, maximum = bool(s.number("causal", 0)), s.one_of("maximum", ("running", "none"), "running")
    x = tensor(kind, cores, length, d)
    sizes = {"LENGTH": length, "D": d, "BM": bm, "BN": bn}
    with device(**s.device_options("triton-ascend")):
        run: Run = attention.time(
            (cores,), x, x, x, x, cores, **sizes, CAUSAL=causal, RUNNING=maximum == "running"
        )
    launch = overhead_us(run)
    return (run.time_us - launch) * heads / cores + launch

# mypy: disable-error-code="no-untyped-def"
"""The gradients of attention, again without the matrix of scores in memory.

With p = exp(s - lse) from the scores and what the forward pass kept, and out = p v:

    dv = p^T dout          ds = p * (dout v^T - delta)          dq = ds k * scale          dk = ds^T q * scale

where delta, one number for each query, is the sum of dout * out over d. Sums over queries (dk, dv) and sums
over keys (dq) need different loops, so there are three kernels: delta; a program for each block of keys; a
program for each block of queries. No two programs write to the same place, and nothing is atomic.
"""

from __future__ import annotations

import numpy as np

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.record.run import Run
from .attention import attention, not_later, probabilities
from .showing import costs, drawn, show


@sim.jit
def delta_kernel(out_ptr, dout_ptr, delta_ptr, rows, D: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = row[:, None] * D + tl.arange(0, D)[None, :]
    out = tl.load(out_ptr + at, mask=(row < rows)[:, None], other=0.0).to(tl.float32)
    dout = tl.load(dout_ptr + at, mask=(row < rows)[:, None], other=0.0).to(tl.float32)
    tl.store(delta_ptr + row, tl.sum(out * dout, axis=1), mask=row < rows)


@sim.jit
def probability(q, k, lse, query, key, length, scale, CAUSAL: tl.constexpr):
    """(queries, keys); zero for what is masked out, and for queries that are not there."""
    p = tl.exp(tl.dot(q, tl.trans(k)) * scale - lse[:, None])
    p = tl.where((query < length)[:, None] & (key < length)[None, :], p, 0.0)
    if CAUSAL:
        p = tl.where(not_later(key, query), p, 0.0)
    return p


@sim.jit
def keys_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, length, scale,
    CAUSAL: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """dk and dv of a block of keys: a loop over the queries, from the block's own place on if causal."""
    head = tl.program_id(1) * length
    key = tl.program_id(0) * BN + tl.arange(0, BN)
    d = tl.arange(0, D)
    here = (key < length)[:, None]
    key_at = (head + key)[:, None] * D + d[None, :]
    k = tl.load(k_ptr + key_at, mask=here, other=0.0)
    v = tl.load(v_ptr + key_at, mask=here, other=0.0)
    dk = tl.zeros((BN, D), tl.float32)
    dv = tl.zeros((BN, D), tl.float32)
    for start in range(tl.program_id(0) * BN // BM * BM if CAUSAL else 0, length, BM):
        query = start + tl.arange(0, BM)
        at = (head + query)[:, None] * D + d[None, :]
        q = tl.load(q_ptr + at, mask=(query < length)[:, None], other=0.0)
        dout = tl.load(dout_ptr + at, mask=(query < length)[:, None], other=0.0)
        lse = tl.load(lse_ptr + head + query, mask=query < length, other=0.0)
        delta = tl.load(delta_ptr + head + query, mask=query < length, other=0.0)
        p = probability(q, k, lse, query, key, length, scale, CAUSAL)
        dv += tl.dot(tl.trans(p.to(dout.dtype)), dout)
        ds = p * (tl.dot(dout, tl.trans(v)) - delta[:, None])
        dk += tl.dot(tl.trans(ds.to(q.dtype)), q)
    tl.store(dk_ptr + key_at, (dk * scale).to(dk_ptr.dtype.element_ty), mask=here)
    tl.store(dv_ptr + key_at, dv.to(dv_ptr.dtype.element_ty), mask=here)


@sim.jit
def queries_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dq_ptr, length, scale,
    CAUSAL: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """dq of a block of queries: a loop over the keys, up to the block's own place if causal."""
    head = tl.program_id(1) * length
    query = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    here = (query < length)[:, None]
    at = (head + query)[:, None] * D + d[None, :]
    q = tl.load(q_ptr + at, mask=here, other=0.0)
    dout = tl.load(dout_ptr + at, mask=here, other=0.0)
    lse = tl.load(lse_ptr + head + query, mask=query < length, other=0.0)
    delta = tl.load(delta_ptr + head + query, mask=query < length, other=0.0)
    dq = tl.zeros((BM, D), tl.float32)
    stop = min(tl.program_id(0) * BM + BM, length) if CAUSAL else length
    for start in range(0, stop, BN):
        key = start + tl.arange(0, BN)
        key_at = (head + key)[:, None] * D + d[None, :]
        k = tl.load(k_ptr + key_at, mask=(key < length)[:, None], other=0.0)
        v = tl.load(v_ptr + key_at, mask=(key < length)[:, None], other=0.0)
        p = probability(q, k, lse, query, key, length, scale, CAUSAL)
        ds = p * (tl.dot(dout, tl.trans(v)) - delta[:, None])
        dq += tl.dot(ds.to(k.dtype), k)
    tl.store(dq_ptr + at, (dq * scale).to(dq_ptr.dtype.element_ty), mask=here)


def attention_backward(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    out: np.ndarray,
    lse: np.ndarray,
    dout: np.ndarray,
    causal: bool = False,
    block: tuple[int, int] = (64, 64),
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[Run]]:
    """dq, dk, dv, like q (heads, length, D); out and lse as `attention` gave them."""
    heads, length, d = q.shape
    bm, bn = block
    dq, dk, dv = (np.empty_like(x) for x in (q, k, v))
    delta = np.empty_like(lse)
    given = (q, k, v, dout, lse, delta)
    how = {"CAUSAL": causal, "D": d, "BM": bm, "BN": bn}
    runs = [
        delta_kernel[(-(-heads * length // 64),)](out, dout, delta, heads * length, D=d, BLOCK=64),
        keys_kernel[(-(-length // bn), heads)](*given, dk, dv, length, d**-0.5, **how),
        queries_kernel[(-(-length // bm), heads)](*given, dq, length, d**-0.5, **how),
    ]
    return dq, dk, dv, runs


def reference(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, dout: np.ndarray, causal: bool = False
) -> list[np.ndarray]:
    """dq, dk, dv in float64."""
    p = probabilities(q, k, causal)
    q, k, v, dout = (x.astype(np.float64) for x in (q, k, v, dout))
    dp = dout @ v.swapaxes(1, 2)
    ds = p * (dp - (p * dp).sum(axis=2, keepdims=True)) * q.shape[2] ** -0.5
    return [ds @ k, ds.swapaxes(1, 2) @ q, p.swapaxes(1, 2) @ dout]


def main() -> None:
    q, k, v, dout = (drawn(s, 4, 256, 64, dtype=np.float16) for s in (1, 2, 3, 4))
    out, lse, _ = attention(q, k, v, causal=True)
    *found, runs = attention_backward(q, k, v, out, lse, dout, causal=True)
    for name, x, want in zip(("dq", "dk", "dv"), found, reference(q, k, v, dout, True), strict=True):
        show(name, x, want)
    costs(*runs)


if __name__ == "__main__":
    main()

# mypy: disable-error-code="no-untyped-def"
"""Attention in one pass over the keys: softmax(q k^T * scale) v without the matrix of scores in memory.

A program has a block of queries and loops over blocks of keys and values. It keeps for each query the largest
score so far, the sum of exponentials relative to it, and the weighted sum of values. A larger score later on
makes the old sums too large by a known factor, exp(old maximum - new maximum): they are scaled down and go on.
At the end one division is left.

The causal mask compares positions as float32: the vector unit has no comparison of integers, and the same line
on integers runs number by number on the scalar unit, 20 times slower in all (the run's costs by line show it).

Also kept is the logarithm of the sum of exponentials of each query: with it the backward pass has the
probabilities again. The operator `flash_attention` (kernels/attention) adds what a library needs: heads that
share keys, cores that take many blocks in turn, and a loop of its own for the blocks that a mask touches.
"""

from __future__ import annotations

import numpy as np

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.record.run import Run
from .showing import drawn, show


@sim.jit
def not_later(key, query):
    """(queries, keys); compared as float32, exact up to 2^24."""
    return query.to(tl.float32)[:, None] >= key.to(tl.float32)[None, :]


@sim.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, length, scale,
    CAUSAL: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Block tl.program_id(0) of the queries of head tl.program_id(1); q, k, v: (heads, length, D)."""
    head = tl.program_id(1) * length
    query = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    real = query < length
    q_at = (head + query)[:, None] * D + d[None, :]
    q = tl.load(q_ptr + q_at, mask=real[:, None], other=0.0)
    most = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    stop = min(tl.program_id(0) * BM + BM, length) if CAUSAL else length
    for start in range(0, stop, BN):
        key = start + tl.arange(0, BN)
        at = (head + key)[:, None] * D + d[None, :]
        k = tl.load(k_ptr + at, mask=(key < length)[:, None], other=0.0)
        v = tl.load(v_ptr + at, mask=(key < length)[:, None], other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        s = tl.where((key < length)[None, :], s, -float("inf"))
        if CAUSAL:
            s = tl.where(not_later(key, query), s, -float("inf"))
        now = tl.maximum(most, tl.max(s, axis=1))
        p = tl.exp(s - now[:, None])
        shrink = tl.exp(most - now)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v)
        most = now
    out = acc / total[:, None]
    tl.store(out_ptr + q_at, out.to(out_ptr.dtype.element_ty), mask=real[:, None])
    tl.store(lse_ptr + head + query, most + tl.log(total), mask=real)


def attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool = False, block: tuple[int, int] = (64, 64)
) -> tuple[np.ndarray, np.ndarray, Run]:
    """Result like q (heads, length, D), and the logarithms of the sums (heads, length) in float32."""
    heads, length, d = q.shape
    bm, bn = block
    out, lse = np.empty_like(q), np.empty((heads, length), np.float32)
    run: Run = attention_kernel[(-(-length // bm), heads)](
        q, k, v, out, lse, length, d**-0.5, CAUSAL=causal, D=d, BM=bm, BN=bn
    )
    return out, lse, run


def probabilities(q: np.ndarray, k: np.ndarray, causal: bool) -> np.ndarray:
    """(heads, length, length) in float64."""
    s = q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2) * q.shape[2] ** -0.5
    if causal:
        s = np.where(np.tri(s.shape[1], dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(axis=2, keepdims=True))
    return np.asarray(p / p.sum(axis=2, keepdims=True))


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool = False) -> np.ndarray:
    """In float64."""
    return probabilities(q, k, causal) @ v.astype(np.float64)


def main() -> None:
    q, k, v = (drawn(s, 4, 256, 64, dtype=np.float16) for s in (1, 2, 3))
    for causal in (False, True):
        out, _, run = attention(q, k, v, causal)
        show("causal attention" if causal else "attention", out, reference(q, k, v, causal), run)


if __name__ == "__main__":
    main()

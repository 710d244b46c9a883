# mypy: disable-error-code="no-untyped-def"
"""Tile kernels of attention and its gradients: no matrix of scores in memory.

Tensors are heads of rows: q, out and dout (heads, M, D), k and v (heads / GROUP, N, D), lse and delta (heads, M). A program
takes units in turn, a block of rows of a head each. A causal program takes those with most work first, and all heads of a
block before the next block: programs that work at one time have as many iterations each. STAGGER: each program begins at
another step of its loop, since cores that read the same address at one time wait for each other.

Rows that are not there are read as zeros and not written; keys that are not there, or not allowed, get no weight. Only
blocks with such keys pay for the comparison: they have a loop of their own, which has to fill its pipes anew. ONE_LOOP:
short loops over keys compare in every step instead. Positions are compared as FP32, exact up to 2^24: the Vector unit has no
comparison of integers.
"""

from __future__ import annotations

from ... import simulator as sim
from ...simulator import language as tl


@sim.jit
def block_of(ptr, first, real, B: tl.constexpr, D: tl.constexpr):
    """B rows from row `first` on, of which `real` are there."""
    row = tl.arange(0, B)
    at = (first + row)[:, None] * D + tl.arange(0, D)[None, :]
    return tl.load(ptr + at, mask=(row < real)[:, None], other=0.0)


@sim.jit
def put_block(ptr, x, first, real, B: tl.constexpr, D: tl.constexpr):
    """As `block_of`, in the type of `ptr`."""
    row = tl.arange(0, B)
    at = (first + row)[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(ptr + at, x.to(ptr.dtype.element_ty), mask=(row < real)[:, None])


@sim.jit
def seen(query, key, N, CAUSAL: tl.constexpr):
    """Which keys a query sees: those that are there, up to its own position if causal. query, key: (B, 1) and (1, B')."""
    if CAUSAL:
        return key.to(tl.float32) < tl.minimum(query + 1, N).to(tl.float32)
    return key.to(tl.float32) < N


@sim.jit
def unit_of(unit, tiles, heads, LONGEST_FIRST: tl.constexpr):
    """(head, tile of the head): heads one by one, or all heads of the last tile, then of the one before it."""
    if LONGEST_FIRST:
        return unit % heads, tiles - 1 - unit // heads
    return unit // tiles, unit % tiles


@sim.jit
def turned(step, steps, STAGGER: tl.constexpr):
    """Which of a loop's steps a program does as number `step`."""
    return (step + tl.program_id(0)) % steps if STAGGER else step


@sim.jit
def key_steps(first, N, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr, ONE_LOOP: tl.constexpr):
    """Keys of the blocks that all queries from `first` on see whole, and how many masked blocks come after them.

    ONE_LOOP: every block is masked.
    """
    stop = min(first + BM, N) if CAUSAL else N
    whole = 0
    if not ONE_LOOP:
        whole = min(first + 1, N) // BN * BN if CAUSAL else N // BN * BN
    return whole, tl.cdiv(stop - whole, BN)


@sim.jit
def softmax_step(
    q, k_ptr, v_ptr, key_row, query, start, N, scale, most, total, acc,
    MASKED: tl.constexpr, CAUSAL: tl.constexpr, D: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """A block of keys from `start` on. The largest score so far may grow: what was summed up is scaled down for it."""
    k = block_of(k_ptr, key_row + start, N - start, BN, D)
    v = block_of(v_ptr, key_row + start, N - start, BN, D)
    s = tl.dot(q, tl.trans(k)) * scale
    if MASKED:  # a finite score: a program may begin with keys that a query does not see at all
        key = start + tl.arange(0, BN)
        if CAUSAL:
            s = tl.where(seen(query[:, None], key[None, :], N, CAUSAL), s, -3.0e38)
        else:  # the same for every query: a row to add is cheaper than a choice for each score
            s = s + tl.where(seen(query, key, N, CAUSAL), 0.0, -3.0e38)[None, :]
    now = tl.maximum(most, tl.max(s, axis=1))
    p = tl.exp(s - now[:, None])
    shrink = tl.exp(most - now)
    total = total * shrink + tl.sum(p, axis=1)
    acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v)
    return now, total, acc


@sim.jit
def forward_tiles(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, M, N, heads, scale,
    GROUP: tl.constexpr, CAUSAL: tl.constexpr, STAGGER: tl.constexpr,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ONE_LOOP: tl.constexpr = False,
):  # fmt: skip
    """out = softmax(scale q k^T) v, and the logarithm of each row's sum of exponentials."""
    tiles = tl.cdiv(M, BM)
    for unit in range(tl.program_id(0), heads * tiles, tl.num_programs(0)):
        head, tile = unit_of(unit, tiles, heads, CAUSAL)
        first = tile * BM
        query = first + tl.arange(0, BM)
        q = block_of(q_ptr, head * M + first, M - first, BM, D)
        most = tl.full((BM,), -float("inf"), tl.float32)
        total = tl.zeros((BM,), tl.float32)
        acc = tl.zeros((BM, D), tl.float32)
        key_row = head // GROUP * N
        whole, rest = key_steps(first, N, BM, BN, CAUSAL, ONE_LOOP)
        for step in range(whole // BN):
            start = turned(step, whole // BN, STAGGER) * BN
            most, total, acc = softmax_step(
                q, k_ptr, v_ptr, key_row, query, start, N, scale, most, total, acc, False, CAUSAL, D, BN
            )
        for step in range(rest):
            start = whole + turned(step, rest, STAGGER and ONE_LOOP) * BN
            most, total, acc = softmax_step(
                q, k_ptr, v_ptr, key_row, query, start, N, scale, most, total, acc, True, CAUSAL, D, BN
            )
        put_block(out_ptr, acc / total[:, None], head * M + first, M - first, BM, D)
        tl.store(lse_ptr + head * M + query, most + tl.log(total), mask=query < M)


@sim.jit
def query_step(
    q, dout, lse, delta, k_ptr, v_ptr, key_row, query, start, N, scale, dq,
    MASKED: tl.constexpr, CAUSAL: tl.constexpr, D: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """What a block of keys gives to dq / scale."""
    k = block_of(k_ptr, key_row + start, N - start, BN, D)
    v = block_of(v_ptr, key_row + start, N - start, BN, D)
    p = tl.exp(tl.dot(q, tl.trans(k)) * scale - lse[:, None])
    if MASKED:
        key = start + tl.arange(0, BN)
        p = tl.where(seen(query[:, None], key[None, :], N, CAUSAL), p, 0.0)
    ds = p * (tl.dot(dout, tl.trans(v)) - delta[:, None])
    return dq + tl.dot(ds.to(k.dtype), k)


@sim.jit
def query_tiles(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, dout_ptr, delta_ptr, dq_ptr, M, N, heads, scale,
    GROUP: tl.constexpr, CAUSAL: tl.constexpr, STAGGER: tl.constexpr,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ONE_LOOP: tl.constexpr = False,
):  # fmt: skip
    """dq, and delta = sum(dout * out over D), which `key_tiles` needs: a block of queries over its keys."""
    tiles = tl.cdiv(M, BM)
    for unit in range(tl.program_id(0), heads * tiles, tl.num_programs(0)):
        head, tile = unit_of(unit, tiles, heads, CAUSAL)
        first = tile * BM
        query, row, real = first + tl.arange(0, BM), head * M + first, M - first
        out = block_of(out_ptr, row, real, BM, D).to(tl.float32)
        delta = tl.sum(out * block_of(dout_ptr, row, real, BM, D).to(tl.float32), axis=1)
        tl.store(delta_ptr + head * M + query, delta, mask=query < M)
        lse = tl.load(lse_ptr + head * M + query, mask=query < M, other=0.0)
        q, dout = block_of(q_ptr, row, real, BM, D), block_of(dout_ptr, row, real, BM, D)
        dq = tl.zeros((BM, D), tl.float32)
        key_row = head // GROUP * N
        whole, rest = key_steps(first, N, BM, BN, CAUSAL, ONE_LOOP)
        for step in range(whole // BN):
            start = turned(step, whole // BN, STAGGER) * BN
            dq = query_step(
                q, dout, lse, delta, k_ptr, v_ptr, key_row, query, start, N, scale, dq, False, CAUSAL, D, BN
            )
        for step in range(rest):
            start = whole + turned(step, rest, STAGGER and ONE_LOOP) * BN
            dq = query_step(
                q, dout, lse, delta, k_ptr, v_ptr, key_row, query, start, N, scale, dq, True, CAUSAL, D, BN
            )
        put_block(dq_ptr, dq * scale, row, real, BM, D)


@sim.jit
def key_step(
    k, v, q_ptr, dout_ptr, lse_ptr, delta_ptr, query_row, key, start, M, N, scale, dk, dv,
    MASKED: tl.constexpr, D: tl.constexpr, BM: tl.constexpr,
):  # fmt: skip
    """What a block of queries gives to dk / scale and dv. Scores are (keys, queries): nothing has to be transposed."""
    query = start + tl.arange(0, BM)
    q = block_of(q_ptr, query_row + start, M - start, BM, D)
    dout = block_of(dout_ptr, query_row + start, M - start, BM, D)
    lse = tl.load(lse_ptr + query_row + query, mask=query < M, other=0.0)
    delta = tl.load(delta_ptr + query_row + query, mask=query < M, other=0.0)
    p = tl.exp(tl.dot(k, tl.trans(q)) * scale - lse[None, :])
    if MASKED:
        p = tl.where(seen(query[None, :], key[:, None], N, True), p, 0.0)
    ds = p * (tl.dot(v, tl.trans(dout)) - delta[None, :])
    return dk + tl.dot(ds.to(q.dtype), q), dv + tl.dot(p.to(dout.dtype), dout)


@sim.jit
def key_tiles(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, M, N, heads, scale,
    GROUP: tl.constexpr, CAUSAL: tl.constexpr, STAGGER: tl.constexpr,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """dk and dv of a block of keys, summed over the GROUP heads of queries that share it. heads: of keys."""
    tiles = tl.cdiv(N, BN)
    for unit in range(tl.program_id(0), heads * tiles, tl.num_programs(0)):
        if CAUSAL:
            head, tile = unit % heads, unit // heads
        else:
            head, tile = unit // tiles, unit % tiles
        first = tile * BN
        key, row, real = first + tl.arange(0, BN), head * N + first, N - first
        k, v = block_of(k_ptr, row, real, BN, D), block_of(v_ptr, row, real, BN, D)
        dk = tl.zeros((BN, D), tl.float32)
        dv = tl.zeros((BN, D), tl.float32)
        begin = min(first // BM * BM, M) if CAUSAL else 0
        whole = min(tl.cdiv(first + BN - 1, BM) * BM, M) if CAUSAL else 0
        for member in range(GROUP):
            query_row = (head * GROUP + member) * M
            for start in range(begin, whole, BM):
                dk, dv = key_step(
                    k, v, q_ptr, dout_ptr, lse_ptr, delta_ptr, query_row, key, start, M, N, scale, dk, dv,
                    True, D, BM,
                )  # fmt: skip
            rest = max(begin, whole)
            steps = tl.cdiv(M - rest, BM)
            for step in range(steps):
                start = rest + turned(step, steps, STAGGER) * BM
                dk, dv = key_step(
                    k, v, q_ptr, dout_ptr, lse_ptr, delta_ptr, query_row, key, start, M, N, scale, dk, dv,
                    False, D, BM,
                )  # fmt: skip
        put_block(dk_ptr, dk * scale, row, real, BN, D)
        put_block(dv_ptr, dv, row, real, BN, D)

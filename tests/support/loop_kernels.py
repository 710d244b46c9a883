"""Loops of all kinds, to compare iterations lowered at once with iterations lowered one by one."""

# ruff: noqa: SIM102
# mypy: disable-error-code="no-untyped-def"

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl


@sim.jit
def one_loop(
    x_ptr,
    out_ptr,
    n,
    iterations,
    stride,
    MASK: tl.constexpr,
    STORE: tl.constexpr,
    MOVE: tl.constexpr,
    BRANCH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Loads in iterations; how addresses move, what is masked, what is stored and what a branch asks are chosen."""
    pid = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    ptrs = x_ptr + pid * stride + lanes
    at = pid * stride
    odd = 1
    for iteration in range(pid if MOVE == "own_start" else 0, iterations, 1):
        offsets = at + lanes
        if MOVE == "pointer":
            x = tl.load(ptrs, mask=offsets < n if MASK == "end" else None)
        elif MOVE == "product":
            offsets = (pid * iterations + iteration) * BLOCK % 8192 + lanes
            x = tl.load(x_ptr + offsets, mask=offsets < n if MASK == "end" else None)
        elif MOVE == "stride":
            offsets = at + lanes * 2
            x = tl.load(x_ptr + offsets, mask=offsets < n if MASK == "end" else None)
        elif MOVE == "wide":
            offsets = at + lanes * iteration
            x = tl.load(x_ptr + offsets, mask=offsets < n if MASK == "end" else None)
        elif MOVE == "discrete":
            x = tl.load(x_ptr + (lanes * 3 + iteration) % 1000)
        elif MOVE == "odd":
            odd = odd * 3 % 1021
            x = tl.load(x_ptr + odd + lanes)
        else:
            keep = offsets < n
            if MASK == "band":
                keep = keep & (offsets >= 5) & (iteration * 3 < n)
            x = tl.load(x_ptr + offsets, mask=keep if MASK != "none" else None)
        if BRANCH == "turn":
            if iteration == 7:
                x = x + 1.0
        if BRANCH == "program":
            if pid > 1:
                x = x * 3.0
        if BRANCH == "all":
            if iteration >= 0:
                x = x * 2.0
        acc += x.to(tl.float32)
        if STORE == "store":
            tl.store(out_ptr + offsets, acc, mask=offsets < n if MASK != "none" else None)
        elif STORE == "atomic":
            tl.atomic_add(out_ptr + lanes, acc)
        elif STORE == "scalar":
            tl.store(out_ptr + iteration, tl.sum(acc))
        at += BLOCK
        ptrs += BLOCK
    tl.store(out_ptr + pid * BLOCK + lanes, acc)


@sim.jit
def rows_and_columns(
    x_ptr, out_ptr, M, N, rows, iterations, EVEN: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    """Tiles of two axes in a loop in a loop; the inner bound may differ from iteration to iteration and between programs."""
    for i in range(tl.program_id(0), rows, tl.num_programs(0)):
        row = i * BM + tl.arange(0, BM)
        total = tl.zeros((BM,), tl.float32)
        for j in range(0, iterations if EVEN else i % (iterations + 1)):
            column = j * BN + tl.arange(0, BN)
            mask = (row < M)[:, None] & (column < N)[None, :]
            x = tl.load(x_ptr + row[:, None] * N + column[None, :], mask=mask, other=0.0)
            total += tl.sum(x.to(tl.float32), axis=1)
        tl.store(out_ptr + row, total, mask=row < M)


@sim.jit
def product(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    EVEN: tl.constexpr,
    BIAS: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """Tiles of a matrix product, taken in turn."""
    across = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0)):
        row = tile // across * BM + tl.arange(0, BM)
        column = tile % across * BN + tl.arange(0, BN)
        deep = tl.arange(0, BK)
        acc = tl.zeros((BM, BN), tl.float32)
        a_at = a_ptr + row[:, None] * K + deep[None, :]
        for k in range(0, tl.cdiv(K, BK)):
            left = K - k * BK
            a = tl.load(a_at, mask=None if EVEN else (row < M)[:, None] & (deep < left)[None, :])
            b_at = b_ptr + (k * BK + deep)[:, None] * N + column[None, :]
            b = tl.load(b_at, mask=None if EVEN else (deep < left)[:, None] & (column < N)[None, :])
            acc = tl.exp(acc) + tl.dot(a, b) if BIAS else tl.dot(a, b, acc)
            a_at += BK
        keep = None if EVEN else (row < M)[:, None] & (column < N)[None, :]
        tl.store(c_ptr + row[:, None] * N + column[None, :], acc.to(tl.float16), mask=keep)


@sim.jit
def in_place(x_ptr, iterations, BLOCK: tl.constexpr, BACK: tl.constexpr):
    """Each iteration reads what the last one stored, or its own block from the end on."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for iteration in range(iterations, 0, -1) if BACK else range(0, iterations):
        x = tl.load(x_ptr + at + iteration * BLOCK)
        y = tl.load(x_ptr + at + iteration * BLOCK + BLOCK)
        tl.store(x_ptr + at + iteration * BLOCK, x + y)

"""Kernels whose programs meet in memory, and products of the Cube."""

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl


@sim.jit
def atomic_sum(x, out, n, BLOCK: tl.constexpr):
    """Programs add their parts in the order in which they come."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + i, mask=i < n, other=0.0)))


@sim.jit
def atomic_count(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + i, mask=i < n, other=0)))


@sim.jit
def atomic_whole(x, out, n, BLOCK: tl.constexpr):
    """INT8 as FP32: exact whoever comes first."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + i).to(tl.float32)))


@sim.jit
def atomic_largest(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_max(out, tl.max(tl.load(x + i)))


@sim.jit
def atomic_apart(x, out, n, BLOCK: tl.constexpr):
    """Atomics, but no two programs meet."""
    p = tl.program_id(0)
    tl.atomic_add(out + p, tl.sum(tl.load(x + p * BLOCK + tl.arange(0, BLOCK))))


@sim.jit
def last_one_stays(x, out, n, BLOCK: tl.constexpr):
    """Each program exchanges what memory holds for its own: the last stays."""
    tl.atomic_xchg(out, tl.load(x + tl.program_id(0)))


@sim.jit
def stored_parts(x, parts, n, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    tl.store(parts + p, tl.sum(tl.load(x + p * BLOCK + tl.arange(0, BLOCK))))


@sim.jit
def added_parts(parts, out, COUNT: tl.constexpr):
    tl.store(out, tl.sum(tl.load(parts + tl.arange(0, COUNT))))


@sim.jit
def persistent(x, out, rows, n, BLOCK: tl.constexpr):
    """Programs go on to the next row by their number: who makes a row does not matter."""
    for r in range(tl.program_id(0), rows, tl.num_programs(0)):
        tl.store(out + r, tl.sum(tl.load(x + r * n + tl.arange(0, BLOCK))))


@sim.jit
def persistent_total(x, out, rows, n, BLOCK: tl.constexpr):
    """Each program adds up its rows, and the programs meet in memory."""
    total = 0.0
    for r in range(tl.program_id(0), rows, tl.num_programs(0)):
        total += tl.sum(tl.load(x + r * n + tl.arange(0, BLOCK)))
    tl.atomic_add(out, total)


@sim.jit
def product(a, b, out, K, N, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    """16 columns; K is masked."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    j = tl.arange(0, 16)
    acc = tl.zeros((BLOCK_M, 16), tl.float32)
    for k in range(0, K, BLOCK_K):
        kk = k + tl.arange(0, BLOCK_K)
        x = tl.load(a + m[:, None] * K + kk[None, :], mask=kk[None, :] < K, other=0.0)
        y = tl.load(b + kk[:, None] * N + j[None, :], mask=kk[:, None] < K, other=0.0)
        acc += tl.dot(x, y)
    tl.store(out + m[:, None] * N + j[None, :], acc)


@sim.jit
def product_in_parts(a, b, out, K, N, PARTS: tl.constexpr):
    """K in parts, each from zero, added by the Vector unit."""
    m = tl.arange(0, 16)
    total = tl.zeros((16, 16), tl.float32)
    for part in tl.static_range(PARTS):
        acc = tl.zeros((16, 16), tl.float32)
        for k in range(part * (K // PARTS), (part + 1) * (K // PARTS), 16):
            kk = k + tl.arange(0, 16)
            x = tl.load(a + m[:, None] * K + kk[None, :])
            acc = tl.dot(x, tl.load(b + kk[:, None] * N + m[None, :]), acc)
        total = total + acc * 1.0
    tl.store(out + m[:, None] * N + m[None, :], total)


@sim.jit
def split_product(a, b, out, K, N, PART: tl.constexpr):
    """K is cut among programs, which add into the result."""
    m = tl.arange(0, 16)
    kk = tl.program_id(0) * PART + tl.arange(0, PART)
    x = tl.load(a + m[:, None] * K + kk[None, :])
    y = tl.load(b + kk[:, None] * N + m[None, :])
    tl.atomic_add(out + m[:, None] * N + m[None, :], tl.dot(x, y))


@sim.jit
def whole_product(a, b, out, K, N, BLOCK_K: tl.constexpr):
    """INT8 products in INT32: exact."""
    m = tl.arange(0, 16)
    acc = tl.zeros((16, 16), tl.int32)
    for k in range(0, K, BLOCK_K):
        kk = k + tl.arange(0, BLOCK_K)
        x = tl.load(a + m[:, None] * K + kk[None, :])
        acc = tl.dot(x, tl.load(b + kk[:, None] * N + m[None, :]), acc)
    tl.store(out + m[:, None] * N + m[None, :], acc)


@sim.jit
def product_then_half(a, b, out, K, N, BLOCK_K: tl.constexpr):
    """Each step leaves L0C as FP16."""
    m = tl.arange(0, 16)
    acc = tl.zeros((16, 16), tl.float16)
    for k in range(0, K, BLOCK_K):
        kk = k + tl.arange(0, BLOCK_K)
        x = tl.load(a + m[:, None] * K + kk[None, :])
        acc += tl.dot(x, tl.load(b + kk[:, None] * N + m[None, :])).to(tl.float16)
    tl.store(out + m[:, None] * N + m[None, :], acc)


@sim.jit
def looked_up(table, index, out, n, BLOCK: tl.constexpr):
    """Which row is read goes by data."""
    p = tl.program_id(0)
    at = tl.load(index + p)
    tl.store(out + p, tl.sum(tl.load(table + at * n + tl.arange(0, BLOCK))))


@sim.jit
def branching(x, out, n, BLOCK: tl.constexpr):
    """The course of a program goes by data."""
    r = tl.program_id(0)
    v = tl.load(x + r * n + tl.arange(0, BLOCK))
    if tl.sum(v) > 0:
        tl.store(out + r, tl.max(v))
    else:
        tl.store(out + r, tl.min(v))

"""Kernels of the golden file for what operators do not use: flags, both Vector cores, atomics, discrete access, data."""

# mypy: disable-error-code="no-untyped-def"

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.language.extra.cann import extension as al

PIPE = al.PIPE


@sim.jit
def product_then_exp(a, b, c, EPILOGUE: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """A product whose result the Vector unit takes over, tile by tile."""
    p = tl.program_id(0)
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    acc = tl.dot(tl.load(a + (p * M + i) * K + k[None, :]), tl.load(b + k[:, None] * N + j))
    if EPILOGUE:
        acc = tl.exp(acc) + 1.0
    tl.store(c + (p * M + i) * N + j, acc)


@sim.jit
def ping_pong(a, b, out, hop, back, count, M: tl.constexpr):
    """Cube and Vector in loops of their own: each product waits for what the Vector core made of the one before it."""
    p = tl.program_id(0) * M * M
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    at = p + i * M + j
    with al.scope(core_mode="cube"):
        y = tl.load(b + i * M + j)
        for _ in range(count):
            al.sync_block_wait("vector", "cube", 1)
            tl.store(hop + at, tl.dot(tl.load(back + at), y))
            al.sync_block_set("cube", "vector", 0)
    with al.scope(core_mode="vector"):
        tl.store(back + at, tl.load(a + at))
        total = tl.zeros((M, M), tl.float32)
        al.sync_block_set("vector", "cube", 1)
        for _ in range(count):
            al.sync_block_wait("cube", "vector", 0)
            z = tl.load(hop + at) * 0.5 + 1.0
            total += z
            tl.store(back + at, z)
            al.sync_block_set("vector", "cube", 1)
        tl.store(out + at, total)


@sim.jit
def halves(a, b, c, hop, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Each Vector core of a program takes half of the product's rows."""
    p = tl.program_id(0)
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    tl.store(
        hop + (p * M + i) * N + j,
        tl.dot(tl.load(a + (p * M + i) * K + k[None, :]), tl.load(b + k[:, None] * N + j)),
    )
    al.sync_block_set("cube", "vector", 5, PIPE.PIPE_FIX, PIPE.PIPE_MTE2)
    al.sync_block_wait("cube", "vector", 5, PIPE.PIPE_FIX, PIPE.PIPE_MTE2)
    half = p * M + al.sub_vec_id() * (M // 2) + tl.arange(0, M // 2)
    tl.store(c + half[:, None] * N + j, tl.load(hop + half[:, None] * N + j) * 2.0)


@sim.jit
def scores(q, k, v, out, n, CAUSAL: tl.constexpr, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """Attention of one block of queries: Cube and Vector work in turn, sums are carried over blocks of keys."""
    p = tl.program_id(0)
    i, d = tl.arange(0, M)[:, None], tl.arange(0, D)[None, :]
    query = tl.load(q + (p * M + i) * D + d)
    top = tl.full((M,), -1.0e30, tl.float32)
    total = tl.zeros((M,), tl.float32)
    acc = tl.zeros((M, D), tl.float32)
    for start in range(0, n, N):
        key = start + tl.arange(0, N)
        s = tl.dot(query, tl.trans(tl.load(k + key[:, None] * D + d)))
        if CAUSAL:
            s = tl.where((p * M + i).to(tl.float32) >= key[None, :].to(tl.float32), s, -1.0e30)
        new = tl.maximum(top, tl.max(s, axis=1))
        e = tl.exp(s - new[:, None])
        kept = tl.exp(top - new)
        total = total * kept + tl.sum(e, axis=1)
        acc = acc * kept[:, None] + tl.dot(e.to(tl.float16), tl.load(v + key[:, None] * D + d))
        top = new
    tl.store(out + (p * M + i) * D + d, acc / total[:, None])


@sim.jit
def rows_by_index(x, index, out, N: tl.constexpr, ADD: tl.constexpr, BLOCK: tl.constexpr):
    """Rows that a table names are read, and written or added."""
    row = tl.load(index + tl.program_id(0))
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * N + at, mask=at < N, other=0.0)
    if ADD:
        tl.atomic_add(out + row * N + at, value, mask=at < N)
    else:
        tl.store(out + tl.program_id(0) * N + at, value, mask=at < N)


@sim.jit
def gathered(x, index, out, BLOCK: tl.constexpr):
    """Single elements that a table names."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + tl.load(index + at)))


@sim.jit
def many_words(x, out, WHAT: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """One builtin of each family on a tile."""
    p = tl.program_id(0)
    at = (p * M + tl.arange(0, M))[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + at)
    if WHAT == "sum":
        a = a - tl.sum(a, axis=1)[:, None]
    elif WHAT == "rows":
        a = a - tl.max(a, axis=0)[None, :]
    elif WHAT == "scan":
        a = tl.cumsum(a, axis=1)
    elif WHAT == "sort":
        a = tl.sort(a)
    elif WHAT == "turn":
        a = tl.reshape(tl.trans(a), (M, N))
    elif WHAT == "where":
        a = tl.where(a > 0.0, tl.sqrt(a), tl.sigmoid(a))
    elif WHAT == "compare":
        a = tl.where(tl.arange(0, N)[None, :] < p + tl.arange(0, M)[:, None], a, 0.0)
    elif WHAT == "divide":
        a = a / (tl.abs(a) + 1.0)
    elif WHAT == "cast":
        a = (a.to(tl.float16) * 2.0).to(tl.int32).to(tl.float32)
    elif WHAT == "random":
        a = a + tl.rand(7, tl.arange(0, N))[None, :]
    elif WHAT == "flip":
        a = tl.flip(a)
    elif WHAT == "log":
        a = tl.log(tl.abs(a) + 1.0) + tl.sin(a)
    tl.store(out + at, a)


@sim.jit
def until_done(x, out):
    """The data decide how many iterations there are."""
    pid = tl.program_id(0)
    n = tl.load(x + pid)
    steps = 0
    while n > 1:
        n = tl.where(n % 2 == 0, n // 2, 3 * n + 1)
        steps += 1
    tl.store(out + pid, steps)


@sim.jit
def tickets(x, out, count, BLOCK: tl.constexpr):
    """Programs take their work from a counter."""
    iteration = tl.atomic_add(count, 1)
    at = iteration * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) + 1.0)


@sim.jit
def integer_product(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """int8 operands, int32 sums."""
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    p = tl.program_id(0)
    tl.store(
        c + (p * M + i) * N + j,
        tl.dot(
            tl.load(a + (p * M + i) * K + k[None, :]), tl.load(b + k[:, None] * N + j), out_dtype=tl.int32
        ),
    )

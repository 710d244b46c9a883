"""Kernels that add rows up, each in its own order."""

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl


@sim.jit
def whole_row(x, out, n, BLOCK: tl.constexpr):
    """One tile holds the row, masked behind its end."""
    r = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    tl.store(out + r, tl.sum(tl.load(x + r * n + i, mask=i < n, other=0.0)))


@sim.jit
def whole_row_of_squares(x, out, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + r * n + i, mask=i < n, other=0.0)
    tl.store(out + r, tl.sum(v * v))


@sim.jit
def chunks_one_by_one(x, out, n, BLOCK: tl.constexpr):
    """The sum of each chunk is added to that of those before."""
    r = tl.program_id(0)
    total = 0.0
    for k in range(0, n, BLOCK):
        i = k + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x + r * n + i, mask=i < n, other=0.0))
    tl.store(out + r, total)


@sim.jit
def lanes(x, out, n, BLOCK: tl.constexpr):
    """Each lane adds up its own elements, then the lanes are added."""
    r = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, n, BLOCK):
        i = k + tl.arange(0, BLOCK)
        total += tl.load(x + r * n + i, mask=i < n, other=0.0)
    tl.store(out + r, tl.sum(total))


@sim.jit
def lanes_from_the_end(x, out, n, BLOCK: tl.constexpr, BACK: tl.constexpr):
    r = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, n, BLOCK):
        start = n - BLOCK - k if BACK else k
        total += tl.load(x + r * n + start + tl.arange(0, BLOCK))
    tl.store(out + r, tl.sum(total))


@sim.jit
def columns(x, out, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """The rows of a tile are folded onto each other; the width of the tile does not matter."""
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    r = tl.arange(0, ROWS)
    v = tl.load(x + r[:, None] * n + c[None, :], mask=c[None, :] < n, other=0.0)
    tl.store(out + c, tl.sum(v, axis=0), mask=c < n)


@sim.jit
def columns_in_parts(x, out, n, ROWS: tl.constexpr, PART: tl.constexpr):
    """A column is added part by part."""
    c = tl.arange(0, 16)
    total = tl.zeros((16,), tl.float32)
    for k in range(0, ROWS, PART):
        r = k + tl.arange(0, PART)
        total += tl.sum(tl.load(x + r[:, None] * n + c[None, :]), axis=0)
    tl.store(out + c, total)


@sim.jit
def swapped(x, out, n, SWAP: tl.constexpr):
    """a + b or b + a."""
    i = tl.arange(0, 16)
    a = tl.load(x + i)
    b = tl.load(x + n + i)
    tl.store(out + i, b + a if SWAP else a + b)


@sim.jit
def three(x, out, n, LEFT: tl.constexpr):
    """(a + b) + c or a + (b + c)."""
    i = tl.arange(0, 16)
    a = tl.load(x + i)
    b = tl.load(x + n + i)
    c = tl.load(x + 2 * n + i)
    tl.store(out + i, (a + b) + c if LEFT else a + (b + c))


@sim.jit
def difference(x, out, n, NEGATED: tl.constexpr):
    """a - b or a + (-b): equal on the device, and two expressions here."""
    i = tl.arange(0, 16)
    a = tl.load(x + i)
    b = tl.load(x + n + i)
    tl.store(out + i, a + (-b) if NEGATED else a - b)


@sim.jit
def mean(x, out, n, FIRST: tl.constexpr):
    """The sum is divided, or each term."""
    r = tl.program_id(0)
    v = tl.load(x + r * n + tl.arange(0, 64))
    tl.store(out + r, tl.sum(v / 64) if FIRST else tl.sum(v) / 64)


@sim.jit
def scaled(x, out, n, FIRST: tl.constexpr):
    """Times a quarter, before or after: exact until a product is too small."""
    r = tl.program_id(0)
    v = tl.load(x + r * n + tl.arange(0, 64))
    tl.store(out + r, tl.sum(v * 0.25) if FIRST else tl.sum(v) * 0.25)


@sim.jit
def through_half(x, out, n, ROUNDED: tl.constexpr):
    """Parts pass through FP16 or stay FP32."""
    r = tl.program_id(0)
    total = 0.0
    for k in range(0, n, 32):
        part = tl.sum(tl.load(x + r * n + k + tl.arange(0, 32)))
        if ROUNDED:
            part = part.to(tl.float16).to(tl.float32)
        total += part
    tl.store(out + r, total)


@sim.jit
def half_and_back(x, out, n, ROUNDED: tl.constexpr):
    """FP16 inputs are widened, and narrowed and widened again: exact."""
    r = tl.program_id(0)
    v = tl.load(x + r * n + tl.arange(0, 64)).to(tl.float32)
    if ROUNDED:
        v = v.to(tl.float16).to(tl.float32)
    tl.store(out + r, tl.sum(v))


@sim.jit
def half_sum(x, out, n, BLOCK: tl.constexpr):
    """FP16 is added in FP32 and rounded once, at the end of each sum."""
    r = tl.program_id(0)
    total = tl.zeros((1,), tl.float16)
    for k in range(0, n, BLOCK):
        total += tl.sum(tl.load(x + r * n + k + tl.arange(0, BLOCK)))
    tl.store(out + r + tl.arange(0, 1), total)


@sim.jit
def with_one(x, out, n, TIMES: tl.constexpr):
    """A sum times one."""
    r = tl.program_id(0)
    s = tl.sum(tl.load(x + r * n + tl.arange(0, 64)))
    tl.store(out + r, s * 1.0 if TIMES else s)


@sim.jit
def product_and_sum(x, out, n, CONTRACTED: tl.constexpr):
    """a * b + c with one rounding or two."""
    i = tl.arange(0, 16)
    a = tl.load(x + i)
    b = tl.load(x + n + i)
    c = tl.load(x + 2 * n + i)
    tl.store(out + i, tl.fma(a, b, c) if CONTRACTED else a * b + c)


@sim.jit
def variance(x, out, n, TWICE: tl.constexpr):
    """Two passes, or the mean of squares less the square of the mean."""
    r = tl.program_id(0)
    v = tl.load(x + r * n + tl.arange(0, 64))
    m = tl.sum(v) / 64
    if TWICE:
        d = v - m
        tl.store(out + r, tl.sum(d * d) / 64)
    else:
        tl.store(out + r, tl.sum(v * v) / 64 - m * m)


@sim.jit
def welford(x, out, n, BLOCK: tl.constexpr):
    """Mean and squared distance, chunk by chunk."""
    r = tl.program_id(0)
    m = 0.0
    m2 = 0.0
    count = 0.0
    for k in range(0, n, BLOCK):
        v = tl.load(x + r * n + k + tl.arange(0, BLOCK))
        part = tl.sum(v) / BLOCK
        d = v - part
        both = count + BLOCK
        delta = part - m
        m2 += tl.sum(d * d) + delta * delta * count * BLOCK / both
        m += delta * BLOCK / both
        count = both
    tl.store(out + r, m2 / n)


@sim.jit
def kahan(x, out, n, BLOCK: tl.constexpr):
    """A compensated sum of chunks."""
    r = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    lost = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, n, BLOCK):
        y = tl.load(x + r * n + k + tl.arange(0, BLOCK)) - lost
        t = total + y
        lost = (t - total) - y
        total = t
    tl.store(out + r, tl.sum(total))

"""Kernels that scan, sort, compare, count, or choose."""

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl


@sim.jit
def largest(x, out, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    best = -float("inf")
    for k in range(0, n, BLOCK):
        i = k + tl.arange(0, BLOCK)
        best = tl.maximum(best, tl.max(tl.load(x + r * n + i, mask=i < n, other=-float("inf"))))
    tl.store(out + r, best)


@sim.jit
def smallest_size(x, out, n, BLOCK: tl.constexpr):
    """Of absolute values: no zero has a sign."""
    r = tl.program_id(0)
    best = float("inf")
    for k in range(0, n, BLOCK):
        i = k + tl.arange(0, BLOCK)
        best = tl.minimum(best, tl.min(tl.abs(tl.load(x + r * n + i, mask=i < n, other=float("inf")))))
    tl.store(out + r, best)


@sim.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    """The row in one tile, masked with -inf."""
    r = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + r * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v))
    tl.store(out + r * n + i, e / tl.sum(e), mask=i < n)


@sim.jit
def online_softmax(x, out, n, BLOCK: tl.constexpr):
    """Largest element and sum go along, and what was summed is scaled again."""
    r = tl.program_id(0)
    best = -float("inf")
    total = 0.0
    for k in range(0, n, BLOCK):
        v = tl.load(x + r * n + k + tl.arange(0, BLOCK))
        now = tl.maximum(best, tl.max(v))
        total = total * tl.exp(best - now) + tl.sum(tl.exp(v - now))
        best = now
    for k in range(0, n, BLOCK):
        i = k + tl.arange(0, BLOCK)
        tl.store(out + r * n + i, tl.exp(tl.load(x + r * n + i) - best) / total)


@sim.jit
def running_sum(x, out, n, BLOCK: tl.constexpr):
    """cumsum of chunks, the last of one added to all of the next."""
    r = tl.program_id(0)
    before = 0.0
    for k in range(0, n, BLOCK):
        i = k + tl.arange(0, BLOCK)
        v = tl.load(x + r * n + i)
        tl.store(out + r * n + i, tl.cumsum(v, 0) + before)
        before += tl.sum(v)


@sim.jit
def running_count(x, out, n, BLOCK: tl.constexpr):
    """The same of integers."""
    r = tl.program_id(0)
    before = tl.zeros((1,), tl.int32)
    for k in range(0, n, BLOCK):
        i = k + tl.arange(0, BLOCK)
        v = tl.load(x + r * n + i)
        tl.store(out + r * n + i, tl.cumsum(v, 0) + before)
        before += tl.sum(v)


@sim.jit
def cumsum_masked(x, out, n, BLOCK: tl.constexpr):
    """One tile: what lies behind the row comes after it."""
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.cumsum(tl.load(x + i, mask=i < n, other=0.0), 0), mask=i < n)


@sim.jit
def index_of_largest(x, out, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + r * n + i, mask=i < n, other=-float("inf"))
    tl.store(out + r, tl.argmax(v, 0))


@sim.jit
def index_twice(x, out, n, DOUBLED: tl.constexpr):
    """The index does not change where all elements are scaled by a power of two: known to the reader, not to the proof."""
    r = tl.program_id(0)
    v = tl.load(x + r * n + tl.arange(0, 64))
    tl.store(out + r, tl.argmax(v + v if DOUBLED else v, 0))


@sim.jit
def sorted_row(x, out, n, TWICE: tl.constexpr):
    """Sorting what is sorted."""
    r = tl.program_id(0)
    i = tl.arange(0, 64)
    v = tl.sort(tl.load(x + r * n + i))
    tl.store(out + r * n + i, tl.sort(v) if TWICE else v)


@sim.jit
def sum_of_sorted(x, out, n, SORTED: tl.constexpr):
    r = tl.program_id(0)
    v = tl.load(x + r * n + tl.arange(0, 64))
    tl.store(out + r, tl.sum(tl.sort(v) if SORTED else v))


@sim.jit
def sorted_flipped(x, out, n, FLIPPED: tl.constexpr):
    """Integers are sorted from whichever end they come."""
    r = tl.program_id(0)
    i = tl.arange(0, 64)
    v = tl.load(x + r * n + (63 - i if FLIPPED else i))
    tl.store(out + r * n + i, tl.sort(v))


@sim.jit
def counted(x, out, n, BLOCK: tl.constexpr):
    """A histogram, chunk by chunk: integers are added exactly."""
    bins = tl.arange(0, 16)
    total = tl.zeros((16,), tl.int32)
    for k in range(0, n, BLOCK):
        total += tl.histogram(tl.load(x + k + tl.arange(0, BLOCK)), 16)
    tl.store(out + bins, total)


@sim.jit
def whole_numbers(x, out, n, BLOCK: tl.constexpr):
    """INT8 widened to FP32: sums stay below 2^24, and are exact in any order."""
    r = tl.program_id(0)
    total = 0.0
    for k in range(0, n, BLOCK):
        total += tl.sum(tl.load(x + r * n + k + tl.arange(0, BLOCK)).to(tl.float32))
    tl.store(out + r, total)


@sim.jit
def whole_numbers_in_half(x, out, n, BLOCK: tl.constexpr):
    """INT8 in FP16: 128 of them may pass 2^11, above which FP16 has no odd numbers."""
    r = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float16)
    for k in range(0, n, BLOCK):
        total += tl.load(x + r * n + k + tl.arange(0, BLOCK)).to(tl.float16)
    tl.store(out + r, tl.sum(total))


@sim.jit
def signs(x, out, n, BLOCK: tl.constexpr):
    """How many are positive: truth values, added as integers."""
    r = tl.program_id(0)
    total = tl.zeros((1,), tl.int32)
    for k in range(0, n, BLOCK):
        total += tl.sum((tl.load(x + r * n + k + tl.arange(0, BLOCK)) > 0).to(tl.int32))
    tl.store(out + r + tl.arange(0, 1), total)


@sim.jit
def bits(x, out, n, BLOCK: tl.constexpr):
    """xor of all words."""
    r = tl.program_id(0)
    total = tl.zeros((1,), tl.int32)
    for k in range(0, n, BLOCK):
        total ^= tl.xor_sum(tl.load(x + r * n + k + tl.arange(0, BLOCK)), 0)
    tl.store(out + r + tl.arange(0, 1), total)


@sim.jit
def wrapped_products(x, out, n, LEFT: tl.constexpr):
    """INT32 products wrap, and commute."""
    i = tl.arange(0, 16)
    a = tl.load(x + i)
    b = tl.load(x + n + i)
    tl.store(out + i, b * a if LEFT else a * b)


@sim.jit
def chosen(x, out, n, BLOCK: tl.constexpr):
    """Sum of the positive elements: what is chosen depends on data, and is in the expression."""
    r = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + r * n + i, mask=i < n, other=0.0)
    tl.store(out + r, tl.sum(tl.where(v > 0, v, 0.0)))


@sim.jit
def moved(x, out, n, BLOCK: tl.constexpr):
    """Elements are moved, through a transposed tile or as they are."""
    r = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    k = tl.arange(0, 64 // BLOCK)
    at = i[:, None] * (64 // BLOCK) + k[None, :]
    v = tl.trans(tl.trans(tl.load(x + r * n + at)))
    tl.store(out + r * n + at, v)


@sim.jit
def elementwise(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out + i, v / (1 + tl.exp(-v)), mask=i < n)


@sim.jit
def rounded_once_more(x, out, n, OFTEN: tl.constexpr):
    """A root, and the square of a root: not the same number."""
    i = tl.arange(0, 16)
    v = tl.abs(tl.load(x + i))
    tl.store(out + i, tl.sqrt(v) * tl.sqrt(v) if OFTEN else v)


@sim.jit
def scaled_by_mean(x, gain, out, n):
    """Rows of 4, of which n is the length."""
    i = tl.arange(0, 4)
    v = tl.load(x + tl.program_id(0) * 4 + i)
    tl.store(out + tl.program_id(0) * 4 + i, v * (tl.sum(v) / n) * tl.load(gain + i))


@sim.jit
def either(x, out, HOW: tl.constexpr):
    i = tl.arange(0, 16)
    v = tl.load(x + i)
    if HOW:
        v = v + v * v
    tl.store(out + i, v)


@sim.jit
def branching(x, out, HOW: tl.constexpr):
    """Scaled where the sum is negative."""
    i = tl.arange(0, 16)
    v = tl.load(x + i)
    if tl.sum(v) < 0:
        tl.store(out + i, v * HOW)
    else:
        tl.store(out + i, v)


@sim.jit
def sum_of_bytes(x, out, HOW: tl.constexpr):
    """Added in bytes, or as int32."""
    i = tl.arange(0, 16)
    v = tl.load(x + i)
    if HOW == 1:
        tl.store(out + i, (v + v).to(tl.int32))
    else:
        tl.store(out + i, v.to(tl.int32) + v.to(tl.int32))

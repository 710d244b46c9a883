# mypy: disable-error-code="no-untyped-def"
"""One launch for all that comes before the products: layouts of both images and of the weight, zeros, sums for the bias.

The Vector cores go through the jobs one after the other. A job begins with the core that the one before it left idle first,
so that all of them end at about the same time. SHARED: two Vector cores of a Cube share the items of a program.
"""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.language.extra.cann import extension as al


@sim.jit
def next_core(done):
    """The first item of this core in a job that comes after `done` items of others."""
    return (tl.program_id(0) + tl.num_programs(0) - done % tl.num_programs(0)) % tl.num_programs(0)


@sim.jit
def image_blocks(
    x_ptr, out_ptr, done, items, C, P,
    BLOCKS: tl.constexpr, C0: tl.constexpr, BC: tl.constexpr, BP: tl.constexpr,
    SHARED: tl.constexpr = False,
):  # fmt: skip
    """out (N, BLOCKS, P, C0) = x (N, C, P), BC blocks of C0 channels at a time; channels from C on are zero (NC1HWC0)."""
    across, down = tl.cdiv(P, BP), tl.cdiv(BLOCKS, BC)
    for item in al.parallel(next_core(done), items, tl.num_programs(0), bind_sub_block=SHARED):
        n = item // (across * down)
        block = item // across % down * BC
        p = item % across * BP + tl.arange(0, BP)
        c = block * C0 + tl.arange(0, BC * C0)
        inside = (c < C)[:, None] & (p < P)[None, :]
        x = tl.load(x_ptr + n * C * P + c[:, None] * P + p[None, :], mask=inside, other=0.0)
        transposed = tl.permute(tl.reshape(x.to(out_ptr.dtype.element_ty), (BC, C0, BP)), (0, 2, 1))
        blocks = block + tl.arange(0, BC)
        at = (n * BLOCKS + blocks[:, None, None]) * (P * C0) + p[None, :, None] * C0
        alive = (blocks < BLOCKS)[:, None, None] & (p < P)[None, :, None]
        tl.store(out_ptr + at + tl.arange(0, C0)[None, None, :], transposed, mask=alive)


@sim.jit
def weight_fractals(
    w_ptr, out_ptr, done, items,
    ROWS: tl.constexpr, COLS: tl.constexpr, TAPS: tl.constexpr, DEEP_ROWS: tl.constexpr, DEEP: tl.constexpr,
    WIDE: tl.constexpr, C0: tl.constexpr, BW: tl.constexpr, BT: tl.constexpr, SHARED: tl.constexpr = False,
):  # fmt: skip
    """out (groups, TAPS, DEEP / C0, WIDE, C0) of w (groups, ROWS, COLS, TAPS), see `load_weight`; padding is zero.

    DEEP_ROWS: rows of w are its depth and columns its width, else the other way round. A tile: C0 of the depth, BW wide,
    with all taps; BT fewer than TAPS: so many taps, of BW 1.
    """
    blocks, across, parts = DEEP // C0, tl.cdiv(WIDE, BW), tl.cdiv(TAPS, BT)
    lane, tap = tl.arange(0, C0), tl.arange(0, BT)
    for item in al.parallel(next_core(done), items, tl.num_programs(0), bind_sub_block=SHARED):
        first = item % across * BW
        block = item // across % blocks
        group = item // (across * blocks * parts)
        w = group * (ROWS * COLS * TAPS)
        if BT < TAPS:
            tap = item // (across * blocks) % parts * BT + tl.arange(0, BT)
            deep = block * C0 + lane
            row, col = (deep, first) if DEEP_ROWS else (first, deep)
            inside = (row < ROWS) & (col < COLS)
            at = (row * COLS + col) * TAPS
            inside = inside[:, None] & (tap < TAPS)[None, :]
            x = tl.load(w_ptr + w + at[:, None] + tap[None, :], mask=inside, other=0.0)
            transposed = tl.permute(tl.reshape(x.to(out_ptr.dtype.element_ty), (C0, BW, BT)), (2, 1, 0))
        elif DEEP_ROWS:
            row, col = block * C0 + lane, first * TAPS + tl.arange(0, BW * TAPS)
            inside = (row < ROWS)[:, None] & (col < COLS * TAPS)[None, :]
            x = tl.load(w_ptr + w + row[:, None] * (COLS * TAPS) + col[None, :], mask=inside, other=0.0)
            transposed = tl.permute(tl.reshape(x.to(out_ptr.dtype.element_ty), (C0, BW, TAPS)), (2, 1, 0))
        else:
            row, col = first + tl.arange(0, BW), block * (C0 * TAPS) + tl.arange(0, C0 * TAPS)
            inside = (row < ROWS)[:, None] & (col < COLS * TAPS)[None, :]
            x = tl.load(w_ptr + w + row[:, None] * (COLS * TAPS) + col[None, :], mask=inside, other=0.0)
            transposed = tl.permute(tl.reshape(x.to(out_ptr.dtype.element_ty), (BW, C0, TAPS)), (2, 0, 1))
        wide = first + tl.arange(0, BW)
        at = group * (TAPS * DEEP * WIDE) + tap[:, None, None] * (DEEP * WIDE) + block * (WIDE * C0)
        at += wide[None, :, None] * C0 + lane[None, None, :]
        alive = (wide < WIDE)[None, :, None]
        if BT < TAPS:
            alive = alive & (tap < TAPS)[:, None, None]
        tl.store(out_ptr + at, transposed, mask=alive)


@sim.jit
def clear_items(out_ptr, done, n, COLS: tl.constexpr, SHARED: tl.constexpr = False):
    """Elements [0, n) of out become zero, COLS at a time."""
    zero = tl.zeros((COLS,), out_ptr.dtype.element_ty)
    for item in al.parallel(next_core(done), tl.cdiv(n, COLS), tl.num_programs(0), bind_sub_block=SHARED):
        cols = item * COLS + tl.arange(0, COLS)
        tl.store(out_ptr + cols, zero, mask=cols < n)


@sim.jit
def bias_sums(
    dy_ptr, parts_ptr, done, items, N, per_part,
    C: tl.constexpr, P: tl.constexpr, BC: tl.constexpr, BP: tl.constexpr, SHARED: tl.constexpr = False,
):  # fmt: skip
    """parts (items // blocks of channels, C) of dy (N, C, P): each item sums `per_part` images for BC channels, in FP32."""
    blocks: tl.constexpr = (C + BC - 1) // BC
    across: tl.constexpr = (P + BP - 1) // BP
    for item in al.parallel(next_core(done), items, tl.num_programs(0), bind_sub_block=SHARED):
        c = item % blocks * BC + tl.arange(0, BC)
        first = item // blocks * per_part
        total = tl.zeros((BC, BP), tl.float32)
        for k in range(tl.minimum(per_part, N - first) * across):
            p = k % across * BP + tl.arange(0, BP)
            at = (first + k // across) * (C * P) + c[:, None] * P + p[None, :]
            x = tl.load(dy_ptr + at, mask=(c < C)[:, None] & (p < P)[None, :], other=0.0)
            total += x.to(tl.float32)
        tl.store(parts_ptr + item // blocks * C + c, tl.sum(total, axis=1), mask=c < C)


@sim.jit
def prepare(
    first_ptr, first_out, second_ptr, second_out, weight_ptr, weight_out, zero_ptr, gaps_ptr, dy_ptr,
    parts_ptr, zeros, gaps,
    FIRST: tl.constexpr, SECOND: tl.constexpr, WEIGHT: tl.constexpr, ZERO: tl.constexpr, GAPS: tl.constexpr,
    BIAS: tl.constexpr,
):  # fmt: skip
    """All jobs of a call; each tuple holds the numbers of a job after `done`, empty if there is none.

    FIRST, SECOND: of `image_blocks`. WEIGHT: of `weight_fractals`. ZERO, GAPS: (items, COLS). BIAS: of `bias_sums`.
    """
    done = 0
    if FIRST:
        image_blocks(first_ptr, first_out, done, *FIRST)
        done += FIRST[0]
    if SECOND:
        image_blocks(second_ptr, second_out, done, *SECOND)
        done += SECOND[0]
    if WEIGHT:
        weight_fractals(weight_ptr, weight_out, done, *WEIGHT)
        done += WEIGHT[0]
    if ZERO:
        clear_items(zero_ptr, done, zeros, ZERO[1])
        done += ZERO[0]
    if GAPS:
        clear_items(gaps_ptr, done, gaps, GAPS[1])
        done += GAPS[0]
    if BIAS:
        bias_sums(dy_ptr, parts_ptr, done, *BIAS)

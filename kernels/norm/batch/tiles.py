# mypy: disable-error-code="no-untyped-def"
"""Tile kernels of BatchNormReduceBackward; the mathematics is in batch_norm_reduce_backward.py.

The inputs are seen as (N, C, S), S all axes after the channel, or as (N, C) where S is 1. A grid of programs shares them:
`parts` along N and S, the others along C. Each program keeps one accumulator of a whole tile and reduces it once at the
end, so that a turn of the loop costs two additions and no reduction.
"""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import language as tl
from ...shared.sums import row_sums


@sim.jit
def put(ptr, at, x, mask):
    """Store in the type of the tensor; nothing where it is absent."""
    if ptr is not None:
        tl.store(ptr + at, x.to(ptr.dtype.element_ty), mask=mask)


@sim.jit
def put_sums(dy, dyx, mean_ptr, invstd_ptr, outputs, at, inside, CENTRED: tl.constexpr):
    """The four outputs at channels `at` from sum(dy) and sum(dy * x), which CENTRED already has (x - mean) in it."""
    put(outputs[0], at, dy, inside)
    put(outputs[3], at, dy, inside)
    if dyx is not None:
        if not CENTRED:
            dyx = dyx - dy * tl.load(mean_ptr + at, mask=inside, other=0.0).to(tl.float32)
        put(outputs[1], at, dyx, inside)
        if outputs[2] is not None:
            invstd = tl.load(invstd_ptr + at, mask=inside, other=0.0).to(tl.float32)
            put(outputs[2], at, dyx * invstd, inside)


@sim.jit
def put_part(parts_ptr, part, channels, at, dy, dyx, inside, ATOMIC: tl.constexpr):
    """A program's two sums: rows 2 * part and 2 * part + 1 of parts, or added to rows 0 and 1."""
    if ATOMIC:
        tl.atomic_add(parts_ptr + at, dy, mask=inside)
        if dyx is not None:
            tl.atomic_add(parts_ptr + channels + at, dyx, mask=inside)
    else:
        here = parts_ptr + 2 * part * channels
        tl.store(here + at, dy, mask=inside)
        if dyx is not None:
            tl.store(here + channels + at, dyx, mask=inside)


@sim.jit
def add_compensated(total, lost, x):
    """total + x and what its rounding lost (Kahan 1965)."""
    y = x - lost
    found = total + y
    return found, (found - total) - y


@sim.jit
def zeros(SAMPLES: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr):
    """A tile of fp32 zeros."""
    return tl.zeros((SAMPLES, ROWS, COLS), tl.float32)


@sim.jit
def channel_sums(x):
    """(samples, channels, columns) fp32 -> (channels,)."""
    rows = row_sums(tl.reshape(x, (x.shape[0] * x.shape[1], x.shape[2])))
    return tl.sum(tl.reshape(rows, (x.shape[0], x.shape[1])), axis=0) if x.shape[0] > 1 else rows


@sim.jit
def planes(
    dy_ptr, x_ptr, mean_ptr, invstd_ptr, parts_ptr, outputs, samples, channels, space, chunks, items,
    items_per_part, parts, channels_per_core,
    SAMPLES: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, CENTRED: tl.constexpr, SUM: tl.constexpr,
    ATOMIC: tl.constexpr,
):  # fmt: skip
    """Sums over N and S of tensors (N, C, S), in tiles of SAMPLES x ROWS channels x COLS of S.

    An item is a chunk of COLS of S of SAMPLES samples; program `part` of each group of `parts` takes items_per_part of them,
    a group channels_per_core channels. parts_ptr: where sums go that are not whole yet; None if a program has all items,
    which then writes the outputs (sum_dy, sum_dy_xmu, grad_weight, grad_bias). x_ptr None: only sums of dy.
    """
    pid = tl.program_id(0)
    part, own = pid % parts, pid // parts * channels_per_core
    begin = part * items_per_part
    stop, last = min(begin + items_per_part, items), min(own + channels_per_core, channels)
    sample, row, col = (
        tl.arange(0, SAMPLES)[:, None, None],
        tl.arange(0, ROWS),
        tl.arange(0, COLS)[None, None, :],
    )
    tile = (sample * channels + row[None, :, None]) * space + col
    for first in range(own, last, ROWS):
        alive = row < last - first
        dy_sum, dyx_sum = zeros(SAMPLES, ROWS, COLS), zeros(SAMPLES, ROWS, COLS)
        dy_lost, dyx_lost = zeros(SAMPLES, ROWS, COLS), zeros(SAMPLES, ROWS, COLS)
        dy_rows, dyx_rows = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32)
        if CENTRED:
            mean = tl.load(mean_ptr + first + row, mask=alive, other=0.0).to(tl.float32)[None, :, None]
        for item in range(begin, stop):
            block, start = item // chunks * SAMPLES, item % chunks * COLS
            at = (block * channels + first) * space + start
            mask = (sample < samples - block) & alive[None, :, None] & (col < space - start)
            dy = tl.load(dy_ptr + at + tile, mask=mask, other=0.0).to(tl.float32)
            if x_ptr is not None:
                x = tl.load(x_ptr + at + tile, mask=mask, other=0.0).to(tl.float32)
                product = dy * (x - mean) if CENTRED else dy * x
            if SUM == "lanes":
                dy_sum += dy
                if x_ptr is not None:
                    dyx_sum += product
            elif SUM == "kahan":
                dy_sum, dy_lost = add_compensated(dy_sum, dy_lost, dy)
                if x_ptr is not None:
                    dyx_sum, dyx_lost = add_compensated(dyx_sum, dyx_lost, product)
            else:
                dy_rows += channel_sums(dy)
                if x_ptr is not None:
                    dyx_rows += channel_sums(product)
        if SUM != "tile":
            dy_rows = channel_sums(dy_sum)
            dyx_rows = channel_sums(dyx_sum)
        dyx = dyx_rows if x_ptr is not None else None
        if parts_ptr is None:
            put_sums(dy_rows, dyx, mean_ptr, invstd_ptr, outputs, first + row, alive, CENTRED)
        else:
            put_part(parts_ptr, part, channels, first + row, dy_rows, dyx, alive, ATOMIC)


@sim.jit
def columns(
    dy_ptr, x_ptr, mean_ptr, invstd_ptr, parts_ptr, outputs, channels, items, items_per_part, parts,
    channels_per_core,
    ROWS: tl.constexpr, COLS: tl.constexpr, CENTRED: tl.constexpr, SUM: tl.constexpr, ATOMIC: tl.constexpr,
):  # fmt: skip
    """As planes for tensors (N, C): tiles of ROWS samples x COLS channels, `items` samples in all; no sum in a register."""
    pid = tl.program_id(0)
    part, own = pid % parts, pid // parts * channels_per_core
    begin = part * items_per_part
    stop, last = min(begin + items_per_part, items), min(own + channels_per_core, channels)
    row, col = tl.arange(0, ROWS), tl.arange(0, COLS)
    tile = row[:, None] * channels + col[None, :]
    for first in range(own, last, COLS):
        inside = col < last - first
        dy_sum, dyx_sum = tl.zeros((ROWS, COLS), tl.float32), tl.zeros((ROWS, COLS), tl.float32)
        dy_lost, dyx_lost = tl.zeros((ROWS, COLS), tl.float32), tl.zeros((ROWS, COLS), tl.float32)
        dy_cols, dyx_cols = tl.zeros((COLS,), tl.float32), tl.zeros((COLS,), tl.float32)
        if CENTRED:
            mean = tl.load(mean_ptr + first + col, mask=inside, other=0.0).to(tl.float32)[None, :]
        for item in range(begin, stop, ROWS):
            at = item * channels + first
            mask = (row < stop - item)[:, None] & inside[None, :]
            dy = tl.load(dy_ptr + at + tile, mask=mask, other=0.0).to(tl.float32)
            if x_ptr is not None:
                x = tl.load(x_ptr + at + tile, mask=mask, other=0.0).to(tl.float32)
                product = dy * (x - mean) if CENTRED else dy * x
            if SUM == "lanes":
                dy_sum += dy
                if x_ptr is not None:
                    dyx_sum += product
            elif SUM == "kahan":
                dy_sum, dy_lost = add_compensated(dy_sum, dy_lost, dy)
                if x_ptr is not None:
                    dyx_sum, dyx_lost = add_compensated(dyx_sum, dyx_lost, product)
            else:
                dy_cols += tl.sum(dy, axis=0)
                if x_ptr is not None:
                    dyx_cols += tl.sum(product, axis=0)
        if SUM != "tile":
            dy_cols = tl.sum(dy_sum, axis=0)
            dyx_cols = tl.sum(dyx_sum, axis=0)
        dyx = dyx_cols if x_ptr is not None else None
        if parts_ptr is None:
            put_sums(dy_cols, dyx, mean_ptr, invstd_ptr, outputs, first + col, inside, CENTRED)
        else:
            put_part(parts_ptr, part, channels, first + col, dy_cols, dyx, inside, ATOMIC)


@sim.jit
def finish(
    parts_ptr, mean_ptr, invstd_ptr, outputs, channels,
    PARTS: tl.constexpr, COLS: tl.constexpr, CENTRED: tl.constexpr, WITH_X: tl.constexpr,
):  # fmt: skip
    """The outputs from PARTS pairs of rows of parts (2 * PARTS, C), upper half onto lower half; chunks of COLS in turn."""
    row, col = tl.arange(0, PARTS)[:, None], tl.arange(0, COLS)
    for first in range(tl.program_id(0) * COLS, channels, tl.num_programs(0) * COLS):
        at = first + col
        inside = at < channels
        here = parts_ptr + 2 * row * channels + at[None, :]
        dy = tl.sum(tl.load(here, mask=inside[None, :], other=0.0), axis=0)
        dyx = tl.sum(tl.load(here + channels, mask=inside[None, :], other=0.0), axis=0) if WITH_X else None
        put_sums(dy, dyx, mean_ptr, invstd_ptr, outputs, at, inside, CENTRED)


@sim.jit
def multiply(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = x * y, n elements in fp32; programs take blocks in turn."""
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = first + tl.arange(0, BLOCK)
        x, y = (tl.load(x_ptr + at, mask=at < n, other=0.0), tl.load(y_ptr + at, mask=at < n, other=0.0))
        tl.store(out_ptr + at, x * y, mask=at < n)

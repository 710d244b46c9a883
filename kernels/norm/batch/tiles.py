# mypy: disable-error-code="no-untyped-def"
"""Tile kernels of BatchNormReduceBackward; the mathematics is in op.py.

The inputs are seen as (N, C, S), S all axes after the channel, or as (N, C) where S is 1. A grid of programs shares them:
`parts` along N and S, the others along C. Each program keeps one accumulator of a whole tile and reduces it once at the
end, so that an iteration of the loop costs two additions and no reduction.
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
def tile_sums(x):
    """Sums of the channels of a tile: (samples, channels, columns) or (samples, channels)."""
    return channel_sums(x) if len(x.shape) == 3 else tl.sum(x, axis=0)


@sim.jit
def load_terms(dy_ptr, x_ptr, at, tile, mask, mean):
    """dy, and dy * (x - mean) in fp32: mean None is not taken off, and None stands for the product without x."""
    dy, product = tl.load(dy_ptr + at + tile, mask=mask, other=0.0).to(tl.float32), None
    if x_ptr is not None:
        x = tl.load(x_ptr + at + tile, mask=mask, other=0.0).to(tl.float32)
        product = dy * x if mean is None else dy * (x - mean)
    return dy, product


@sim.jit
def add_up(sums, x, SUM: tl.constexpr):
    """(lanes, what their rounding lost, channels) with a tile added as SUM says; x None: nothing."""
    lanes, lost, channels = sums
    if x is not None:
        if SUM == "lanes":
            lanes += x
        elif SUM == "kahan":
            lanes, lost = add_compensated(lanes, lost, x)
        else:
            channels += tile_sums(x)
    return lanes, lost, channels


@sim.jit
def whole_sums(sums, SUM: tl.constexpr):
    """Sums of channels from what `add_up` has added."""
    return sums[2] if SUM == "tile" else tile_sums(sums[0])


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
        dy_sum = zeros(SAMPLES, ROWS, COLS), zeros(SAMPLES, ROWS, COLS), tl.zeros((ROWS,), tl.float32)
        dyx_sum = zeros(SAMPLES, ROWS, COLS), zeros(SAMPLES, ROWS, COLS), tl.zeros((ROWS,), tl.float32)
        mean = None
        if CENTRED:
            mean = tl.load(mean_ptr + first + row, mask=alive, other=0.0).to(tl.float32)[None, :, None]
        for item in range(begin, stop):
            block, start = item // chunks * SAMPLES, item % chunks * COLS
            at = (block * channels + first) * space + start
            mask = (sample < samples - block) & alive[None, :, None] & (col < space - start)
            dy, product = load_terms(dy_ptr, x_ptr, at, tile, mask, mean)
            dy_sum, dyx_sum = add_up(dy_sum, dy, SUM), add_up(dyx_sum, product, SUM)
        dy, dyx = whole_sums(dy_sum, SUM), whole_sums(dyx_sum, SUM)
        dyx = None if x_ptr is None else dyx
        if parts_ptr is None:
            put_sums(dy, dyx, mean_ptr, invstd_ptr, outputs, first + row, alive, CENTRED)
        else:
            put_part(parts_ptr, part, channels, first + row, dy, dyx, alive, ATOMIC)


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
        dy_sum = (
            tl.zeros((ROWS, COLS), tl.float32),
            tl.zeros((ROWS, COLS), tl.float32),
            tl.zeros((COLS,), tl.float32),
        )
        dyx_sum = (
            tl.zeros((ROWS, COLS), tl.float32),
            tl.zeros((ROWS, COLS), tl.float32),
            tl.zeros((COLS,), tl.float32),
        )
        mean = None
        if CENTRED:
            mean = tl.load(mean_ptr + first + col, mask=inside, other=0.0).to(tl.float32)[None, :]
        for item in range(begin, stop, ROWS):
            at = item * channels + first
            mask = (row < stop - item)[:, None] & inside[None, :]
            dy, product = load_terms(dy_ptr, x_ptr, at, tile, mask, mean)
            dy_sum, dyx_sum = add_up(dy_sum, dy, SUM), add_up(dyx_sum, product, SUM)
        dy, dyx = whole_sums(dy_sum, SUM), whole_sums(dyx_sum, SUM)
        dyx = None if x_ptr is None else dyx
        if parts_ptr is None:
            put_sums(dy, dyx, mean_ptr, invstd_ptr, outputs, first + col, inside, CENTRED)
        else:
            put_part(parts_ptr, part, channels, first + col, dy, dyx, inside, ATOMIC)


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

# mypy: disable-error-code="no-untyped-def"
"""Means and sums of squared deviations of rows, merged tile by tile: what batch norm and group norm need forward.

A tile's own mean is taken off before squaring, and tiles are merged by the formula of Chan, Golub and LeVeque (1979), so
that digits are not lost where the mean is large beside the spread.
"""

from __future__ import annotations

from ... import simulator as sim
from ...simulator import language as tl
from ..shared.sums import row_sums


@sim.jit
def merged(count, mean, squares, more, tile_mean, tile_squares):
    """Statistics of two sets: `count` elements with mean and sum of squared deviations, and `more` others."""
    total = count + more
    delta = tile_mean - mean
    part = more / total
    return total, mean + delta * part, squares + tile_squares + delta * delta * (count * part)


@sim.jit
def tile_statistics(x, mask, inverse):
    """Mean and sum of squared deviations of each row of a tile; what the mask leaves out is zero in x."""
    mean = row_sums(x) * inverse
    apart = tl.where(mask, x - mean[:, None], 0.0)
    return mean, row_sums(apart * apart)


@sim.jit
def channel_statistics(
    x_ptr, mean_ptr, invstd_ptr, samples, channels, space, channels_per_core, inverse_count, eps,
    ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """Mean and 1 / sqrt(variance + eps) of the channels of x (N, C, S), ROWS channels of a core at a time."""
    own = tl.program_id(0) * channels_per_core
    last = min(own + channels_per_core, channels)
    row, col = tl.arange(0, ROWS), tl.arange(0, COLS)
    tile = row[:, None] * space + col[None, :]
    for first in range(own, last, ROWS):
        alive = row < last - first
        count = 0.0
        mean, squares = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32)
        for n in range(0, samples):
            for begin in range(0, space, COLS):
                mask = alive[:, None] & (col < space - begin)[None, :]
                x = tl.load(x_ptr + (n * channels + first) * space + begin + tile, mask=mask, other=0.0)
                more = min(COLS, space - begin).to(tl.float32)
                a, b = tile_statistics(x.to(tl.float32), mask, 1.0 / more)
                count, mean, squares = merged(count, mean, squares, more, a, b)
        variance = squares * inverse_count
        tl.store(mean_ptr + first + row, mean.to(mean_ptr.dtype.element_ty), mask=alive)
        invstd = 1.0 / tl.sqrt(variance + eps)
        tl.store(invstd_ptr + first + row, invstd.to(invstd_ptr.dtype.element_ty), mask=alive)


@sim.jit
def column_statistics(
    x_ptr, mean_ptr, invstd_ptr, samples, channels, channels_per_core, inverse_count, eps,
    ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """As channel_statistics for x (N, C): tiles of ROWS samples x COLS channels."""
    own = tl.program_id(0) * channels_per_core
    last = min(own + channels_per_core, channels)
    row, col = tl.arange(0, ROWS), tl.arange(0, COLS)
    tile = row[:, None] * channels + col[None, :]
    for first in range(own, last, COLS):
        inside = col < last - first
        count = 0.0
        mean, squares = tl.zeros((COLS,), tl.float32), tl.zeros((COLS,), tl.float32)
        for begin in range(0, samples, ROWS):
            mask = (row < samples - begin)[:, None] & inside[None, :]
            x = tl.load(x_ptr + begin * channels + first + tile, mask=mask, other=0.0).to(tl.float32)
            more = min(ROWS, samples - begin).to(tl.float32)
            tile_mean = tl.sum(x, axis=0) / more
            apart = tl.where(mask, x - tile_mean[None, :], 0.0)
            count, mean, squares = merged(
                count, mean, squares, more, tile_mean, tl.sum(apart * apart, axis=0)
            )
        tl.store(mean_ptr + first + col, mean.to(mean_ptr.dtype.element_ty), mask=inside)
        invstd = 1.0 / tl.sqrt(squares * inverse_count + eps)
        tl.store(invstd_ptr + first + col, invstd.to(invstd_ptr.dtype.element_ty), mask=inside)


@sim.jit
def group_norm_forward(
    x_ptr, gamma_ptr, beta_ptr, y_ptr, mean_ptr, rstd_ptr, tasks, tasks_per_core, groups, D, S,
    inverse_count, eps,
    ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """y, mean and rstd of x (N, G, D, S), whole groups for every core in tiles of ROWS channels x COLS; two sweeps."""
    row, col = tl.arange(0, ROWS), tl.arange(0, COLS)
    tile = row[:, None] * S + col[None, :]
    begin_task = tl.program_id(0) * tasks_per_core
    for task in range(begin_task, min(begin_task + tasks_per_core, tasks)):
        count, mean, squares = 0.0, 0.0, 0.0
        for first in range(0, D, ROWS):
            alive = row < D - first
            for begin in range(0, S, COLS):
                mask = alive[:, None] & (col < S - begin)[None, :]
                x = tl.load(x_ptr + (task * D + first) * S + begin + tile, mask=mask, other=0.0).to(
                    tl.float32
                )
                more = tl.cast(min(ROWS, D - first) * min(COLS, S - begin), tl.float32)
                tile_mean = tl.sum(row_sums(x), axis=0) / more
                apart = tl.where(mask, x - tile_mean, 0.0)
                tile_squares = tl.sum(row_sums(apart * apart), axis=0)
                count, mean, squares = merged(count, mean, squares, more, tile_mean, tile_squares)
        rstd = 1.0 / tl.sqrt(squares * inverse_count + eps)
        tl.store(mean_ptr + task, mean)
        tl.store(rstd_ptr + task, rstd.to(rstd_ptr.dtype.element_ty))
        for first in range(0, D, ROWS):
            alive = row < D - first
            channel = task % groups * D + first + row
            gamma = tl.load(gamma_ptr + channel, mask=alive, other=0.0).to(tl.float32)[:, None]
            beta = tl.load(beta_ptr + channel, mask=alive, other=0.0).to(tl.float32)[:, None]
            for begin in range(0, S, COLS):
                mask = alive[:, None] & (col < S - begin)[None, :]
                at = (task * D + first) * S + begin
                x = tl.load(x_ptr + at + tile, mask=mask, other=0.0).to(tl.float32)
                y = (x - mean) * rstd * gamma + beta
                tl.store(y_ptr + at + tile, y.to(y_ptr.dtype.element_ty), mask=mask)

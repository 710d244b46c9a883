# mypy: disable-error-code="no-untyped-def"
"""Tile kernels of GroupNormBackward; the mathematics is in op.py.

The data is (N, G, D, S): D channels of a group, S elements of a channel; a task is one group of one sample, in all N * G.
Sums of dy and of dy * xh per channel go to row n // per_row of `dbeta` and `dgamma` (rows, C): added there if several
samples share a row (ATOMIC), else stored; a pointer that is None is not wanted.
"""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import language as tl
from ...shared.sums import row_sums_of


@sim.jit
def plane_sums(x, y):
    """Two tiles (groups, D, S) fp32 -> (groups, D)."""
    flat: tl.constexpr = (x.shape[0] * x.shape[1], x.shape[2])
    rows = row_sums_of((tl.reshape(x, flat), tl.reshape(y, flat)))
    return tl.reshape(rows[0], (x.shape[0], x.shape[1])), tl.reshape(rows[1], (x.shape[0], x.shape[1]))


@sim.jit
def put(ptr, at, x, mask, ATOMIC: tl.constexpr):
    """Sums of channels at `at`; mask None: all of them."""
    if ptr is not None:
        if ATOMIC:
            tl.atomic_add(ptr + at, x, mask=mask)
        else:
            tl.store(ptr + at, x.to(ptr.dtype.element_ty), mask=mask)


@sim.jit
def times(x, gamma):
    """x * gamma; gamma None stands for ones."""
    return x if gamma is None else x * gamma


@sim.jit
def load_gamma(gamma_ptr, channel, first, row, alive):
    """gamma of channels `channel` + `first` + `row` in fp32; None stands for ones."""
    gamma = None
    if gamma_ptr is not None:
        gamma = tl.load(gamma_ptr + channel + first + row, mask=alive, other=0.0).to(tl.float32)
    return gamma


@sim.jit
def factors(db, dg, mean, rstd, inverse, FORM: tl.constexpr):
    """What dx needs of a group's gamma-weighted sums of dy (db) and of dy * xh or dy * x (dg): dx = rstd * gamma * dy
    + first * (x - mean or x) + second."""
    if FORM == "xhat":
        return -rstd * rstd * (dg * inverse), -rstd * (db * inverse)
    first = (db * mean - dg) * (rstd * rstd * rstd * inverse)
    return first, -first * mean - db * (rstd * inverse)


@sim.jit
def resident(
    dy_ptr, x_ptr, mean_ptr, rstd_ptr, gamma_ptr, dx_ptr, dgamma_ptr, dbeta_ptr, tasks, channels, inverse,
    per_row,
    ALL: tl.constexpr, GROUPS: tl.constexpr, D: tl.constexpr, S: tl.constexpr, FORM: tl.constexpr,
    ATOMIC: tl.constexpr,
):  # fmt: skip
    """Tiles of GROUPS whole groups in turn; GROUPS divides ALL, the groups of a sample. dy and x are read once."""
    group, plane = tl.arange(0, GROUPS), tl.arange(0, GROUPS)[:, None] * D + tl.arange(0, D)[None, :]
    tile = plane[:, :, None] * S + tl.arange(0, S)[None, None, :]
    for first in range(tl.program_id(0) * GROUPS, tasks, tl.num_programs(0) * GROUPS):
        at, channel = first * (D * S), first % ALL * D
        x = tl.load(x_ptr + at + tile).to(tl.float32)
        dy = tl.load(dy_ptr + at + tile).to(tl.float32)
        mean = tl.load(mean_ptr + first + group).to(tl.float32)
        rstd = tl.load(rstd_ptr + first + group).to(tl.float32)
        if FORM == "xhat":
            x = x - mean[:, None, None]
        db, dg = plane_sums(dy, dy * x)
        if FORM == "xhat":
            dg = dg * rstd[:, None]
        here = first // ALL // per_row * channels + channel + plane
        put(dbeta_ptr, here, db, None, ATOMIC)
        dg_xhat = dg if FORM == "xhat" else (dg - db * mean[:, None]) * rstd[:, None]
        put(dgamma_ptr, here, dg_xhat, None, ATOMIC)
        if dx_ptr is not None:
            gamma = None if gamma_ptr is None else tl.load(gamma_ptr + channel + plane).to(tl.float32)
            one, two = tl.sum(times(db, gamma), axis=1), tl.sum(times(dg, gamma), axis=1)
            a, b = factors(one, two, mean, rstd, inverse, FORM)
            scale = rstd[:, None, None] if gamma is None else (gamma * rstd[:, None])[:, :, None]
            dx = dy * scale + (x * a[:, None, None] + b[:, None, None])
            tl.store(dx_ptr + at + tile, dx.to(dx_ptr.dtype.element_ty))


@sim.jit
def load_pair(dy_ptr, x_ptr, at, tile, mask, mean, FORM: tl.constexpr):
    """dy, and x - mean or x, of a tile in fp32: rstd is multiplied in where there is less to do, once for a channel."""
    x = tl.load(x_ptr + at + tile, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + at + tile, mask=mask, other=0.0).to(tl.float32)
    return dy, x - mean if FORM == "xhat" else x


@sim.jit
def block_sums(
    dy_ptr, x_ptr, at, begin, stop, alive, mean, rstd, S,
    ROWS: tl.constexpr, COLS: tl.constexpr, FORM: tl.constexpr,
):  # fmt: skip
    """Sums of dy, and of dy * xh or dy * x, over columns [begin, stop) of ROWS channels from element `at` on."""
    col = tl.arange(0, COLS)
    tile = tl.arange(0, ROWS)[:, None] * S + col[None, :]
    db, dg = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32)
    for start in range(begin, stop, COLS):
        mask = alive[:, None] & (col < stop - start)[None, :]
        dy, x = load_pair(dy_ptr, x_ptr, at + start, tile, mask, mean, FORM)
        sums = row_sums_of((dy, dy * x))
        db += sums[0]
        dg += sums[1]
    return db, dg * rstd if FORM == "xhat" else dg


@sim.jit
def write_dx(
    dy_ptr, x_ptr, dx_ptr, at, begin, stop, alive, gamma, mean, rstd, a, b, S,
    ROWS: tl.constexpr, COLS: tl.constexpr, FORM: tl.constexpr,
):  # fmt: skip
    """dx of columns [begin, stop) of ROWS channels from element `at` on."""
    col = tl.arange(0, COLS)
    tile = tl.arange(0, ROWS)[:, None] * S + col[None, :]
    scale = rstd if gamma is None else (gamma * rstd)[:, None]
    for start in range(begin, stop, COLS):
        mask = alive[:, None] & (col < stop - start)[None, :]
        dy, x = load_pair(dy_ptr, x_ptr, at + start, tile, mask, mean, FORM)
        dx = dy * scale + (x * a + b)
        tl.store(dx_ptr + at + start + tile, dx.to(dx_ptr.dtype.element_ty), mask=mask)


@sim.jit
def streamed(
    dy_ptr, x_ptr, mean_ptr, rstd_ptr, gamma_ptr, dx_ptr, dgamma_ptr, dbeta_ptr, tasks, tasks_per_core,
    channels, groups, D, S, inverse, per_row,
    ROWS: tl.constexpr, COLS: tl.constexpr, FORM: tl.constexpr, ATOMIC: tl.constexpr,
):  # fmt: skip
    """Whole groups for every core, in tiles of ROWS channels x COLS: one sweep for the sums, a second one for dx."""
    row = tl.arange(0, ROWS)
    begin = tl.program_id(0) * tasks_per_core
    for task in range(begin, min(begin + tasks_per_core, tasks)):
        mean, rstd = tl.load(mean_ptr + task).to(tl.float32), tl.load(rstd_ptr + task).to(tl.float32)
        channel = task % groups * D
        line = task // groups // per_row * channels + channel
        one, two = 0.0, 0.0
        for first in range(0, D, ROWS):
            alive = row < D - first
            at = (task * D + first) * S
            db, dg = block_sums(dy_ptr, x_ptr, at, 0, S, alive, mean, rstd, S, ROWS, COLS, FORM)
            put(dbeta_ptr, line + first + row, db, alive, ATOMIC)
            dg_xhat = dg if FORM == "xhat" else (dg - db * mean) * rstd
            put(dgamma_ptr, line + first + row, dg_xhat, alive, ATOMIC)
            gamma = load_gamma(gamma_ptr, channel, first, row, alive)
            one += tl.sum(times(db, gamma), axis=0)
            two += tl.sum(times(dg, gamma), axis=0)
        if dx_ptr is not None:
            a, b = factors(one, two, mean, rstd, inverse, FORM)
            for first in range(0, D, ROWS):
                alive = row < D - first
                at = (task * D + first) * S
                gamma = load_gamma(gamma_ptr, channel, first, row, alive)
                write_dx(dy_ptr, x_ptr, dx_ptr, at, 0, S, alive, gamma, mean, rstd, a, b, S, ROWS, COLS, FORM)


@sim.jit
def shared_sums(
    dy_ptr, x_ptr, mean_ptr, rstd_ptr, sums_ptr, units, units_per_core, blocks, parts, span, planes, D, S,
    ROWS: tl.constexpr, COLS: tl.constexpr, FORM: tl.constexpr,
):  # fmt: skip
    """Sums of channels, shared finely: a unit is ROWS channels of a group (one of `blocks`) and one of `parts` spans of S.

    Every core has units that follow each other. sums_ptr (2, parts * N, C): dy, then dy * xh; `planes` = N * C.
    """
    row = tl.arange(0, ROWS)
    begin = tl.program_id(0) * units_per_core
    last = min(begin + units_per_core, units)
    per_task = blocks * parts
    for task in range(begin // per_task, (last + per_task - 1) // per_task):
        mean, rstd = tl.load(mean_ptr + task).to(tl.float32), tl.load(rstd_ptr + task).to(tl.float32)
        for unit in range(max(begin, task * per_task), min(last, task * per_task + per_task)):
            first, part = unit % per_task // parts * ROWS, unit % parts
            alive = row < D - first
            at, stop = (task * D + first) * S, min(part * span + span, S)
            db, dg = block_sums(dy_ptr, x_ptr, at, part * span, stop, alive, mean, rstd, S, ROWS, COLS, FORM)
            if FORM == "sums":
                dg = (dg - db * mean) * rstd
            here = sums_ptr + part * planes + task * D + first + row
            tl.store(here, db, mask=alive)
            tl.store(here + parts * planes, dg, mask=alive)


@sim.jit
def group_sums(
    sums_ptr, gamma_ptr, channel, planes, PARTS: tl.constexpr, D: tl.constexpr, WIDTH: tl.constexpr
):
    """Gamma-weighted sums of dy and of dy * xh over the D channels of a group; strips of WIDTH where D is longer.

    sums_ptr: sums of its first channel, which is `channel` of gamma, by part; those of dy * xh are PARTS * planes behind.
    """
    channel_of = tl.arange(0, min(WIDTH, D))
    here = sums_ptr + tl.arange(0, PARTS)[:, None] * planes + channel_of[None, :]
    if WIDTH >= D:
        db = tl.sum(tl.load(here), axis=0)
        dg = tl.sum(tl.load(here + PARTS * planes), axis=0)
        weights = None if gamma_ptr is None else tl.load(gamma_ptr + channel + channel_of).to(tl.float32)
        return tl.sum(times(db, weights), axis=0), tl.sum(times(dg, weights), axis=0)
    one, two = 0.0, 0.0
    for first in range(0, D, WIDTH):
        alive = channel_of < D - first
        db = tl.sum(tl.load(here + first, mask=alive[None, :], other=0.0), axis=0)
        dg = tl.sum(tl.load(here + PARTS * planes + first, mask=alive[None, :], other=0.0), axis=0)
        weights = load_gamma(gamma_ptr, channel, first, channel_of, alive)
        one += tl.sum(times(db, weights), axis=0)
        two += tl.sum(times(dg, weights), axis=0)
    return one, two


@sim.jit
def shared_dx(
    dy_ptr, x_ptr, mean_ptr, rstd_ptr, gamma_ptr, sums_ptr, dx_ptr, units, units_per_core, blocks, parts,
    span, planes, groups, S, inverse,
    PARTS: tl.constexpr, D: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """dx with units as in shared_sums; every core adds up the sums of the groups that it has a part of, which are few."""
    row = tl.arange(0, ROWS)
    begin = tl.program_id(0) * units_per_core
    last = min(begin + units_per_core, units)
    per_task = blocks * parts
    for task in range(begin // per_task, (last + per_task - 1) // per_task):
        mean, rstd = tl.load(mean_ptr + task).to(tl.float32), tl.load(rstd_ptr + task).to(tl.float32)
        channel = task % groups * D
        one, two = group_sums(sums_ptr + task * D, gamma_ptr, channel, planes, PARTS, D, WIDTH)
        a, b = factors(one, two, mean, rstd, inverse, "xhat")
        for unit in range(max(begin, task * per_task), min(last, task * per_task + per_task)):
            first, part = unit % per_task // parts * ROWS, unit % parts
            alive = row < D - first
            gamma = load_gamma(gamma_ptr, channel, first, row, alive)
            at, stop = (task * D + first) * S, min(part * span + span, S)
            write_dx(
                dy_ptr, x_ptr, dx_ptr, at, part * span, stop, alive, gamma, mean, rstd, a, b, S, ROWS, COLS, "xhat"
            )  # fmt: skip


@sim.jit
def vectors(
    dy_ptr, x_ptr, mean_ptr, rstd_ptr, gamma_ptr, dx_ptr, dgamma_ptr, dbeta_ptr, samples, samples_per_part,
    parts, blocks_per_core, channels, inverse,
    ALL: tl.constexpr, GROUPS: tl.constexpr, SAMPLES: tl.constexpr, D: tl.constexpr, ATOMIC: tl.constexpr,
):  # fmt: skip
    """S = 1: tiles of SAMPLES x GROUPS groups x D channels. Program `part` of `parts` has samples_per_part samples and
    blocks_per_core blocks of GROUPS groups; it writes row `part` of dgamma and dbeta, or adds to row 0 (ATOMIC)."""
    part = tl.program_id(0) % parts
    begin = part * samples_per_part
    stop = min(begin + samples_per_part, samples)
    sample, group = tl.arange(0, SAMPLES)[:, None], tl.arange(0, GROUPS)[None, :]
    plane = tl.arange(0, GROUPS)[:, None] * D + tl.arange(0, D)[None, :]
    tile = sample[:, :, None] * channels + plane[None, :, :]
    own = tl.program_id(0) // parts * blocks_per_core * GROUPS
    for first in range(own, min(own + blocks_per_core * GROUPS, ALL), GROUPS):
        gamma = None
        if gamma_ptr is not None:
            gamma = tl.load(gamma_ptr + first * D + plane).to(tl.float32)[None, :, :]
        db, dg = tl.zeros((GROUPS, D), tl.float32), tl.zeros((GROUPS, D), tl.float32)
        for n in range(begin, stop, SAMPLES):
            alive = sample < stop - n
            at = n * channels + first * D
            mask = alive[:, :, None]
            x = tl.load(x_ptr + at + tile, mask=mask, other=0.0).to(tl.float32)
            dy = tl.load(dy_ptr + at + tile, mask=mask, other=0.0).to(tl.float32)
            of_group = n * ALL + first + sample * ALL + group
            mean = tl.load(mean_ptr + of_group, mask=alive, other=0.0).to(tl.float32)[:, :, None]
            rstd = tl.load(rstd_ptr + of_group, mask=alive, other=0.0).to(tl.float32)[:, :, None]
            xh = x * rstd + (-mean * rstd)
            part_dg = dy * xh
            db += tl.sum(dy, axis=0)
            dg += tl.sum(part_dg, axis=0)
            if dx_ptr is not None:
                weighted = times(dy, gamma)
                one, two = tl.sum(weighted, axis=2), tl.sum(times(part_dg, gamma), axis=2)
                dx = (weighted - (xh * (two * inverse)[:, :, None] + (one * inverse)[:, :, None])) * rstd
                tl.store(dx_ptr + at + tile, dx.to(dx_ptr.dtype.element_ty), mask=mask)
        line = (0 if ATOMIC else part) * channels + first * D + plane
        put(dbeta_ptr, line, db, None, ATOMIC)
        put(dgamma_ptr, line, dg, None, ATOMIC)


@sim.jit
def sum_rows(
    dgamma_ptr, dbeta_ptr, dgamma_out, dbeta_out, rows, channels, ROWS: tl.constexpr, COLS: tl.constexpr
):
    """Sums over the rows of dgamma and dbeta (rows, C) fp32 in tiles of ROWS, then by halving; chunks of COLS in turn."""
    row, col = tl.arange(0, ROWS)[:, None], tl.arange(0, COLS)[None, :]
    for first in range(tl.program_id(0) * COLS, channels, tl.num_programs(0) * COLS):
        dg, db = tl.zeros((ROWS, COLS), tl.float32), tl.zeros((ROWS, COLS), tl.float32)
        for begin in range(0, rows, ROWS):
            mask = (row < rows - begin) & (col < channels - first)
            at = (begin + row) * channels + first + col
            if dgamma_out is not None:
                dg += tl.load(dgamma_ptr + at, mask=mask, other=0.0)
            if dbeta_out is not None:
                db += tl.load(dbeta_ptr + at, mask=mask, other=0.0)
        at, inside = first + tl.arange(0, COLS), tl.arange(0, COLS) < channels - first
        put(dgamma_out, at, tl.sum(dg, axis=0), inside, False)
        put(dbeta_out, at, tl.sum(db, axis=0), inside, False)

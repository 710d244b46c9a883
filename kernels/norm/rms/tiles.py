# mypy: disable-error-code="no-untyped-def, assignment, misc, var-annotated, operator, index"
"""Tile kernels of RmsNormGrad; the mathematics is in op.py."""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.language.extra.cann import extension as al
from ...shared.sums import column_sums, row_sums


@sim.jit
def chunk_mask(begin, alive, LENGTH: tl.constexpr, COLS: tl.constexpr):
    """Mask of a chunk of a row, or of rows of which some are alive; None where nothing is left out."""
    inside = tl.arange(0, COLS) < LENGTH - begin
    if alive is None:
        return None if begin + COLS <= LENGTH else inside
    return alive if begin + COLS <= LENGTH else alive & inside[None, :]


@sim.jit
def load_chunk(ptr, begin, offsets, alive, LENGTH: tl.constexpr, COLS: tl.constexpr):
    """The chunk of columns from `begin` on; zeros beyond the row."""
    if alive is None and begin + COLS <= LENGTH:
        return tl.load(ptr + begin + offsets)
    return tl.load(ptr + begin + offsets, mask=chunk_mask(begin, alive, LENGTH, COLS), other=0.0)


@sim.jit
def store_chunk(ptr, x, begin, offsets, alive, LENGTH: tl.constexpr, COLS: tl.constexpr):
    """As load_chunk."""
    tl.store(ptr + begin + offsets, x, mask=chunk_mask(begin, alive, LENGTH, COLS))


@sim.jit
def products(dys, xs, gammas, rstd):
    """x, s, t and t * x of several chunks, one operation on all of them after the other."""
    d, x, s, t, weighted = (), (), (), (), ()
    for i in tl.static_range(len(xs)):
        d += (dys[i].to(tl.float32),)
        x += (xs[i].to(tl.float32),)
    for i in tl.static_range(len(xs)):
        s += (d[i] * rstd,)
    for i in tl.static_range(len(xs)):
        t += (s[i] * gammas[i][None, :],)
    for i in tl.static_range(len(xs)):
        weighted += (t[i] * x[i],)
    return x, s, t, weighted


@sim.jit
def add_part(total, part, ptr, first, begin, offsets, alive, LENGTH: tl.constexpr, COLS: tl.constexpr):
    """(total[0] + the sum over the rows of `part`,); with a `ptr` the part goes there, from row `first` on: then ()."""
    if ptr is None:
        return (total[0] + column_sums(part),)
    at = ptr + first * LENGTH
    store_chunk(at, part.to(ptr.dtype.element_ty), begin, offsets, alive, LENGTH, COLS)
    return ()


@sim.jit
def row_factor(c, step: tl.constexpr, rstd, LENGTH: tl.constexpr):
    """The sum of a row on its way to sum / LENGTH * rstd ** 2: one step of three."""
    if step == 0:
        return c * (1.0 / LENGTH)
    if step == 1:
        return c[:, None] * rstd
    return c * rstd if step == 2 else c


@sim.jit
def kept_row(
    dy_ptr, x_ptr, rstd_ptr, gamma_ptr, dx_ptr, dgamma_ptr, parts_ptr, row_count, rows_per_core,
    SIZES: tl.constexpr, ROWS: tl.constexpr, TWO_PHASE: tl.constexpr, OUT_COPIES: tl.constexpr,
    TOGETHER: tl.constexpr,
):  # fmt: skip
    """dx of a core's rows, and its part of dgamma: added to dgamma, or row `pid` of a workspace. dy and x are read once.

    parts_ptr not None: what is to be added up for dgamma goes there, in its type, and nothing is added here.
    SIZES: columns of a row and of a chunk, together, since not every pair makes sense: each chunk is code of its own.
    Rows stay in UB in chunks of COLS columns, loaded one by one, so that the next rows come in while these are computed on.
    With s = dy * rstd and t = s * gamma, dx = t - x * (mean(t * x) * rstd ** 2) and dgamma = sum(s * x): one operation
    less than with xh = x * rstd (rstd ** 2 holds while x stays below 1e18).
    Operations that do not need each other's result alternate, between TOGETHER chunks too, since the Vector unit hides no
    latency between two that do: what dgamma takes of the last chunks comes while each row's mean becomes c.
    """
    LENGTH: tl.constexpr = SIZES[0]
    COLS: tl.constexpr = SIZES[1]
    pid = tl.program_id(0)
    stop = min(pid * rows_per_core + rows_per_core, row_count)
    cols, row = tl.arange(0, COLS), tl.arange(0, ROWS)[:, None]
    tile = row * LENGTH + cols[None, :]
    gammas, sums = (), ()
    for begin in tl.static_range(0, LENGTH, COLS):
        gammas += (load_chunk(gamma_ptr, begin, cols, None, LENGTH, COLS).to(tl.float32),)
        if parts_ptr is None:
            sums += (tl.zeros((COLS,), tl.float32),)
    for first in range(pid * rows_per_core, stop, ROWS):
        alive = row < stop - first
        rstd = tl.load(rstd_ptr + first + row, mask=alive, other=0.0)
        dys, xs, ts, added = (), (), (), ()
        for begin in tl.static_range(0, LENGTH, COLS):
            dys += (load_chunk(dy_ptr + first * LENGTH, begin, tile, alive, LENGTH, COLS),)
            xs += (load_chunk(x_ptr + first * LENGTH, begin, tile, alive, LENGTH, COLS),)
        kept, total = (), ()
        for k in tl.static_range(0, len(xs), TOGETHER):
            x, s, t, weighted = products(dys[k : k + TOGETHER], xs[k : k + TOGETHER], gammas[k:], rstd)
            kept += x
            ts += t
            parts = ()
            for i in tl.static_range(len(x)):
                total = (weighted[i] if len(total) == 0 else total[0] + weighted[i],)
                if k + len(x) < len(xs):
                    parts += (s[i] * x[i],)
            for i in tl.static_range(k, k + len(parts)):
                part, begin = parts[i - k], i * COLS
                added += add_part(sums[i:], part, parts_ptr, first, begin, tile, alive, LENGTH, COLS)
        c = row_sums(total[0])
        for step in tl.static_range(max(3, 2 * len(x))):
            i = len(xs) - len(x) + step % len(x)
            if step < len(x):
                parts += (s[step] * x[step],)
            elif step < 2 * len(x):
                part, begin = parts[step - len(x)], i * COLS
                added += add_part(sums[i:], part, parts_ptr, first, begin, tile, alive, LENGTH, COLS)
            c = row_factor(c, step, rstd, LENGTH)
        sums = added
        for k in tl.static_range(0, len(xs), TOGETHER):
            last = min(k + TOGETHER, len(xs))
            scaled, found = (), ()
            for i in tl.static_range(k, last):
                scaled += (kept[i] * c,)
            for i in tl.static_range(k, last):
                found += (ts[i] - scaled[i - k],)
            for i in tl.static_range(k, last):
                dx = found[i - k].to(dx_ptr.dtype.element_ty)
                if OUT_COPIES > 1:
                    al.multibuffer(dx, OUT_COPIES)
                store_chunk(dx_ptr + first * LENGTH, dx, i * COLS, tile, alive, LENGTH, COLS)
    for i in tl.static_range(len(sums)):
        if TWO_PHASE:
            store_chunk(dgamma_ptr + pid * LENGTH, sums[i], i * COLS, cols, None, LENGTH, COLS)
        else:
            inside = cols < LENGTH - i * COLS
            tl.atomic_add(dgamma_ptr + i * COLS + cols, sums[i], mask=inside if LENGTH % COLS else None)


@sim.jit
def split_row(
    dy_ptr, x_ptr, rstd_ptr, gamma_ptr, dx_ptr, dgamma_ptr, parts_ptr, row_count, row_length,
    inverse_length, rows_per_core, part_stride,
    ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """As kept_row, but dy and x are read again for dx. Core `pid` adds to dgamma + pid * part_stride (0: all to one)."""
    pid = tl.program_id(0)
    stop = min(pid * rows_per_core + rows_per_core, row_count)
    row, col = tl.arange(0, ROWS)[:, None], tl.arange(0, COLS)
    tile = row * row_length + col[None, :]
    part_ptr = dgamma_ptr + pid * part_stride
    for first in range(pid * rows_per_core, stop, ROWS):
        alive = row < stop - first
        rstd = tl.load(rstd_ptr + first + row, mask=alive, other=0.0)
        c = tl.zeros((ROWS,), tl.float32)
        for begin in range(0, row_length, COLS):
            inside = col < row_length - begin
            mask = alive & inside[None, :]
            at = first * row_length + begin
            dy = tl.load(dy_ptr + at + tile, mask=mask, other=0.0).to(tl.float32)
            s = dy * rstd
            x = tl.load(x_ptr + at + tile, mask=mask, other=0.0).to(tl.float32)
            gamma = tl.load(gamma_ptr + begin + col, mask=inside, other=0.0).to(tl.float32)
            part = s * x
            if parts_ptr is None:
                tl.atomic_add(part_ptr + begin + col, column_sums(part), mask=inside)
            else:
                tl.store(parts_ptr + at + tile, part.to(parts_ptr.dtype.element_ty), mask=mask)
            t = s * gamma[None, :]
            c += row_sums(t * x)
        c = (c * inverse_length)[:, None] * rstd * rstd
        for begin in range(0, row_length, COLS):
            inside = col < row_length - begin
            mask = alive & inside[None, :]
            at = first * row_length + begin
            x = tl.load(x_ptr + at + tile, mask=mask, other=0.0).to(tl.float32)
            dy = tl.load(dy_ptr + at + tile, mask=mask, other=0.0).to(tl.float32)
            gamma = tl.load(gamma_ptr + begin + col, mask=inside, other=0.0).to(tl.float32)
            s = dy * rstd
            scaled = x * c
            dx = s * gamma[None, :] - scaled
            tl.store(dx_ptr + at + tile, dx.to(dx_ptr.dtype.element_ty), mask=mask)


@sim.jit
def full_row_vendor(
    dy_ptr, x_ptr, rstd_ptr, gamma_ptr, dx_ptr, dgamma_ptr, row_count, rows_per_core,
    ROWS: tl.constexpr, COLS: tl.constexpr, TWO_PHASE: tl.constexpr,
):  # fmt: skip
    """As kept_row for rows of one chunk, by the vendor's steps: xh = x * rstd first, the row's factor rstd at the end."""
    pid = tl.program_id(0)
    stop = min(pid * rows_per_core + rows_per_core, row_count)
    cols = tl.arange(0, COLS)
    row = tl.arange(0, ROWS)[:, None]
    tile = row * COLS + cols[None, :]
    gamma = tl.load(gamma_ptr + cols).to(tl.float32)
    dgamma = tl.zeros((COLS,), tl.float32)
    for first in range(pid * rows_per_core, stop, ROWS):
        alive = row < stop - first
        at = first * COLS
        rstd = tl.load(rstd_ptr + first + row, mask=alive, other=0.0)
        x = tl.load(x_ptr + at + tile, mask=alive, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + at + tile, mask=alive, other=0.0).to(tl.float32)
        xh = x * rstd
        t = dy * gamma[None, :]
        part = dy * xh
        weighted = t * xh
        dgamma += column_sums(part)
        c = row_sums(weighted) * (1.0 / COLS)
        dx = (t - xh * c[:, None]) * rstd
        tl.store(dx_ptr + at + tile, dx.to(dx_ptr.dtype.element_ty), mask=alive)
    if TWO_PHASE:
        tl.store(dgamma_ptr + pid * COLS + cols, dgamma)
    else:
        tl.atomic_add(dgamma_ptr + cols, dgamma)


@sim.jit
def split_row_vendor(
    dy_ptr, x_ptr, rstd_ptr, gamma_ptr, dx_ptr, dgamma_ptr, row_count, row_length, inverse_length,
    rows_per_core, part_stride,
    ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """As split_row, a row at a time in blocks of ROWS: gamma and dgamma of a chunk serve all rows of a block."""
    pid = tl.program_id(0)
    stop = min(pid * rows_per_core + rows_per_core, row_count)
    col, place = tl.arange(0, COLS), tl.arange(0, ROWS).to(tl.float32)
    part_ptr = dgamma_ptr + pid * part_stride
    for first in range(pid * rows_per_core, stop, ROWS):
        c = tl.zeros((ROWS,), tl.float32)
        for begin in range(0, row_length, COLS):
            inside = col < row_length - begin
            gamma = tl.load(gamma_ptr + begin + col, mask=inside, other=0.0).to(tl.float32)
            dgamma = tl.zeros((COLS,), tl.float32)
            for row in range(first, min(first + ROWS, stop)):
                at = row * row_length + begin + col
                xh = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32) * tl.load(rstd_ptr + row)
                dy = tl.load(dy_ptr + at, mask=inside, other=0.0).to(tl.float32)
                dgamma += dy * xh
                weighted = row_sums(tl.reshape(dy * gamma * xh, (1, COLS)))
                c += tl.where(place == row - first, weighted, 0.0)
            tl.atomic_add(part_ptr + begin + col, dgamma, mask=inside)
        c = c * inverse_length
        for begin in range(0, row_length, COLS):
            inside = col < row_length - begin
            gamma = tl.load(gamma_ptr + begin + col, mask=inside, other=0.0).to(tl.float32)
            for row in range(first, min(first + ROWS, stop)):
                at = row * row_length + begin + col
                rstd = tl.load(rstd_ptr + row)
                xh = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32) * rstd
                dy = tl.load(dy_ptr + at, mask=inside, other=0.0).to(tl.float32)
                own = tl.sum(tl.where(place == row - first, c, 0.0), axis=0)
                dx = (dy * gamma - xh * own) * rstd
                tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=inside)

# mypy: disable-error-code="no-untyped-def"
"""RmsNormGrad on a grid of cores, rows by groups of columns: for fewer long rows than cores.

A row's sum then crosses cores: one launch makes it for each group of columns, and dgamma; a second one adds the parts of the
rows that a core has and makes dx. dy and x are read twice, the second time mostly from L2.
"""

from __future__ import annotations

from typing import Any

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.precision.dtypes import float32
from ...operator.layout import even_part, up
from ...operator.plan import PlanContext, Step, bank_switches
from ...operator.tensors import Knobs, Tensor, Tensors, dtype_of
from ...shared.sums import REPEAT, column_sums, row_sums, sum_partials_step, zero_fill_step
from .choice import SPLIT_COLUMNS, split_row_bytes

LEAST_COLUMNS = 1024  # of a group: fewer are not worth a core


@sim.jit
def grid_sums(
    dy_ptr, x_ptr, rstd_ptr, gamma_ptr, dgamma_ptr, means_ptr, row_count, row_length, rows_per_core,
    cols_per_core, groups, part_stride,
    ROWS: tl.constexpr, COLS: tl.constexpr, ATOMIC: tl.constexpr,
):  # fmt: skip
    """means (groups, rows): sums of t * x over a group of columns; dgamma + part_stride * (number of a core's rows)."""
    group, block = tl.program_id(0) % groups, tl.program_id(0) // groups
    stop = min(block * rows_per_core + rows_per_core, row_count)
    last = min(group * cols_per_core + cols_per_core, row_length)
    row, col = tl.arange(0, ROWS)[:, None], tl.arange(0, COLS)
    tile = row * row_length + col[None, :]
    for first in range(block * rows_per_core, stop, ROWS):
        alive = row < stop - first
        rstd = tl.load(rstd_ptr + first + row, mask=alive, other=0.0)
        c = tl.zeros((ROWS,), tl.float32)
        for begin in range(group * cols_per_core, last, COLS):
            inside = col < last - begin
            mask, at = alive & inside[None, :], first * row_length + begin
            dy = tl.load(dy_ptr + at + tile, mask=mask, other=0.0).to(tl.float32)
            s = dy * rstd
            x = tl.load(x_ptr + at + tile, mask=mask, other=0.0).to(tl.float32)
            gamma = tl.load(gamma_ptr + begin + col, mask=inside, other=0.0).to(tl.float32)
            part, target = column_sums(s * x), dgamma_ptr + block * part_stride + begin + col
            if ATOMIC:
                tl.atomic_add(target, part, mask=inside)
            else:
                tl.store(target, part, mask=inside)
            c += row_sums(s * gamma[None, :] * x)
        tl.store(
            means_ptr + group * row_count + first + tl.arange(0, ROWS),
            c,
            mask=tl.arange(0, ROWS) < stop - first,
        )


@sim.jit
def grid_dx(
    dy_ptr, x_ptr, rstd_ptr, gamma_ptr, means_ptr, dx_ptr, row_count, row_length, rows_per_core,
    cols_per_core, inverse_length,
    GROUPS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """dx of a core's rows and columns, from what grid_sums wrote."""
    group, block = tl.program_id(0) % GROUPS, tl.program_id(0) // GROUPS
    stop = min(block * rows_per_core + rows_per_core, row_count)
    last = min(group * cols_per_core + cols_per_core, row_length)
    row, col = tl.arange(0, ROWS)[:, None], tl.arange(0, COLS)
    tile = row * row_length + col[None, :]
    means = tl.arange(0, GROUPS)[:, None] * row_count + tl.arange(0, ROWS)[None, :]
    for first in range(block * rows_per_core, stop, ROWS):
        alive, living = row < stop - first, (tl.arange(0, ROWS) < stop - first)[None, :]
        rstd = tl.load(rstd_ptr + first + row, mask=alive, other=0.0)
        c = tl.sum(tl.load(means_ptr + first + means, mask=living, other=0.0), axis=0)
        c = (c * inverse_length)[:, None] * rstd * rstd
        for begin in range(group * cols_per_core, last, COLS):
            inside = col < last - begin
            mask, at = alive & inside[None, :], first * row_length + begin
            dy = tl.load(dy_ptr + at + tile, mask=mask, other=0.0).to(tl.float32)
            s = dy * rstd
            x = tl.load(x_ptr + at + tile, mask=mask, other=0.0).to(tl.float32)
            gamma = tl.load(gamma_ptr + begin + col, mask=inside, other=0.0).to(tl.float32)
            dx = s * gamma[None, :] - x * c
            tl.store(dx_ptr + at + tile, dx.to(dx_ptr.dtype.element_ty), mask=mask)


# -- tiling and launches ---------------------------------------------------------------------------------------------


def grid_tiling(x: Tensor, gamma: Tensor, knobs: Knobs, context: PlanContext) -> dict[str, Any]:
    """groups: so many groups of columns that all cores have something; rows and columns of a tile by what fits in UB."""
    count, length = x.size // gamma.size, gamma.size
    cores, itemsize = context.cores(knobs["cores"]), dtype_of(x).itemsize
    most = max(1, min(cores, -(-length // LEAST_COLUMNS)))
    groups = min(knobs["groups"] or max(1, min(most, cores // count)), cores, -(-length // REPEAT))
    per_core = up(-(-length // groups), REPEAT)
    groups = -(-length // per_core)
    share = -(-count // min(count, cores // groups))
    buffers = knobs["buffers"] or 2
    cols = min(per_core, up(knobs["cols"] or even_part(per_core, SPLIT_COLUMNS[-1]), REPEAT))
    fit = context.ub_bytes // split_row_bytes(cols, 1, itemsize, buffers)
    rows = min(share, knobs["rows"] or max(1, fit))
    used = groups * -(-count // share)
    combine = "two_phase" if knobs["combine"] == "two_phase" else "atomic"
    tile = {
        "rows": rows,
        "cols": cols,
        "groups": groups,
        "cores": used,
        "buffers": buffers,
        "combine": combine,
    }
    return {**knobs, **tile, "strategy": "grid"}


def grid_steps(
    tensors: Tensors, dx: Tensor, dgamma: Tensor, tiling: Knobs, context: PlanContext
) -> list[Step]:
    """The launches: dgamma cleared or its parts, the sums, dx, and the sum of the parts."""
    x, length, groups = tensors["x"], dgamma.size, tiling["groups"]
    count, cores = x.size // length, context.product.vector_cores
    blocks = tiling["cores"] // groups
    share = -(-count // blocks)
    means = context.tensor((groups, count), float32)
    iterations = -(-share // tiling["rows"])
    parts = tiling["combine"] == "two_phase" and blocks > 1
    target = context.tensor((blocks, length), float32) if parts else dgamma
    atomic = iterations > 1 or (blocks > 1 and not parts)
    common = {
        **{f"{n}_ptr": t for n, t in tensors.items()},
        **{"means_ptr": means, "row_count": count, "row_length": length, "rows_per_core": share},
        **{"cols_per_core": up(-(-length // groups), REPEAT), "ROWS": tiling["rows"], "COLS": tiling["cols"]},
        "multibuffer": tiling["buffers"],
    }
    apart = bank_switches(tiling)
    sums = {"dgamma_ptr": target, "groups": groups, "part_stride": length if parts else 0, "ATOMIC": atomic}
    own = {"dx_ptr": dx, "inverse_length": 1.0 / length, "GROUPS": groups}
    fits_l2 = 2 * x.size * dtype_of(x).itemsize <= context.product.number("l2.size")
    warm = {"l2": {"dy": "warm", "x": "warm", "*": "cold"}} if fits_l2 else {}
    steps = [zero_fill_step(target, cores)] if atomic else []
    steps.append(Step(grid_sums, tiling["cores"], {**common, **sums}, apart))
    steps.append(Step(grid_dx, tiling["cores"], {**common, **own}, {**apart, **warm}))
    if parts:
        steps.append(sum_partials_step(target, dgamma, cores, tiling["buffers"]))
    return steps

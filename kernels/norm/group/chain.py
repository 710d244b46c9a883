# mypy: disable-error-code="no-untyped-def"
"""What the vendor's library launches for GroupNormBackward on the 910A, which has no kernel of its own for it.

hicann/ops-nn, norm/group_norm_grad/op_host/op_api: dy * gamma is written out; seen as (1, N * G, m) with the variance
1 / rstd ** 2 - 1e-5, two kernels of batch norm's training make dx (BNTrainingUpdateGrad, BNTrainingReduceGrad, statistics
in FP32, epsilon 1e-5); dgamma goes through Expand, Sub, Mul and two ReduceSums in the type of the inputs, dbeta through
two ReduceSums. So dgamma of float16 is rounded at every step, and small variances suffer from the difference. How many
launches of Expand and Mul there are is not told: one for each operand is assumed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.precision.dtypes import float32
from ...operator.layout import even_part, up
from ...operator.plan import PlanContext, Step
from ...operator.tensors import Knobs, Tensor, dtype_of, reshaped
from ...shared.broadcasting import broadcast_step
from ...shared.casts import converted
from ...shared.sums import row_sums
from ..planes import Planes
from .choice import GroupTensors

EPSILON = 1e-5  # of batch norm's kernels
TILE = 4096  # elements
COPIES = 2


@sim.jit
def recovered_variance(rstd_ptr, out_ptr, n, epsilon, BLOCK: tl.constexpr):
    """1 / rstd ** 2 - epsilon of n groups."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    rstd = tl.load(rstd_ptr + at, mask=at < n, other=1.0)
    tl.store(out_ptr + at, 1.0 / (rstd * rstd) - epsilon, mask=at < n)


@sim.jit
def times_channel(x_ptr, gamma_ptr, out_ptr, planes, channels, S, ROWS: tl.constexpr, COLS: tl.constexpr):
    """out = x * gamma of the channel, (planes, S) with planes = samples * channels; ROWS divides channels."""
    row, col = tl.arange(0, ROWS), tl.arange(0, COLS)
    tile = row[:, None] * S + col[None, :]
    for first in range(tl.program_id(0) * ROWS, planes, tl.num_programs(0) * ROWS):
        gamma = tl.load(gamma_ptr + first % channels + row)[:, None]
        for begin in range(0, S, COLS):
            mask = (col < S - begin)[None, :]
            x = tl.load(x_ptr + first * S + begin + tile, mask=mask, other=0.0)
            tl.store(out_ptr + first * S + begin + tile, x * gamma, mask=mask)


@sim.jit
def combined(x_ptr, y_ptr, out_ptr, n, DIFFERENCE: tl.constexpr, BLOCK: tl.constexpr):
    """out = x - y or x * y, n elements, in their own type."""
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = first + tl.arange(0, BLOCK)
        x, y = tl.load(x_ptr + at, mask=at < n, other=0.0), tl.load(y_ptr + at, mask=at < n, other=0.0)
        tl.store(out_ptr + at, x - y if DIFFERENCE else x * y, mask=at < n)


@sim.jit
def bn_training_update_grad(
    t_ptr, x_ptr, mean_ptr, variance_ptr, scale_ptr, offset_ptr, tasks, length, epsilon, COLS: tl.constexpr
):
    """Of each group: sum(t * (x - mean) / sqrt(variance + epsilon)) and sum(t), in FP32."""
    col = tl.arange(0, COLS)
    for task in range(tl.program_id(0), tasks, tl.num_programs(0)):
        mean = tl.load(mean_ptr + task)
        inverse = 1.0 / tl.sqrt(tl.load(variance_ptr + task) + epsilon)
        scale, offset = tl.zeros((1, COLS), tl.float32), tl.zeros((1, COLS), tl.float32)
        for begin in range(0, length, COLS):
            at, mask = task * length + begin + col[None, :], (col < length - begin)[None, :]
            t = tl.load(t_ptr + at, mask=mask, other=0.0).to(tl.float32)
            x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
            scale += t * ((x - mean) * inverse)
            offset += t
        tl.store(scale_ptr + task + tl.arange(0, 1), row_sums(scale))
        tl.store(offset_ptr + task + tl.arange(0, 1), row_sums(offset))


@sim.jit
def bn_training_reduce_grad(
    t_ptr, x_ptr, mean_ptr, variance_ptr, scale_ptr, offset_ptr, dx_ptr, tasks, length, share,
    inverse_length, epsilon,
    COLS: tl.constexpr,
):  # fmt: skip
    """dx = (t - mean(t) - xh * mean(t * xh)) / sqrt(variance + epsilon); programs take `share` columns in turn."""
    col = tl.arange(0, COLS)
    pieces = (length + share - 1) // share
    for item in range(tl.program_id(0), tasks * pieces, tl.num_programs(0)):
        task, start = item // pieces, item % pieces * share
        mean = tl.load(mean_ptr + task)
        inverse = 1.0 / tl.sqrt(tl.load(variance_ptr + task) + epsilon)
        scale, offset = (
            tl.load(scale_ptr + task) * inverse_length,
            tl.load(offset_ptr + task) * inverse_length,
        )
        for begin in range(start, min(start + share, length), COLS):
            at, mask = task * length + begin + col, col < length - begin
            t = tl.load(t_ptr + at, mask=mask, other=0.0).to(tl.float32)
            x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
            dx = (t - offset - (x - mean) * inverse * scale) * inverse
            tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=mask)


@sim.jit
def reduce_last(x_ptr, out_ptr, rows, length, ROWS: tl.constexpr, COLS: tl.constexpr):
    """out (rows,) = sums of x (rows, length), added in FP32, in the type of out."""
    row, col = tl.arange(0, ROWS), tl.arange(0, COLS)
    for first in range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS):
        alive, sums = row < rows - first, tl.zeros((ROWS,), tl.float32)
        for begin in range(0, length, COLS):
            mask = alive[:, None] & (col < length - begin)[None, :]
            at = (first + row)[:, None] * length + begin + col[None, :]
            sums += row_sums(tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32))
        tl.store(out_ptr + first + row, sums.to(out_ptr.dtype.element_ty), mask=alive)


@sim.jit
def reduce_first(x_ptr, out_ptr, rows, length, COLS: tl.constexpr):
    """out (length,) = sums of x (rows, length), added in FP32, in the type of out."""
    col = tl.arange(0, COLS)
    for first in range(tl.program_id(0) * COLS, length, tl.num_programs(0) * COLS):
        mask, sums = col < length - first, tl.zeros((COLS,), tl.float32)
        for n in range(0, rows):
            sums += tl.load(x_ptr + n * length + first + col, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + first + col, sums.to(out_ptr.dtype.element_ty), mask=mask)


# -- launches --------------------------------------------------------------------------------------------------------


def chain_tiling(view: Planes, knobs: Knobs, cores: int) -> dict[str, Any]:
    """The knobs that stand for the chain, whose kernels have tiles of their own."""
    return {
        **{**knobs, "strategy": "vendor", "groups": 1, "rows": 1, "cols": min(TILE, view.depth * view.space)},
        **{"parts": 1, "cores": cores, "combine": "two_phase", "form": "xhat", "buffers": COPIES},
        "banks": "packed",
    }


def chain_steps(given: GroupTensors, view: Planes, context: PlanContext) -> list[Step]:
    """The launches for the outputs that are wanted."""
    steps: list[Step] = []
    if given.dx is not None:
        _of_dx(given, view, context, steps)
    if given.dgamma is not None:
        product = _normalised_times_dy(given, view, context, steps)
        _two_sums(product, given.dgamma, view, context, steps)
    if given.dbeta is not None:
        _two_sums(given.dy, given.dbeta, view, context, steps)
    return [replace(step, switches={**step.switches, "banks_apart": False}) for step in steps]


def _of_dx(given: GroupTensors, view: Planes, context: PlanContext, steps: list[Step]) -> None:
    cores, dtype, length = context.product.vector_cores, dtype_of(given.x), view.depth * view.space
    t = given.dy
    if given.gamma is not None:
        t = context.tensor(given.dy.shape, dtype)
        cols = even_part(view.space, TILE)
        rows = even_part_of(view.channels, max(1, TILE // up(cols, 16)))
        tile = {"planes": view.samples * view.channels, "channels": view.channels, "S": view.space}
        step = {**tile, "x_ptr": given.dy, "gamma_ptr": given.gamma, "out_ptr": t, "ROWS": rows, "COLS": cols}
        grid = min(cores, view.samples * view.channels // rows)
        steps.append(Step(times_channel, grid, {**step, "multibuffer": COPIES}))
    mean, rstd = (converted(x, float32, context, steps, COPIES) for x in (given.mean, given.rstd))
    variance, scale, offset = (context.tensor((view.tasks,), float32) for _ in range(3))
    block = min(TILE, up(view.tasks, 16))
    own = {"rstd_ptr": rstd, "out_ptr": variance, "n": view.tasks, "epsilon": EPSILON, "BLOCK": block}
    steps.append(Step(recovered_variance, -(-view.tasks // block), own))
    cols = up(even_part(length, TILE), 16)
    common = {
        **{"t_ptr": t, "x_ptr": given.x, "mean_ptr": mean, "variance_ptr": variance, "scale_ptr": scale},
        **{"offset_ptr": offset, "tasks": view.tasks, "length": length, "epsilon": EPSILON},
        **{"COLS": cols, "multibuffer": COPIES},
    }
    steps.append(Step(bn_training_update_grad, min(cores, view.tasks), common))
    pieces = max(1, min(-(-length // TILE), -(-cores // view.tasks)))
    share = up(-(-length // pieces), cols)
    last = {"dx_ptr": given.dx, "share": share, "inverse_length": 1.0 / length}
    grid = min(cores, view.tasks * -(-length // share))
    steps.append(Step(bn_training_reduce_grad, grid, {**common, **last}))


def _normalised_times_dy(
    given: GroupTensors, view: Planes, context: PlanContext, steps: list[Step]
) -> Tensor:
    """(x - mean) * rstd * dy, every step a launch that writes it out in the type of x."""
    cores, dtype = context.product.vector_cores, dtype_of(given.x)
    shape = (view.tasks, view.depth * view.space)

    def expanded(x: Tensor) -> Tensor:
        whole = context.tensor(shape, dtype)
        steps.append(broadcast_step(reshaped(x, (view.tasks, 1)), whole, cores))
        return whole

    def paired(x: Tensor, y: Tensor, difference: bool) -> Tensor:
        out = context.tensor(shape, dtype)
        block = min(2 * TILE, up(-(-out.size // cores), 16))
        own = {"x_ptr": x, "y_ptr": y, "out_ptr": out, "n": out.size, "DIFFERENCE": difference}
        grid = min(cores, -(-out.size // block))
        steps.append(Step(combined, grid, {**own, "BLOCK": block, "multibuffer": COPIES}))
        return out

    apart = paired(given.x, expanded(given.mean), True)
    normalised = paired(apart, expanded(given.rstd), False)
    return paired(given.dy, normalised, False)


def _two_sums(x: Tensor, out: Tensor, view: Planes, context: PlanContext, steps: list[Step]) -> None:
    """Over S, then over N, the sums between them in the type of x."""
    cores, planes = context.product.vector_cores, view.samples * view.channels
    of_planes = context.tensor((view.samples, view.channels), dtype_of(x))
    cols = even_part(view.space, TILE)
    rows = min(-(-planes // cores), max(1, TILE // up(cols, 16)))
    own = {"x_ptr": x, "out_ptr": of_planes, "rows": planes, "length": view.space, "ROWS": rows, "COLS": cols}
    steps.append(Step(reduce_last, min(cores, -(-planes // rows)), {**own, "multibuffer": COPIES}))
    wide = min(TILE, up(-(-view.channels // cores), 64))
    last = {"x_ptr": of_planes, "out_ptr": out, "rows": view.samples, "length": view.channels, "COLS": wide}
    steps.append(Step(reduce_first, min(cores, -(-view.channels // wide)), {**last, "multibuffer": COPIES}))


def even_part_of(n: int, most: int) -> int:
    """The largest divisor of n up to `most`."""
    return max(k for k in range(1, min(n, most) + 1) if n % k == 0)

# mypy: disable-error-code="no-untyped-def"
"""GroupNormBackward's sums of channels on the Cube, in the format that cubeMathType says.

For up to 16 channels of a group as x, dy (16, S): ones (16, S) dy^T has sum(dy) in every row, and the diagonal of x dy^T is
sum(dy * x). 15 of 16 multiplications are wasted and the sums are those of form sums, sum(dy * x) - mean * sum(dy), but the
Vector units have nothing to do for them, and nothing passes through UB. dx, dgamma and dbeta follow as in strategy shared.
"""

from __future__ import annotations

from typing import Any

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.errors import UsageError
from ....simulator.products import Product
from ...matmul.choice import FRACTAL, L1_KEPT
from ...operator.layout import even_part, up
from ...operator.plan import PlanContext, Step
from ...operator.tensors import Knobs, Tensor, dtype_of
from ...shared.casts import converted
from ..batch.cube import diagonal_sums
from ..column_products import operand
from ..planes import Planes
from .choice import NAME, GroupTensors

MOST_BLOCKS = 16  # blocks of 16 channels that an iteration of the last launch takes


@sim.jit
def channel_sums(
    squares_ptr, mean_ptr, rstd_ptr, sums_ptr, tasks, planes, D,
    ALL: tl.constexpr, BLOCKS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """sums_ptr (2, N, C): sum(dy) and sum(dy * xh) of channels, from what `diagonals` wrote: (2, tasks, ALL, ROWS, ROWS)."""
    block, row = tl.arange(0, BLOCKS), tl.arange(0, ROWS)
    line = block[:, None] * (ROWS * ROWS) + row[None, :]
    tile = block[:, None, None] * (ROWS * ROWS) + row[None, :, None] * ROWS + row[None, None, :]
    for task in range(tl.program_id(0), tasks, tl.num_programs(0)):
        mean, rstd = tl.load(mean_ptr + task).to(tl.float32), tl.load(rstd_ptr + task).to(tl.float32)
        for first in range(0, ALL, BLOCKS):
            here, alive = squares_ptr + (task * ALL + first) * (ROWS * ROWS), block < ALL - first
            db = tl.load(here + line, mask=alive[:, None], other=0.0)
            both = here + tasks * ALL * (ROWS * ROWS)
            squares = tl.load(both + tile, mask=alive[:, None, None], other=0.0)
            own = row[:, None] == row[None, :]
            dg = tl.sum(tl.where(own[None, :, :], squares, 0.0), axis=1)
            channel = (first + block)[:, None] * ROWS + row[None, :]
            at = sums_ptr + task * D + channel
            tl.store(at, db, mask=channel < D)
            tl.store(at + planes, (dg - db * mean) * rstd, mask=channel < D)


def tile_bytes(cols: Any, itemsize: int, copies: Any) -> Any:
    """Bytes of L1 that a tile needs: copies of dy and x, and the ones. Numbers, or columns of them."""
    return (2 * copies + 1) * FRACTAL * (-(-cols // FRACTAL) * FRACTAL) * itemsize


def choose_cols(view: Planes, itemsize: int, knobs: Knobs, product: Product) -> int:
    """Elements of a channel in a tile: the knob cube_cols, or equal parts of as many as fit in L1."""
    room = product.l1_bytes - L1_KEPT
    most = max(FRACTAL, room // tile_bytes(FRACTAL, itemsize, knobs["buffers"]) * FRACTAL)
    cols = up(min(view.space, knobs["cube_cols"] or even_part(view.space, most)), FRACTAL)
    need = tile_bytes(cols, itemsize, knobs["buffers"])
    if need > room:
        raise UsageError(
            f"{NAME}: strategy cube: tiles of cube_cols {cols} x {FRACTAL} channels need {need} bytes of L1, "
            f"{product.name} has {room} for them; take fewer cube_cols or buffers"
        )
    return cols


def cube_sums_steps(
    given: GroupTensors, sums: Tensor, view: Planes, tiling: dict[str, Any], context: PlanContext
) -> list[Step]:
    """Casts to what the Cube multiplies, a tile of ones, the products, and (2, N, C) sums from them."""
    product = context.product
    compute, resolved = operand(NAME, dtype_of(given.x), product)
    cols = tiling["cube_cols"] = choose_cols(view, compute.itemsize, tiling, product)
    steps: list[Step] = []
    dy, x = (converted(t, compute, context, steps) for t in (given.dy, given.x))
    of_groups = Planes(view.tasks, 1, view.depth, view.space)
    each = {"cols": cols, "parts": view.tasks, "cores": product.cube_cores, "buffers": tiling["buffers"]}
    squares = diagonal_sums(dy, x, of_groups, each, resolved, context, steps)
    blocks = squares.shape[2]
    last = {
        **{"squares_ptr": squares, "mean_ptr": given.mean, "rstd_ptr": given.rstd, "sums_ptr": sums},
        **{"tasks": view.tasks, "planes": view.samples * view.channels, "D": view.depth},
        **{"ALL": blocks, "BLOCKS": min(blocks, MOST_BLOCKS), "ROWS": FRACTAL},
        "multibuffer": tiling["buffers"],
    }
    return [*steps, Step(channel_sums, min(product.vector_cores, view.tasks), last)]

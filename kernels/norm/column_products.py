# mypy: disable-error-code="no-untyped-def"
"""Sums of columns on the Cube: ones (16, rows) x parts (rows, columns), whose every row holds the sums.

15 of 16 multiplications are wasted, but the Vector units add nothing up: they write what is to be added to memory, in the
type that the Cube multiplies, and the Cube reads it there. Sums over rows stay in L0C; row parts are added by a last launch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.device import current_device
from ...simulator.errors import UsageError
from ...simulator.precision.cube_math import Resolution, resolve_matmul
from ...simulator.precision.dtypes import DType, float32
from ...simulator.products import Product
from ..matmul.choice import FRACTAL, L1_KEPT
from ..operator.layout import up
from ..operator.messages import refuse
from ..operator.plan import PlanContext, Step
from ..operator.tensors import Knobs, Tensor, element_type
from ..shared.sums import sum_partials_step

COPIES = 2
WIDEST = 512  # columns of a tile
DEEPEST = 512  # rows of a tile


@sim.jit
def fill_ones(out_ptr, n, BLOCK: tl.constexpr):
    """n ones."""
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.full((BLOCK,), 1.0, out_ptr.dtype.element_ty), mask=at < n)


@sim.jit
def column_products(
    ones_ptr, parts_ptr, out_ptr, rows, cols, items, across, rows_per_part,
    ONES: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """out (parts of rows, cols) fp32: sums of columns of parts (rows, cols). Items: a block of columns of a part of rows."""
    one, row, col = tl.arange(0, ONES), tl.arange(0, ROWS), tl.arange(0, COLS)
    ones = tl.load(ones_ptr + one[:, None] * ROWS + row[None, :])
    tile = row[:, None] * cols + col[None, :]
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        first, part = item % across * COLS, item // across
        inside = col < cols - first
        stop = min(part * rows_per_part + rows_per_part, rows)
        sums = tl.zeros((ONES, COLS), tl.float32)
        for begin in range(part * rows_per_part, stop, ROWS):
            mask = (row < stop - begin)[:, None] & inside[None, :]
            sums += tl.dot(ones, tl.load(parts_ptr + begin * cols + first + tile, mask=mask, other=0.0))
        here = out_ptr + part * cols + first + one[:, None] * cols + col[None, :]
        tl.store(here, sums, mask=(one < 1)[:, None] & inside[None, :])


@dataclass(frozen=True)
class Tile:
    """Tile of the products, parts of the rows and cores that share them."""

    rows: int
    cols: int
    parts: int
    cores: int


def resolution(kind: DType, product: Product, mode: str) -> Resolution:
    """What a cubeMathType means for sums by products with ones, of values of type `kind`: as for a matmul, never grouped."""
    return replace(resolve_matmul(product, (kind.name, kind.name), mode), grouped=False)


def operand(name: str, kind: DType, product: Product) -> tuple[DType, Resolution]:
    """Type of what is added up in memory, by the current cubeMathType for values of type `kind`."""
    mode = current_device().cube_math_type
    found = resolution(kind, product, mode)
    if not found.ok:
        raise refuse(
            f"{name}: sums on the Cube with cube_math_type {mode} are refused on {product.name}: {found.reason}"
        )
    return element_type(found.compute), found


def tile_bytes(rows: Any, cols: Any, itemsize: int) -> Any:
    """Bytes of L1 that a tile of the products needs: copies of it, and the ones. Numbers, or columns of them."""
    wide, deep = (-(-n // FRACTAL) * FRACTAL for n in (cols, rows))
    return (COPIES * wide + FRACTAL) * deep * itemsize


def choose_tile(rows: int, cols: int, itemsize: int, knobs: Knobs, product: Product) -> Tile:
    """Blocks of columns as wide as WIDEST and as deep as L1 lets them be; parts of rows so that the cores have about the
    same to do. Knobs cube_rows and cube_cols are kept."""
    room, most = product.l1_bytes - L1_KEPT, product.cube_cores
    wide = up(min(cols, knobs["cube_cols"] or WIDEST), FRACTAL)
    deep = knobs["cube_rows"] or min(DEEPEST, room // tile_bytes(1, wide, itemsize) * FRACTAL)
    deep = up(min(rows, deep), FRACTAL)
    if tile_bytes(deep, wide, itemsize) > room:
        raise UsageError(
            f"combine cube: {COPIES} tiles of cube_rows {deep} x cube_cols {wide} and the ones need "
            f"{tile_bytes(deep, wide, itemsize)} bytes of L1, {product.name} has {room} for them; take fewer of either"
        )
    across = -(-cols // wide)
    blocks = -(-rows // deep)
    parts = min(range(1, min(blocks, 2 * most) + 1), key=lambda p: -(-across * p // most) * -(-blocks // p))
    parts = -(-blocks // -(-blocks // parts))
    return Tile(deep, wide, parts, min(most, across * parts))


def column_steps(
    parts: Tensor, out: Tensor, tile: Tile, resolved: Resolution, dtype: DType, context: PlanContext
) -> list[Step]:
    """The launches from `parts` (rows, columns) to their sums: ones, products, and the sum of parts of rows if several."""
    rows, cols = parts.shape
    ones = context.tensor((FRACTAL, tile.rows), dtype)
    sums = out if tile.parts == 1 else context.tensor((tile.parts, cols), float32)
    across, blocks = -(-cols // tile.cols), -(-rows // tile.rows)
    arguments = {
        **{"ones_ptr": ones, "parts_ptr": parts, "out_ptr": sums, "rows": rows, "cols": cols},
        **{"items": across * tile.parts, "across": across},
        "rows_per_part": -(-blocks // tile.parts) * tile.rows,
        **{"ONES": FRACTAL, "ROWS": tile.rows, "COLS": tile.cols, "multibuffer": COPIES},
    }
    steps = [
        Step(fill_ones, 1, {"out_ptr": ones, "n": ones.size, "BLOCK": up(ones.size, FRACTAL)}),
        Step(column_products, tile.cores, arguments, {"hf32_round": resolved.hf32_round}),
    ]
    if tile.parts > 1:
        steps.append(sum_partials_step(sums, out, context.product.vector_cores, COPIES))
    return steps

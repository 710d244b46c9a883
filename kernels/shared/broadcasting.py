# mypy: disable-error-code="no-untyped-def"
"""Tensors that broadcast to a larger shape: how a kernel loads a tile of them, and launches that write them out."""

from __future__ import annotations

from ... import simulator as sim
from ...simulator import language as tl
from ..operator.layout import TILE_ELEMENTS, broadcast_strides, merge_axes, tile_count, tile_of, unravel
from ..operator.plan import Step
from ..operator.tensors import Tensor


@sim.jit
def load_broadcast(ptr, outer, rows, cols, LENGTHS: tl.constexpr, STRIDES: tl.constexpr):
    """fp32 tile rows x cols of an input that steps STRIDES along the axes LENGTHS, of which the last two are the tile's.

    The tile has length 1 along an axis where the input does not vary; a scalar where it varies along neither.
    """
    here = ptr + unravel(outer, LENGTHS[:-2], STRIDES[:-2])
    alive, inside = (rows < LENGTHS[-2])[:, None], (cols < LENGTHS[-1])[None, :]
    if STRIDES[-2] == 0 and STRIDES[-1] == 0:
        return tl.load(here).to(tl.float32)
    if STRIDES[-2] == 0:
        return tl.load(here + cols[None, :] * STRIDES[-1], mask=inside, other=0.0).to(tl.float32)
    if STRIDES[-1] == 0:
        return tl.load(here + rows[:, None] * STRIDES[-2], mask=alive, other=0.0).to(tl.float32)
    offsets = rows[:, None] * STRIDES[-2] + cols[None, :] * STRIDES[-1]
    return tl.load(here + offsets, mask=alive & inside, other=0.0).to(tl.float32)


@sim.jit
def stretch(
    x_ptr, out_ptr, items,
    LENGTHS: tl.constexpr, FROM: tl.constexpr, TO: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """out of the axes LENGTHS from x that steps FROM along them: what does not vary is read once for each tile."""
    across = (LENGTHS[-1] + COLS - 1) // COLS
    down = (LENGTHS[-2] + ROWS - 1) // ROWS
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        outer = item // across // down
        rows = item // across % down * ROWS + tl.arange(0, ROWS)
        cols = item % across * COLS + tl.arange(0, COLS)
        x = load_broadcast(x_ptr, outer, rows, cols, LENGTHS, FROM)
        tile = tl.broadcast_to(x, (ROWS, COLS))
        at = unravel(outer, LENGTHS[:-2], TO[:-2]) + rows[:, None] * TO[-2] + cols[None, :]
        mask = (rows < LENGTHS[-2])[:, None] & (cols < LENGTHS[-1])[None, :]
        tl.store(out_ptr + at, tile.to(out_ptr.dtype.element_ty), mask=mask)


def broadcast_step(x: Tensor, out: Tensor, cores: int) -> Step:
    """Launch that writes x out in the shape of `out`, to which it broadcasts."""
    shape = out.shape
    strides = [broadcast_strides(s, shape) for s in (x.shape, shape)]
    axes = merge_axes(shape, strides).padded()
    rows, cols = tile_of(axes.lengths[-2], axes.lengths[-1], TILE_ELEMENTS)
    items = tile_count(axes.lengths, rows, cols)
    tile = {
        "LENGTHS": axes.lengths,
        "FROM": axes.strides[0],
        "TO": axes.strides[1],
        "ROWS": rows,
        "COLS": cols,
    }
    return Step(stretch, min(cores, items), {"x_ptr": x, "out_ptr": out, "items": items, **tile})

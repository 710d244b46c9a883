# mypy: disable-error-code="no-untyped-def,assignment"
"""Sums in a tile, and sums over cores: kernels and launches that operators with a column sum share.

atomic: the output is filled with zero by one launch, then every core adds its part to it (order not defined on a
device). two_phase: every core writes its part to a row of a workspace, a second launch sums the rows in fixed order.
"""

from __future__ import annotations

from ... import simulator as sim
from ...simulator import language as tl
from ..operator.layout import up
from ..operator.plan import Step
from ..operator.tensors import Tensor

REPEAT = 64  # fp32 lanes of one repeat of the Vector unit
FILL_COLUMNS = 4096
SUM_COLUMNS = 256


@sim.jit
def lane_sums(xs):
    """Tiles (rows, repeats, 64) fp32 -> (rows, 64): neighbouring repeats, which never lie in one group of UB's banks."""
    found = ()
    shape: tl.constexpr = xs[0].shape
    if shape[1] > 2 and shape[1] % 2 == 0:
        for i in tl.static_range(len(xs)):
            found += (tl.sum(tl.reshape(xs[i], (shape[0], shape[1] // 2, 2, 64)), axis=2),)
        return lane_sums(found)
    for i in tl.static_range(len(xs)):
        found += (tl.sum(xs[i], axis=1),)
    return found


@sim.jit
def row_sums_of(xs):
    """Tiles (rows, columns) fp32 of one shape -> (rows,): halving down to 64 lanes, then one tree; by repeats if columns are
    no multiple. A step of all tiles comes before the next step, so that they wait less for each other's results."""
    shape: tl.constexpr = xs[0].shape
    tiles, found = (), ()
    if shape[1] > 64 and shape[1] % 64 == 0:
        for i in tl.static_range(len(xs)):
            tiles += (tl.reshape(xs[i], (shape[0], shape[1] // 64, 64)),)
        xs = lane_sums(tiles)
    for i in tl.static_range(len(xs)):
        found += (tl.sum(xs[i], axis=1),)
    return found


@sim.jit
def row_sums(x):
    """`row_sums_of` one tile."""
    return row_sums_of((x,))[0]


@sim.jit
def column_sums(x):
    """(rows, columns) fp32 -> (columns,), upper half of the rows onto the lower half."""
    return tl.reshape(x, (x.shape[1],)) if x.shape[0] == 1 else tl.sum(x, axis=0)


@sim.jit
def zero_fill(out_ptr, n, COLS: tl.constexpr):
    """Elements [0, n) of out become zero; programs take chunks of COLS in turn."""
    zero = tl.zeros((COLS,), tl.float32)
    for first in range(tl.program_id(0) * COLS, n, tl.num_programs(0) * COLS):
        cols = first + tl.arange(0, COLS)
        tl.store(out_ptr + cols, zero, mask=cols < n)


@sim.jit
def sum_partials(parts_ptr, out_ptr, n, PARTS: tl.constexpr, COLS: tl.constexpr):
    """out[c] = sum over PARTS rows of parts (PARTS, n) fp32, upper half onto lower half; programs take chunks of COLS."""
    rows = tl.arange(0, PARTS)
    for first in range(tl.program_id(0) * COLS, n, tl.num_programs(0) * COLS):
        cols = first + tl.arange(0, COLS)
        inside = cols < n
        part = tl.load(parts_ptr + rows[:, None] * n + cols[None, :], mask=inside[None, :], other=0.0)
        tl.store(out_ptr + cols, tl.sum(part, axis=0), mask=inside)


def zero_fill_step(out: Tensor, cores: int) -> Step:
    """Launch that fills an fp32 tensor with zero, with few cores: a launch costs more the more cores it wakes."""
    cols = min(FILL_COLUMNS, up(out.size, 8))
    return Step(zero_fill, min(cores, -(-out.size // cols)), {"out_ptr": out, "n": out.size, "COLS": cols})


def sum_partials_step(parts: Tensor, out: Tensor, cores: int, buffers: int) -> Step:
    """Launch that sums the rows of `parts` (rows, n) fp32 into `out` (n elements), split over columns."""
    cols = min(SUM_COLUMNS, up(-(-out.size // cores), REPEAT))
    arguments = {
        "parts_ptr": parts,
        "out_ptr": out,
        "n": out.size,
        "PARTS": parts.shape[0],
        "COLS": cols,
        "multibuffer": buffers,
    }
    return Step(sum_partials, min(cores, -(-out.size // cols)), arguments)

# mypy: disable-error-code="no-untyped-def,assignment"
"""Launches that cut FP32 operands into slices for the Cube, and make the result of products of slices.

`simulator/precision/splits` says what a slice is. Where a mode scales rows, a launch of its own first finds the largest
element of each; the launches that cut and that combine make the powers of two from it by shifting bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.precision import dtypes as ty
from ...simulator.precision.splits import Split
from ...simulator.precision.splits.slices import FIELD_BITS, FIELD_MAX
from ..operator.layout import tile_count, up
from ..operator.plan import PlanContext, Step
from ..operator.tensors import Tensor, element_type

TILE = 4096  # elements of a tile that is cut, combined or searched for its largest
ROW_LINES, COLUMN_LINES = 16, 256  # rows or columns whose largest elements are found side by side
FEW_LINES = 64  # columns where cores would have none otherwise
MOST_CHUNKS = 8  # of a row or column, as each tile that is cut reads what was found of all
MAGIC = 12582912.0  # 1.5 * 2^23: adding and subtracting it rounds FP32 numbers below 2^22 to integers, ties to even
BOTH = 2  # axes along which a whole tensor has one scale

# -- kernels ---------------------------------------------------------------------------------------------------------


@sim.jit
def largest(
    x_ptr, out_ptr, lines, deep, part, items,
    LINE: tl.constexpr, DEEP: tl.constexpr, ALONG_ROWS: tl.constexpr, NAN: tl.constexpr,
):  # fmt: skip
    """out (chunks, lines): the largest |x| of `part` elements of each line; a line is a row (ALONG_ROWS) or a column of x.

    NAN: whether NaN counts as larger than any number, as it has to where no slice can hold one.
    """
    tiles = tl.cdiv(lines, LINE)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        line = item % tiles * LINE + tl.arange(0, LINE)
        start = item // tiles * part
        stop = tl.minimum(deep, start + part)
        most = tl.zeros((LINE, DEEP) if ALONG_ROWS else (DEEP, LINE), tl.float32)
        for first in range(start, stop, DEEP):
            at = first + tl.arange(0, DEEP)
            if ALONG_ROWS:
                ptrs = x_ptr + line[:, None] * deep + at[None, :]
                inside = (line < lines)[:, None] & (at < stop)[None, :]
            else:
                ptrs = x_ptr + at[:, None] * lines + line[None, :]
                inside = (at < stop)[:, None] & (line < lines)[None, :]
            x = tl.abs(tl.load(ptrs, mask=inside, other=0.0).to(tl.float32))
            most = tl.maximum(most, x, tl.PropagateNan.ALL if NAN else tl.PropagateNan.NONE)
        found = tl.max(most, axis=1 if ALONG_ROWS else 0, propagate_nan=NAN)
        tl.store(out_ptr + item // tiles * lines + line, found, mask=line < lines)


@sim.jit
def power_of_two(
    most_ptr, lines, line, CHUNKS: tl.constexpr, TOP: tl.constexpr, INVERT: tl.constexpr, NAN: tl.constexpr
):
    """What scales a line so that its largest element is in [2^TOP, 2^(TOP + 1)); or what undoes it, NaN for infinities."""
    chunk = tl.arange(0, CHUNKS)
    ptrs = most_ptr + chunk[:, None] * lines + line[None, :]
    found = tl.load(ptrs, mask=(line < lines)[None, :], other=0.0)
    most = tl.max(found, axis=0, propagate_nan=NAN)
    field = tl.minimum(tl.maximum(most.to(tl.int32, bitcast=True) >> FIELD_BITS, TOP + 1), FIELD_MAX)
    field = field - TOP if INVERT else FIELD_MAX + TOP - field
    power = (field << FIELD_BITS).to(tl.float32, bitcast=True)
    return power + most * 0.0 if INVERT else power


@sim.jit
def cut_slices(
    x_ptr, most_ptr, out_ptr, rows, cols, pitch, stride, lines, items,
    PIECES: tl.constexpr, STEP: tl.constexpr, TOP: tl.constexpr, CHUNKS: tl.constexpr, ALONG: tl.constexpr,
    ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """Slice PIECES[i] of x (rows, cols) at out + i * stride, with `pitch` elements from row to row.

    ALONG: axis along which elements have one scale; BOTH, or None where they are not scaled.
    """
    across = tl.cdiv(cols, COLS)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        row, col = item // across * ROWS + tl.arange(0, ROWS), item % across * COLS + tl.arange(0, COLS)
        inside = (row < rows)[:, None] & (col < cols)[None, :]
        rest = tl.load(x_ptr + row[:, None] * cols + col[None, :], mask=inside, other=0.0).to(tl.float32)
        if ALONG == 0:
            rest *= power_of_two(most_ptr, lines, col, CHUNKS, TOP, False, False)[None, :]
        elif ALONG == 1:
            rest *= power_of_two(most_ptr, lines, row, CHUNKS, TOP, False, False)[:, None]
        elif ALONG == BOTH:
            rest *= power_of_two(most_ptr, lines, tl.arange(0, 1), CHUNKS, TOP, False, False)[None, :]
        slices = ()
        for i in tl.static_range(1 + max(PIECES)):
            if STEP:
                digit = (rest + MAGIC) - MAGIC
                slices += (digit.to(out_ptr.dtype.element_ty),)
                rest = (rest - digit) * (2.0**STEP)
            else:
                slices += (rest.to(out_ptr.dtype.element_ty),)
                rest = rest - slices[i].to(tl.float32)
        at = row[:, None] * pitch + col[None, :]
        for i in tl.static_range(len(PIECES)):
            tl.store(out_ptr + i * stride + at, slices[PIECES[i]], mask=inside)


@sim.jit
def combine(
    sums_ptr, left_ptr, right_ptr, out_ptr, rows, cols, items,
    GROUPS: tl.constexpr, STEP: tl.constexpr, TOP: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
    WHOLE: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """out (rows, cols) from sums (GROUPS, rows, cols), each counting 2^-STEP as much as the next, without the scales.

    left, right: the largest elements of the operands in LEFT and RIGHT chunks, of each row and column, or WHOLE: of all. The
    smaller of two factors comes first, so that nothing between is larger than the result.
    """
    across = tl.cdiv(cols, COLS)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        row, col = item // across * ROWS + tl.arange(0, ROWS), item % across * COLS + tl.arange(0, COLS)
        inside = (row < rows)[:, None] & (col < cols)[None, :]
        at = row[:, None] * cols + col[None, :]
        total = tl.load(sums_ptr + at, mask=inside, other=0).to(tl.float32)
        for i in tl.static_range(1, GROUPS):
            total = total * (2.0**-STEP) + tl.load(sums_ptr + i * rows * cols + at, mask=inside, other=0).to(
                tl.float32
            )
        if WHOLE:
            x = power_of_two(left_ptr, 1, tl.arange(0, 1), LEFT, TOP, True, STEP > 0)
            y = power_of_two(right_ptr, 1, tl.arange(0, 1), RIGHT, TOP, True, STEP > 0)
        else:
            x = power_of_two(left_ptr, rows, row, LEFT, TOP, True, STEP > 0)
            y = power_of_two(right_ptr, cols, col, RIGHT, TOP, True, STEP > 0)
        NAN: tl.constexpr = (
            tl.PropagateNan.ALL if STEP else tl.PropagateNan.NONE
        )  # slices that are no integers have it
        x, y = x[:, None], y[None, :]
        tl.store(out_ptr + at, total * tl.minimum(x, y, NAN) * tl.maximum(x, y), mask=inside)


# -- launches --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Largest:
    """The largest elements of the lines of a tensor, in `chunks` of each: what its scales are made from.

    along: the axis along which a line lies, or BOTH; None: a stand-in for what is not scaled.
    """

    tensor: Tensor
    chunks: int
    along: int | None

    @property
    def lines(self) -> int:
        return self.tensor.size // self.chunks


def largest_of(x: Tensor, split: Split, along: int, context: PlanContext, steps: list[Step]) -> Largest:
    """Adds the launch that finds them, if the mode scales. x: (rows, columns)."""
    if split.top is None:
        return Largest(x, 1, None)
    rows, cols = x.shape
    lines, deep = {0: (cols, rows), 1: (rows, cols), BOTH: (1, x.size)}[along]
    cores = context.product.vector_cores
    line = min(lines, ROW_LINES if along else COLUMN_LINES if lines >= COLUMN_LINES * cores else FEW_LINES)
    depth, tiles = min(up(deep, 8), TILE // line), -(-lines // line)
    wanted = min(cores // tiles, -(-deep // depth), MOST_CHUNKS if lines > 1 else cores)
    part = -(-deep // max(1, wanted))
    chunks = -(-deep // part)
    out = context.tensor((chunks, lines), ty.float32)
    arguments = {
        "x_ptr": x,
        "out_ptr": out,
        "lines": lines,
        "deep": deep,
        "part": part,
        "items": tiles * chunks,
    }
    tile = {"LINE": line, "DEEP": depth, "ALONG_ROWS": along != 0, "NAN": split.step > 0}
    steps.append(Step(largest, min(cores, tiles * chunks), {**arguments, **tile}))
    return Largest(out, chunks, along)


def _tile(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of a tile that is cut or combined: several rows, as columns have scales to be made once a tile."""
    cols = min(up(shape[1], 8), COLUMN_LINES if shape[0] > 1 else TILE)
    return min(shape[0], TILE // cols), cols


class SliceLayout(NamedTuple):
    """Where slices go: which ones, elements from the start of one to that of the next, and from row to row of one."""

    numbers: tuple[int, ...]
    stride: int
    pitch: int


def cut_step(x: Tensor, most: Largest, split: Split, out: Tensor, where: SliceLayout, cores: int) -> Step:
    """Launch that writes slices of x (rows, columns) to out."""
    rows, cols = _tile(x.shape)
    items = tile_count(x.shape, rows, cols)
    arguments = {
        **{"x_ptr": x, "most_ptr": most.tensor, "out_ptr": out, "rows": x.shape[0], "cols": x.shape[1]},
        **{"pitch": where.pitch, "stride": where.stride, "lines": most.lines, "items": items},
        **{"PIECES": where.numbers, "STEP": split.step, "TOP": split.top or 0, "CHUNKS": most.chunks},
        **{"ALONG": most.along, "ROWS": rows, "COLS": cols},
    }
    return Step(cut_slices, min(cores, items), arguments)


def cut_apart(
    x: Tensor, most: Largest, split: Split, count: int, context: PlanContext, steps: list[Step]
) -> Tensor:
    """Slices (count, rows, columns) of x (rows, columns), filled by a launch added to `steps`."""
    out = context.tensor((count, *x.shape), element_type(split.slices))
    where = SliceLayout(tuple(range(count)), x.size, x.shape[1])
    steps.append(cut_step(x, most, split, out, where, context.product.vector_cores))
    return out


def combine_step(sums: Tensor, left: Largest, right: Largest, split: Split, out: Tensor, cores: int) -> Step:
    """Launch that makes out from sums (groups, *out.shape), which has the scales of two operands."""
    shape = out.shape if left.along != BOTH else (1, out.size)
    rows, cols = _tile(shape)
    items = tile_count(shape, rows, cols)
    arguments: dict[str, Any] = {
        **{"sums_ptr": sums, "left_ptr": left.tensor, "right_ptr": right.tensor, "out_ptr": out},
        **{"rows": shape[0], "cols": shape[1], "items": items, "GROUPS": sums.size // out.size},
        **{"STEP": split.step, "TOP": split.top, "LEFT": left.chunks, "RIGHT": right.chunks},
        **{"WHOLE": left.along == BOTH, "ROWS": rows, "COLS": cols},
    }
    return Step(combine, min(cores, items), arguments)

# mypy: disable-error-code="no-untyped-def"
"""How the axes of several tensors lie side by side, and the launch that makes a strided input contiguous.

The host side of the device makes inputs contiguous with a kernel each before the operator's own kernel runs
(hicann/opbase, `Contiguous`); here it is a launch like any other, so that a strided call costs what it costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .. import simulator as sim
from ..simulator import language as tl
from .operator import Step, Tensor

TILE_ELEMENTS = 8192
SPREAD_ELEMENTS = (
    2048  # of a tile each of whose elements takes a block of 32 bytes: two copies of it fit in any UB
)


@dataclass(frozen=True)
class Axes:
    """Common axes of several tensors, merged where all of them allow it: lengths, and per tensor the strides in elements."""

    lengths: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]

    def flat(self) -> bool:
        """One axis at most, along which every tensor is contiguous or constant."""
        return len(self.lengths) <= 1 and all(s in ((), (0,), (1,)) for s in self.strides)

    def padded(self) -> Axes:
        """At least two axes: rows and columns."""
        missing = max(0, 2 - len(self.lengths))
        return Axes((1,) * missing + self.lengths, tuple((0,) * missing + s for s in self.strides))


def merge_axes(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> Axes:
    """Axes of length 1 are dropped; neighbours become one where every tensor steps through them evenly."""
    lengths: list[int] = []
    columns: list[tuple[int, ...]] = []
    for k, n in enumerate(shape):
        here = tuple(s[k] for s in strides)
        if n == 1:
            continue
        if columns and all(outer == inner * n for outer, inner in zip(columns[-1], here, strict=True)):
            lengths[-1] *= n
            columns[-1] = here
        else:
            lengths.append(n)
            columns.append(here)
    return Axes(tuple(lengths), tuple(tuple(c[t] for c in columns) for t in range(len(strides))))


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    out = [1]
    for n in reversed(shape[1:]):
        out.append(out[-1] * n)
    return tuple(reversed(out))[: len(shape)]


def broadcast_strides(shape: Sequence[int], to: Sequence[int]) -> tuple[int, ...]:
    """Strides in elements of a contiguous tensor seen in the shape it broadcasts to: 0 where it is stretched."""
    own = contiguous_strides(shape)
    missing = len(to) - len(shape)
    return (0,) * missing + tuple(0 if n == 1 else s for n, s in zip(shape, own, strict=True))


@sim.jit
def unravel(number, LENGTHS: tl.constexpr, STRIDES: tl.constexpr):
    """Element offset of the item with that row-major number over the outer axes."""
    offset = 0
    for k in tl.static_range(len(LENGTHS) - 1, -1, -1):
        offset += number % LENGTHS[k] * STRIDES[k]
        number = number // LENGTHS[k]
    return offset


@sim.jit
def copy_strided(
    source_ptr,
    out_ptr,
    items,
    LENGTHS: tl.constexpr,
    FROM: tl.constexpr,
    TO: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    """out = source, tile by tile: LENGTHS of the axes, strides FROM and TO; tiles of ROWS x COLS of the last two axes."""
    across = (LENGTHS[-1] + COLS - 1) // COLS
    down = (LENGTHS[-2] + ROWS - 1) // ROWS
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        outer = item // across // down
        rows = item // across % down * ROWS + tl.arange(0, ROWS)
        cols = item % across * COLS + tl.arange(0, COLS)
        mask = (rows < LENGTHS[-2])[:, None] & (cols < LENGTHS[-1])[None, :]
        source = unravel(outer, LENGTHS[:-2], FROM[:-2]) + rows[:, None] * FROM[-2] + cols[None, :] * FROM[-1]
        out = unravel(outer, LENGTHS[:-2], TO[:-2]) + rows[:, None] * TO[-2] + cols[None, :] * TO[-1]
        tl.store(out_ptr + out, tl.load(source_ptr + source, mask=mask), mask=mask)


def up(n: int, to: int) -> int:
    """`n` rounded up to a multiple of `to`."""
    return -(-n // to) * to


def tile_of(rows: int, cols: int, elements: int) -> tuple[int, int]:
    """Tile (ROWS, COLS) of at most `elements`, whole rows first; rows are padded to blocks of 16 elements."""
    width = even_part(cols, elements)
    return even_part(rows, max(1, elements // up(width, 16))), width


def even_part(n: int, most: int) -> int:
    """`n` in parts of at most `most`: the largest that divides it if that is at least half of `most`, else `most`.

    A part that is cut short costs a fill of its tile, and what is cut short in one program holds up the others' copies.
    """
    if n <= most:
        return n
    return next((k for k in range(most, most // 2, -1) if n % k == 0), most)


def tile_count(lengths: Sequence[int], rows: int, cols: int) -> int:
    """Tiles of rows x cols that cover the last two axes, for all of the outer ones."""
    count = -(-lengths[-2] // rows) * -(-lengths[-1] // cols)
    for n in lengths[:-2]:
        count *= n
    return count


def copy_step(source: np.ndarray, out: Tensor, cores: int) -> Step:
    """Launch that copies a strided array into a contiguous tensor of the same shape."""
    strides = [s // source.itemsize for s in source.strides]
    return _copy(source, strides, out, contiguous_strides(source.shape), cores)


def view_copy_step(source: Tensor, out: np.ndarray, cores: int) -> Step:
    """Launch that copies a contiguous tensor into a strided array of the same shape."""
    strides = [s // out.itemsize for s in out.strides]
    return _copy(source, contiguous_strides(source.shape), out, strides, cores)


def _copy(source: Tensor, of: Sequence[int], out: Tensor, to: Sequence[int], cores: int) -> Step:
    axes = merge_axes(source.shape, [of, to]).padded()
    spread = any(abs(s[-1]) > 1 and s[-2] != 1 for s in axes.strides)
    rows, cols = tile_of(axes.lengths[-2], axes.lengths[-1], SPREAD_ELEMENTS if spread else TILE_ELEMENTS)
    items = tile_count(axes.lengths, rows, cols)
    arguments = {
        "source_ptr": source,
        "out_ptr": out,
        "items": items,
        "LENGTHS": axes.lengths,
        "FROM": axes.strides[0],
        "TO": axes.strides[1],
        "ROWS": rows,
        "COLS": cols,
    }
    return Step(copy_strided, min(cores, items), arguments)

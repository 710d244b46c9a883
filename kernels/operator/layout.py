# mypy: disable-error-code="no-untyped-def"
"""How the axes of several tensors lie side by side, and tiles over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ... import simulator as sim
from ...simulator import language as tl

TILE_ELEMENTS = 8192


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
    """Strides in elements of a contiguous tensor seen in the shape it broadcasts to: 0 along what it broadcasts over."""
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

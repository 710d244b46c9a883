"""Axes that the unit works on in whole blocks, so that buffers are longer than what they hold (9.6, 9.7).

AscendNPU-IR, lib/Dialect/HIVM/Transforms/AlignBuffer/HIVMAlignAllocSize.cpp, with getUnAlignSizeInfo of
lib/Dialect/HIVM/IR/HIVMImpl.cpp.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..layouts import align
from .scratch import BLOCK_BITS
from .spreading import same_axes
from .tiles import PlannedTile

SORTED_ELEMENTS = 32  # of one repeat of the sort
WORD_BITS = 32
SQUARE = 32  # bytes of a block, and rows of a transpose of bytes


def sort(tiles: Iterable[PlannedTile | None]) -> None:
    """Rows of values and indices are up to 32 elements."""
    for t in tiles:
        if t is not None:
            t.pad(len(t.shape) - 1, SORTED_ELEMENTS)


def transpose(source: PlannedTile, out: PlannedTile, shape: tuple[int, ...], order: Sequence[int]) -> None:
    """Both axes that change places are whole blocks; of 32 bits, one of them is two (8 x 16 elements).

    shape: of the source as the operation sees it. order: of its axes in the result; another axis becomes the last one.
    """
    block = BLOCK_BITS // source.bits
    axes = sorted((order[-1], len(shape) - 1))
    multiples = dict.fromkeys(axes, block)
    if source.bits == WORD_BITS and all(align(shape[a], block) % (2 * block) for a in axes):
        multiples[axes[1]] = 2 * block
    for axis, elements in multiples.items():
        out.pad(order.index(axis), elements)
    _pad(source, shape, multiples)


def _pad(t: PlannedTile, shape: tuple[int, ...], multiples: Mapping[int, int]) -> None:
    """Axes of a tile that an operation sees in another shape."""
    where = {a: a for a in multiples} if t.shape == shape else same_axes(shape, t.shape)
    for axis, elements in multiples.items():
        if axis in where:
            t.pad(where[axis], elements)


def truncation(source: PlannedTile, out: PlannedTile, shape: tuple[int, ...]) -> None:
    """int32 or int16 to int8: its bytes are transposed in squares of 32 to part the low ones from the high ones.

    Rows are up to 32 and the last axis up to 32 bytes; of one axis 1024 elements, and of a short source its bytes so often.
    """
    if len(shape) == 1:
        short = align(shape[0] * source.bits // 8, SQUARE) * SQUARE * 8 // source.bits
        _pad(source, shape, {0: short if shape[0] <= SQUARE else SQUARE * SQUARE})
        _pad(out, shape, {0: SQUARE * SQUARE})
        return
    rows, last = len(shape) - 2, len(shape) - 1
    _pad(source, shape, {rows: SQUARE, last: BLOCK_BITS // source.bits})
    _pad(out, shape, {rows: SQUARE, last: SQUARE})

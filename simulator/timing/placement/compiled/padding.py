"""Axes that the unit works on in whole blocks, so that buffers are longer than what they hold (9.6, 9.7).

AscendNPU-IR, lib/Dialect/HIVM/Transforms/AlignBuffer/HIVMAlignAllocSize.cpp, with getUnAlignSizeInfo of
lib/Dialect/HIVM/IR/HIVMImpl.cpp.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..layouts import align
from .scratch import BLOCK_BITS
from .spreading import same_axes
from .tiles import PlannedTile

SORTED_ELEMENTS = 32  # of one repeat of the sort
WORD_BITS = 32


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
    where = {a: a for a in axes} if source.shape == shape else same_axes(shape, source.shape)
    for axis, elements in multiples.items():
        out.pad(order.index(axis), elements)
        if axis in where:
            source.pad(where[axis], elements)

"""Bytes of one slot of a buffer (3.1, 9.1 to 9.4)."""

from __future__ import annotations

from ..accumulator_inits import BT
from ..layouts import BLOCK_BYTES, accumulator_bytes, align, fractal_bytes, table_bytes
from ..memory_spaces import L0C, UB
from .tiles import Tile

BLOCK_BITS = 8 * BLOCK_BYTES


def tile_size(t: Tile) -> int:
    """Bytes, not aligned yet. Outside of UB the layout is that of the Cube."""
    if t.space == UB:
        return -(-spread_bits(t.shape, t.bits, t.spread) // 8)
    measure = {L0C: accumulator_bytes, BT: table_bytes}.get(t.space, fractal_bytes)
    return max((measure(v) for v in t.values), default=0)


def spread_bits(shape: tuple[int, ...], bits: int, spread: frozenset[int]) -> int:
    """Bits of a tile in UB. spread: axes along which each element, or row behind it, begins at a block of 32 bytes.

    Contiguous axes are merged, so rows of a whole tile are not padded (9.2); an element of a spread last axis takes a block.
    """
    stride = bits
    for axis in reversed(range(len(shape))):
        if axis in spread and shape[axis] > 1:
            stride = align(stride, BLOCK_BITS)
        stride *= shape[axis]
    return stride

"""Buffers and steps of a program after the compiler's rewrites: what is planned, and when it is written and read."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from ....ir.program import Op, Value
from ..layouts import BLOCK_BYTES, align, buffer_bytes
from ..memory_spaces import UB

# Why a buffer is there.
TILE = "tile"
WIDENED = "widened operand"
COMPARED = "comparison"
BROADCAST = "broadcast"
SCRATCH = "scratch"
INDICES = "indices"
CARRIED = "carried"
FILLED = "filled"
CHOSEN = "masked store"
FROM_CUBE = "product in UB"
FOR_CUBE = "operand in L1"
SPREAD = "stride padding"
EXPLICIT = "buffer"


@dataclass(eq=False)
class PlannedTile:
    """One buffer. element: its type by name; bits: of one element. slots: how often it is there; asked: by the kernel.
    pieces: outside of UB, it holds one of so many pieces of its values' rows.

    values: of the program, that lie in it. loaded, stored: a load fills it, a store empties it. scalar: scalar code touches
    it. masked: rows of it, or of a tile that it is worked on with, are moved with a mask, so that its axes stay apart.
    carried: no result takes its place and it takes none. unique: it shares no bytes. loops: those around its making,
    outermost first. spread: axes whose elements each begin at a block of 32 bytes. padding: axis -> its
    length is rounded up to a multiple of so many elements (9.6, 9.7). first, last: its life, -1: never written.
    """

    shape: tuple[int, ...]
    element: str
    bits: int
    why: str
    op: Op
    space: str = UB
    size: int = 0  # bytes of one slot, aligned; 0: not known yet
    slots: int = 1
    asked: int = 1
    pieces: int = 1
    values: list[Value] = field(default_factory=list)
    loops: tuple[PlannedLoop, ...] = ()
    loaded: bool = False
    stored: bool = False
    scalar: bool = False
    masked: bool = False
    carried: bool = False
    unique: bool = False
    label: str = ""
    spread: frozenset[int] = frozenset()
    padding: dict[int, int] = field(default_factory=dict)
    first: int = -1
    last: int = -1

    @property
    def numel(self) -> int:
        """Elements."""
        return math.prod(self.shape)

    @property
    def padded(self) -> tuple[int, ...]:
        """Shape with its padding."""
        return tuple(align(n, self.padding.get(k, 1)) for k, n in enumerate(self.shape))

    @property
    def room(self) -> int:
        """Bits of all elements with their padding."""
        return math.prod(self.padded) * self.bits

    def pad(self, axis: int, elements: int) -> None:
        """Rounds an axis up to a multiple of so many elements; the larger of two multiples holds."""
        self.padding[axis] = max(elements, self.padding.get(axis, 1))

    @property
    def merged(self) -> bool:
        """Whether it is one axis to the unit (9.1, 9.2)."""
        return not self.masked or sum(n > 1 for n in self.shape) <= 1

    @property
    def moved(self) -> bool:
        """Whether a load or a store touches it."""
        return self.loaded or self.stored


@dataclass(eq=False)
class PlannedLoop:
    """A loop that stays one. begin, end: its times."""

    op: Op
    begin: int
    end: int = -1


class BufferStep(NamedTuple):
    """One operation of the unit at one time. over: operands whose buffer the result may take (3.10). casts: it is a cast, in
    place only if all axes of its operand are one (`merged`)."""

    at: int
    op: Op
    reads: tuple[PlannedTile, ...]
    writes: tuple[PlannedTile, ...]
    over: tuple[PlannedTile, ...]
    loops: tuple[PlannedLoop, ...]
    casts: bool = False


class Carried(NamedTuple):
    """What a loop carries: what it starts from, its argument and result, and what the body hands back."""

    loop: PlannedLoop
    start: PlannedTile | None
    tile: PlannedTile
    next: PlannedTile | None


BLOCK_BITS = 8 * BLOCK_BYTES


def tile_size(t: PlannedTile) -> int:
    """Bytes, not aligned yet. Outside of UB the layout is that of the Cube."""
    if t.space == UB:
        return -(-spread_bits(t.padded, t.bits, t.spread) // 8)
    return max((buffer_bytes(v, t.space) for v in t.values), default=0) // t.pieces


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

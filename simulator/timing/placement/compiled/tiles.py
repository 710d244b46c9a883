"""Buffers and steps of a program after the compiler's rewrites: what is planned, and when it is written and read."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from ....ir.program import Op, Value
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
FROM_CUBE = "product in UB"
FOR_CUBE = "operand in L1"
SPREAD = "stride padding"
EXPLICIT = "buffer"


@dataclass(eq=False)
class Tile:
    """One buffer. element: its type by name; bits: of one element. slots: how often it is there; asked: by the kernel.

    values: of the program, that lie in it. loaded, stored: a load fills it, a store empties it. scalar: scalar code touches
    it. carried: no result takes its place and it takes none. unique: it shares no bytes. loops: those around its making,
    outermost first. spread: axes whose elements each begin at a block of 32 bytes. first, last: its life, -1: never written.
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
    values: list[Value] = field(default_factory=list)
    loops: tuple[Loop, ...] = ()
    loaded: bool = False
    stored: bool = False
    scalar: bool = False
    carried: bool = False
    unique: bool = False
    label: str = ""
    spread: frozenset[int] = frozenset()
    first: int = -1
    last: int = -1

    @property
    def numel(self) -> int:
        """Elements."""
        return math.prod(self.shape)

    @property
    def moved(self) -> bool:
        """Whether a load or a store touches it."""
        return self.loaded or self.stored


@dataclass(eq=False)
class Loop:
    """A loop that stays one. begin, end: its times."""

    op: Op
    begin: int
    end: int = -1


class Step(NamedTuple):
    """One operation of the unit at one time. over: operands whose buffer the result may take (3.10)."""

    at: int
    op: Op
    reads: tuple[Tile, ...]
    writes: tuple[Tile, ...]
    over: tuple[Tile, ...]
    loops: tuple[Loop, ...]


class Carried(NamedTuple):
    """What a loop carries: what it starts from, its argument and result, and what the body hands back."""

    loop: Loop
    start: Tile | None
    tile: Tile
    next: Tile | None

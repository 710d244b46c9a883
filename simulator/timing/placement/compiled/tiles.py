"""Buffers and steps of a program after the compiler's rewrites: what is planned, and when it is written and read."""

from __future__ import annotations

from dataclasses import dataclass, field

from ....ir.program import Op, Value
from ..memory_spaces import UB

# Why a buffer is there.
TILE, WIDENED, COMPARED, BROADCAST, SCRATCH, INDICES, CARRIED = (
    "tile",
    "widened operand",
    "comparison",
    "broadcast",
    "scratch",
    "indices",
    "carried by the loop",
)


@dataclass(eq=False)
class Tile:
    """One buffer. element: its type by name; bits: of one element. slots: how often it is there.

    values: of the program, that lie in it. moved: a load fills it or a store empties it. scalar: scalar code touches it.
    loops: the loops around its making, outermost first.
    """

    shape: tuple[int, ...]
    element: str
    bits: int
    why: str
    op: Op
    space: str = UB
    size: int = 0  # bytes of one slot, aligned; 0: not known yet
    slots: int = 1
    values: list[Value] = field(default_factory=list)
    loops: tuple[Loop, ...] = ()
    loaded: bool = False
    stored: bool = False
    scalar: bool = False
    carried: bool = False
    first: int = -1
    last: int = -1

    @property
    def numel(self) -> int:
        n = 1
        for s in self.shape:
            n *= s
        return n

    @property
    def moved(self) -> bool:
        return self.loaded or self.stored


@dataclass(eq=False)
class Loop:
    """A loop that stays one. begin, end: its times."""

    op: Op
    begin: int
    end: int = -1


@dataclass(eq=False)
class Step:
    """One operation of the unit at one time. over: operands whose buffer the result may take."""

    at: int
    op: Op
    reads: tuple[Tile, ...]
    writes: tuple[Tile, ...]
    over: tuple[Tile, ...] = ()
    loops: tuple[Loop, ...] = ()

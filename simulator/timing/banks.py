"""Whether an instruction reads two sources from the same group of UB's banks in one repeat (DOC bank guide).

A repeat reads 256 bytes from each source, that is 8 of the 16 groups from the one of its start address on. Two sources
share a group unless their starts are half a turn apart, which neighbouring tiles of 2^n bytes never are. Two sources that
are the same tile share all of theirs. Conflicts of a write with a read, and those of scratch inside of an operation, are
not modelled.
"""

from __future__ import annotations

from itertools import combinations

from ..frontend.program import Op, Value
from ..products import Product
from .geometry import TILE, Definitions
from .homes import UB
from .place import Placement
from .slots import Slot


class Banks:
    """The banks of one product's UB under one placement."""

    def __init__(self, product: Product, definitions: Definitions, placement: Placement) -> None:
        self.turn = product.integer("ub_banks.groups") * product.integer("ub_banks.row_bytes")
        self.span = product.integer("vector.bytes_per_repeat")
        self.watched = product.text("ub_banks.read_read_conflict") != "none"
        self.definitions = definitions
        self.placement = placement

    def apart(self, distance: int) -> bool:
        """Whether sources whose starts are so many bytes apart never share a group."""
        return not self.watched or self.span <= distance % self.turn <= self.turn - self.span

    def conflict(self, op: Op) -> bool:
        """Whether two tiles that an operation reads share a group, in any copy of their buffers."""
        slots = [s for v in op.args if v is not None and (s := self._slot(v)) is not None]
        return any(not self._clear(a, b) for a, b in combinations(slots, 2))

    def _slot(self, v: Value) -> Slot | None:
        root = self.definitions.root(v) if v.shape and self.definitions.form(v) == TILE else None
        slot = None if root is None else self.placement.slot_of.get(root.id)
        return slot if slot is not None and slot.space == UB else None

    def _clear(self, a: Slot, b: Slot) -> bool:
        turns = range(max(a.copies, b.copies))
        return all(self.apart(_start(a, t) - _start(b, t)) for t in turns)


def _start(slot: Slot, turn: int) -> int:
    return slot.offset + turn % slot.copies * slot.size

"""Where instructions of the Vector unit meet in the banks of UB (DOC bank guide).

A bank has rows of 32 bytes; 16 groups of banks follow each other, and each area of 64 KiB has banks of its own. A repeat
reads 256 bytes from each source, that is 8 of the 16 groups from the one of its start address on.

    read and read    two sources in one group, in whatever area: unless their starts are half a period (256 of 512 bytes)
                     apart, which neighbouring tiles of 2^n bytes never are. Sources that are the same tile share all groups.
    write and read   in one bank, that is one group of one area. A write trails the reads by one repeat, so a result that
                     starts in the group of its source meets nothing of it, be it the same place or a tile further on.

Scratch inside of an operation is not looked at, nor what an instruction writes while the next one begins to read: that is
one repeat at most.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

import numpy as np

from ...ir.program import Op, Value
from ...products import Product
from .allocate import Placement
from .layouts import TILE, Definitions
from .memory_spaces import UB
from .slots import Slot

AREA_SHIFT = 16  # areas of 64 KiB (bank_of_address of the products)


class Banks:
    """The banks of one product's UB under one placement."""

    def __init__(self, product: Product, definitions: Definitions, placement: Placement) -> None:
        self.groups = product.integer("ub_banks.groups")
        self.row = product.integer("ub_banks.row_bytes")
        self.period = self.groups * self.row
        self.span = product.integer("vector.bytes_per_repeat")
        self.delay = product.integer("ub_banks.write_delay_repeats")
        self.watched = product.text("ub_banks.read_read_conflict") != "none"
        self.writes_watched = product.text("ub_banks.read_write_conflict") != "none"
        self.areas = product.text("ub_banks.read_write_conflict") == "same bank"
        self.definitions = definitions
        self.placement = placement

    def apart(self, distance: int) -> bool:
        """Whether sources whose starts are so many bytes apart never share a group."""
        return not self.watched or self.span <= distance % self.period <= self.period - self.span

    def conflict(self, op: Op) -> bool:
        """Whether two tiles that an operation reads share a group, in any copy of their buffers."""
        slots = self._sources(op)
        return any(not self._clear(a, b) for a, b in combinations(slots, 2))

    def writes_met(self, op: Op, elements: int, read_bits: int, write_bits: int) -> int:
        """Repeats in which an instruction over so many elements writes to a bank that it reads, in the worst copies.

        read_bits, write_bits: of an element of a source and of the result; the wider of them fills a repeat.
        """
        target = self._slot(op.results[0])
        if target is None or not self.writes_watched:
            return 0
        lanes = self.span * 8 // max(read_bits, write_bits)
        moves = lanes * read_bits // 8, lanes * write_bits // 8
        repeats = -(-elements // lanes)
        worst = 0
        for source in self._sources(op):
            for k in range(max(source.copies, target.copies)):
                places = _start(source, k), _start(target, k)
                worst = max(worst, self._met(places, moves, repeats))
        return worst

    def _met(self, places: tuple[int, int], moves: tuple[int, int], repeats: int) -> int:
        if (
            moves[0] == moves[1] == self.span
            and self.delay == 1
            and (places[0] - places[1]) % self.period == 0
        ):
            return 0
        return _met(places, moves, repeats, self.delay, self.row, self.groups, self.areas)

    def _sources(self, op: Op) -> list[Slot]:
        return [s for v in op.args if v is not None and (s := self._slot(v)) is not None]

    def _slot(self, v: Value) -> Slot | None:
        root = self.definitions.root(v) if v.shape and self.definitions.form(v) == TILE else None
        slot = None if root is None else self.placement.slot_of.get(root.id)
        return slot if slot is not None and slot.space == UB else None

    def _clear(self, a: Slot, b: Slot) -> bool:
        return all(self.apart(_start(a, k) - _start(b, k)) for k in range(max(a.copies, b.copies)))


def _start(slot: Slot, k: int) -> int:
    return slot.place(k % slot.copies)


@lru_cache(maxsize=4096)
def _met(
    places: tuple[int, int],
    moves: tuple[int, int],
    repeats: int,
    delay: int,
    row: int,
    groups: int,
    areas: bool,
) -> int:
    """Repeats of which one of the blocks read and one of the blocks written by an earlier repeat lie in one bank."""
    first = np.arange(delay, repeats)[:, None]
    read = places[0] // row + (first * moves[0]) // row + np.arange(max(1, moves[0] // row))
    wrote = places[1] // row + ((first - delay) * moves[1]) // row + np.arange(max(1, moves[1] // row))
    banks = [_bank(x, row, groups, areas) for x in (read, wrote)]
    return int((banks[0][:, :, None] == banks[1][:, None, :]).any(axis=(1, 2)).sum())


def _bank(rows: np.ndarray, row: int, groups: int, areas: bool) -> np.ndarray:
    """The bank of each row of 32 bytes; its group only where areas do not count."""
    area = (rows * row >> AREA_SHIFT) if areas else 0
    bank: np.ndarray = area * groups + rows % groups
    return bank

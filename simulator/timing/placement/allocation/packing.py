"""Where slots lie, and which share bytes: none while all of them fit, then those that make no transfer wait, then any.

Slots are placed largest first, each at the lowest offset that is free during its life. Whoever writes into shared bytes
waits for those who read what was there before. Instructions of the Vector unit come one after the other anyway; a load would
wait for them, and a loop could not begin to load while the one before it still works. The memory planner of the vendor's
compiler goes the same way (PlanMemory of AscendNPU-IR, as PTOAS has it: addresses without reuse if all buffers fit, else
reuse without conflicts of pipes, else any reuse between lives that do not overlap).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from ....ir.program import Op, Program, Value
from ..layouts import Definitions
from ..memory_spaces import UB
from ..slots import Slot
from ._first_fit import place

FILLED_BY_TRANSFER = ("load", "atomic", "from_l1")
EMPTIED_BY_TRANSFER = ("store", "atomic", "dot", "move")
ALIVE, MOVED, ANY = range(
    3
)  # which slots share no bytes: alive together; or one is moved by a transfer; any two


class Apart(NamedTuple):
    """pairs: slots, by identity, that one instruction reads together. period: bytes after which UB's banks come again; span:
    bytes that a repeat reads."""

    pairs: frozenset[tuple[int, int]]
    period: int
    span: int

    def near(self, slots: list[Slot]) -> np.ndarray:
        """Which of the slots one instruction reads together, as a matrix."""
        at = {id(s): k for k, s in enumerate(slots)}
        out = np.zeros((len(slots), len(slots)), np.uint8)
        for a, b in self.pairs:
            if a in at and b in at:
                out[at[a], at[b]] = out[at[b], at[a]] = 1
        return out


NOTHING_NEAR = np.zeros((0, 0), np.uint8)


def pack(
    slots: list[Slot],
    apart: Apart | None = None,
    capacity: int = 0,
    sharing: int = ALIVE,
    moved: frozenset[int] | set[int] = frozenset(),
) -> None:
    """Give offsets: largest first, each at the lowest place that no slot alive at the same time takes.

    apart: which slots one instruction reads together. Of the places half a period of UB's banks from one of these, and the
    lowest, a slot takes the one at which the fewest meet it.
    sharing: MOVED or ANY: also slots that are never alive together, one of them in `moved` (identities), share no bytes;
    they do where a slot would end above `capacity` otherwise.
    """
    slots = sorted(slots, key=lambda s: (-s.total, s.start, s.end))
    rows = [(s.total, s.size, s.copies, s.start, s.end) for s in slots]
    total, size, copies, start, end = np.array(rows, np.int64).reshape(-1, 5).T.copy()
    is_moved = np.array([id(s) in moved for s in slots], np.uint8)
    near, period, span = (
        (NOTHING_NEAR, 1, 0) if apart is None else (apart.near(slots), apart.period, apart.span)
    )
    offset, by_offset = np.zeros((2, len(slots)), np.int64)
    lives = (total, size, copies, start, end)
    place(*lives, is_moved, near, period, span, sharing, capacity, offset, by_offset, np.zeros_like(is_moved))
    for s, at in zip(slots, offset.tolist(), strict=True):
        s.offset = at


def move_apart(
    slots: list[Slot], capacity: int, moved: Callable[[], set[int]], apart: Apart | None = None
) -> None:
    """Give slots that are packed and fit places with as few shared bytes as there is room for.

    moved: gives identities of the slots that transfers fill or empty. apart: as for `pack`.
    """
    packed = [s.offset for s in slots]
    if sum(s.total for s in slots) <= capacity:
        pack(slots, apart, capacity, ANY)
        if _fit(slots, capacity):
            return
    pack(slots, apart, capacity, MOVED, moved())
    if not _fit(slots, capacity):
        for s, offset in zip(slots, packed, strict=True):
            s.offset = offset


def _fit(slots: list[Slot], capacity: int) -> bool:
    return all(s.offset + s.total <= capacity for s in slots)


def transferred(
    program: Program, definitions: Definitions, slot_of: dict[int, Slot], in_transit: Iterable[Slot]
) -> set[int]:
    """Identities of the slots that another unit than the Vector unit touches: by MTE2, MTE3, the Cube or the fixpipe.

    in_transit: those of tiles on their way from one unit to another.
    """
    out = {id(s) for s in in_transit}
    for op in program.walk():
        for v in _moved_by(op):
            root = None if v is None else definitions.root(v)
            if root is not None and root.id in slot_of:
                out.add(id(slot_of[root.id]))
    return out | {id(s) for s in slot_of.values() if s.space != UB}


def _moved_by(op: Op) -> list[Value | None]:
    """Values that an operation brings into a buffer or takes out of it."""
    filled = list(op.results) if op.kind in FILLED_BY_TRANSFER else []
    return [*filled, *(op.args if op.kind in EMPTIED_BY_TRANSFER else ())]

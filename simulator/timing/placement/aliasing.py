"""Which buffers share bytes: none while all of them fit, then those that make no transfer wait, then any.

Whoever writes into shared bytes waits for those who read what was there before. Instructions of the Vector unit come one
after the other anyway; a load would wait for them, and a loop could not begin to load while the one before it still works.
The memory planner of the vendor's compiler goes the same way (PlanMemory of AscendNPU-IR, as PTOAS has it: addresses without
reuse if all buffers fit, else reuse without conflicts of pipes, else any reuse between lives that do not overlap).
"""

from __future__ import annotations

from collections.abc import Iterable

from ...ir.program import Op, Program, Value
from .layouts import Definitions
from .memory_spaces import UB
from .slots import Apart, Slot, pack

FILLED_BY_TRANSFER = ("load", "atomic", "from_l1")
EMPTIED_BY_TRANSFER = ("store", "atomic", "dot", "move")


def move_apart(slots: list[Slot], capacity: int, moved: set[int], apart: Apart | None) -> None:
    """Give slots that are packed and fit places with as few shared bytes as there is room for.

    moved: identities of the slots that transfers fill or empty. apart: as for `pack`.
    """
    packed = [s.offset for s in slots]
    if sum(s.total for s in slots) <= capacity:
        pack(slots, apart, capacity, lambda a, b: True)
        if _fit(slots, capacity):
            return
    pack(slots, apart, capacity, lambda a, b: id(a) in moved or id(b) in moved)
    if not _fit(slots, capacity):
        for s, offset in zip(slots, packed, strict=True):
            s.offset = offset


def _fit(slots: list[Slot], capacity: int) -> bool:
    return all(s.offset + s.total <= capacity for s in slots)


def transferred(
    program: Program, definitions: Definitions, slot_of: dict[int, Slot], crossing: Iterable[Slot]
) -> set[int]:
    """Identities of the slots that another unit than the Vector unit touches: by MTE2, MTE3, the Cube or the fixpipe.

    crossing: those of tiles on their way from one unit to another.
    """
    out = {id(s) for s in crossing}
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

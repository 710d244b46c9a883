"""Which bytes of UB, L1 and L0C each tile value gets, and whether all of them fit.

Each dense value lives from its definition to its last use. A value that a loop carries keeps one buffer through the loop;
an elementwise result may take over the buffer of an operand that dies there. A tile that is loaded or stored inside a
loop gets copies and keeps them through the loop, so that the next iteration's transfer can overlap this one's work.
Buffers are packed largest first, each at the lowest offset that is free during its life; where there is room they then move
apart (`allocation/packing.py`). This is how an author of Ascend C places them; `compiled/` has the rules of the compiler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from ...errors import BufferOverflowError
from ...ir.program import Value
from ...record.run import Buffer
from .allocation.context import Allocation, Choice
from .allocation.copies import give_copies, share_with_stores
from .allocation.explicit import explicit_slots
from .allocation.extra_slots import BIAS_IN_L1
from .allocation.packing import Apart, move_apart, pack, transferred
from .allocation.tiles import give_slots
from .layouts import TILE, align
from .memory_spaces import UB
from .needs import Needs
from .shared_rows.pieces import Pieces
from .slots import Slot, find_clobbers, ledger, overflow
from .stages import Stages

# Periods of the banks from which on a buffer is rounded up to whole ones, if its tiles are to keep apart.
WHOLE_PERIODS = 4
Limits = Mapping[str, tuple[int, int]]  # buffer -> (capacity in bytes, alignment in bytes)


class Placement(NamedTuple):
    """Slots of a launch: see `Allocation`. buffers: peak against capacity.

    rows: value -> axis of which each of the two Vector cores of a program has half; none where one core works, or where the
    kernel itself gives them their work.
    stages: loops whose stages run `tiles` iterations each before the next stage does.
    pieces: loops that are cut once more.
    repeated: value -> the one that an equal operation made before it: the compiler makes both once.
    """

    slots: tuple[Slot, ...]
    slot_of: dict[int, Slot]
    scratch_of: dict[int, Slot]
    spread_of: dict[int, Slot]
    ub_copy: dict[int, Slot]
    l1_copy: dict[tuple[int, int], Slot]
    sum_of: dict[int, Slot]
    loop_of: dict[int, int]
    buffers: dict[str, Buffer]
    engine_slots: int
    notes: tuple[str, ...] = ()
    rows: Mapping[int, int] = {}
    pieces: Pieces = Pieces()
    repeated: Mapping[int, int] = {}
    stages: Mapping[int, Stages] = {}
    tiles: int = 1

    @property
    def stage_of(self) -> dict[int, int]:
        """Of each operation in such a loop."""
        return {op: stage for x in self.stages.values() for op, stage in x.of_op.items()}


def place(needs: Needs, choice: Choice, limits: Limits, device: str) -> Placement:
    """Buffers of all values. Where tiles that one instruction reads together cannot lie half a period of the banks apart,
    they are packed; where that does not fit, temporaries share the buffers of stores.

    Raises `BufferOverflowError` when the values do not fit.
    """
    a = _allocated(needs, choice, limits)
    try:
        return _placed(a, limits)
    except BufferOverflowError as e:
        found, of = e, a
    if choice.copies > 1 and choice.most.get(UB) != 1:
        shared = _allocated(needs, choice, limits, tight=True)
        try:
            return _packed(shared, limits, None)
        except BufferOverflowError as e:
            if e.space == found.space:
                found, of = e, shared
    raise _told(found, of, device)


def _told(e: BufferOverflowError, a: Allocation, device: str) -> BufferOverflowError:
    """With what is alive at the worst point of the buffer."""
    mine = [s for s in a.every if s.space == e.space]
    found = ledger(mine, e.have_bytes, a.lives.lines, a.needs.names)
    text = overflow(a.needs.program, e.space, found, device)
    return BufferOverflowError(text, e.space, e.need_bytes, e.have_bytes)


def _allocated(needs: Needs, choice: Choice, limits: Limits, tight: bool = False) -> Allocation:
    """All slots, not packed yet."""
    a = Allocation(needs, choice, {space: bytes_ for space, (_, bytes_) in limits.items()}, tight)
    a.slot_of.update(explicit_slots(needs.program, needs.spaces, needs.lives, a.size))
    give_slots(a, needs.program.body)
    give_copies(a, needs.program.body)
    if tight:
        share_with_stores(a)
    return a


def _placed(a: Allocation, limits: Limits) -> Placement:
    """With tiles apart in the banks if that is wanted and there is room, else packed.

    Tiles of whole periods are tried first; where they do not fit, a gap before one of a pair may (add_high_performance, case
    6: six tiles of 63.5 periods and a gap of half a period).
    """
    sizes = [(s, s.size) for s in a.every]
    for whole in (True, False) if a.choice.banks is not None else ():
        assert a.choice.banks is not None
        try:
            return _packed(a, limits, _apart(a, *a.choice.banks, whole))
        except BufferOverflowError:
            for s, size in sizes:
                s.size = size
    return _packed(a, limits, None)


def _apart(a: Allocation, period: int, span: int, whole: bool) -> Apart:
    """Tiles of UB that are sources of one vector instruction; whole: larger ones take whole periods of the banks."""
    pairs = set()
    for op in a.needs.program.walk():
        if op.kind in ("binary", "compare", "select"):
            found = [s for v in op.args if v is not None and (s := _source(a, v)) is not None]
            pairs |= {(id(s), id(t)) for s, t in combinations(found, 2) if s is not t}
    for s in {id(s): s for s in a.slot_of.values() if s.space == UB}.values():
        if whole and s.size > WHOLE_PERIODS * period:
            s.size = align(s.size, period)
    return Apart(frozenset(pairs), period, span)


def _source(a: Allocation, v: Value) -> Slot | None:
    root = a.definitions.root(v) if v.shape and a.definitions.form(v) == TILE else None
    slot = None if root is None else a.slot_of.get(root.id)
    return slot if slot is not None and slot.space == UB else None


def _packed(a: Allocation, limits: Limits, apart: Apart | None) -> Placement:
    """Raises a `BufferOverflowError` without its text."""
    live, number = a.every, 0
    for s in live:
        s.number = number
        number += s.copies
    buffers = {}
    for space, (capacity, _) in limits.items():
        mine = [s for s in live if s.space == space]
        found = _pack_one(a, mine, space, capacity, apart if space == UB else None)
        if mine or space == UB:
            buffers[space] = found
    found_so = a.slot_of, a.scratch_of, a.spread_of, a.ub_copy, a.l1_copy, a.sum_of, a.loop_of
    return Placement(tuple(live), *found_so, buffers, number)


def _pack_one(a: Allocation, mine: list[Slot], space: str, capacity: int, apart: Apart | None) -> Buffer:
    """Offsets of the slots of one buffer."""
    pack(mine, apart)
    peak = max((s.offset + s.total for s in mine), default=0)
    if peak > capacity:
        raise BufferOverflowError("", space, peak, capacity)
    move_apart(
        mine, capacity, lambda: transferred(a.needs.program, a.definitions, a.slot_of, a.in_transit), apart
    )
    find_clobbers(mine)
    placed = ledger(mine, capacity, a.lives.lines, a.needs.names)
    return replace(placed, peak_bytes=peak, placed_bytes=placed.peak_bytes)


__all__ = ["BIAS_IN_L1", "Placement", "place"]

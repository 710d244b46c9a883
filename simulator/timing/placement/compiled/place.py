"""A placement as the vendor's compiler makes it, with its second tries (4.8; AscendNPU-IR, OverFlowPolicyBase.cpp)."""

from __future__ import annotations

from dataclasses import replace

from ....errors import BufferOverflowError
from ....record.run import Buffer
from ..allocate import Limits, Placement
from ..allocation.context import Choice
from ..memory_spaces import L0C, UB
from ..needs import Needs
from ..shared_rows.pieces import Pieces, cut_loops
from ..shared_rows.rows import SharedRows, shared_rows
from ..slots import Slot, find_clobbers, ledger, overflow
from .building import Rules
from .expansion import Expansion
from .plan import BufferPlan
from .slots_of_tiles import slots_of

SINGLE = 1  # copies without multibuffer
Try = tuple[bool, int, str]  # code motion, copies, what was taken back


def place_compiled(
    needs: Needs, choice: Choice, limits: Limits, device: str, again: bool = True
) -> Placement:
    """Buffers of all values. again: without code motion, then without second copies, where the first does not fit.

    Raises `BufferOverflowError` with the need of the last try.
    """
    found = shared_rows(needs.spaces, choice.sub_blocks, compiled=True)
    rows, why = found
    pieces = _pieces(needs, choice, found, limits)
    tries: list[Try] = [
        (True, choice.copies, ""),
        (False, choice.copies, "code motion"),
        (False, SINGLE, "multibuffer"),
    ]
    needed: list[BufferOverflowError] = []
    for motion, copies, taken in tries[: len(tries) if again else 1]:
        plan = BufferPlan(
            Expansion(needs, Rules(rows, pieces, choice.blocks, motion, not again)),
            copies,
            choice.copied,
            _alignment(limits),
        )
        try:
            placed = _placed(plan, limits, device)
        except BufferOverflowError as e:
            needed.append(e)
            continue
        notes = [_note(taken, needed[-1], placed)] if needed else []
        notes += [f"one Vector core works: {why}"] if why else []
        return placed._replace(notes=(*placed.notes, *notes, *pieces.notes), rows=rows, pieces=pieces)
    raise needed[-1]


def _pieces(needs: Needs, choice: Choice, found: SharedRows, limits: Limits) -> Pieces:
    """Loops that are cut once more: along the axis that both Vector cores share, also where one does all of the work."""
    if choice.pieces == (1, 1):
        return Pieces()
    axis = found if found.axis_of else shared_rows(needs.spaces, True, compiled=True)
    l0c_bytes = limits[L0C][0] if L0C in limits else 0
    return cut_loops(
        needs.spaces, needs.stages, axis, bool(found.axis_of), choice.pieces, l0c_bytes, choice.pipelined
    )


def _alignment(limits: Limits) -> dict[str, int]:
    return {space: unit for space, (_, unit) in limits.items()}


def _note(taken: str, e: BufferOverflowError, found: Placement) -> str:
    """What the compiler took back, with the need before and after."""
    now = found.buffers[e.space].peak_bytes if e.space in found.buffers else 0
    return f"{taken} was taken back to fit: {e.space} needs {now} bytes, and with it {e.need_bytes} of {e.have_bytes} bytes"


def _placed(plan: BufferPlan, limits: Limits, device: str) -> Placement:
    """Raises `BufferOverflowError` for the first space that does not hold its buffers."""
    made = slots_of(plan)
    number = 0
    for s in made.every:
        s.number = number
        number += s.copies
    buffers = {
        space: _one_space(plan, made.every, made.by_tile, space, capacity, device)
        for space, (capacity, _) in limits.items()
        if space == UB or any(s.space == space for s in made.every)
    }
    return Placement(
        tuple(made.every),
        made.slot_of,
        made.scratch_of,
        made.spread_of,
        made.ub_copy,
        made.l1_copy,
        made.sum_of,
        dict(plan.x.needs.loop_of),
        buffers,
        number,
        repeated=plan.x.same,
    )


def _one_space(
    plan: BufferPlan, every: list[Slot], by_tile: dict[int, Slot], space: str, capacity: int, device: str
) -> Buffer:
    """Addresses of one space. It fits if the sum does or the figure of 3.20, which is what is told as its peak (3.21)."""
    mine = [s for s in every if s.space == space]
    need = plan.need(space)
    for tile, places in plan.places(space, capacity).items():
        by_tile[tile].offsets, by_tile[tile].offset = places, min(places)
    found = ledger(mine, capacity, plan.x.lines(), plan.x.needs.names)
    if need > capacity:
        text = overflow(plan.x.program, space, replace(found, peak_bytes=need), device)
        raise BufferOverflowError(text, space, need, capacity)
    find_clobbers(mine)
    return replace(found, peak_bytes=need, placed_bytes=found.peak_bytes)

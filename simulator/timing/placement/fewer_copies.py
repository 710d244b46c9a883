"""Fewer copies of tiles than were asked for, where these do not fit: of a kernel with products, as many as do.

The tiles of UB and of L1 count by themselves. A kernel without products overflows instead, as the vendor's compiler has it.
"""

from __future__ import annotations

from ...errors import BufferOverflowError
from ...ir.program import Program
from .allocate import Limits, Placement, place
from .allocation.context import Choice
from .memory_spaces import L0C, L1, UB
from .needs import Needs
from .shared_rows.rows import shared_rows

WHY = {
    UB: "in a kernel with products the vendor's compiler gives copies to L1 only unless told otherwise "
    "(limit-mix-auto-multi-buffer-buffer)",
    L1: "assumed of the vendor's compiler, whose fused attention (tutorial 04) runs at sizes whose second copies have no "
    "room",
}


def place_with_fewer(needs: Needs, choice: Choice, limits: Limits, device: str) -> Placement:
    """As `place`, with the largest numbers of copies that fit, which the notes tell if they are not those asked for.

    Where the stages of a loop can run apart, as many of its iterations are under way as fit, up to `choice.tiles`.
    The two Vector cores of a program share its rows.
    Raises `BufferOverflowError` when not even one copy of each tile fits.
    """
    rows, why = shared_rows(needs.spaces, choice.sub_blocks, compiled=False)
    notes = (f"one Vector core works: {why}",) if why else ()
    found = _in_stages(needs.halved(rows) if rows else needs, choice, limits, device)
    return found._replace(notes=(*found.notes, *notes), rows=rows)


def _in_stages(needs: Needs, choice: Choice, limits: Limits, device: str) -> Placement:
    """With as many iterations under way as fit."""
    tiles, refused = choice.tiles if needs.stages else 1, None
    least = max((x.rounds for x in needs.stages.values()), default=1)
    while tiles >= max(2, least):
        try:
            return _staged(needs, choice._replace(tiles=tiles), limits, device)
        except BufferOverflowError as e:
            refused, tiles = e, tiles // 2
    found = _with_fewer(needs, choice._replace(tiles=1), limits, device)
    return found if refused is None else found._replace(notes=(*found.notes, _in_turn(refused)))


def _staged(needs: Needs, choice: Choice, limits: Limits, device: str) -> Placement:
    """With stages of loops that run apart: products have a second place in L0C if there is room."""
    asked = most_copies(needs.program, choice.copies)
    for most in ({L0C: asked if choice.l0c else 1}, {L0C: 1}, {L0C: 1, UB: 1}):
        try:
            found = place(needs, choice._replace(most={UB: asked, L1: asked, **most}), limits, device)
        except BufferOverflowError as e:
            refused = e
        else:
            note = f"{choice.tiles} iterations of a loop are under way between Cube and Vector (set_workspace_multibuffer)"
            return found._replace(stages=needs.stages, tiles=choice.tiles, notes=(*found.notes, note))
    raise refused


def _with_fewer(needs: Needs, choice: Choice, limits: Limits, device: str) -> Placement:
    asked = most_copies(needs.program, choice.copies)
    given = {UB: asked, L1: asked}
    refused: dict[str, BufferOverflowError] = {}
    while True:
        try:
            found = place(needs, choice._replace(most=given), limits, device)
        except BufferOverflowError as e:
            if not needs.spaces.has_dot or given.get(e.space, 1) == 1:
                raise
            given[e.space] -= 1
            refused[e.space] = e
        else:
            notes = (_note(space, asked, given[space], e) for space, e in refused.items())
            return found._replace(notes=(*found.notes, *notes))


def most_copies(program: Program, copies: int) -> int:
    """The most copies of a tile that the launch or a loop asks for."""
    loops = (op.attrs.get("hints", {}).get("num_stages") for op in program.of_kind("for"))
    return max(copies, 1, *(int(n) for n in loops if n))


def _note(space: str, asked: int, given: int, e: BufferOverflowError) -> str:
    """What one copy more than given would have taken."""
    have = f"{'one copy' if given == 1 else f'{given} copies'}, not the {asked} asked for"
    need = f"{given + 1} take {e.need_bytes} of {e.have_bytes} bytes"
    return f"tiles of {space} have {have}: {need}; {WHY[space]}"


def _in_turn(e: BufferOverflowError) -> str:
    """Why Cube and Vector wait for each other."""
    return (
        f"Cube and Vector take turns in each iteration: two under way at once take {e.need_bytes} of {e.have_bytes} "
        f"bytes of {e.space}"
    )

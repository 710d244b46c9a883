"""Fewer copies of tiles than were asked for, where these do not fit: of a kernel with products, as many as do.

The tiles of UB and of L1 count by themselves. A kernel without products overflows instead, as the vendor's compiler has it.
"""

from __future__ import annotations

from ...errors import BufferOverflowError
from ...ir.program import Program
from .allocate import Limits, Placement, place
from .allocation.context import Choice
from .memory_spaces import L1, UB
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

    The two Vector cores of a program share its rows.

    Raises `BufferOverflowError` when not even one copy of each tile fits.
    """
    rows, why = shared_rows(needs.spaces, choice.sub_blocks, compiled=False)
    if rows:
        needs = needs.halved(rows)
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
            notes = [_note(space, asked, given[space], e) for space, e in refused.items()]
            notes += [f"one Vector core works: {why}"] if why else []
            return found._replace(notes=(*found.notes, *notes), rows=rows)


def most_copies(program: Program, copies: int) -> int:
    """The most copies of a tile that the launch or a loop asks for."""
    loops = (op.attrs.get("hints", {}).get("num_stages") for op in program.of_kind("for"))
    return max(copies, 1, *(int(n) for n in loops if n))


def _note(space: str, asked: int, given: int, e: BufferOverflowError) -> str:
    """What one copy more than given would have taken."""
    have = f"{'one copy' if given == 1 else f'{given} copies'}, not the {asked} asked for"
    need = f"{given + 1} take {e.need_bytes} of {e.have_bytes} bytes"
    return f"tiles of {space} have {have}: {need}; {WHY[space]}"

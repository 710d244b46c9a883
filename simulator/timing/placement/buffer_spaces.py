"""Which tiles are made in the explicit buffer that they are put into, so that nothing has to be moved."""

from __future__ import annotations

from ...ir.building.buffers import moved
from ...ir.liveness import read_by
from ...ir.operations import operation
from ...ir.program import Op, Program, Region
from .layouts import TILE, Definitions

ELSEWHERE = ("alloc", "for", "while", "if", "from_l1", "move")


def made_in_place(program: Program, definitions: Definitions) -> dict[int, Op]:
    """Moves of a whole tile that its operation can write straight into the buffer: move -> that operation.

    Both stand in one region, and nothing in between reads or writes the buffer.
    """
    out: dict[int, Op] = {}
    if program.buffers:
        _region(program, definitions, program.body, out)
    return out


def _region(program: Program, definitions: Definitions, region: Region, out: dict[int, Op]) -> None:
    at = {op.id: k for k, op in enumerate(region.ops)}
    for op in region.ops:
        for inner in op.regions:
            _region(program, definitions, inner, out)
        made = _made_for(definitions, op)
        if made is None or made.id not in at or made in out.values():
            continue
        if not _touched(program, op, region.ops[at[made.id] : at[op.id]]):
            out[op.id] = made


def _made_for(definitions: Definitions, op: Op) -> Op | None:
    """What makes the tile of a whole-tile `bind`."""
    if op.kind != "move" or op.name != "bind" or op.attrs["offsets"] is not None:
        return None
    v = moved(op)
    made = definitions.of(v)
    if made is None or made.kind in ELSEWHERE or definitions.form(v) != TILE or definitions.root(v) is not v:
        return None
    return made


def _touched(program: Program, move: Op, between: list[Op]) -> bool:
    """Whether one of the operations needs what the buffer held; the first may write over its own operand."""
    mine = program.buffers.get(move.results[0].id)
    if mine is None:
        return True  # a buffer where a tensor lies has no place of its own
    return any(
        any(program.buffers.get(v) is mine for v in read_by(op))
        for k, op in enumerate(between)
        if k or not operation(op).elementwise
    )

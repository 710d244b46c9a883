"""Removes what computes tiles that nobody reads, as every compiler does: it takes neither time nor room.

What is there for more than its result stays (loads are, so that one that goes astray is told), as does what may fail for
some numbers. Numbers and formulas stay, too: the scalar unit's part was fitted with all of them in place. In AscendNPU-IR
it is the canonicalisation before buffers are made (lib/Dialect/HIVM/Pipelines/HIVMPipelines.cpp).
"""

from __future__ import annotations

from ..operations import operation
from ..program import Op, Program, Region, Value

STAY = ("load", "alloc", "move", "custom", "send", "receive")  # may go astray, is a buffer, or the user's own


def remove_dead_code(program: Program) -> None:
    """Remove each such operation of the program, and what only it read."""
    read: dict[int, int] = {}
    _count(program.body, read)
    _region(program.body, read)


def _count(region: Region, read: dict[int, int]) -> None:
    """How often each value (by id) is read."""
    for op in region.ops:
        for v in op.args:
            if v is not None:
                read[v.id] = read.get(v.id, 0) + 1
        for inner in op.regions:
            _count(inner, read)
    for v in region.yields:
        read[v.id] = read.get(v.id, 0) + 1


def _region(region: Region, read: dict[int, int]) -> None:
    kept: list[Op] = []
    for op in reversed(region.ops):
        for inner in op.regions:
            _region(inner, read)
        if _removable(op) and not any([read.get(r.id) for r in op.results]):
            for v in op.args:
                if v is not None:
                    read[v.id] -= 1
        else:
            kept.append(op)
    region.ops = kept[::-1]


def _removable(op: Op) -> bool:
    """Whether an operation is there for its results only, and works on elements."""
    entry = operation(op)
    if op.regions or entry.effect or entry.may_fail or op.kind in STAY:
        return False
    return any([v is not None and _elements(v) for v in (*op.args, *op.results)])


def _elements(v: Value) -> bool:
    return v.static.kind == "dense" if v.shape else v.dtype.is_floating()

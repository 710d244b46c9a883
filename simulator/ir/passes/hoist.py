"""Moves symbolic operations that are the same in every iteration out of their loops, as a compiler does.

Only operations that cost nothing in a buffer are moved (constants, index arithmetic, masks, views of scalars); dense ones
stay where the kernel's author put them, since moving them would change what is alive in UB.
"""

from __future__ import annotations

from ..operations import operation
from ..program import Op, Program, Region

ARITHMETIC = ("binary", "compare", "cast")


def hoist(program: Program) -> None:
    """Move what can be moved, innermost loops first."""
    _region(program.body)


def _region(region: Region) -> None:
    ops: list[Op] = []
    for op in region.ops:
        for inner in op.regions:
            _region(inner)
        if op.kind in ("for", "while"):
            ops.extend(_taken_out(op))
        ops.append(op)
    region.ops = ops


def _taken_out(loop: Op) -> list[Op]:
    """Operations of the loop's bodies that depend on nothing inside; they are removed from there."""
    inside = {v for r in loop.regions for v in _defined(r)}
    moved: list[Op] = []
    for region in loop.regions:
        kept = []
        for op in region.ops:
            if not _reads(op, inside) and _movable(op):
                moved.append(op)
                inside.difference_update(r.id for r in op.results)
            else:
                kept.append(op)
        region.ops = kept
    return moved


def _reads(op: Op, values: set[int]) -> bool:
    return any([v is not None and v.id in values for v in op.args])


def _defined(region: Region) -> list[int]:
    """Values (by id) defined in a region, those of inner regions included."""
    out = [v.id for v in region.args]
    for op in region.ops:
        out += [v.id for v in op.results]
        for inner in op.regions:
            out.extend(_defined(inner))
    return out


def _movable(op: Op) -> bool:
    entry = operation(op)
    if op.kind not in ARITHMETIC:
        return entry.formula and all(r.static.kind != "dense" for r in op.results)
    if entry.may_fail:
        return False
    integer = all(v is None or not v.dtype.is_floating() for v in op.args)
    return integer and all(r.static.kind in ("scalar", "affine", "box") for r in op.results)

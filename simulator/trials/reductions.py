"""Whether another size of a tile leaves the sums of a kernel what they are.

A reduction along an axis of another length gives another result, unless its results are added up afterwards: by a loop, or
by an atomic operation. So the depth of a product may be cut otherwise, and the width of a row that is normalised may not.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.program import Op, Program, Region, Value

ALONG = ("reduce", "arg_reduce", "scan", "sort", "gather", "histogram")  # an axis of their first operand
# Through which a partial result goes on to what adds them up.
ADDING = ("add", "sub", "mul", "max", "min", "and", "or", "xor", "div")
MOVING = ("cast", "select", "fma", "broadcast", "expand_dims", "reshape", "permute", "splat")
LOOPS = ("for", "while")


def sums_stay(now: Program, changed: Program) -> bool:
    """Whether each reduction along an axis that has another length in `changed` is one part of a sum."""
    both = _reducing(now), _reducing(changed)
    if [op.kind for op in both[0]] != [op.kind for op in both[1]]:
        return False
    cut = [a for a, b in zip(*both, strict=True) if _length(a) != _length(b)]
    return all(_added_up(now, op) for op in cut)


def _reducing(program: Program) -> list[Op]:
    return [op for op in program.walk() if op.kind in (*ALONG, "dot")]


def _length(op: Op) -> int:
    """Of the axis that an operation reduces."""
    if op.kind == "dot":
        return op.operand(0).shape[-1]
    v, axis = op.operand(0), op.attrs.get("axis")
    return v.numel if axis is None else v.shape[axis]


def _added_up(program: Program, op: Op) -> bool:
    """Whether the result reaches what a loop carries, or memory by an atomic, through additions and the like alone."""
    reached = {r.id for r in op.results}
    for other in program.walk():
        if any(v is not None and v.id in reached for v in other.args):
            if other.kind == "atomic":
                return True
            if _passes(other, reached):
                reached |= {r.id for r in other.results}
    return any(v.id in reached for v in _carried(program.body))


def _passes(op: Op, reached: set[int]) -> bool:
    if op.kind == "dot":
        start = op.args[2]
        return start is not None and start.id in reached
    return op.kind in MOVING or (op.kind == "binary" and op.name in ADDING)


def _carried(region: Region) -> Iterator[Value]:
    """What loops hand on from one iteration to the next."""
    for op in region.ops:
        for inner in op.regions:
            if op.kind in LOOPS:
                yield from inner.yields
            yield from _carried(inner)

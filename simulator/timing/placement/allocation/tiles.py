"""Slots of values outside of loops and in one iteration of each: what an operation makes, and what a branch hands on."""

from __future__ import annotations

from ....ir.program import Op, Region, Value
from ..memory_spaces import UB
from ..needs import LOOPS, Made
from ..slots import Slot
from .carried import carry
from .context import Allocation
from .extra_slots import cross, scratch, spread


def give_slots(a: Allocation, region: Region) -> None:
    """Slots of all values of a region and of the regions inside it."""
    for op in a.needs.acting[id(region)]:
        if op.kind in LOOPS:
            _loop(a, op)
            continue
        if op.kind == "if":
            _if_results(a, op)
        for inner in op.regions:
            give_slots(a, inner)
        for made in a.needs.made.get(op.id, ()):
            if made.value.id not in a.slot_of:
                _make(a, made, a.lives.at[op.id])
        scratch(a, op)
        spread(a, op)
        cross(a, op)


def _loop(a: Allocation, op: Op) -> None:
    carry(a, op)
    a.loops.append(op)
    for inner in op.regions:
        give_slots(a, inner)
    a.loops.pop()
    cross(a, op)


def _make(a: Allocation, made: Made, at: int) -> None:
    v, last = made.value, a.lives.last
    slot = _taken_over(a, made, at)
    if slot is None:
        born = a.lives.birth(v)
        slot = a.new(v, made.space, born, last.get(v.id, born))
    slot.end = max(slot.end, last.get(v.id, at))
    a.join(slot, (v,))


def _taken_over(a: Allocation, made: Made, at: int) -> Slot | None:
    """The buffer of an operand of the same size that dies at this operation."""
    for root, loaded in made.dying:
        slot = a.slot_of.get(root.id)
        if slot is None or slot.space != UB or slot.label or slot.end != at:
            continue
        if root.id not in a.choice.blocks.landing and (a.tight or not loaded):
            return slot
    return None


def _if_results(a: Allocation, op: Op) -> None:
    """A result of an `if` and what its branches yield share one buffer."""
    for k, r in enumerate(op.results):
        if a.definitions.root(r) is not r or r.id in a.slot_of:
            continue
        born = a.lives.birth(r)
        slot = a.new(r, a.spaces.space_of(r), born, a.lives.last.get(r.id, born))
        slot.start = a.lives.at[op.id]
        a.join(slot, (r,))
        for inner in op.regions:
            _join_branch(a, inner.yields[k], inner, slot)


def _join_branch(a: Allocation, y: Value, branch: Region, slot: Slot) -> None:
    """Let a branch compute its result straight into the buffer of the `if`."""
    root = a.definitions.root(y)
    if root is None or root.id in a.slot_of or a.definitions.of(root) not in branch.ops:
        return
    if a.size(root, slot.space) == slot.size:
        a.join(slot, (root,))

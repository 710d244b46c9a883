"""Slots of what loops carry: one for the start, if it dies there, for what the body gets and, where it can, hands back."""

from __future__ import annotations

from ....ir.operations import operation
from ....ir.program import Op, Region, Value
from ..layouts import tile_bytes
from ..memory_spaces import L0C, UB
from ..needs import INSERTION
from ..slots import Slot
from .context import Allocation


def carry(a: Allocation, loop: Op) -> None:
    """Slots of everything that a loop carries in buffers."""
    for k, r in enumerate(loop.results):
        formula = r.static.kind != "dense" and (r.shape or r.dtype.is_int())
        if not (formula or r.is_pointer or r.id in a.slot_of):
            _carry_one(a, loop, k)


def _carry_one(a: Allocation, loop: Op, k: int) -> None:
    r, skip = loop.results[k], 1 if loop.kind == "for" else 0
    args = [inner.args[skip + k] for inner in loop.regions if len(inner.args) > skip + k]
    _, end = a.lives.spans[loop.id]
    slot = _slot(a, loop, k)
    slot.why = "carried"
    slot.end = max(slot.end, end, a.lives.last.get(r.id, end))
    a.join(slot, (*args, r))
    a.loop_of.update((v.id, a.loop) for v in (*args, r))
    _join_yield(a, loop.regions[-1].yields[k], args[-1], slot, loop.regions[-1])


def _slot(a: Allocation, loop: Op, k: int) -> Slot:
    """The buffer of what the value starts from, if that ends here and fits; else a new one."""
    r, start = loop.results[k], loop.args[(3 if loop.kind == "for" else 0) + k]
    begin, end = a.lives.spans[loop.id]
    root = None if start is None else a.definitions.root(start)
    slot, space = None if root is None else a.slot_of.get(root.id), a.spaces.space_of(r)
    alive = root is not None and a.lives.last.get(root.id, -1) > end
    same = slot is not None and slot.size == a.size(r, space) and slot.space == space and not slot.label
    return slot if slot is not None and same and not alive else a.new(r, space, begin, end)


def _join_yield(a: Allocation, y: Value, arg: Value, slot: Slot, body: Region) -> None:
    """Let the body write the new value straight into the carried buffer, if the old one is not needed any more."""
    root = a.definitions.root(y)
    made = None if root is None else a.definitions.of(root)
    if root is None or root.id in a.slot_of or made is None or made not in body.ops:
        return
    if slot.space == L0C:  # products are added into the accumulator where it lies
        a.join(slot, a.spaces.products_from(root, arg) or [root])
    elif made.kind == INSERTION:
        a.join(slot, _insertions(a, root, arg, body))
    elif a.needs.last_read(arg, body) <= a.lives.at[made.id]:
        _write_over(a, made, root, arg, slot)


def _write_over(a: Allocation, made: Op, root: Value, arg: Value, slot: Slot) -> None:
    """The new value in the place of an old one that is not read later."""
    if made.kind == "dot" and root.id in a.spaces.added and slot.space == UB:
        a.sum_of[root.id] = slot
    elif (
        operation(made).elementwise and a.spaces.space_of(root) == UB and tile_bytes(root) == tile_bytes(arg)
    ):
        a.join(slot, (root,))


def _insertions(a: Allocation, root: Value, arg: Value, body: Region) -> list[Value]:
    """Insertions one after another into the carried tile, each the last use of what the one before made; else none."""
    chain: list[Value] = []
    made = a.definitions.of(root)
    while made is not None and made.kind == INSERTION and made in body.ops and root.id not in a.slot_of:
        assert made.args[0] is not None
        into = a.definitions.root(made.args[0])
        if into is None or any(a.definitions.root(y) is into for y in body.yields):
            return []
        if a.needs.last_read(into, body) > a.lives.at[made.id] or tile_bytes(into) != tile_bytes(root):
            return []
        chain.append(root)
        root, made = into, a.definitions.of(into)
    return chain if root is arg else []

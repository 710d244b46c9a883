"""A placement as the vendor's compiler makes it, with its second tries."""

from __future__ import annotations

from dataclasses import replace

from ....errors import BufferOverflowError
from ....record.run import Buffer
from ..accumulator_inits import BT
from ..allocate import Limits, Placement
from ..allocation.context import Choice
from ..allocation.extra_slots import BIAS_IN_L1
from ..layouts import table_bytes
from ..memory_spaces import L0C, L1, UB, MemorySpaces
from ..needs import Needs
from ..slots import Slot, find_clobbers, ledger, overflow
from .expand import Expansion
from .plan import Plan
from .rows import SharedRows, shared_rows
from .tiles import Tile


def place_compiled(needs: Needs, choice: Choice, limits: Limits, device: str, again: bool = True, pair: bool = True) -> Placement:
    """pair: whether a Cube core has two Vector cores beside it."""
    spaces = needs.spaces
    rows, why = _shared(spaces) if pair else SharedRows({})
    tries = [(True, choice.copies), (False, choice.copies), (False, 1)]
    error = None
    for motion, copies in tries if again else tries[:1]:
        x = Expansion(spaces, rows, motion)
        plan = Plan(x, spaces.has_dot, copies)
        try:
            found = Placer(needs, x, plan, limits, device).placement()
        except BufferOverflowError as e:
            error = e
            continue
        notes = () if error is None else (f"{'multibuffer' if copies == 1 else 'code motion'} was taken back to fit",)
        alone = (f"one Vector core works: {why}",) if why else ()
        return found._replace(notes=(*found.notes, *notes, *alone), rows=rows)
    raise error


def _shared(spaces: MemorySpaces) -> SharedRows:
    """What the two Vector cores of a program share, unless the kernel itself gives them their work."""
    program = spaces.program
    by_hand = program.split_builtins or any(
        op.attrs.get("hints", {}).get("bind_sub_block") for op in program.of_kind("for")
    )
    if by_hand or not (spaces.has_dot and spaces.fixpipe and spaces.has_vector_work):
        return SharedRows({})
    return shared_rows(spaces)


class Placer:
    def __init__(self, needs: Needs, x: Expansion, plan: Plan, limits: Limits, device: str) -> None:
        self.needs, self.x, self.plan, self.limits, self.device = needs, x, plan, limits, device
        self.slots: dict[int, Slot] = {}
        self.every: list[Slot] = []

    def slot(self, t: Tile) -> Slot:
        t = self.plan.root(t)
        s = self.slots.get(id(t))
        if s is None:
            label = "" if t.values else f"{t.why} of {t.op.name or t.op.kind}"
            s = Slot(list(t.values), t.first, t.last, t.size, t.slots, label=label, space=t.space, depth=len(t.loops))
            self.slots[id(t)] = s
            self.every.append(s)
        return s

    def placement(self) -> Placement:
        x, needs = self.x, self.needs
        slot_of = {}
        for i, t in {**x.of, **x.l0c}.items():
            if self.plan.root(t).first >= 0:
                slot_of[i] = self.slot(t)
        for op_made in needs.made.values():
            for m in op_made:
                if m.value.id not in slot_of:
                    s = Slot([m.value], 0, 0, 0, space=m.space)
                    self.every.append(s)
                    slot_of[m.value.id] = s
        for op in needs.program.of_kind("for") + needs.program.of_kind("while") + needs.program.of_kind("if"):
            for r in (*op.results, *(a for g in op.regions for a in g.args)):
                if r.id not in slot_of and not r.is_pointer and not (r.static.kind != "dense" and (r.shape or r.dtype.is_int())):
                    s = Slot([r], 0, 0, 0)
                    self.every.append(s)
                    slot_of[r.id] = s
                    
        scratch_of = {i: self.slot(t) for i, t in x.scratch_of.items()}
        for i, size in needs.scratch.items():
            if i not in scratch_of:
                s = Slot([], 0, 0, 0, label="scratch")
                self.every.append(s)
                scratch_of[i] = s
        ub_copy = {i: self.slot(t) for i, t in x.to_ub.items()}
        sum_of = {i: self.slot(t) for i, t in x.sums.items() if self.slot(t) is not ub_copy[i]}
        l1_copy = {k: self.slot(t) for k, t in x.l1.items()}
        buffers, number = {}, 0
        for t in self.plan.entries:
            self.slot(t)
        for s in self.every:
            s.number = number
            number += s.copies
        by_slot = {id(s): t for t, s in ((t, self.slots[id(t)]) for t in self.plan.entries)}
        for space, (capacity, _) in self.limits.items():
            mine = [s for s in self.every if s.space == space]
            need = self.plan.need(space)
            if not mine and space != UB:
                continue
            for lo, _, t in reversed(self.plan.placed):
                self.slots[id(t)].offset = lo
            if need > capacity:
                found = ledger(mine, capacity, self.lines(), needs.names)
                found = replace(found, peak_bytes=need)
                text = overflow(needs.program, space, found, self.device)
                raise BufferOverflowError(text, space, need, capacity)
            find_clobbers(mine)
            found = ledger(mine, capacity, self.lines(), needs.names)
            buffers[space] = replace(found, peak_bytes=need, placed_bytes=need)
        return Placement(
            tuple(self.every), slot_of, scratch_of, {}, ub_copy, l1_copy, sum_of, dict(needs.loop_of), buffers, number
        )

    def lines(self) -> list[int]:
        out = [0] * (self.x.time + 2)
        for s in self.x.steps:
            out[s.at] = s.op.loc.line
        return out

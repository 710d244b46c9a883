"""Cube core and Vector core of a program at one address of global memory, one of which stores, without a flag between them.

A kernel with flags or scopes orders its cores by itself; tiles that one core makes and the other one uses pass with flags of
the compiler's own, and order what came before. A kernel without any leaves all of it to the compiler.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..interpreter.faults import place
from ..interpreter.tensors import Tensor
from ..ir.passes.split_cores import CORES
from ..ir.program import Op, Program
from ..messages import Message, fault, note
from .access import Access, Watcher
from .core_clocks import LOADS, STORES, CoreClocks
from .core_uses import CoreUses, by_hand, core_uses
from .memory.areas import Area
from .memory_map import MOST_OPERATIONS, Meeting, MemoryMap, entries, kind_of

PIPES = "; a flag orders what its two pipes do: MTE2 loads, FIX of a Cube and MTE3 of a Vector core store"


class CoreRaces(Watcher):
    """Finds accesses of the two kinds of cores that meet, and flags that are set too often."""

    def __init__(self, program: Program, programs: int) -> None:
        self.program = program
        self.by_hand = by_hand(program)
        moves = any(op.kind in ("move", "custom") for op in program.walk())
        self.clocks = CoreClocks(programs, loose=moves or bool(self.crossing))
        self.memory = MemoryMap()
        self.looked_at: dict[int, bool] = {}  # by area
        self.numbers: dict[int, int] = {}
        self.operations: dict[int, Op] = {}
        self.told: dict[tuple[int, int], Message] = {}

    @functools.cached_property
    def uses(self) -> CoreUses:
        return core_uses(self.program)

    @property
    def crossing(self) -> frozenset[int]:
        return frozenset(self.uses.crossing) if self.by_hand else frozenset()

    def tensors(self, given: list[Tensor]) -> None:
        self.memory.add(given)

    def synced(self, op: Op, event: Any, programs: np.ndarray, part: str) -> None:
        self.clocks.passed(op, event, programs, part)

    def handed_over(self, op: Op, programs: np.ndarray, part: str) -> None:
        self.clocks.handed_over(programs, self.uses.sender(op, part))

    def access(self, a: Access) -> None:
        core = self.uses.core.get(a.op.id, "")
        if not core or not a.tensor.elements:
            return
        here, what = CORES.index(core), LOADS if a.what == "load" else STORES
        if self.by_hand:
            self.clocks.used(a.programs, here, what)
        if not self._both(self.memory.area(a.tensor)):
            return
        number = self.numbers.setdefault(a.op.id, min(len(self.numbers) + 1, MOST_OPERATIONS))
        self.operations[number] = a.op
        lanes = entries(4 * a.programs + 2 * here + what, self.clocks.epochs[a.programs, here], number)
        met = self.memory.visit(a, kind_of(a.what), lanes, self.clocks.order(a.programs, here, what))
        if met is not None:
            self._tell(a, met, here)

    def _both(self, area: Area[Any]) -> bool:
        """Whether both cores use an area and one of them writes to it."""
        found = self.looked_at.get(id(area))
        if found is None:
            names = area.names | {""}
            found = all(names & self.uses.names[x] for x in (*CORES, "written"))
            self.looked_at[id(area)] = found
        return found

    def found(self) -> tuple[Message, ...]:
        left = [_left_over(*x) for x in self.clocks.left_over()]
        return (*self.told.values(), *left)

    def _tell(self, a: Access, met: Meeting, here: int) -> None:
        other = self.operations[met.operation]
        key = min(a.op.id, other.id), max(a.op.id, other.id)
        if key in self.told:
            return
        there, program = CORES[met.agent // 2 % 2], met.agent // 4
        what = (
            f"the {there} core {_does(other)} element {met.element} of {a.tensor.name!r} (line {other.loc.line}) and the "
            f"{CORES[here]} core {_does(a.op)} it (line {a.op.loc.line}), in program {program}"
        )
        if self.by_hand:
            text = (
                f"{what}, without a flag between them: on the device the second need not wait for the first; "
            )
            again = bool(self.clocks.known[program, here, :, 2 - 2 * here : 4 - 2 * here].any())
            self.told[key] = fault(
                text + _way_out(a.op, other, (CORES[here], there), again) + PIPES, place(a.op), (program,)
            )
        else:
            text = f"{what}: they are ordered by flags that the compiler adds, unless disable_auto_inject_block_sync is set"
            self.told[key] = note(text, place(a.op), (program,))


def _does(op: Op) -> str:
    if op.kind == "load":
        return "loads"
    return "stores to" if op.kind == "store" else f"updates (atomic_{op.name})"


def _way_out(op: Op, other: Op, cores: tuple[str, str], again: bool) -> str:
    """again: whether flags passed from the other core, but set before its access."""
    here, there = cores
    if not again:
        return (
            f"let the {there} core sync_block_set behind line {other.loc.line} and the {here} core sync_block_wait before "
            f"line {op.loc.line}"
        )
    return (
        f"the flags that the {here} core has waited for were set before line {other.loc.line}, by a pipe that does not "
        f"do it, or block another pipe than that of line {op.loc.line}; wait for one that is set behind it, by an event of "
        f"its own, or let the {there} core wait before it for a flag back from the {here} core"
    )


def _left_over(op: Op, event: int, more: np.ndarray) -> Message:
    program = int(np.argmax(more > 0))
    sender, receiver = op.attrs["sender"], op.attrs["receiver"]
    times = "once" if more[program] == 1 else f"{int(more[program])} times"
    return fault(
        f"the {sender} core sets event {event} {times} more often than the {receiver} core waits for it, in program "
        f"{program}: the flag stays set on the device, and the next wait for it goes on too early; "
        f"give the {receiver} core a sync_block_wait for each sync_block_set",
        place(op),
        (program,),
    )

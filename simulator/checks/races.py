"""Two programs at one address, one of which stores, without an order between them: on the device either may come first.

Every access is looked up in a map of memory (`memory_map.py`), which knows who was there before; `clocks.py` knows which of
them is over for certain. Most launches need less: where the interpreter could prove that no program reads what another one
writes (`program_order/order.py`), many programs run at once, and only two stores can meet. Then one bit for each element
tells whether any was stored to twice, stores are noted, and in the end those to such tensors are looked up.
Stores that all put the same value there are legal in any order (`StoredValues`): they are told as a note.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ..interpreter.tensors import Tensor
from ..ir.pointer_roots import pointer_roots
from ..ir.program import Op, Program
from ..ir.work_queues import work_queues
from ..messages import Message, note
from . import clocks as order
from .access import Access, Watcher
from .clocks import Clocks, TurnClocks
from .core_barriers import CoreBarrierClocks, has_core_barrier
from .core_uses import core_uses
from .meeting_messages import polled, unordered
from .memory_map import (
    ATOMIC,
    MOST_OPERATIONS,
    MOST_UNITS,
    STORE,
    Meeting,
    MemoryMap,
    entries,
    kind_of,
)

MOST_NOTES = 1 << 14  # stores that are kept; with more every store is looked up at once
MOST_PLACES = 1 << 20  # their programs and single elements


class ProgramRaces(Watcher):
    """Finds pairs of programs that meet; names the first pair of each two operations in a tensor.

    meet: whether programs may read what others write, see `Order.depends`; asked where one runs at a time.
    """

    def __init__(self, program: Program, programs: int, meet: Callable[[], bool]) -> None:
        self.program = program
        self.programs = programs
        self.meet = meet
        modes = {op.attrs["mode"] for op in program.of_kind("sync") if op.name == "all"}
        self.stops = bool(modes)  # then all programs run at once
        self.barrier = bool(modes - {"all_sub_vector"})
        self.mode = "off" if programs == 1 else "new"
        self.memory = MemoryMap()
        self.notes = _Notes()
        self.clocks: Clocks | None = None
        self.by_core = has_core_barrier(program)
        self.plans: dict[tuple[int, int], _Plan] = {}
        self.numbers: dict[int, int] = {}
        self.operations: dict[int, Op] = {}
        self.told: dict[tuple[Any, ...], Message] = {}

    @functools.cached_property
    def shared(self) -> Shared:
        return shared_by_programs(self.program)

    def tensors(self, given: list[Tensor]) -> None:
        self.memory.add(given)

    def begins(self, at_once: int) -> None:
        if self.mode == "new":
            self._begin(at_once == 1)

    def access(self, a: Access) -> None:
        if self.mode == "off" or not a.tensor.elements:
            return
        if self.mode == "all":
            self._follow(a)
        elif a.what != "store":
            return
        elif self.mode == "stores":
            self._visit(a, STORE)
        else:
            self._note(a)

    def _begin(self, alone: bool) -> None:
        """Look at everything where programs run one after another, or stop for each other."""
        self.mode = "all" if self.barrier or ((alone or self.stops) and self.meet()) else "notes"
        if self.mode == "notes" or not (self.barrier or self.shared.names):
            return
        most = order.MOST_AT_ONCE if self.stops else order.MOST_PROGRAMS
        if self.programs > most:
            self.mode = "off"
            self.told[()] = note(
                f"races between the {self.programs} programs were not looked for: they wait for each other, which is "
                f"followed for at most {most}; try a smaller grid"
            )
            return
        if self.by_core:
            self.clocks = CoreBarrierClocks(self.program, self.programs)
        elif self.shared.queues.accesses and not self.barrier and self.programs <= order.MOST_AT_ONCE:
            self.clocks = TurnClocks(self.programs)
        else:
            self.clocks = Clocks(self.programs, self.stops)

    @property
    def crossing(self) -> frozenset[int]:
        return frozenset(core_uses(self.program).crossing) if self.by_core else frozenset()

    def handed_over(self, op: Op, programs: np.ndarray, part: str) -> None:
        if isinstance(self.clocks, CoreBarrierClocks):
            self.clocks.handed_over(programs, core_uses(self.program).sender(op, part))

    def synced(self, op: Op, event: Any, programs: np.ndarray, part: str) -> None:
        if isinstance(self.clocks, CoreBarrierClocks):
            self.clocks.passed(op, event, programs, part)
        elif self.clocks is not None and op.name == "all" and op.attrs["mode"] != "all_sub_vector":
            self.clocks.barrier(np.unique(programs))

    def gives_way(self, programs: np.ndarray) -> None:
        if self.clocks is not None:
            self.clocks.keep(programs)

    def found(self) -> tuple[Message, ...]:
        if self.mode == "notes":
            self._visit_noted(a for a in self.notes.stores if self.memory.area(a.tensor).map.again)
        self.mode = "off"
        large = [
            note(f"races in {name!r} were not looked for: it has {units} elements, the limit is {MOST_UNITS}")
            for name, units in self.memory.left_out.items()
        ]
        return (*self.told.values(), *large)

    # -- accesses ----------------------------------------------------------------------------------------------------

    def _follow(self, a: Access) -> None:
        """An access and, by the clocks, what it orders."""
        key = a.op.id, id(a.tensor)
        how = self.plans.get(key)
        if how is None:
            how = self.plans[key] = self._plan(a)
        if not how.written:
            return
        if not how.hands_on or self.clocks is None:
            self._visit(a, how.kind)
            return
        for lane in range(len(a.programs)):
            self._hand_on(a if len(a.programs) == 1 else a.of_lane(lane), how.kind, self.clocks)

    def _plan(self, a: Access) -> _Plan:
        """What there is to do for an operation on a tensor."""
        names = self.memory.area(a.tensor).names | {""}
        kind = ATOMIC if a.op.id in self.shared.waits else kind_of(a.what)
        hands_on = kind == ATOMIC and bool(self.shared.names & names)
        return _Plan(kind, bool(self.shared.stored & names), hands_on)

    def _hand_on(self, a: Access, kind: int, clocks: Clocks) -> None:
        program, (count, at) = int(a.programs[0]), a.places
        if not count:
            return
        where = id(self.memory.area(a.tensor))
        if order.acquires(a.op, self.shared.waits):
            clocks.acquire(program, where, at)
            if order.polls(a.op) and (a.op.id,) not in self.told and clocks.heard(program, where, at):
                self.told[a.op.id,] = polled(a)
        self._visit(a, kind)
        if isinstance(clocks, TurnClocks) and a.op.id in self.shared.queues.draws:
            begins = a.op.id in self.shared.queues.begins
            clocks.draw(program, where, at, order.releases(a.op), begins)
        elif order.releases(a.op):
            clocks.release(program, where, at)

    def _visit(self, a: Access, kind: int) -> None:
        number = self.numbers.get(a.op.id)
        if number is None:
            number = self.numbers[a.op.id] = min(len(self.numbers) + 1, MOST_OPERATIONS)
            self.operations[number] = a.op
        agents = a.programs
        if isinstance(self.clocks, CoreBarrierClocks):
            if a.op.id not in self.clocks.uses.core:
                return  # a scalar that both cores load
            agents = self.clocks.agents(a, self.memory.area(a.tensor).names)
        elif (
            isinstance(self.clocks, TurnClocks) and kind != ATOMIC and a.op.id in self.shared.queues.accesses
        ):
            agents = self.programs + a.programs
        if kind == STORE and a.value is not None:
            self.memory.area(a.tensor).map.put(a)
        epochs, how = (0, order.UNORDERED) if self.clocks is None else self.clocks.now(agents)
        met = self.memory.visit(a, kind, entries(agents, epochs, number), how)
        if met is not None:
            self._tell(a, met._replace(agent=met.agent // 2 if self.by_core else met.agent % self.programs))

    def _note(self, a: Access) -> None:
        if self.notes.full:
            self.mode = "stores"
            self._visit_noted(self.notes.stores)
            self._visit(a, STORE)
            return
        self.memory.area(a.tensor).map.put(a)
        self.notes.add(a)

    def _visit_noted(self, notes: Iterable[Access]) -> None:
        for a in notes:
            self._visit(a, STORE)
        self.notes = _Notes()

    def _tell(self, a: Access, met: Meeting) -> None:
        other = self.operations[met.operation]
        key = a.tensor.name, *sorted((a.op.id, other.id))
        known = self.told.get(key)
        if met.equal and met.agent == a.programs[met.lane]:
            return
        if known is None or (known.kind == "note" and not met.equal):
            handed_on = self.mode == "all" and bool(self.shared.names)
            way = "relaxed" if self.mode == "all" and self.shared.relaxed else "atomic" if handed_on else ""
            way = "barrier" if self.by_core else way
            self.told[key] = unordered(a, met, other, way, self.memory.area(a.tensor).names)


class _Plan(NamedTuple):
    """Of an operation on a tensor. kind: LOAD, STORE or ATOMIC. written: whether any program writes there. hands_on: whether
    it tells programs of each other.
    """

    kind: int
    written: bool
    hands_on: bool


class Shared:
    """What the source says of the tensors that programs may meet in, by argument.

    names: in which atomics or waiting loads tell one program of others. queues: atomics that hand out work.
    """

    def __init__(self, program: Program) -> None:
        self.roots = pointer_roots(program)
        self.waits = order.waiting_loads(program)
        ops = list(program.walk())
        self.stored = self._named(op for op in ops if op.kind in ("store", "atomic"))
        atomics = self._named(op for op in ops if op.kind == "atomic")
        self.waits = frozenset(op.id for op in ops if op.id in self.waits and self._named([op]) & atomics)
        self.names = self._named(op for op in ops if order.acquires(op, self.waits))
        self.queues = work_queues(program)
        self.relaxed = any(op.kind == "atomic" and op.attrs["sem"] != "acq_rel" for op in ops)

    def _named(self, ops: Iterable[Op]) -> set[str]:
        """Arguments that the pointers come from; "" for a pointer that comes from none."""
        return {name for op in ops for name in self.roots.get(op.operand(0).id) or ("",)}


def shared_by_programs(program: Program) -> Shared:
    """Of a program, found once."""
    return program.once(Shared)


class _Notes:
    """Stores to be looked up when the launch is over, if any element was stored to again."""

    def __init__(self) -> None:
        self.stores: list[Access] = []
        self.count = 0

    @property
    def full(self) -> bool:
        """Whether there are too many to keep more."""
        return self.count > MOST_PLACES or len(self.stores) > MOST_NOTES

    def add(self, a: Access) -> None:
        """A store, without what is large and not asked for any more."""
        self.stores.append(a.bare)
        self.count += a.size

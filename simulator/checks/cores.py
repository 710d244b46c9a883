"""Two cores of a program at one address of global memory, one of which stores, without an order between them.

A kernel with flags or scopes orders its Cube core and its Vector cores by itself; tiles that one core makes and the other
one uses pass with flags of the compiler's own, and order what came before. A kernel without any leaves all of it to the
compiler. Where a kernel asks which Vector core it runs on, the two are beside each other, too: a barrier orders them, an
atomic, or the Cube core that waits for both. A store that both make alike leaves the same, whoever comes last.
"""

from __future__ import annotations

import functools
from collections import deque
from typing import Any, NamedTuple

import numpy as np

from ..interpreter.faults import place
from ..interpreter.tensors import Tensor
from ..ir.passes.split_cores import CORES, VECTOR, has_sub_vectors
from ..ir.program import Op, Program
from ..messages import Message, fault
from . import clocks as order
from ._races import touches
from .access import Access, Watcher
from .core_clocks import BOTH_SEAT, CUBE_SEAT, EVER, FIRST_SEAT, LOADS, SEATS, STORES, CoreClocks
from .core_uses import CoreUses, by_hand, core_uses, made_alike
from .meeting_messages import cores_unordered, vector_cores_unordered
from .memory.areas import Area
from .memory_map import ATOMIC, MOST_OPERATIONS, MarksOfTwo, Meeting, MemoryMap, entries, kind_of
from .races import MOST_PLACES, Shared, shared_by_programs

MOST_NOTES = 64  # of the last stores of each kind of core


class CoreRaces(Watcher):
    """Finds accesses of two cores of a program that meet, and flags that are set too often."""

    def __init__(self, program: Program, programs: int) -> None:
        self.program = program
        self.by_hand = by_hand(program)
        self.two = has_sub_vectors(program)
        self.alike = made_alike(program) if self.two else frozenset[int]()
        moves = any(op.kind in ("move", "custom") for op in program.walk())
        self.clocks = CoreClocks(programs, loose=moves or bool(self.crossing))
        self.memory = MemoryMap()
        self.looked_at: dict[int, str] = {}  # how, by area
        self.marks = MarksOfTwo()
        self.waiting: list[_Visit] = []
        self.places = 0  # that wait: lanes, and single elements
        self.numbers: dict[int, int] = {}
        self.operations: dict[int, Op] = {}
        self.notes = deque[_Store](maxlen=MOST_NOTES), deque[_Store](maxlen=MOST_NOTES)
        self.told: dict[tuple[int, int], Message] = {}

    @functools.cached_property
    def uses(self) -> CoreUses:
        return core_uses(self.program)

    @functools.cached_property
    def shared(self) -> Shared:
        return shared_by_programs(self.program)

    @property
    def crossing(self) -> frozenset[int]:
        return frozenset(self.uses.crossing) if self.by_hand or self.two else frozenset()

    def tensors(self, given: list[Tensor]) -> None:
        self.memory.add(given)

    def synced(self, op: Op, event: Any, programs: np.ndarray, part: str) -> None:
        self.clocks.passed(op, event, programs, part)

    def handed_over(self, op: Op, programs: np.ndarray, part: str) -> None:
        self.clocks.handed_over(programs, self.uses.sender(op, part))

    def access(self, a: Access) -> None:
        core = self.uses.core.get(a.op.id, "")
        if not (core or a.vector_cores is not None) or not a.tensor.elements:
            return  # a scalar that all cores load
        here, what = CORES.index(core or VECTOR), LOADS if a.what == "load" else STORES
        if self.by_hand and core:
            self.clocks.used(a.programs, here, what)
        area = self.memory.area(a.tensor)
        if (self.looked_at.get(id(area)) or self._looks_at(area)) == "never":
            return
        if self.by_hand and what == STORES:
            self.notes[here].append(_Store(a.bare, self.clocks.epochs[a.programs, here]))
        if self.two and here and self._hands_on(a, area):
            for lane in range(len(a.programs)):
                self._hand_on(a.of_lane(lane), area)
        else:
            self._done(self._visit(a, here), area)

    def _looks_at(self, area: Area[Any]) -> str:
        """When accesses to an area are looked up: "never" if no two cores meet there; "in the end", if bits say that two
        may have met, where only Vector cores do; else "at once".
        """
        names, uses = area.names | {""}, self.uses.names
        cube, vector, written = (bool(names & uses[x]) for x in (*CORES, "written"))
        met = written and (self.two or (cube and vector))
        self.looked_at[id(area)] = "never" if not met else "at once" if cube else "in the end"
        return self.looked_at[id(area)]

    def _done(self, visit: _Visit, area: Area[Any]) -> None:
        """Look an access up, or keep it for the end."""
        if self.looked_at[id(area)] == "at once" or self.places > MOST_PLACES:
            self._look(visit)
            return
        self.marks.add(visit.access, area)
        self.waiting.append(visit)
        self.places += visit.access.size
        if self.places > MOST_PLACES:
            self._look_at_waiting(set(self.looked_at))

    def _look_at_waiting(self, areas: set[int]) -> None:
        for visit in self.waiting:
            if id(self.memory.area(visit.access.tensor)) in areas:
                self._look(visit)
        self.waiting = []

    # -- Vector cores that tell each other by atomics ----------------------------------------------------------------

    def _hands_on(self, a: Access, area: Area[Any]) -> bool:
        return self._kind(a) == ATOMIC and bool(self.shared.names & (area.names | {""}))

    def _kind(self, a: Access) -> int:
        return ATOMIC if self.two and a.op.id in self.shared.waits else kind_of(a.what)

    def _hand_on(self, a: Access, area: Area[Any]) -> None:
        where, (count, at) = id(area), a.places
        program, seat = int(a.programs[0]), int(self._seats(a, 1)[0])
        if count and order.acquires(a.op, self.shared.waits):
            self.clocks.acquire(program, seat, where, at)
        self._done(self._visit(a, 1), area)
        if count and order.releases(a.op):
            self.clocks.release(program, seat, where, at)

    # -- meetings ----------------------------------------------------------------------------------------------------

    def _seats(self, a: Access, here: int) -> np.ndarray:
        """The core of each lane."""
        if not here or a.vector_cores is None:
            return np.full(len(a.programs), FIRST_SEAT if here else CUBE_SEAT)
        return FIRST_SEAT + a.vector_cores

    def _visit(self, a: Access, here: int) -> _Visit:
        number = self.numbers.setdefault(a.op.id, min(len(self.numbers) + 1, MOST_OPERATIONS))
        self.operations[number] = a.op
        seats, what = self._seats(a, here), LOADS if a.what == "load" else STORES
        alike = bool(here) and a.op.id in self.alike
        agents = 2 * SEATS * a.programs + 2 * (BOTH_SEAT if alike else seats) + what
        lanes = entries(agents, self.clocks.epochs[a.programs, here], number)
        how = self.clocks.order(a.programs, seats, what, alike or (bool(here) and what == LOADS))
        return _Visit(a.bare, here, self._kind(a), lanes, how)

    def _look(self, visit: _Visit) -> None:
        met = self.memory.visit(visit.access, *visit[2:])
        if met is not None:
            self._meet(visit.access, met, visit.here)

    def _meet(self, a: Access, met: Meeting, here: int) -> None:
        other = self.operations[met.operation]
        key, names = (min(a.op.id, other.id), max(a.op.id, other.id)), self.memory.area(a.tensor).names
        there = int(met.agent // 2 % SEATS != CUBE_SEAT)
        if here == there:
            self.told.setdefault(key, vector_cores_unordered(a, met, other, names))
        elif a.op.id in self.uses.core and other.id in self.uses.core:
            if key not in self.told:
                cores = CORES[here], CORES[there]
                self.told[key] = cores_unordered(a, met, other, cores, self._how(a, met, here), names)
            if self.two and not self.by_hand:
                self.clocks.handed_over(a.programs, there)

    def _how(self, a: Access, met: Meeting, here: int) -> str:
        """As of `cores_unordered`."""
        if not self.by_hand:
            return "compiler"
        program = met.agent // (2 * SEATS)
        heard = self.clocks.heard(program, here)
        writer, until = (1 - here, heard) if a.what == "load" else (here, EVER)
        stores = [x for x in self.notes[writer] if x.before(a, met.element, program, EVER)]
        again = any(x.before(a, met.element, program, until) for x in stores[:-1])
        return "earlier" if again else "flags" if heard else ""

    def found(self) -> tuple[Message, ...]:
        self._look_at_waiting(self.marks.met())
        left = [_left_over(*x) for x in self.clocks.left_over()]
        return (*self.told.values(), *left)


class _Visit(NamedTuple):
    """An access as `MemoryMap.visit` takes it."""

    access: Access
    here: int
    kind: int
    lanes: np.ndarray
    how: tuple[np.ndarray, np.ndarray, bool]


class _Store(NamedTuple):
    """A store, and the epoch of each of its lanes."""

    access: Access
    epochs: np.ndarray

    def before(self, a: Access, element: int, program: int, epoch: int) -> bool:
        """Whether it went to that element of the tensor of `a`, from that program, before an epoch."""
        if self.access.tensor.address != a.tensor.address or not self._of(program, epoch).any():
            return False
        at, runs = element + a.tensor.origin, self.access.runs
        return any(touches(runs, lane, at) for lane in np.flatnonzero(self._of(program, epoch)).tolist())

    def _of(self, program: int, epoch: int) -> np.ndarray:
        return np.asarray((self.access.programs == program) & (self.epochs < epoch))


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

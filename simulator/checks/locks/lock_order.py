"""Locks that two programs take in opposite orders, or several in a ring: each may hold its first one and wait for ever.

A lock is what a `while` waits for with an atomic_cas or atomic_xchg, storing nothing else; a program holds it until it
writes there again. A program that waits for one while it holds another makes an edge between the two. A ring of edges
by different programs is a deadlock that may come, unless the programs hold another lock in common meanwhile, or something
other than these locks orders one after another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ...interpreter.tensors import Tensor
from ...interpreter.two_cores.condition import WRITES, condition_of, inside_of
from ...ir.program import Op, Program
from ...messages import Message, fault
from .. import clocks as order
from ..access import Access, Watcher
from ..clocks import Clocks

TAKES = ("cas", "xchg")
MOST_PROGRAMS = 1 << 12  # whose clocks are kept
MOST_EDGES = 1 << 12
OF_ONE = 4  # programs that are kept with one edge
ANYWHERE = 0  # addresses say where clocks are handed on


class Lock(NamedTuple):
    """One that a program waits for: its byte address, how a message names it, and where it is taken."""

    at: int
    name: str
    op: Op


class Edge(NamedTuple):
    """A program waits for `second` while it holds `first`, and other locks (addresses).

    known: what it knew then of the other programs. end: its epoch when it gave the first one back.
    """

    program: int
    first: Lock
    second: Lock
    others: frozenset[int]
    known: np.ndarray
    end: int = 0


def locks_of(program: Program) -> frozenset[int]:
    """Atomics (by id) that take a lock; none where the source takes only one, once."""
    found: list[int] = []
    looped: list[int] = []

    def visit(ops: list[Op], loops: int) -> None:
        for op in ops:
            if op.kind == "while":
                writes = [o for o in inside_of(op) if o.kind in WRITES]
                takes = len(writes) == 1 and writes[0].kind == "atomic" and writes[0].name in TAKES
                if takes and writes[0].id in condition_of(program, op).reads:
                    found.append(writes[0].id)
                    looped.extend([writes[0].id] * bool(loops))
            for region in op.regions:
                visit(region.ops, loops + (op.kind in ("for", "while")))

    visit(program.body.ops, 0)
    return frozenset(found) if len(found) > 1 or looped else frozenset()


class LockOrder(Watcher):
    """Follows the locks of each program. waits: loads (by id) with which programs wait."""

    def __init__(self, programs: int, locks: frozenset[int], waits: frozenset[int]) -> None:
        self.programs, self.locks, self.waits = programs, locks, waits
        self.clocks: Clocks | None = None
        self.held: dict[int, dict[int, Lock]] = {}
        self.open: dict[int, list[Edge]] = {}  # by program, of locks that it holds
        self.edges: dict[tuple[int, int], list[Edge]] = {}
        self.places: set[int | None] = set()  # where a lock was taken

    def begins(self, at_once: int) -> None:
        if self.clocks is None:
            self.clocks = Clocks(self.programs, together=at_once > 1)

    def access(self, a: Access) -> None:
        if a.what == "load" and a.op.id not in self.waits:
            return
        for lane in range(len(a.programs)):
            one = a if len(a.programs) == 1 else a.of_lane(lane)
            count, at = one.places
            if count:
                self._by_one(one, int(one.programs[0]), at)

    def _by_one(self, a: Access, program: int, at: int | None) -> None:
        held = self.held.setdefault(program, {})
        if a.op.id in self.locks:
            self.places.add(at)
            if at is not None and at not in held:
                self._take(program, held, Lock(at, _name(a.tensor, at), a.op))
        elif at is not None and a.what != "load" and at in held:
            self._give_back(program, at)
        elif at not in self.places:
            self._order(a.op, program, at)

    def _take(self, program: int, held: dict[int, Lock], lock: Lock) -> None:
        assert self.clocks is not None
        for first in held.values():
            known = self.edges.get((first.at, lock.at), [])
            if (
                len(known) < OF_ONE
                and len(self.edges) < MOST_EDGES
                and all(e.program != program for e in known)
            ):
                _, (_, rows, _) = self.clocks.now(np.array([program]))
                others = frozenset(held) - {first.at}
                self.open.setdefault(program, []).append(
                    Edge(program, first, lock, others, np.array(rows[0]))
                )
        held[lock.at] = lock

    def _give_back(self, program: int, at: int) -> None:
        """The lock was one of its own, so that its edges count."""
        assert self.clocks is not None
        del self.held[program][at]
        still = []
        for e in self.open.pop(program, []):
            if e.first.at == at:
                end = int(self.clocks.epochs[program])
                self.edges.setdefault((at, e.second.at), []).append(e._replace(end=end))
            else:
                still.append(e)
        self.open[program] = still

    def _order(self, op: Op, program: int, at: int | None) -> None:
        """What passes through memory that is no lock."""
        assert self.clocks is not None
        if order.acquires(op, self.waits):
            self.clocks.acquire(program, ANYWHERE, at)
        if order.releases(op):
            self.clocks.release(program, ANYWHERE, at)

    def synced(self, op: Op, event: Any, programs: np.ndarray, part: str) -> None:
        if self.clocks is not None and op.name == "all" and self.clocks.together:
            self.clocks.barrier(np.unique(programs))

    def gives_way(self, programs: np.ndarray) -> None:
        if self.clocks is not None:
            self.clocks.keep(programs)

    def found(self) -> tuple[Message, ...]:
        """A fault for each ring, once for the lines that make it."""
        told: dict[frozenset[int], Message] = {}
        for ring in self._rings():
            lines = frozenset(x.op.id for e in ring for x in (e.first, e.second))
            told.setdefault(lines, _message(ring))
        return tuple(told.values())

    def _rings(self) -> Iterator[list[Edge]]:
        after: dict[int, list[int]] = {}
        for first, second in self.edges:
            after.setdefault(first, []).append(second)
        seen: set[frozenset[int]] = set()
        for first, second in self.edges:
            way = _way(after, second, first)
            nodes = frozenset(way)
            if way and nodes not in seen:
                seen.add(nodes)
                pairs = zip([first, *way], [*way, first], strict=False)
                ring = _chosen([self.edges[pair] for pair in pairs if pair in self.edges], [])
                if ring:
                    yield ring


def _way(after: dict[int, list[int]], start: int, end: int) -> list[int]:
    """The shortest way along edges, without its end; empty if there is none."""
    before = {start: start}
    todo = deque([start])
    while todo:
        at = todo.popleft()
        if at == end:
            way = []
            while at != start:
                at = before[at]
                way.append(at)
            return way[::-1]
        for x in after.get(at, ()):
            if x not in before:
                before[x] = at
                todo.append(x)
    return []


def _chosen(left: list[list[Edge]], chosen: list[Edge]) -> list[Edge]:
    """One edge of each list, such that all may come at once; empty if there are none."""
    if not left:
        return chosen
    for e in left[0]:
        if all(_overlap(e, c) for c in chosen):
            found = _chosen(left[1:], [*chosen, e])
            if found:
                return found
    return []


def _overlap(a: Edge, b: Edge) -> bool:
    """Whether two programs may be there at the same time."""
    if a.program == b.program or not a.others.isdisjoint(b.others):
        return False
    return bool(a.known[b.program] <= b.end and b.known[a.program] <= a.end)


def _name(tensor: Tensor, at: int) -> str:
    element = (at - tensor.address) // tensor.dtype.itemsize - tensor.origin
    return f"element {element} of {tensor.name!r}"


def _line(op: Op) -> int:
    """Where the kernel takes it, if need be by a helper."""
    loc = op.loc
    while loc.caller is not None:
        loc = loc.caller
    return loc.line


def _message(ring: list[Edge]) -> Message:
    ring = ring[(k := min(range(len(ring)), key=lambda k: ring[k].program)) :] + ring[:k]
    said = [
        f"program {e.program} takes the lock {e.first.name} (line {_line(e.first.op)}) and then {e.second.name} "
        f"(line {_line(e.second.op)})"
        for e in (ring if len(ring) <= 3 else ring[:2])
    ]
    more = f", and so on in a ring of {len(ring)}" if len(ring) > 3 else ""
    text = (
        f"{', and '.join(said)}{more}: where each of them has its first lock, none can go on; let all programs take locks "
        "in one order, such as that of their addresses"
    )
    first = ring[0].second.op
    return fault(text, f"{first.loc.file}:{_line(first)}", [e.program for e in ring])


def lock_order(program: Program, programs: int, waits: Callable[[], frozenset[int]]) -> list[Watcher]:
    """The check, for a launch that may need it. waits: as of `LockOrder`."""
    if not 1 < programs <= MOST_PROGRAMS:
        return []
    locks = program.once(locks_of)
    return [LockOrder(programs, locks, waits())] if locks else []

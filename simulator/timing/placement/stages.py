"""Which operations of a loop can run iterations ahead of others: the Cube and the Vector cores hand tiles to each other.

A stage is what one of them does between two hand-overs. Where a loop hands tiles to and fro (products, Vector work on them,
products of what came of that), its author lets each stage run for several iterations before the next one starts, so that
nobody waits for the tile that was sent last. The tiles under way lie in global memory, one place for each iteration.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...ir.pointer_roots import pointer_roots
from ...ir.program import Op, Value, walk
from .layouts import TABLES
from .memory_spaces import L0C, L1, UB, MemorySpaces

CUBE, VECTOR = "cube", "vector"
FEWEST = 3  # stages: two cores that hand tiles one way only do not wait for each other anyway
MOST = 12
WHOLE = ("while", "sync", "send", "receive", "print", "custom", "alloc", "move")


class Stages(NamedTuple):
    """of_op: operation of the loop's body -> its stage. kept: values that a later stage of the same core reads, too.

    spans: operation -> the first and the last one of its stage.
    """

    of_op: dict[int, int]
    kept: frozenset[int]
    spans: dict[int, tuple[int, int]]

    @property
    def rounds(self) -> int:
        """Ways to the other core and back."""
        return max(self.of_op.values()) // 2 + 1


def find_stages(spaces: MemorySpaces) -> dict[int, Stages]:
    """The loops whose stages may run apart, by their operation."""
    program = spaces.program
    if not (spaces.has_dot and spaces.fixpipe) or program.split_builtins:
        return {}
    found = ((op.id, _Body(spaces, op).stages()) for op in program.of_kind("for"))
    return {loop: stages for loop, stages in found if stages is not None}


class _Edge(NamedTuple):
    """An operation reads what another one makes. gap: stages that lie between them at least."""

    made: Op
    reader: Op
    gap: int


class _Body:
    """The body of a loop, while its stages are found."""

    def __init__(self, spaces: MemorySpaces, loop: Op) -> None:
        self.spaces, self.region = spaces, loop.regions[0]
        self.side: dict[int, str | None] = {}  # of operations; None: it makes no instruction of a core
        self.made: dict[int, Op] = {}  # value -> its operation in the body
        self.stage: dict[int, int] = {}

    def stages(self) -> Stages | None:
        """None where a stage would need what a later one makes."""
        if not self._known_sides():
            return None
        edges, carried = self._edges()
        if not self._settled([*edges, *carried]) or any(self._apart(e) != e.gap for e in carried):
            return None
        self._later(edges, {op.id for e in carried for op in (e.made, e.reader)})
        if (
            max(self.stage.values(), default=0) + 1 < FEWEST or self._may_meet()
        ):  # the dearest question comes last
            return None
        return Stages(self.stage, frozenset(self._kept(edges)), self._spans())

    def _known_sides(self) -> bool:
        """Find the core of each operation; False if one has work for both, or cannot run apart from the others."""
        for op in self.region.ops:
            sides = {s for o in _all(op) if (s := self._side(o)) is not None}
            if len(sides) > 1 or any(o.kind in WHOLE for o in _all(op)):
                return False
            self.side[op.id] = next(iter(sides), None)
            self.stage[op.id] = 0
            self.made.update((r.id, op) for r in op.results)
        return all(y.id in self.made or y is a for a, y in self._carried())

    def _may_meet(self) -> bool:
        """Whether the body loads from a tensor that it stores to."""
        roots, used = pointer_roots(self.spaces.program), {True: set[str](), False: set[str]()}
        for op in (o for top in self.region.ops for o in _all(top)):
            if op.kind in ("load", "store", "atomic"):
                used[op.kind == "load"] |= roots.get(op.operand(0).id, {""})
        return not used[True].isdisjoint(used[False])

    def _side(self, op: Op) -> str | None:
        """Which core executes an operation."""
        spaces = self.spaces
        if op.kind == "dot":
            return CUBE
        if op.kind == "load":
            return CUBE if spaces.space_of(op.results[0]) in (L1, *TABLES) else VECTOR
        root_of = spaces.definitions.root
        if op.kind in ("store", "atomic"):
            root = root_of(op.operand(1))
            sent = root is not None and spaces.space_of(root) == L0C and root.id not in spaces.copied_to_ub
            return CUBE if sent else VECTOR
        tiles = (r for r in op.results if r.shape and root_of(r) is r)
        return VECTOR if any(spaces.space_of(r) == UB for r in tiles) else None

    def _carried(self) -> Iterator[tuple[Value, Value]]:
        return zip(self.region.args[1:], self.region.yields, strict=True)

    # -- as early as they can be -------------------------------------------------------------------------------------

    def _edges(self) -> tuple[list[_Edge], list[_Edge]]:
        """Within an iteration, and from one to the next, which has one place for what it carries."""
        next_of = {a.id: y for a, y in self._carried()}
        edges: list[_Edge] = []
        carried: list[_Edge] = []
        for op in self.region.ops:
            for v in _read(op):
                made = self.made.get(next_of.get(v.id, v).id)
                if made is not None:
                    into = carried if v.id in next_of else edges
                    into.append(_Edge(made, op, self._gap(made, op, v)))
        return edges, carried

    def _settled(self, edges: list[_Edge]) -> bool:
        """Give each operation the first stage that has its operands; False if there is none."""
        for _ in range(MOST * len(self.stage)):
            late = [e for e in edges if self._apart(e) < e.gap]
            if not late:
                return True
            for e in late:
                self.stage[e.reader.id] = max(self.stage[e.reader.id], self.stage[e.made.id] + e.gap)
            if max(self.stage.values()) > MOST:
                break
        return False

    def _apart(self, e: _Edge) -> int:
        return self.stage[e.reader.id] - self.stage[e.made.id]

    def _gap(self, a: Op, b: Op, v: Value) -> int:
        """1 if what a makes goes to the other core for b; -1 if it stays, and what comes back from b is added to it."""
        one, other = self._origin(a), self.side[b.id]
        if b.kind == "dot" and b.results[0].id in self.spaces.added and v is b.args[2]:
            return -1 if one == VECTOR else 0
        return int(one is not None and other is not None and one != other)

    def _origin(self, op: Op) -> str | None:
        """The side of an operation, or of what a view looks at."""
        side = self.side[op.id]
        if side is None and op.results:
            root = self.spaces.definitions.root(op.results[0])
            made = None if root is None else self.made.get(root.id)
            side = None if made is None else self.side[made.id]
        return side

    # -- and no earlier than they need to be -------------------------------------------------------------------------

    def _later(self, edges: list[_Edge], carried: set[int]) -> None:
        """Loads, and what is made of nothing else, wait for the stage that reads them."""
        readers: dict[int, list[_Edge]] = {}
        for e in edges:
            readers.setdefault(e.made.id, []).append(e)
        for op in reversed(self.region.ops):
            mine = readers.get(op.id, ())
            if mine and op.id not in carried and op.kind not in ("store", "atomic"):
                last = min(self.stage[e.reader.id] - e.gap for e in mine)
                self.stage[op.id] = max(self.stage[op.id], last)

    def _spans(self) -> dict[int, tuple[int, int]]:
        acting = [op.id for op in self.region.ops if self.side[op.id] is not None]
        first = {self.stage[i]: i for i in reversed(acting)}
        last = {self.stage[i]: i for i in acting}
        return {i: (first[self.stage[i]], last[self.stage[i]]) for i in acting}

    def _kept(self, edges: list[_Edge]) -> Iterator[int]:
        for e in edges:
            for r in e.made.results:
                root = self.spaces.definitions.root(r) if r.shape else None
                made = None if root is None else self.made.get(root.id)
                if made is not None and self.stage[e.reader.id] - e.gap > self.stage[made.id]:
                    assert root is not None
                    yield root.id


def _all(op: Op) -> Iterator[Op]:
    yield op
    for region in op.regions:
        yield from walk(region)


def _read(op: Op) -> Iterator[Value]:
    """What an operation, or one inside of it, reads."""
    for o in _all(op):
        yield from (v for v in o.args if v is not None)
        yield from (v for region in o.regions for v in region.yields)

"""What the buffers of a program have to hold, however many copies its tiles get: found once for all placements."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ...ir.operations import operation
from ...ir.program import Op, Region, Value
from .layouts import TILE, Definitions, tile_bytes
from .lifetimes import Lifetimes
from .memory_spaces import FIXP, UB, VIEW, MemorySpaces
from .scratch import scratch_bytes
from .shared_rows.halves import HalfDefinitions, Halves
from .stages import Stages, find_stages

INSERTION = "insert_slice"  # may be written into the tile it inserts into
LOOPS = ("for", "while")
MOVING = ("load", "store", "atomic", "dot")


class Made(NamedTuple):
    """A value that takes a buffer. dying: operands that are not read later and whose buffer it could take over, each with
    whether a loop loads it."""

    value: Value
    space: str
    dying: tuple[tuple[Value, bool], ...]


class Needs:
    """Of one program, whose values live where `spaces` says.

    made: operation -> its results that take a buffer. scratch: operation -> bytes besides these. loop_of: result of an
    operation -> the innermost loop around it, -1 for none. acting: region -> its operations that have to do with buffers.
    halves: values as one Vector core has them, whole where it works alone.
    """

    def __init__(self, spaces: MemorySpaces) -> None:
        self.spaces, self.program, self.definitions = spaces, spaces.program, spaces.definitions
        self.lives = Lifetimes(self.program, self.definitions, spaces.added)
        self.halves = Halves({})
        self.made: dict[int, tuple[Made, ...]] = {}
        self.scratch: dict[int, int] = {}
        self.loop_of: dict[int, int] = {}
        self.acting: dict[int, list[Op]] = {}
        self._last_reads: dict[int, dict[int, int]] = {}
        self._region(self.program.body, -1)

    def _region(self, region: Region, loop: int) -> None:
        acting = self.acting[id(region)] = []
        for op in region.ops:
            for inner in op.regions:
                self._region(inner, op.id if op.kind in LOOPS else loop)
            if op.kind not in LOOPS and not _is_formula(op):
                self._plain(op, loop)
            if op.regions or op.kind in MOVING or op.id in self.made or op.id in self.scratch:
                acting.append(op)

    def _plain(self, op: Op, loop: int) -> None:
        if size := self._scratch(op, self.definitions):
            self.scratch[op.id] = size
        if op.kind == "atomic" and not (op.attrs["result_used"] or op.attrs["locked"]):
            return  # nothing comes back
        self.loop_of.update((r.id, loop) for r in op.results)
        if made := tuple(self._made(op, loop)):
            self.made[op.id] = made

    def halved(self, rows: Mapping[int, int]) -> Needs:
        """Those of each of two Vector cores. rows: value -> the axis of which each has half."""
        half = copy.copy(self)
        half.halves = Halves(rows)
        known = HalfDefinitions(self.definitions, half.halves)
        asking = (op for op in self.program.walk() if op.id in self.scratch)
        half.scratch = {op.id: size for op in asking if (size := half._scratch(op, known))}
        return half

    def _scratch(self, op: Op, definitions: Definitions) -> int:
        if op.kind != "dot":
            return scratch_bytes(self.halves.op(op), definitions)
        operands = (
            self.spaces.made_real(v) for v in self.spaces.operands(op)
        )  # written out one after the other
        return max((tile_bytes(self.halves.value(v)) for v in operands if v is not None), default=0)

    def _made(self, op: Op, loop: int) -> Iterator[Made]:
        for r in op.results:
            space = self.spaces.space_of(r)
            if space not in (FIXP, VIEW) and self.definitions.root(r) is r:
                over = r.shape and space == UB and (op.kind == INSERTION or operation(op).elementwise)
                yield Made(r, space, tuple(self._dying(op, r, loop)) if over else ())

    def _dying(self, op: Op, r: Value, loop: int) -> Iterator[tuple[Value, bool]]:
        for v in op.args[:1] if op.kind == INSERTION else op.args:
            root = None if v is None else self.definitions.root(v)
            if v is None or root is None or self.definitions.form(v) != TILE or root.shape != r.shape:
                continue
            if self.lives.last.get(root.id) == self.lives.at[op.id] and tile_bytes(root) == tile_bytes(r):
                made = self.definitions.of(root)
                yield root, loop >= 0 and made is not None and made.kind == "load"

    def last_read(self, v: Value, body: Region) -> int:
        """Position in a body of the last operation that reads a value, or whose regions have one that does; -1 if none."""
        found = self._last_reads.get(id(body))
        if found is None:
            found = self._last_reads[id(body)] = {}
            for op in body.ops:
                inner = (o for region in op.regions for o in region.ops)
                for x in (x for o in (op, *inner) for x in o.args if x is not None):
                    root = self.definitions.root(x)
                    if root is not None:
                        found[root.id] = self.lives.at[op.id]
        return found.get(v.id, -1)

    @functools.cached_property
    def stages(self) -> dict[int, Stages]:
        """Loops whose stages may run several iterations ahead of each other."""
        return find_stages(self.spaces)

    @functools.cached_property
    def names(self) -> dict[int, str]:
        """Words for values without a name: what made them, and the named value they go into."""
        out: dict[int, str] = {}
        for op in reversed(list(self.program.walk())):
            first = op.results[0] if op.results else None
            target = "" if first is None else first.name or out.get(first.id, "").rpartition(" for ")[2]
            if not target and op.kind not in ("store", "atomic"):
                continue
            for v in op.args:
                if v is not None and not v.name and (made := self.definitions.of(v)) is not None:
                    out[v.id] = f"{made.name or made.kind} for {target or 'what is stored'}"
        return out


def _is_formula(op: Op) -> bool:
    """Whether an operation makes nothing that has bytes."""
    return len(op.results) == 1 and op.results[0].static.kind in ("affine", "box", "pointer")

"""A program as steps on buffers: its operations after the compiler's rewrites, each at its time.

The order of work is that of AscendNPU-IR, lib/Dialect/HIVM/Pipelines/HIVMPipelines.cpp: loops of one trip vanish and equal
operations are one (stage 5), what does not change in a loop moves before it (6), then values become buffers (7) with the
scratch of their operations (10). `plan.py` says which of the buffers are one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from itertools import chain, zip_longest

from ....ir.program import Op, Program, Region, Value
from ..layouts import VIEWS
from ..memory_spaces import FIXP, UB
from ..needs import Needs
from . import shape_rules, transfers, vector_rules
from .building import Rules, StepBuilder, arguments
from .demand import LOOPS, movable
from .spreading import spread
from .tiles import CARRIED, TILE, Carried, PlannedLoop, PlannedTile
from .types import element_of

FREE = ("const", "program_id", "num_programs", "addptr", "assert", "print", "sync", "sub_vec_id")
SYMBOLIC = ("affine", "box", "pointer", "scalar", "uniform")
RULES: dict[str, Callable[[StepBuilder, Op], None]] = {
    "load": transfers.load,
    "store": transfers.store,
    "atomic": transfers.store,
    "dot": transfers.dot,
    "arange": vector_rules.arange,
    "binary": vector_rules.elementwise,
    "unary": vector_rules.elementwise,
    "fma": vector_rules.elementwise,
    "compare": vector_rules.compare,
    "select": vector_rules.select,
    "cast": vector_rules.cast,
    "reduce": shape_rules.reduce,
    "arg_reduce": shape_rules.arg_reduce,
    "scan": shape_rules.scan,
    "sort": shape_rules.sort,
    "gather": shape_rules.gather,
    "cat": shape_rules.cat,
    "permute": shape_rules.permute,
}
OF_TILES = ("binary", "unary", "fma", "compare", "select", "cast")  # on a scalar the scalar unit does them


class Expansion(StepBuilder):
    """Of one program under the rules of a compilation."""

    def __init__(self, needs: Needs, rules: Rules) -> None:
        super().__init__(needs, rules, vector_rules.cast_now)
        self.done: set[int] = set()  # operations that were moved before a loop
        self.known: dict[Hashable, Op] = {}  # operations by what they compute
        numbers = self.program.of_kind("const")
        self.constants = {op.results[0].id: op.attrs["value"] for op in numbers if not op.results[0].shape}
        self.read = {v.id for v in _reads(self.program)}
        self.starts = Counter(chain.from_iterable(self._starts(op) for op in self.program.walk()))
        self._region(self.program.body)
        spread(self.steps)

    # -- regions -------------------------------------------------------------------------------------------------------

    def _region(self, region: Region) -> None:
        known, self.known = self.known, dict(self.known)
        for op in region.ops:
            self._op(op)
        self._flush()
        self.known = known

    def _flush(self) -> None:
        for op in list(self.pending.values()):
            self.tile_of(op.results[0])

    def _op(self, op: Op) -> None:
        if op.id in self.done or (movable(op) and self._made_before(op)):
            return
        if op.kind in LOOPS:
            self._loop(op)
        elif op.kind == "if":
            self._branch(op)
        elif op.kind in VIEWS or (op.results and all(r.id in self.definitions.folded for r in op.results)):
            if op.kind == "broadcast" and op.results[0].id in self.demand.full:
                shape_rules.broadcast(self, op)
        elif op.kind == "alloc":
            self.step(op, [], [self.explicit[op.id]])
        elif op.kind not in FREE and not self._is_formula(op):
            RULES.get(op.kind, shape_rules.other)(self, op)

    def _is_formula(self, op: Op) -> bool:
        """Whether an operation makes nothing that has bytes."""
        if op.kind in OF_TILES and not op.results[0].shape:
            return True
        return bool(op.results) and all(
            r.static.kind in SYMBOLIC and r.id not in self.demand.tiles for r in op.results
        )

    def _made_before(self, op: Op) -> bool:
        """Whether an equal operation is there (common subexpressions are one); its results are those of this one."""
        key = self._key(op)
        old = self.known.setdefault(key, op)
        if old is op:
            return False
        for r, o in zip(op.results, old.results, strict=True):
            self.same[r.id] = self.same.get(o.id, o.id)
            if o.id in self.of:
                self.of[r.id] = self.of[o.id]
            if o.id in self.pending:
                self.pending[r.id] = op
        return True

    def _key(self, op: Op) -> Hashable:
        args = tuple(None if v is None else self.same.get(v.id, v.id) for v in op.args)
        full, tiles = self.demand.full, self.demand.tiles
        kinds = tuple((r.id in full, r.id in tiles, str(r.dtype), r.shape) for r in op.results)
        return op.kind, op.name, args, repr(op.attrs), kinds

    def _hoist(self, region: Region) -> None:
        """What does not change in a loop, before it (6.2)."""
        here = self.loops[-1].op.id if self.loops else -1
        for op in region.ops if self.rules.motion else ():
            if op.kind in LOOPS:
                for inner in op.regions:
                    self._hoist(inner)
            elif (
                movable(op)
                and op.id not in self.done
                and self.demand.loop_of[op.id] == here
                and not self._in_pieces(op)
            ):
                self._op(op)
                self.done.add(op.id)

    def _in_pieces(self, op: Op) -> bool:
        """Whether a loop makes a result in pieces, so that it changes within an iteration."""
        pieces = self.rules.pieces
        return op.id in pieces.ops and any(r.id in pieces.axis_of for r in op.results)

    # -- loops and branches --------------------------------------------------------------------------------------------

    def _one_trip(self, op: Op) -> bool:
        """6.1: bounds and step are constants."""
        if op.kind != "for":
            return False
        low, high, step = (self.constants.get(v.id) for v in op.args[:3] if v is not None)
        return low is not None and high is not None and step is not None and low < high <= low + step

    def _loop(self, op: Op) -> None:
        if self._one_trip(op):
            self._body(op)
            return
        self._flush()
        for inner in op.regions:
            self._hoist(inner)
        self._flush()
        pairs = [self._carried(op, k) for k in range(len(op.results))]
        self.time += 1
        loop = PlannedLoop(op, self.time)
        self.loops.append(loop)
        for inner in op.regions:
            self._region(inner)
        self._handed_back(loop, op, pairs)
        self.time += 1
        loop.end = self.time
        self.loops.pop()
        for r in op.results:
            if r.id in self.spaces.copied_to_ub:
                transfers.from_l0c(self, op, r)

    def _body(self, op: Op) -> None:
        """A loop of one trip is its body."""
        body = op.regions[0]
        for arg, init in zip(body.args[1:], op.args[3:], strict=True):
            t = self.tile_of(init)
            if t is not None:
                self.of[arg.id] = t
            elif self.dense(arg):
                self.of[arg.id] = self.filled(op, arg)
        self._region(body)
        for r, y in zip(op.results, body.yields, strict=True):
            t = self.tile_of(y)
            if t is not None:
                self.of[r.id] = t

    def _carried(self, op: Op, k: int) -> tuple[PlannedTile | None, PlannedTile] | None:
        """What the loop's k-th value starts from, and its buffer; None if it has no bytes or an explicit buffer."""
        r = op.results[k]
        if not self.dense(r) or r.id in self.of or not self._is_read(op, k):
            return None
        init = op.operand(k + (3 if op.kind == "for" else 0))
        start, space = self.tile_of(init), self.spaces.space_of(r)
        t = self.tile(self.shape(r), element_of(r), CARRIED, op, r, UB if space == FIXP else space)
        t.carried = True
        if start is None:
            key = self.same_number(init, t.element)
            shared = key is not None and t.space == UB and (self.loops or self.starts[key] > 1)
            self.step(op, [self.number(op, init, t.element)] if shared else [], [t])
        self.of.update((v.id, t) for v in (*arguments(op, k), r))
        return start, t

    def _is_read(self, op: Op, k: int) -> bool:
        """Whether anybody reads a loop's k-th value, in the loop or behind it; canonicalization drops the others."""
        return any(v.id in self.read for v in (*arguments(op, k), op.results[k]))

    def _starts(self, op: Op) -> Iterator[Hashable]:
        """The constants that a loop's tiles start from: one tile for all of them, at the begin of the program."""
        for k, r in enumerate(op.results if op.kind in LOOPS else ()):
            if self.dense(r):
                yield self.same_number(op.operand(k + (3 if op.kind == "for" else 0)), element_of(r))

    def _handed_back(
        self, loop: PlannedLoop, op: Op, pairs: list[tuple[PlannedTile | None, PlannedTile] | None]
    ) -> None:
        for pair, y in zip(pairs, op.regions[-1].yields, strict=True):
            if pair is not None:
                self.carried.append(Carried(loop, *pair, self.tile_of(y)))

    def _branch(self, op: Op) -> None:
        """3.7: one part after the other; both write the result, in place where what they yield ends there."""
        self._flush()
        self.time += 1
        for r in op.results:
            if self.dense(r) and r.id not in self.of:
                self.of[r.id] = self.tile(self.shape(r), element_of(r), TILE, op, r)
        for inner in op.regions:
            self._region(inner)
            for r, y in zip(op.results, inner.yields, strict=True):
                if r.id in self.of:
                    t = self.tile_of(y)
                    self.step(op, [t], [self.of[r.id]], over=[t])
            self.time += 1

    def lines(self) -> list[int]:
        """The source line at each time."""
        out = [0] * (self.time + 2)
        for at, line in chain((s.at, s.op.loc.line) for s in self.steps):
            out[at] = line
        return out


def _reads(program: Program) -> Iterator[Value]:
    """Values that an operation reads, or a region hands back as another one than it got."""
    for op in program.walk():
        yield from (v for v in op.args if v is not None)
        for inner in op.regions:
            given = inner.args[len(inner.args) - len(inner.yields) :] if op.kind in LOOPS else []
            yield from (y for a, y in zip_longest(given, inner.yields) if y is not None and a is not y)

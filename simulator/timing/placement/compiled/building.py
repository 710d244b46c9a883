"""What the expansion of a program is written into: its buffers, its steps, and which buffer holds which value."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ....ir.program import Op, Value
from ..allocation.explicit import values_inside
from ..layouts import COLUMN, VIEWS
from ..memory_spaces import FIXP, UB, VIEW
from ..needs import Needs
from ..shared_rows.halves import part_of
from ..shared_rows.pieces import Pieces
from ..strides import BlockByBlock
from . import scratch
from .demand import Demand
from .tiles import EXPLICIT, FILLED, SCRATCH, TILE, WIDENED, BufferStep, Carried, PlannedLoop, PlannedTile
from .types import BOOL, bits_of, element_of

Tiles = list[PlannedTile | None]  # of operands: None for one that has no bytes
BOOL_CAST_BITS = 96 * 8  # 10.5


class Rules(NamedTuple):
    """rows: value -> the axis that the two Vector cores share. pieces: loops that are cut once more. blocks: what moves
    element by element. motion: whether what does not change in a loop moves before it (6.2). older: release 8.5, which
    orders int32 as int64 and whose selects take no number as an operand (AscendNPU-IR, branch release/v1.0.0, HFusion's
    Normalize.cpp and InlineBrc.cpp)."""

    rows: Mapping[int, int] = {}
    pieces: Pieces = Pieces()
    blocks: BlockByBlock = BlockByBlock()
    motion: bool = True
    older: bool = False


class StepBuilder:
    """Buffers and steps of a program.

    of: value -> its buffer. By operation or value, what lowering asks for: scratch_of, to_ub (products that came to UB),
    sums (of these and what they start from), spread_of (tiles that leave block by block), l0c, l1 (operands on their way to
    the Cube). carried: by loops. cast_now: what makes a cast. stretched: lines that broadcasts make tiles of.
    """

    def __init__(self, needs: Needs, rules: Rules, cast_now: Callable[[StepBuilder, Op], None]) -> None:
        self.needs, self.spaces, self.rules, self.cast_now = needs, needs.spaces, rules, cast_now
        self.program, self.definitions = needs.program, needs.definitions
        self.demand = Demand(self.program, self.definitions)
        self.steps: list[BufferStep] = []
        self.tiles: list[PlannedTile] = []
        self.loops: list[PlannedLoop] = []
        self.carried: list[Carried] = []
        self.time = 0
        self.of: dict[int, PlannedTile] = {}
        self.scratch_of: dict[int, PlannedTile] = {}
        self.to_ub: dict[int, PlannedTile] = {}
        self.sums: dict[int, PlannedTile] = {}
        self.spread_of: dict[int, PlannedTile] = {}
        self.same: dict[int, int] = {}  # value -> the one that an equal operation made
        self.l0c: dict[int, PlannedTile] = {}
        self.l1: dict[tuple[int, int], PlannedTile] = {}
        self.stretched = {i for op in self.program.of_kind("broadcast") for i in self._stretched(op)}
        self.pending: dict[int, Op] = {}  # casts of loaded tiles, made where they are first read
        self.written: dict[Hashable, PlannedTile] = {}  # numbers written out at the begin of the program
        self.explicit = {op.id: self._explicit(op) for op in self.program.of_kind("alloc")}
        for v, alloc in values_inside(self.program, self.spaces) if self.explicit else ():
            self.of[v.id] = self.explicit[alloc.id]
            self.explicit[alloc.id].values.insert(0, v)
        for i, copies in self.program.copies.items():
            if i in self.of:
                self.of[i].asked = max(self.of[i].asked, copies)

    def _stretched(self, op: Op) -> tuple[int, ...]:
        root = self.definitions.root(op.results[0])
        return () if root is None or op.operand(0).numel == op.results[0].numel else (root.id,)

    def _explicit(self, alloc: Op) -> PlannedTile:
        v = alloc.results[0]
        t = self.tile(v.shape, element_of(v), EXPLICIT, alloc, space=str(alloc.attrs["space"]))
        t.carried, t.unique, t.label = True, bool(alloc.attrs["unique"]), v.name
        return t

    # -- buffers -------------------------------------------------------------------------------------------------------

    def shape(self, v: Value, sent: bool = False) -> tuple[int, ...]:
        """Of a tile as one Vector core has it (5.4), in a loop that is cut a piece of it (5.9).

        sent: it comes from the Cube, in pieces also where the loop carries what is made of it.
        """
        rules, pieces = self.rules, self.rules.pieces
        cut = bool(self.loops) and self.loops[-1].op.id in pieces.loops
        half = part_of(v.shape, rules.rows.get(v.id), 2)
        return (
            part_of(half, pieces.axis_of.get(v.id), pieces.vector)
            if cut and (sent or v.id not in pieces.whole)
            else half
        )

    def tile(
        self, shape: Sequence[int], element: str, why: str, op: Op, v: Value | None = None, space: str = UB
    ) -> PlannedTile:
        """A new buffer."""
        t = PlannedTile(tuple(shape), element, bits_of(element), why, op, space, loops=tuple(self.loops))
        if v is not None:
            t.values.append(v)
            t.asked = self.program.copies.get(v.id, 1)
        self.tiles.append(t)
        return t

    def result(self, op: Op, r: Value, why: str = TILE) -> PlannedTile:
        """The buffer of a result: an explicit one, or a new one."""
        if r.id in self.of and self.of[r.id].why == EXPLICIT:
            return self.of[r.id]
        t = self.of[r.id] = self.tile(self.shape(r), element_of(r), why, op, r)
        return t

    def filled(self, op: Op, v: Value) -> PlannedTile:
        """A formula or a scalar, written out."""
        t = self.tile(self.shape(v), element_of(v), FILLED, op, v)
        self.step(op, [], [t])
        return t

    def widened(self, op: Op, t: PlannedTile | None, element: str) -> PlannedTile | None:
        """A tile in the type in which an operation computes; a cast that narrows may be in place (3.10)."""
        if t is None or t.element == element:
            return t
        w = self.tile(t.shape, element, WIDENED, op)
        self.cast_step(op, t, w, extra=BOOL_CAST_BITS if t.element == BOOL else 0)
        return w

    def number(self, op: Op, v: Value, element: str) -> PlannedTile:
        """A number that an operation does not take as an operand, written out as a tile.

        One from outside of all loops is written once, at the begin of the program, and lives as long as it is used
        (Triton-Ascend: constants and what does not change stand at the begin of the function).
        """
        key = self.same_number(v, element)
        if key not in self.written or key is None:
            t = self.written[key] = self.tile(self.shape(v), element, FILLED, op)
            if key is None:
                self.step(op, [], [t])
            else:
                t.loops = ()
                self.steps.insert(0, BufferStep(0, op, (), (t,), (), ()))
        return self.written[key]

    def same_number(self, v: Value, element: str) -> Hashable | None:
        """What tiles of one number from outside of all loops have in common; None for another value."""
        source = self.definitions.scalar_source(v)
        if source is None or self.demand.place_of(source) != -1:
            return None
        made = self.definitions.of(source)
        while made is not None and made.kind == "cast":
            made = self.definitions.of(made.operand(0))
        known = made is not None and made.kind == "const"
        return self.shape(v), element, repr(made.attrs["value"]) if made is not None and known else source.id

    def step(
        self,
        op: Op,
        reads: Iterable[PlannedTile | None],
        writes: Iterable[PlannedTile],
        over: Iterable[PlannedTile | None] = (),
        extra: int = 0,
        casts: bool = False,
    ) -> None:
        """One operation of the unit. over: operands whose buffer its result may take. extra: bits of scratch (3.8).
        casts: see `BufferStep`."""
        self.time += 1
        made = list(writes)
        if extra:
            s = self.scratch_of[op.id] = self.tile((extra,), BOOL, SCRATCH, op)
            s.carried = True  # in nobody's place, and nobody in its
            made.append(s)
        read = tuple(t for t in reads if t is not None)
        may = tuple(t for t in over if t is not None)
        self.steps.append(BufferStep(self.time, op, read, tuple(made), may, tuple(self.loops), casts))

    def cast_step(self, op: Op, t: PlannedTile, out: PlannedTile, extra: int = 0) -> None:
        """A cast, in place unless it widens (3.10)."""
        self.step(op, [t], [out], over=[t] if out.bits <= t.bits else [], extra=extra, casts=True)

    # -- values --------------------------------------------------------------------------------------------------------

    def tile_of(self, v: Value | None) -> PlannedTile | None:
        """The buffer that a value is read from; None if it has none."""
        while v is not None and v.shape:
            if v.id in self.pending:
                self._cast_before(v)
            if v.id in self.of:
                return self.of[v.id]
            made = self.definitions.of(v)
            if made is None or made.kind == "splat":
                return None
            if made.kind not in VIEWS and v.id not in self.definitions.folded:
                return None
            v = made.args[0]
        return None

    def _cast_before(self, v: Value) -> None:
        """Makes a cast that waited for a reader; those of lines that are stretched over tiles come before it (7.3)."""
        for i in (*(i for i in self.pending if i in self.stretched), v.id):
            if i in self.pending:
                self.cast_now(self, self.pending.pop(i))

    def dense(self, v: Value) -> bool:
        """Whether a value is a tile of elements."""
        return bool(v.shape) and not v.is_pointer and v.static.kind == "dense"

    def in_ub(self, r: Value) -> bool:
        """Whether a result has bytes in UB."""
        return bool(r.shape) and not r.is_pointer and self.spaces.space_of(r) not in (FIXP, VIEW)

    def operands(self, args: Iterable[Value | None]) -> tuple[Tiles, int]:
        """Buffers that are read, and bits of scratch for broadcasts that are read as one column (10.3)."""
        found: Tiles = []
        extra = 0
        for v in args:
            t = self.tile_of(v)
            found.append(t)
            if t is not None and v is not None and self._one_column(v):
                extra += scratch.inlined_column(self.shape(v), t.bits)
        return found, extra

    def _one_column(self, v: Value) -> bool:
        return v.id not in self.demand.full and self.definitions.form(v) == COLUMN


def arguments(op: Op, k: int) -> list[Value]:
    """What a loop's k-th value is called inside of it."""
    skip = 1 if op.kind == "for" else 0
    return [inner.args[skip + k] for inner in op.regions if skip + k < len(inner.args)]

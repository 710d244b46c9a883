"""Which formulas become tiles because an instruction reads their elements, and which broadcasts are written out (7).

AscendNPU-IR, lib/Dialect/HIVM/Transforms/InlineOTFBroadcast.cpp. Released compilers keep more broadcasts than that: those
whose user has three axes or is in another loop (7.4, from published needs that come out to the bit).
"""

from __future__ import annotations

from ....ir.program import Op, Program, Region, Value
from ..layouts import SCALAR, VIEWS, Definitions
from ..uses import Uses

FORMULAS = ("affine", "box")
ADDRESSES = {"load": (0, 1), "store": (0, 2), "atomic": (0, 2), "addptr": (0, 1)}
LOOPS = ("for", "while")
ARITHMETIC = ("add", "sub", "mul", "div", "max", "min", "and", "or")
BY_COLUMN = (*ARITHMETIC, "abs", "exp", "exp2", "log", "log2", "sqrt", "rsqrt", "rec", "neg")
FEW_AXES = 2
STAY = (
    *("load", "store", "atomic", "dot", "move", "alloc", "sync", "from_l1", "custom", "print", "assert"),
    *("insert_slice", "subview", "histogram", "send", "receive"),
)


class Demand:
    """Of one program. tiles: formulas (by value) that are written out. full: broadcasts (by value) that are.

    loop_of: operation -> the innermost loop in which it has to stay, -1 for none (6.2).
    """

    def __init__(self, program: Program, definitions: Definitions, uses: Uses | None = None) -> None:
        self.program, self.definitions = program, definitions
        self.depth: dict[int, int] = {}
        self.loop_of: dict[int, int] = {}
        self.argument_of: dict[int, int] = {}
        self.tiles: set[int] = set()
        self.full: set[int] = set()
        self._loops(program.body, -1)
        for op in reversed(list(program.walk())):
            self._op(op)

    def _loops(self, region: Region, loop: int, depth: int = 0) -> None:
        """The innermost loop in which an operation has to stay: those that do not change in a loop move before it."""
        for op in region.ops:
            self.loop_of[op.id] = loop
            if movable(op):
                inside = [self.place_of(v) for v in op.args if v is not None]
                self.loop_of[op.id] = max(inside, key=lambda loop: self.depth.get(loop, 0), default=-1)
            for inner in op.regions:
                here = op.id if op.kind in LOOPS else loop
                self.depth[here] = depth + (op.kind in LOOPS)
                self.argument_of.update((a.id, here) for a in inner.args)
                self._loops(inner, here, self.depth[here])

    def place_of(self, v: Value) -> int:
        """The innermost loop in which a value has to be made, -1 for none."""
        made = self.definitions.of(v)
        return self.argument_of.get(v.id, -1) if made is None else self.loop_of.get(made.id, -1)

    def _op(self, op: Op) -> None:
        """What it reads. Results that are formulas nobody demands read nothing."""
        if op.kind in LOOPS or op.kind == "if":
            return
        if op.kind in VIEWS:
            if any(r.id in self.tiles for r in op.results):
                self._read(op, op.args[0])
            return
        if op.results and all(_formula(r) and r.id not in self.tiles for r in op.results):
            return
        for i, v in enumerate(op.args):
            if i not in ADDRESSES.get(op.kind, ()) and v is not None and v.shape and not v.is_pointer:
                self._read(op, v)

    def _read(self, op: Op, v: Value | None) -> None:
        """An operation reads the elements of a value."""
        if v is None or not v.shape:
            return
        made = self._broadcast(v)
        if made is not None and not self._inlined(op, v, made):
            self.full |= {v.id, made.results[0].id}
            self._read(made, made.operand(0))
        if _formula(v):
            self._demand(v)

    def _demand(self, v: Value) -> None:
        self.tiles.add(v.id)
        made = self.definitions.of(v)
        if made is not None and made.kind in VIEWS and made.kind != "splat":
            inner = made.operand(0)
            if inner.shape and _formula(inner):
                self._demand(inner)

    def _broadcast(self, v: Value) -> Op | None:
        """The broadcast behind views that makes a tile, if what it looks at has fewer elements and is no scalar."""
        if self.definitions.form(v) == SCALAR:
            return None
        made = self.definitions.of(v)
        while made is not None and made.kind in VIEWS:
            inner = made.operand(0)
            if made.kind == "broadcast" and inner.numel != v.numel:
                return None if self.definitions.form(inner) == SCALAR else made
            made = self.definitions.of(inner)
        return None

    def _inlined(self, op: Op, v: Value, made: Op) -> bool:
        """7.1, 7.4: whether an operation reads the one line or column, in whose loop it is."""
        source, whole = made.operand(0), made.results[0].shape
        wide = v.dtype.is_bool() or v.number.bits == 64 or v.shape != whole
        axes = [k for k, (a, b) in enumerate(zip(source.shape, whole, strict=True)) if a != b]
        if wide or len(v.shape) > FEW_AXES or len(axes) != 1 or op.kind not in ("binary", "unary"):
            return False
        if self.place_of(source) != self.loop_of[op.id]:
            return False
        return op.name in (BY_COLUMN if axes[0] == len(v.shape) - 1 else ARITHMETIC)


def movable(op: Op) -> bool:
    """Whether code motion may take it out of a loop, and whether an equal one need not be made again: it moves no data."""
    return not op.regions and op.kind not in STAY


def _formula(v: Value) -> bool:
    return v.static is not None and v.static.kind in FORMULAS and bool(v.shape)

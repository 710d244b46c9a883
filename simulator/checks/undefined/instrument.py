"""Writes into a program, for each value that may hold undefined elements, what computes which of its elements are defined.

What is written: `and` of what the operands of an elementwise operation say, the same movement of what is moved, and
operations of kind "defined" for all else (`rules.py`); a loop and a branch carry one more value. Operations of the kernel
stay the objects they are, in their order, but for loops, branches and transfers between cores, which are copied.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...ir.affine import DENSE, SCALAR
from ...ir.index_arithmetic import MASKS
from ...ir.program import Op, Program, Region, Value
from ...precision.dtypes import int1
from .taint import MIXING, Taint, is_elementwise, is_source, moved

ABSORBING = {
    "and": "and",
    "or": "or",
    "mul": "times",
}  # operations in which one operand may settle the result
DEFINED = "defined"


def instrumented(program: Program, taint: Taint) -> Program:
    """The program or a part of it; `taint` is that of the whole."""
    writer = Instrumenter(program, taint)
    body = writer.region(program.body)
    return replace(program, body=body, op_count=writer.ops).finish()


class Instrumenter:
    """Copies regions; `shadows` holds, by the number of a value, the value that says which of its elements are defined."""

    def __init__(self, program: Program, taint: Taint) -> None:
        self.taint = taint
        self.offset = program.value_count  # a shadow that crosses cores has a number that both parts know
        self.values, self.ops = 2 * program.value_count, program.op_count
        self.shadows: dict[int, Value] = {}
        self.out: list[Op] = []

    # -- writing -----------------------------------------------------------------------------------------------------

    def value(self, like: Value, number: int | None = None) -> Value:
        """A new tile of truth values."""
        if number is None:
            number = self.values
            self.values += 1
        v = Value(number, int1, like.shape, like.loc, like.name)
        v.static = DENSE if like.shape else SCALAR
        return v

    def emit(
        self, kind: str, op: Op, like: Value | None, args: tuple[Value | None, ...], name: str = "", **attrs: Any
    ) -> Value | None:  # fmt: skip
        """An operation at the place of `op`, with a result of the shape of `like`, or none."""
        results = () if like is None else (self.value(like),)
        self.out.append(Op(self.ops, kind, name, args, results, attrs, op.loc))
        self.ops += 1
        return results[0] if results else None

    def rule(self, name: str, op: Op, like: Value | None, *args: Value | None, **attrs: Any) -> Value | None:
        return self.emit(DEFINED, op, like, args, name, of=op, **attrs)

    def of(self, v: Value | None) -> Value | None:
        """What says which elements of a value are defined; None if all are."""
        return None if v is None else self.shadows.get(v.id)

    def all_of(self, v: Value, op: Op) -> Value:
        """The same, written out where all are."""
        found = self.of(v) or self.emit("const", op, _SCALAR, (), value=True)
        assert found is not None
        if found.shape != v.shape:
            found = self.emit("splat", op, v, (found,))
            assert found is not None
        return found

    # -- copying -----------------------------------------------------------------------------------------------------

    def region(
        self, old: Region, skip: int = 0, carried: tuple[int, ...] = (), op: Op | None = None
    ) -> Region:
        """carried: which arguments behind the first `skip` get a shadow beside them; the same of what is handed back."""
        new = Region()
        before, self.out = self.out, new.ops
        for k in carried if old.args else ():
            v = old.args[skip + k]
            self.shadows[v.id] = self.value(v)
            new.args.append(self.shadows[v.id])
        new.args = [*old.args, *new.args]
        for one in old.ops:
            self.operation(one)
        new.yields = list(old.yields)
        if op is not None:
            new.yields += [self.all_of(old.yields[k], op) for k in carried]
        self.out = before
        return new

    def operation(self, op: Op) -> None:
        if op.regions:
            self._control(op)
        elif op.kind in ("send", "receive"):
            self._transfer(op)
        else:
            self._required(op)
            self.out.append(op)
            if op.results and self.taint.has(op.results[0]):
                found = self._follow(op)
                if found is not None:
                    self.shadows[op.results[0].id] = found

    def _control(self, op: Op) -> None:
        """A loop or a branch, which carries a shadow for each value that may hold undefined elements."""
        first = {"for": 3, "while": 0, "if": 1}[op.kind]
        for v in op.args[:first]:
            self._require(op, "condition", self.of(v))
        carried = tuple(k for k, r in enumerate(op.results) if self.taint.has(r))
        more = tuple(self.all_of(op.args[first + k], op) for k in carried) if op.kind != "if" else ()  # type: ignore[arg-type]
        regions = []
        for i, old in enumerate(op.regions):
            asks = op.kind == "while" and i == 0
            regions.append(self.region(old, op.kind == "for", carried, None if asks else op))
            if asks:
                self._asked(op, old, regions[-1])
        results = tuple(self.value(op.results[k]) for k in carried)
        self.shadows.update((op.results[k].id, s) for k, s in zip(carried, results, strict=True))
        self.out.append(
            Op(op.id, op.kind, op.name, (*op.args, *more), (*op.results, *results), op.attrs, op.loc, tuple(regions))
        )  # fmt: skip

    def _asked(self, op: Op, old: Region, new: Region) -> None:
        """The condition of a `while` must be defined."""
        before, self.out = self.out, new.ops
        self._require(op, "condition", self.of(old.yields[0]))
        self.out = before

    def _transfer(self, op: Op) -> None:
        """Tiles that pass between cores, with their shadows."""
        tiles = [v for v in (op.args if op.kind == "send" else op.results) if self.taint.has(v)]
        twins = [self.value(v, self.offset + v.id) for v in tiles if v is not None]
        if op.kind == "receive":
            self.shadows.update((v.id, t) for v, t in zip(tiles, twins, strict=True) if v is not None)
            self.out.append(replaced(op, op.args, (*op.results, *twins)))
            return
        for v, t in zip(tiles, twins, strict=True):
            assert v is not None
            self.out.append(Op(self.ops, DEFINED, "same", (self.all_of(v, op),), (t,), {"of": op}, op.loc))
            self.ops += 1
        self.out.append(replaced(op, (*op.args, *twins), op.results))

    # -- what is defined ---------------------------------------------------------------------------------------------

    def _follow(self, op: Op) -> Value | None:
        """What says which elements of the result of an operation are defined."""
        r, a = op.results[0], op.args
        if is_source(op):
            return self.rule(op.kind, op, r, a[MASKS[op.kind]] if op.kind in MASKS else None)
        if op.kind == "load":
            return self.rule("filled", op, r, a[1], self.of(a[2]))
        if op.kind == "select":
            return self.rule("select", op, r, a[0], *(self.of(v) for v in a))
        if op.kind == "histogram":
            return self.rule("histogram", op, r, a[1] if len(a) > 1 else None, *(self.of(v) for v in a))
        if op.kind in (*MIXING, "gather"):
            index = (a[1],) if op.kind == "gather" else ()
            return self.rule(op.kind, op, r, *index, *(self.of(v) for v in a))
        if (
            op.kind == "binary"
            and op.name in ABSORBING
            and r.dtype.is_int()
            and all(v.shape == r.shape for v in a if v)
        ):
            return self.rule(ABSORBING[op.name], op, r, *a, *(self.of(v) for v in a))
        return self._all_operands(op) if is_elementwise(op) else self._moved(op)

    def _all_operands(self, op: Op) -> Value | None:
        found: Value | None = None
        for v in op.args:
            one = self.of(v)
            if one is not None and one.shape != op.results[0].shape:
                one = self.emit("splat", op, op.results[0], (one,))
            found = (
                one if found is None or one is found else found if one is None else self._both(op, found, one)
            )
        return found

    def _both(self, op: Op, a: Value, b: Value) -> Value | None:
        return self.emit("binary", op, a, (a, b), "and")

    def _moved(self, op: Op) -> Value | None:
        n = moved(op)
        tiles = [self.all_of(v, op) for v in op.args[:n] if v is not None]
        kind = "insert_slice" if op.kind == "move" and n == 2 else op.kind
        if op.kind == "move" and n == 1:
            return tiles[0]
        return self.emit(kind, op, op.results[0], (*tiles, *op.args[n:]), op.name, **op.attrs)

    # -- what must be defined ----------------------------------------------------------------------------------------

    def _required(self, op: Op) -> None:
        if op.kind == "assert":
            self._require(op, "condition", self.of(op.args[0]))
        if op.kind not in ("load", "store", "atomic"):
            return
        mask = op.args[MASKS[op.kind]]
        self._require(op, "mask", self.of(mask))
        self._require(op, "address", self.of(op.args[0]), mask)
        for v in op.args[1::2] if op.kind != "load" else ():  # the value; the one expected
            self._require(op, "value", self.of(v), mask)

    def _require(self, op: Op, what: str, found: Value | None, mask: Value | None = None) -> None:
        if found is not None:
            pointer = op.args[0] if op.kind in ("load", "store", "atomic") else None
            self.rule("required", op, None, found, mask, pointer, what=what)


def replaced(op: Op, args: tuple[Value | None, ...], results: tuple[Value, ...]) -> Op:
    """The operation with other operands and results."""
    return Op(op.id, op.kind, op.name, args, results, op.attrs, op.loc, op.regions)


_SCALAR = Value(-1, int1, (), None)  # type: ignore[arg-type]

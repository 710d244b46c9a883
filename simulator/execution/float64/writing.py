"""Writes into a program, behind each operation that gives floating-point numbers, an operation that gives them in float64.

What is written is of kind "float64" and has the operands of the operation, those in float64, and its result. Loops, branches
and transfers between cores carry a float64 value beside each floating-point one, so that control flow is that of the run.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.affine import DENSE, SCALAR
from ...ir.program import Op, Program, Region, Value
from ...precision import dtypes as ty

KIND = "float64"
BEFORE_CARRIED = {
    "for": 3,
    "while": 0,
    "if": 1,
}  # operands of an operation with regions that it does not carry
WRITES = ("store", "atomic")


def with_float64(program: Program) -> Program:
    """The program, or the part of one core, with its float64 twin beside it."""
    writer = Writer()
    body = writer.region(program.body, given=tuple(program.params.values()))
    return replace(program, body=body).finish()


def is_followed(v: Value | None) -> bool:
    """Whether a value is floating-point numbers."""
    return v is not None and not v.is_pointer and v.dtype.is_floating()


class Writer:
    """Copies regions. A twin has the number of its value, negative, so that both cores' parts know it by the same number.

    What is written beside the values is another thing with another `dtype`, and with another answer of `follows`.
    """

    dtype = ty.float64

    def __init__(self) -> None:
        self.twins: dict[int, Value] = {}
        self.out: list[Op] = []
        self.count = 0

    def follows(self, v: Value | None) -> bool:
        """Whether a value gets a twin."""
        return is_followed(v)

    def beside(self, v: Value) -> Value:
        """The twin of a value that is followed."""
        return self.twins[v.id]

    def begins(self, v: Value) -> None:
        """A value that no operation makes: its twin is the value itself."""
        self.emit(Op(-1, "const", "", (), (v,), {}, v.loc), (v,), self.twin(v))

    def twin(self, v: Value) -> Value:
        """The value beside `v`, from now on."""
        made = Value(-2 - v.id, self.dtype, v.shape, v.loc, v.name)
        made.static = DENSE if v.shape else SCALAR
        self.twins[v.id] = made
        return made

    def emit(self, of: Op, args: tuple[Value | None, ...], *results: Value) -> None:
        self.count += 1
        self.out.append(Op(-1 - self.count, KIND, of.kind, args, results, {"of": of}, of.loc))

    # -- copying -----------------------------------------------------------------------------------------------------

    def region(self, old: Region, given: tuple[Value | None, ...] = (), condition: bool = False) -> Region:
        """given: parameters of the kernel, the number of an iteration. condition: of a `while`, which hands back a truth
        value and no twin of it.
        """
        new = Region()
        before, self.out = self.out, new.ops
        new.args = [*old.args, *(self.twin(v) for v in old.args if v not in given and self.follows(v))]
        for v in filter(self.follows, given):
            assert v is not None
            self.begins(v)
        for one in old.ops:
            self.operation(one)
        more = [] if condition else [self.beside(v) for v in old.yields if self.follows(v)]
        new.yields = [*old.yields, *more]
        self.out = before
        return new

    def operation(self, op: Op) -> None:
        if op.regions:
            self._control(op)
        elif op.kind in ("send", "receive"):
            self._transfer(op)
        else:
            self.out.append(op)
            self._follow(op)

    def _control(self, op: Op) -> None:
        carried = op.args[BEFORE_CARRIED[op.kind] :]
        more = tuple(self.beside(v) for v in carried if v is not None and self.follows(v))
        asks, counts = op.kind == "while", op.kind == "for"
        regions = tuple(
            self.region(old, tuple(old.args[:counts]), asks and k == 0) for k, old in enumerate(op.regions)
        )
        results = (*op.results, *(self.twin(r) for r in op.results if self.follows(r)))
        self.out.append(Op(op.id, op.kind, op.name, (*op.args, *more), results, op.attrs, op.loc, regions))

    def _transfer(self, op: Op) -> None:
        args = (*op.args, *(self.beside(v) for v in op.args if v is not None and self.follows(v)))
        results = (*op.results, *(self.twin(r) for r in op.results if self.follows(r)))
        self.out.append(Op(op.id, op.kind, op.name, args, results, op.attrs, op.loc))

    def _follow(self, op: Op) -> None:
        """Operands, their twins (None of what has none), and for each result itself: see `Float64Evaluation`."""
        if op.kind == "defined":
            return
        twins = tuple(None if v is None else self.twins.get(v.id) for v in op.args)
        made = [r for r in op.results if self.follows(r)]
        for r in made:
            self.emit(op, (*op.args, *twins, r), self.twin(r))
        if (
            op.kind in WRITES and not made
        ):  # of integers, too: the memory may be that of floating-point numbers
            self.emit(op, (*op.args, *twins, None))

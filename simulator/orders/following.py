"""Follows a launch and says of each element of memory which expression it is; control flow is that of the run.

Beside each value that depends on an input there is an array of the numbers of its elements, as `execution/float64` has
values without rounding there; a value without one is the same for all inputs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checks.undefined.taint import is_elementwise, moved
from ..execution.float64.memory import Twins
from ..execution.float64.rules import RULES
from ..execution.float64.writing import BEFORE_CARRIED, Writer
from ..ir.operations import operation
from ..ir.program import Loc, Op, Program, Region, Value
from ..precision import dtypes as ty
from .accesses import ExpressionAccess
from .along import Along
from .elementwise import Elementwise
from .expressions import INPUT, ExpressionKind
from .sharing import Sharing

if TYPE_CHECKING:
    from ..execution.numpy_backend import NumpyBackend

ACCESSES = ("load", "store", "atomic")
DECIDES = "decides"


class _Writer(Writer):
    """Follows every value that may depend on an input."""

    dtype = ty.int64

    def follows(self, v: Value | None) -> bool:
        return v is not None

    def begins(self, v: Value) -> None:
        """It has no twin: a parameter and the number of an iteration are the same for all inputs."""

    def beside(self, v: Value) -> Value:
        """Of a value that depends on no input: constants."""
        if v.id not in self.twins:
            super().begins(v)
        return self.twins[v.id]

    def region(self, old: Region, given: tuple[Value | None, ...] = (), condition: bool = False) -> Region:
        new = super().region(old, given, condition)
        if condition:
            before, self.out = self.out, new.ops
            self._decides(old.yields[:1], old.yields[0].loc)
            self.out = before
        return new

    def _control(self, op: Op) -> None:
        self._decides(op.args[: BEFORE_CARRIED[op.kind]], op.loc)
        super()._control(op)

    def _decides(self, values: Iterable[Value | None], loc: Loc) -> None:
        twins = tuple(self.twins[v.id] for v in values if v is not None and v.id in self.twins)
        if twins:
            self.emit(Op(-1, DECIDES, "", (), (), {}, loc), twins)

    def _follow(self, op: Op) -> None:
        twins = tuple(None if v is None else self.twins.get(v.id) for v in op.args)
        if op.kind not in ACCESSES and all(t is None for t in twins):
            return
        for k, r in enumerate(op.results):
            self.emit(op, (*op.args, *twins, r), self.twin(r))
            self.out[-1].attrs["result"] = k
        if op.kind == "store":
            self.emit(op, (*op.args, *twins, None))


class Following:
    """Of one launch. depends: places where addresses, masks or branches go by data, with the inputs they go by."""

    def __init__(self, elementwise: Elementwise, twins: Twins) -> None:
        self.elementwise = elementwise
        self.of = elementwise.of
        self.along = Along(elementwise)
        self.twins = twins
        self.depends: dict[str, set[str]] = {}
        self.unknowns: dict[str, str] = {}
        self.sharing = Sharing()
        self._given: dict[int, Any] = {}
        self._makers: dict[int, Any] = {}

    def written(self, program: Program) -> Program:
        """The program, or the part of one core, with what is to be carried out."""
        writer = _Writer()
        return replace(program, body=writer.region(program.body)).finish()

    def carry_out(self, backend: NumpyBackend, op: Op, given: list[Any]) -> Any:
        """given: operands, the numbers of their elements or None, and the result of the run."""
        of = op.attrs["of"]
        if of.kind == DECIDES:
            self.goes_by(of, given)
            return None
        count = (len(given) - 1) // 2
        args, twins, made = given[:count], given[count:-1], given[-1]
        if of.kind in ACCESSES:
            return self._access(backend, of, args, twins, made)
        r = of.results[op.attrs.get("result", 0)]
        if of.kind == "const":
            return self.constants(backend, made, r)
        return self._result(backend, of, r, args, twins, made)

    # -- what goes by data ---------------------------------------------------------------------------------------------

    def goes_by(self, op: Op, numbers: list[Any]) -> None:
        """Remember a place where the course of the run goes by what is not constant."""
        for x in numbers:
            if x is not None and not self.of.which_constant(x).all():
                place = f"{op.loc.file}:{op.loc.line}"
                self.depends.setdefault(place, set()).update(self.inputs_of(x))

    def unknown(self, op: Op, why: str) -> None:
        """Remember a place whose meaning is not followed."""
        self.unknowns[f"{op.loc.file}:{op.loc.line}"] = why

    def inputs_of(self, numbers: np.ndarray) -> set[str]:
        """Names of the inputs in expressions."""
        todo, seen, out = np.unique(numbers).tolist(), set(), set()
        while todo:
            x = todo.pop()
            if x in seen:
                continue
            seen.add(x)
            made = self.of.made[x]
            out |= {made.detail[0]} if made.name == INPUT else set()
            todo += self.of.operands[x]
        return out

    # -- accesses ------------------------------------------------------------------------------------------------------

    def _access(self, backend: NumpyBackend, op: Op, args: list[Any], twins: list[Any], made: Any) -> Any:
        self.goes_by(op, [twins[0], twins[1 if op.kind == "load" else 2]])
        self._given = {v.id: t for v, t in zip(op.args, twins, strict=True) if v is not None}
        return ExpressionAccess(self, backend, op).carry_out(args, twins, made)

    def twin_of(self, v: Value) -> Any:
        """The numbers of an operand of the access that is made."""
        return self._given.get(v.id)

    # -- elements ------------------------------------------------------------------------------------------------------

    def constants(self, backend: NumpyBackend, x: Any, v: Value) -> np.ndarray:
        """A value that is the same for all inputs; of a pointer nothing but that."""
        if v.is_pointer:
            return np.zeros((1, *v.shape), np.int64)
        return self.of.constants(backend.element_array(x, v))

    def _operands(self, backend: NumpyBackend, op: Op, args: list[Any], twins: list[Any]) -> list[np.ndarray]:
        every = zip(args, op.args, twins, strict=True)
        return [self.constants(backend, x, v) if t is None else t for x, v, t in every if v is not None]

    def _result(
        self, backend: NumpyBackend, op: Op, r: Value, args: list[Any], twins: list[Any], made: Any
    ) -> np.ndarray:
        operands = self._operands(backend, op, args, twins)
        if all(self.of.which_constant(x).all() for x in operands):
            return self.constants(backend, made, r)
        if r.is_pointer:
            return self._pointers(r, operands)
        if is_elementwise(op):
            return self._elementwise(backend, op, r, operands, made)
        found = (
            self._moved(backend, op, operands)
            if self._only_moves(op, operands)
            else self.along.of_op(op, operands)
        )
        return self._parts(op, r, operands) if found is None else found

    def _pointers(self, r: Value, operands: list[np.ndarray]) -> np.ndarray:
        """Of an address nothing is asked but whether it depends on data, and on which."""
        whole = [np.unique(x) for x in operands]
        made = self.of.number(ExpressionKind("address"), tuple(np.concatenate(whole).tolist()))
        return np.broadcast_to(np.int64(made), (max(map(len, operands)), *r.shape))

    def _elementwise(
        self, backend: NumpyBackend, op: Op, r: Value, operands: list[np.ndarray], made: Any
    ) -> np.ndarray:
        """What the run made of constants is constant."""
        if id(op) not in self._makers:
            self._makers[id(op)] = op, self.elementwise.maker(op)
        shaped = [x.reshape(len(x), *(1,) * (len(r.shape) + 1 - x.ndim), *x.shape[1:]) for x in operands]
        every = np.broadcast_arrays(*shaped)
        known = np.logical_and.reduce([self.of.which_constant(x) for x in every])
        out = np.empty(every[0].shape, np.int64)
        if known.any():
            values = np.broadcast_to(backend.element_array(made, r), out.shape)
            out[known] = self.of.constants(values[known])
        out[~known] = self.of.each(self._makers[id(op)][1], *(x[~known] for x in every))
        return out

    # -- movements -----------------------------------------------------------------------------------------------------

    def _only_moves(self, op: Op, operands: list[np.ndarray]) -> bool:
        if op.kind == "gather":
            return bool(self.of.which_constant(operands[1]).all())
        return bool(moved(op)) and all(self.of.which_constant(x).all() for x in operands[moved(op) :])

    def _moved(self, backend: NumpyBackend, op: Op, operands: list[np.ndarray]) -> np.ndarray:
        """The table's own movement, of numbers; indices and offsets are what the run has."""
        n = 1 if op.kind == "gather" else moved(op)
        for k in range(n, len(operands)):
            values = [self.of.value(x) for x in operands[k].reshape(-1).tolist()]
            operands[k] = np.array(values, np.int64).reshape(operands[k].shape)
        rule, value = RULES.get(op.kind), operation(op).value
        if rule is not None:
            return np.asarray(rule(op, *operands), np.int64)
        assert value is not None
        context = backend.context._replace(transposed=frozenset())
        return np.asarray(value(context, op, *operands), np.int64)

    def _parts(self, op: Op, r: Value, operands: list[np.ndarray]) -> np.ndarray:
        """Of an operation that is not followed in detail."""
        count = max(len(x) for x in operands)
        made = self.elementwise.whole(op, r)
        wide = [np.broadcast_to(x, (count, *x.shape[1:])).reshape(count, -1) for x in operands]
        every = [self.of.parts(made, np.concatenate([x[p] for x in wide]), r.shape) for p in range(count)]
        return np.array(every, np.int64).reshape(count, *r.shape)

"""Operations and values of a program as one of its two Vector cores has them, where the two share rows."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ....ir.program import Op, Value
from ..layouts import Definitions


def part_of(shape: tuple[int, ...], axis: int | None, n: int) -> tuple[int, ...]:
    """A shape with an n-th of an axis, None for none; what is left over counts to each part."""
    return shape if axis is None else (*shape[:axis], -(-shape[axis] // n), *shape[axis + 1 :])


class Halves:
    """rows: value -> axis that is halved. pieces: value -> axis of which there is an n-th of that then.

    Attributes and ids stay; a value of an odd length counts as the larger half.
    """

    def __init__(
        self, rows: Mapping[int, int], pieces: Mapping[int, int] = MappingProxyType({}), n: int = 1
    ) -> None:
        self.rows, self.pieces, self.n = rows, pieces, n
        self.values: dict[int, Value] = {}
        self.ops: dict[int, Op] = {}

    def value(self, v: Value) -> Value:
        if v.id not in self.rows and v.id not in self.pieces:
            return v
        if v.id not in self.values:
            shape = part_of(part_of(v.shape, self.rows.get(v.id), 2), self.pieces.get(v.id), self.n)
            half = self.values[v.id] = Value(v.id, v.dtype, shape, v.loc, v.name)
            half.static = v.static
        return self.values[v.id]

    def op(self, op: Op) -> Op:
        found = self.ops.get(op.id)
        if found is None:
            args = tuple(None if v is None else self.value(v) for v in op.args)
            results = tuple(self.value(v) for v in op.results)
            found = Op(op.id, op.kind, op.name, args, results, op.attrs, op.loc, op.regions)
            self.ops[op.id] = found
        return found


class HalfDefinitions(Definitions):
    """Who defines each half."""

    def __init__(self, known: Definitions, halves: Halves) -> None:
        self.by_value, self.parameters, self.folded = known.by_value, known.parameters, known.folded
        self.halves = halves
        self.settle()

    def of(self, v: Value) -> Op | None:
        op = super().of(v)
        return None if op is None else self.halves.op(op)

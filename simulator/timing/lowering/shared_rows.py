"""Costs where the two Vector cores of a program share its rows: each does half of every tile that has the shared axis.

The instructions of one core are those of the operation on half tiles. Tiles without the axis are done whole by both cores.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...ir.program import Op, Value
from ..costs.model import Cost, CostModel
from ..costs.vector import VectorCosts
from ..placement.layouts import Definitions


class Halves:
    """Operations and values as one of the two cores has them. rows: value -> axis that is halved.

    Attributes and ids stay; a value of an odd length counts as the larger half.
    """

    def __init__(self, rows: Mapping[int, int]) -> None:
        self.rows = rows
        self.values: dict[int, Value] = {}
        self.ops: dict[int, Op] = {}

    def value(self, v: Value) -> Value:
        axis = self.rows.get(v.id)
        if axis is None:
            return v
        if v.id not in self.values:
            shape = (*v.shape[:axis], -(-v.shape[axis] // 2), *v.shape[axis + 1 :])
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


class HalfCosts(VectorCosts):
    """What one of the two cores takes for operations and tiles of the whole program."""

    def __init__(self, model: CostModel, known: Definitions, rows: Mapping[int, int]) -> None:
        self.halves = Halves(rows)
        super().__init__(model, HalfDefinitions(known, self.halves), compiled=True)

    def of(self, op: Op) -> Cost:
        return super().of(self.halves.op(op))

    def on_vector(self, op: Op) -> Cost:
        return super().on_vector(self.halves.op(op))

    def made_real(self, v: Value) -> Cost:
        return super().made_real(self.halves.value(v))

    def start_added(self, start: Value, r: Value) -> Cost:
        return super().start_added(self.halves.value(start), self.halves.value(r))

    def filled(self, v: Value) -> Cost:
        return super().filled(self.halves.value(v))

    def spread(self, v: Value) -> Cost:
        return super().spread(self.halves.value(v))

    def rows_copied(self, v: Value) -> Cost:
        return super().rows_copied(self.halves.value(v))

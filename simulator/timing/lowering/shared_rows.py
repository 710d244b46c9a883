"""Costs where the two Vector cores of a program share its rows: each does half of every tile that has the shared axis.

The instructions of one core are those of the operation on half tiles. Tiles without the axis are done whole by both cores.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...ir.program import Op, Value
from ..costs.model import Cost, CostModel
from ..costs.vector import VectorCosts
from ..placement.layouts import Definitions
from ..placement.shared_rows.halves import HalfDefinitions, Halves


class HalfCosts(VectorCosts):
    """What one of the two cores takes for operations and tiles of the whole program."""

    def __init__(self, model: CostModel, known: Definitions, rows: Mapping[int, int], compiled: bool) -> None:
        self.halves = Halves(rows)
        super().__init__(model, HalfDefinitions(known, self.halves), compiled)

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

"""Costs where a Vector core does less than a tile at a time: half of it, where two share rows, or a piece.

The instructions of one core are those of the operation on half tiles. Tiles without the axis are done whole by both cores.
In a loop that is cut into pieces (`tile_mix_vector_loop`) they are those on a piece, as often as there are pieces, each
after the results of the one before.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...ir.program import Op, Value
from ..costs.model import Cost, CostModel
from ..costs.vector import VectorCosts
from ..placement.banks import Banks
from ..placement.layouts import Definitions
from ..placement.shared_rows.halves import HalfDefinitions, Halves
from ..placement.shared_rows.pieces import Pieces


class HalfCosts(VectorCosts):
    """What one of the two cores takes for operations and tiles of the whole program."""

    def __init__(self, model: CostModel, known: Definitions, halves: Halves, compiled: bool) -> None:
        self.halves = halves
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


class PieceCosts(HalfCosts):
    """Half tiles, and in the loops that are cut pieces of them, one after the other."""

    def __init__(self, model: CostModel, known: Definitions, rows: Mapping[int, int], pieces: Pieces) -> None:
        super().__init__(model, known, Halves(rows), compiled=True)
        self.pieces = pieces
        self.piece = HalfCosts(model, known, Halves(rows, pieces.axis_of, pieces.vector), compiled=True)

    def place(self, banks: Banks) -> None:
        super().place(banks)
        self.piece.place(banks)

    def of(self, op: Op) -> Cost:
        return self._repeated(self.piece.of(op)) if self._cuts(op) else super().of(op)

    def on_vector(self, op: Op) -> Cost:
        return self._repeated(self.piece.on_vector(op)) if self._cuts(op) else super().on_vector(op)

    def made_real(self, v: Value) -> Cost:
        return self._repeated(self.piece.made_real(v)) if self._cut(v) else super().made_real(v)

    def start_added(self, start: Value, r: Value) -> Cost:
        return (
            self._repeated(self.piece.start_added(start, r))
            if self._cut(r)
            else super().start_added(start, r)
        )

    def filled(self, v: Value) -> Cost:
        return self._repeated(self.piece.filled(v)) if self._cut(v) else super().filled(v)

    def spread(self, v: Value) -> Cost:
        return self._repeated(self.piece.spread(v)) if self._cut(v) else super().spread(v)

    def rows_copied(self, v: Value) -> Cost:
        return self._repeated(self.piece.rows_copied(v)) if self._cut(v) else super().rows_copied(v)

    def _repeated(self, cost: Cost) -> Cost:
        return cost.repeated(self.pieces.vector)

    def _cut(self, v: Value) -> bool:
        return v.id in self.pieces.made and v.id in self.pieces.axis_of

    def _cuts(self, op: Op) -> bool:
        axis_of = self.pieces.axis_of
        return op.id in self.pieces.ops and any(
            v is not None and v.id in axis_of for v in (*op.args, *op.results)
        )

"""Cost of one operation of the tile program on the Vector unit, from its operands' shapes and how they lie."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from ...ir.operations import COSTS, operation, steps_of, why_by_element
from ...ir.program import Op, Value
from ..placement.banks import Banks
from ..placement.layouts import BLOCK_BYTES, SCALAR, TILE, Definitions, padded_elements
from . import custom, elementwise, rearrange, reductions
from .model import Cost, CostModel
from .operands import Operands, bits_of, compute_type

BLOCKS_A_REPEAT = 8
FAMILIES: tuple[ModuleType, ...] = (elementwise, reductions, rearrange, custom)


class VectorCosts:
    """Costs of dense operations, and of tiles that are written besides, for one program on one product."""

    def __init__(self, model: CostModel, definitions: Definitions, compiled: bool = False) -> None:
        """compiled: the code is made by the vendor's compiler."""
        self.model = model
        self.compiled = compiled
        self.operands = Operands(model, definitions, compiled)

    def place(self, banks: Banks) -> None:
        """Say where tiles lie."""
        self.operands.banks = banks

    def of(self, op: Op) -> Cost:
        if self.why_by_element(op):
            return self.model.scalar_loop(_elements_one_by_one(op), self.compiled)
        steps = steps_of(op)
        return (
            elementwise.function(self.operands, op, steps)
            if steps
            else FUNCTIONS[operation(op).cost](self.operands, op)
        )

    def why_by_element(self, op: Op) -> str | None:
        """As `operations.why_by_element`, for who makes this code."""
        return why_by_element(op, self.compiled)

    def on_vector(self, op: Op) -> Cost:
        """What the operation would cost on int32 elements, which the Vector unit takes."""
        if op.kind == "compare":
            return elementwise.compare_integers(self.operands, op, "int32")
        if operation(op).cost == "divide":
            return elementwise.divide_integers(self.operands, op, "int32")
        if op.kind == "reduce":
            return reductions.reduce_as(self.operands, op, "int32")
        return self.model.vector(operation(op).row, "int32", padded_elements(op.results[0], 32), 32)

    def made_real(self, v: Value) -> Cost:
        """Writing out a tile that is a view, a formula or a box mask so far."""
        kind = v.static.kind
        if kind == "box":
            index = self.model.vector("index", "fp32", padded_elements(v, 32), 32)
            return index.then(self.model.vector("compares", "fp32", padded_elements(v, 32), 32))
        if kind == "affine":
            return self.model.vector("index", "int32", padded_elements(v, 32), 32)
        forms = [self.operands.form(v)]
        return self.operands.stretched("duplicate" if SCALAR in forms else "copy", compute_type(v), v, forms)

    def start_added(self, start: Value, r: Value) -> Cost:
        """A tile, a row of it or a number, added to a product."""
        form = self.operands.form(start)
        name = "adds" if form == SCALAR else "add"
        return self.operands.stretched(name, compute_type(r), r, [TILE, form])

    def filled(self, v: Value) -> Cost:
        """Filling a tile with the value of masked-out elements before a partial load."""
        return self.operands.whole("duplicate", v)

    def selected(self, v: Value) -> Cost:
        """Elements of a tile in the place of others, by a mask."""
        return self.operands.whole("select", v)

    def halved(self, v: Value) -> Cost:
        """Every second element of rows that are twice as long, by a fixed pattern."""
        return self.operands.moved("gather_mask", v, 2)

    def spread(self, v: Value) -> Cost:
        """Each element into a block of 32 bytes: a repeat of Brcb takes eight of them."""
        bits = 16 if bits_of(v.dtype.name) <= 16 else 32
        blocks = -(-v.numel // BLOCKS_A_REPEAT) * BLOCKS_A_REPEAT
        return self.model.vector("brcb", f"fp{bits}", blocks * BLOCK_BYTES * 8 // bits, bits)

    def rows_copied(self, v: Value) -> Cost:
        """A copy with a stride between rows."""
        return rearrange.rows_copied(self.operands, v)


def _elements_one_by_one(op: Op) -> int:
    """How many elements the scalar unit passes over: a sort goes over all of them once for each doubling."""
    v = op.args[0]
    assert v is not None
    if op.kind == "sort":
        return v.numel * max(1, (v.shape[-1] - 1).bit_length())
    return max(v.numel, op.results[0].numel)


def _function(cost: str) -> Callable[[Operands, Op], Cost]:
    for family in FAMILIES:
        found: Callable[[Operands, Op], Cost] | None = getattr(family, cost, None)
        if found is not None:
            return found
    raise ImportError(f"costs has no function {cost}, by which the table of operations costs one")


FUNCTIONS = {cost: _function(cost) for cost in COSTS}

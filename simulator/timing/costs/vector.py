"""Cost of one operation of the tile program on the Vector unit, from its operands' shapes and how they lie."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from ...ir.operations import COSTS, OPERATIONS, Steps, name_of, operation, steps_of, why_by_element
from ...ir.program import Op, Value
from ...precision.dtypes import DType
from ..placement.banks import Banks
from ..placement.layouts import BLOCK_BYTES, COLUMN, ROW, SCALAR, TILE, Definitions, padded_elements
from .custom import CustomCosts
from .model import WRITE_MEETS_READ, Cost, CostModel
from .provenance import grade_of
from .rearrange import RearrangeCosts

BLOCKS_A_REPEAT = 8
REDUCED_BY_INSTRUCTION = ("sum", "max", "min")


def _elements_one_by_one(op: Op) -> int:
    """How many elements the scalar unit passes over: a sort goes over all of them once for each doubling."""
    v = op.args[0]
    assert v is not None
    if op.kind == "sort":
        return v.numel * max(1, (v.shape[-1] - 1).bit_length())
    return max(v.numel, op.results[0].numel)


class VectorCosts(RearrangeCosts, CustomCosts):
    """Costs of dense operations for one program on one product."""

    def __init__(self, model: CostModel, definitions: Definitions) -> None:
        self.model = model
        self.definitions = definitions
        self.banks: Banks | None = None  # where tiles lie, once they are placed

    def of(self, op: Op) -> Cost:
        if why_by_element(op):
            return self.model.scalar_loop(_elements_one_by_one(op))
        steps = steps_of(op)
        return self._function(op, steps) if steps else METHODS[operation(op).cost](self, op)

    def on_vector(self, op: Op) -> Cost:
        """What the operation would cost on fp32 elements, which the Vector unit takes."""
        entry = operation(op)
        name = entry.row if entry.castable else OPERATIONS[op.name].row
        return self.model.vector(name, "fp32", padded_elements(op.results[0], 32), 32)

    # -- elementwise -------------------------------------------------------------------------------------------------

    def _binary(self, op: Op) -> Cost:
        r = op.results[0]
        dtype = _compute_type(r)
        forms = [self.form(v) for v in op.args]
        name, extra = self._instruction(op, forms, r)
        cost = self._stretched(name, dtype, r, forms, self._conflict(op))
        return self._in_fp32(op, r, self._held_up(op, cost if extra is None else extra.then(cost)))

    def _held_up(self, op: Op, cost: Cost) -> Cost:
        """The cost with what it loses where the result goes to banks that are read; BF16 is computed in scratch."""
        v, r = op.args[0], op.results[0]
        if self.banks is None or v is None or "bf16" in (v.dtype.name, r.dtype.name):
            return cost
        bits = _bits(v.dtype.name), _bits(r.dtype.name)
        if min(bits) < 8:
            return cost  # a mask goes along: eight bytes a repeat
        met = self.banks.writes_met(op, padded_elements(r, max(bits)), *bits)
        if not met:
            return cost
        return cost.held_up(self.model.held_up(met), grade_of(self.model.product, (WRITE_MEETS_READ,)))

    def _conflict(self, op: Op) -> bool:
        """Whether sources of an instruction share a group of banks; BF16 is read from scratch, tile behind tile."""
        if self.banks is None:
            return False
        v = op.args[0]
        assert v is not None
        if v.dtype.name != "bf16":
            return self.banks.conflict(op)
        tiles = [a for a in op.args if a is not None and self.form(a) == TILE]
        return len(tiles) > 1 and not self.banks.apart(padded_elements(tiles[0], 32) * 4)

    def _function(self, op: Op, steps: Steps) -> Cost:
        """A function made of several instructions, in FP32 (halves are widened before and narrowed after)."""
        r = op.results[0]
        elements = padded_elements(r, 32)
        each = [self.model.vector(row, "fp32", elements, 32) for row, n in steps for _ in range(n)]
        self.model.note(f"{name_of(op)}: costed as {len(each)} instructions of FP32; the sequence is assumed")
        if r.dtype.name in ("fp16", "bf16"):
            tiles = [v for v in op.args if v is not None and self.form(v) != SCALAR]
            each = [self.model.cast(r.dtype.name, "fp32", elements, 32) for _ in tiles] + each
            each.append(self.model.cast("fp32", r.dtype.name, elements, 32))
        return functools.reduce(Cost.then, each).assumed()

    def _fma(self, op: Op) -> Cost:
        """Of integers: a product and a sum."""
        r = op.results[0]
        return self._whole("mul", r).then(self._whole("add", r))

    def form(self, v: Value | None) -> str:
        assert v is not None
        return self.definitions.form(v)

    def _instruction(self, op: Op, forms: list[str], r: Value) -> tuple[str, Cost | None]:
        """Instruction of the operation, and what has to come before it."""
        if SCALAR not in forms:
            return name_of(op), None
        scalar = operation(op).scalar
        if scalar:
            turned = op.name == "sub" and forms[0] == SCALAR  # s - x: negate, then add
            return scalar, self._whole("muls", r) if turned else None
        return name_of(op), self._whole("duplicate", r)

    def _whole(self, name: str, v: Value, conflict: bool = False) -> Cost:
        dtype = _compute_type(v)
        bits = _bits(dtype)
        return self.model.vector(name, dtype, padded_elements(v, bits), bits, conflict=conflict)

    def _stretched(self, name: str, dtype: str, r: Value, forms: list[str], conflict: bool = False) -> Cost:
        """An instruction whose operand is stretched goes row by row or column block by column block."""
        bits = _bits(dtype)
        elements = padded_elements(r, bits)
        groups = 1
        if ROW in forms or COLUMN in forms:
            columns = r.shape[-1]
            rows = max(1, r.numel // columns)
            groups = min(rows, self.model.repeats(columns, bits))
        cost = self.model.vector(name, dtype, elements, bits, groups, conflict)
        if COLUMN not in forms:
            return cost
        blocks = self.model.vector("brcb", dtype, -(-max(1, r.numel // r.shape[-1]) // 8) * 8 * 8, bits)
        return blocks.then(cost)

    def _in_fp32(self, op: Op, r: Value, cost: Cost) -> Cost:
        """BF16 has no arithmetic: widen the operands, compute, narrow the result."""
        v = op.args[0]
        assert v is not None
        if not isinstance(v.dtype, DType) or v.dtype.name != "bf16":
            return cost
        elements = padded_elements(r, 32)
        operands = sum(1 for a in op.args if a is not None and self.form(a) != SCALAR)
        for _ in range(operands):
            cost = self.model.cast("bf16", "fp32", elements, 32).then(cost)
        return cost.then(self.model.cast("fp32", "bf16", elements, 32)) if op.kind != "compare" else cost

    def _unary(self, op: Op) -> Cost:
        r = op.results[0]
        return self._in_fp32(op, r, self._held_up(op, self._whole(name_of(op), r)))

    def _compare(self, op: Op) -> Cost:
        v = op.args[0]
        assert v is not None
        forms = [self.form(a) for a in op.args]
        dtype = _compute_type(v)
        bits = _bits(dtype)
        name = "compares" if SCALAR in forms else "compare"
        cost = self.model.vector(name, dtype, padded_elements(v, bits), bits, conflict=self._conflict(op))
        return self._in_fp32(op, v, cost)

    def _select(self, op: Op) -> Cost:
        r = op.results[0]
        cost = self._whole("select", r, self._conflict(op))
        for v in op.args[1:]:
            if self.form(v) == SCALAR:
                cost = self._whole("duplicate", r).then(cost)
        return cost

    def _cast(self, op: Op) -> Cost:
        v, r = op.args[0], op.results[0]
        assert v is not None
        if v.dtype.is_bool():
            return self._whole("select", r)
        bits = max(_bits(v.dtype.name), _bits(r.dtype.name))
        return self._held_up(op, self.model.cast(v.dtype.name, r.dtype.name, padded_elements(r, bits), bits))

    def _permute(self, op: Op) -> Cost:
        r = op.results[0]
        return self.model.transposed(r.numel, _bits(r.dtype.name))

    # -- symbolic tiles made real ------------------------------------------------------------------------------------

    def made_real(self, v: Value) -> Cost:
        """Writing out a tile that is a view, a formula or a box mask so far."""
        kind = v.static.kind
        if kind == "box":
            index = self.model.vector("index", "fp32", padded_elements(v, 32), 32)
            return index.then(self.model.vector("compares", "fp32", padded_elements(v, 32), 32))
        if kind == "affine":
            return self.model.vector("index", "int32", padded_elements(v, 32), 32)
        forms = [self.form(v)]
        return self._stretched("duplicate" if SCALAR in forms else "copy", _compute_type(v), v, forms)

    def start_added(self, start: Value, r: Value) -> Cost:
        """A tile, a row of it or a number, added to a product."""
        form = self.form(start)
        name = "adds" if form == SCALAR else "add"
        return self._stretched(name, _compute_type(r), r, [TILE, form])

    def filled(self, v: Value) -> Cost:
        """Filling a tile with the value of masked-out elements before a partial load."""
        return self._whole("duplicate", v)

    def spread(self, v: Value) -> Cost:
        """Each element into a block of 32 bytes: a repeat of Brcb takes eight of them."""
        bits = 16 if _bits(v.dtype.name) <= 16 else 32
        blocks = -(-v.numel // BLOCKS_A_REPEAT) * BLOCKS_A_REPEAT
        return self.model.vector("brcb", f"fp{bits}", blocks * BLOCK_BYTES * 8 // bits, bits)

    # -- reductions --------------------------------------------------------------------------------------------------

    def _reduce(self, op: Op) -> Cost:
        v = op.args[0]
        assert v is not None
        axis = op.attrs["axis"]
        if axis == len(v.shape) - 1 and op.name in REDUCED_BY_INSTRUCTION:
            return self._in_fp32(op, v, self._reduce_rows(op.name, v))
        return self._in_fp32(op, v, self._fold(op.name, v, axis))

    def _arg_reduce(self, op: Op) -> Cost:
        """Along the last axis the reduction hands back indices too; else each fold compares and selects both."""
        v = op.args[0]
        assert v is not None
        axis, name = op.attrs["axis"], op.name.removeprefix("arg")
        if axis == len(v.shape) - 1:
            return self._in_fp32(op, v, self._reduce_rows(name, v))
        steps = [self._fold(row, v, axis) for row in (name, "compare", "select")]
        return self._in_fp32(op, v, functools.reduce(Cost.then, steps))

    def _reduce_rows(self, name: str, v: Value) -> Cost:
        """One result per repeat, then the results by the same instruction again until one per row is left."""
        dtype = _compute_type(v)
        instruction = "reduce_repeat_sum" if name == "sum" else "reduce_repeat_max"
        bits = _bits(dtype)
        lanes = self.model.repeat_bytes * 8 // bits
        columns = v.shape[-1]
        rows = max(1, v.numel // columns)
        total: Cost | None = None
        while total is None or columns > 1:
            per_row = -(-columns // lanes)
            step = self.model.vector(instruction, dtype, rows * per_row * lanes, bits)
            total = step if total is None else total.then(step)
            columns = per_row
        return total

    def _fold(self, name: str, v: Value, axis: int) -> Cost:
        """Upper half onto lower half, elementwise, until one is left: each step waits for the one before."""
        dtype = _compute_type(v)
        bits = _bits(dtype)
        rest = padded_elements(v, bits) // v.shape[axis]
        n, inner = v.shape[axis], padded_elements(v, bits) // math.prod(v.shape[: axis + 1])
        total: Cost | None = None
        while n > 1:
            lower = (n + 1) // 2
            met = self.banks is not None and not self.banks.apart(lower * inner * bits // 8)
            step = self.model.vector(
                "add" if name == "sum" else name, dtype, max(1, (n - lower) * rest), bits, conflict=met
            )
            total = step if total is None else total.then(step)
            n = lower
        return total or self.model.vector("copy", dtype, max(1, rest), bits)


def _method(cost: str) -> Callable[[VectorCosts, Op], Cost]:
    found: Callable[[VectorCosts, Op], Cost] | None = getattr(VectorCosts, f"_{cost}", None)
    if found is None:
        raise ImportError(f"VectorCosts has no method _{cost} for that cost of the table of operations")
    return found


METHODS = {cost: _method(cost) for cost in COSTS}


def _compute_type(v: Value) -> str:
    """Type the unit computes in: BF16 goes through FP32."""
    name = v.dtype.name
    return "fp32" if name == "bf16" else name


def _bits(dtype: str) -> int:
    return _WIDTH[dtype]


_WIDTH = {
    "int1": 1,
    **{f"{k}{n}": n for k in ("int", "uint") for n in (8, 16, 32, 64)},
    "fp16": 16,
    "bf16": 16,
    "fp32": 32,
    "fp64": 64,
}

"""How the operands of an instruction lie, and what that makes of its cost; each family of operations is costed by it."""

from __future__ import annotations

from ...ir.operations import in_fp32
from ...ir.program import Op, Value
from ...precision.dtypes import DType, named
from ..placement.banks import Banks
from ..placement.layouts import BLOCK_BYTES, COLUMN, ROW, SCALAR, TILE, Definitions, padded_elements
from .model import WRITE_MEETS_READ, Cost, CostModel
from .provenance import grade_of


class Operands:
    """Operands of one program on one product. compiled: the vendor's compiler makes the code.

    banks: where tiles lie, once they are placed. by_blocks: whether rows are reduced by blocks of 32 bytes, as hand-written
    code does beside products; without products whole repeats are, until board times say otherwise.
    """

    def __init__(self, model: CostModel, definitions: Definitions, compiled: bool = False) -> None:
        self.model = model
        self.compiled = compiled
        self.by_blocks = False
        self.definitions = definitions
        self.banks: Banks | None = None

    def form(self, v: Value | None) -> str:
        assert v is not None
        return self.definitions.form(v)

    def with_write_conflicts(self, op: Op, cost: Cost) -> Cost:
        """The cost with what it loses where the result goes to banks that are read; BF16 is computed in scratch."""
        v, r = op.args[0], op.results[0]
        if self.banks is None or v is None or "bf16" in (v.dtype.name, r.dtype.name):
            return cost
        bits = bits_of(v.dtype.name), bits_of(r.dtype.name)
        if min(bits) < 8:
            return cost  # a mask goes along: eight bytes a repeat
        met = self.banks.writes_met(op, padded_elements(r, max(bits)), *bits)
        if not met:
            return cost
        return cost.stalled(
            self.model.write_conflict_cycles(met), grade_of(self.model.product, (WRITE_MEETS_READ,))
        )

    def conflict(self, op: Op) -> bool:
        """Whether sources of an instruction share a group of banks; BF16 is read from scratch, tile behind tile."""
        if self.banks is None:
            return False
        v = op.args[0]
        assert v is not None
        if v.dtype.name != "bf16":
            return self.banks.conflict(op)
        tiles = [a for a in op.args if a is not None and self.form(a) == TILE]
        return len(tiles) > 1 and not self.banks.apart(padded_elements(tiles[0], 32) * 4)

    def whole(self, name: str, v: Value, conflict: bool = False, op: Op | None = None) -> Cost:
        dtype = compute_type(v, op)
        bits = bits_of(dtype)
        return self.model.vector(name, dtype, padded_elements(v, bits), bits, conflict=conflict)

    def made_of_scalar(self, element: str, elements: int) -> Cost:
        """A scalar operand that the instruction does not take, written out: as a tile of so many elements; by the vendor's
        compiler as one block, which every repeat reads (10.3 and 10.6 of `placement/compiled/scratch.py`)."""
        bits = bits_of(element)
        n = BLOCK_BYTES * 8 // bits if self.compiled else elements
        return self.model.vector("duplicate", element, n, bits)

    def stretched(self, name: str, dtype: str, r: Value, forms: list[str], conflict: bool = False) -> Cost:
        """An instruction whose operand is broadcast goes row by row or column block by column block."""
        bits = bits_of(dtype)
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

    def in_fp32(self, op: Op, v: Value, cost: Cost) -> Cost:
        """Halves that are computed in FP32: widen the operands, of the size of `v`, compute, narrow the result."""
        r = op.results[0]
        if not in_fp32(op):
            return cost
        half, elements = op.operand(0).dtype.name, padded_elements(v, 32)
        for a in op.args:
            if a is not None and self.form(a) != SCALAR:
                cost = self.model.cast(half, "fp32", elements, 32).then(cost)
        if r.dtype.name != half:
            return cost
        return cost.then(self.model.cast("fp32", half, padded_elements(r, 32), 32))

    def moved(self, row: str, v: Value, times: int = 1) -> Cost:
        """One instruction over all elements, or some times as many, as elements of 16 or 32 bits."""
        bits = max(16, moved_bits(v))
        name = "fp16" if bits == 16 else "fp32"
        return self.model.vector(row, name, times * padded_elements(v, bits), bits)

    def gathered(self, r: Value) -> Cost:
        """A gather with the offsets made on the spot."""
        return self.model.vector("index", "int32", padded_elements(r, 32), 32).then(self.moved("gather", r))


def compute_type(v: Value, op: Op | None = None) -> str:
    """Type the unit computes in, in that operation: BF16 goes through FP32, in some operations FP16 too.

    Elements of a foreign format are moved only, as integers of as many bits; arithmetic on them is one of FP32 already.
    """
    if isinstance(v.dtype, DType) and v.dtype.is_foreign:
        return f"int{max(8, v.dtype.bits)}"
    name = v.dtype.name
    return "fp32" if name == "bf16" or (op is not None and in_fp32(op)) else name


def bits_of(dtype: str) -> int:
    return _WIDTH.get(dtype) or named(dtype).bits


def moved_bits(v: Value) -> int:
    """Of an element that is moved inside of a tile."""
    return 32 if v.dtype.name == "bf16" else v.dtype.bits  # type: ignore[union-attr]


_WIDTH = {
    "int1": 1,
    **{f"{k}{n}": n for k in ("int", "uint") for n in (8, 16, 32, 64)},
    "fp16": 16,
    "bf16": 16,
    "fp32": 32,
    "fp64": 64,
}

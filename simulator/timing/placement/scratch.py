"""Scratch bytes that an operation needs in UB besides its operands and its result."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ...ir.building.buffers import moved
from ...ir.building.core_operations import EQUALITY
from ...ir.operations import Scratch, in_fp32, operation, why_by_element
from ...ir.program import Op, Value
from ...precision.dtypes import DType
from .layouts import BLOCK_BYTES, SCALAR, TILE, Definitions, align, element_bits, tile_bytes

REPEAT_LANES_FP32 = 64
HALF_BITS = 16
SORT_PAIR_BYTES = 8  # Sort32 and the merges work on a value of four bytes beside an index of four


def scratch_bytes(op: Op, definitions: Definitions) -> int:
    """Bytes for widened operands, reduction partials, made-real symbolic tiles; 0 for most operations."""
    if op.results and op.results[0].id in definitions.folded:
        return 0
    if op.results and op.results[0].static.kind in ("affine", "box", "scalar", "pointer"):
        return 0
    return sum(size(op, definitions) for size in _sizes(operation(op).scratch))


def scratch_name(op: Op, definitions: Definitions) -> str:
    """What most of these bytes are for: "expansion of select": its operands as whole tiles."""
    sizes = {what: size(op, definitions) for what, size in BYTES.items() if what in operation(op).scratch}
    most = max(sizes, key=lambda what: sizes[what], default=Scratch.STATED)
    return f"{NAMES.get(most, 'scratch')} of {op.name or op.kind}"


@functools.cache
def _sizes(needs: Scratch) -> tuple[Callable[[Op, Definitions], int], ...]:
    """What counts the bytes of each need."""
    return tuple(size for what, size in BYTES.items() if what in needs)


def _made_real(v: Value | None, definitions: Definitions) -> int:
    """A tile that exists only as a view or a formula must be written out before this operation can use it."""
    if v is None or not v.shape:
        return 0
    return 0 if definitions.root(v) is not None and definitions.form(v) == TILE else tile_bytes(v)


def _operands(op: Op, definitions: Definitions) -> int:
    total = 0
    for v in op.args:
        if v is None or not v.shape:
            continue
        form = definitions.form(v)
        if v.static.kind in ("affine", "box") and (form != SCALAR or op.kind == "select"):
            total += tile_bytes(v)
        elif form == "column":
            total += v.numel // v.shape[-1] * BLOCK_BYTES
    return total + _widened(op)


def _scalars(op: Op, definitions: Definitions) -> int:
    """Scalars that the instruction takes as tiles only; formulas among them are counted with the operands."""
    select = op.kind == "select"
    tiles = [v for v in (op.args[1:] if select else op.args) if v is not None and v.shape]
    scalars = [v for v in tiles if definitions.form(v) == SCALAR]
    return sum(tile_bytes(v) for v in scalars if not (select and v.static.kind in ("affine", "box")))


def _widened(op: Op) -> int:
    """Operands in the type that computes: of BF16 and of quotients of integers two of FP32, of int8 compared two of FP16;
    of int32 in order their maximum; of an exclusive or its two parts."""
    v = op.args[0]
    if (
        v is None
        or not v.shape
        or not isinstance(v.dtype, DType)
        or op.kind == "select"
        or why_by_element(op)
    ):
        return 0
    how = operation(op).cost
    if v.dtype.name == "bf16" or (how == "divide" and v.dtype.is_int()):
        return 2 * v.numel * 4
    if how == "compare" and v.dtype.is_int() and v.dtype.bits in (8, 32):
        return v.numel * 4 if v.dtype.bits == 8 or op.name not in EQUALITY else 0
    return 2 * tile_bytes(v) if how == "exclusive_or" else 0


def _sliced(op: Op) -> int:
    """Byte offsets of the elements, where a slice has to be gathered; masks are sliced as halves."""
    return _offsets_of(op) + _halves_of_masks(op)


def _offsets_of(op: Op) -> int:
    if slice_is_copied(op):
        return 0
    return (op.results[0] if op.kind == "extract_slice" else op.args[1]).numel * 4  # type: ignore[union-attr]


def slice_is_copied(op: Op) -> bool:
    """Whether every row of a slice starts on a block of 32 bytes and is contiguous, so that blocks can be copied."""
    v = op.args[0]
    assert v is not None
    offset, size, step = (op.attrs[k][-1] for k in ("offsets", "sizes", "strides"))
    if size == v.shape[-1]:
        return True
    bits = HALF_BITS if v.dtype.is_bool() else element_bits(v)
    block = max(1, BLOCK_BYTES * 8 // bits)
    return (size == 1 or step == 1) and offset is not None and offset % block == 0


def _halves_of_masks(op: Op) -> int:
    if not op.results[0].dtype.is_bool():
        return 0
    tiles = (*op.args[: 1 if op.kind == "extract_slice" else 2], *op.results)
    return sum(align(v.numel * HALF_BITS // 8, BLOCK_BYTES) for v in tiles if v is not None)


def _reduction(op: Op) -> int:
    v = op.operand(0)
    return _partials(v, op.attrs["axis"]) + (4 * v.numel if in_fp32(op) else 0)


def _partials(v: Value, axis: int) -> int:
    if axis == len(v.shape) - 1:
        rows = v.numel // v.shape[-1]
        partials = -(-v.shape[-1] // REPEAT_LANES_FP32)
        return align(rows * partials * 4, BLOCK_BYTES) if partials > 1 else 0
    return tile_bytes(v) // 2 if v.shape[axis] > 2 else 0  # two halves: their sum is the result


def _all(op: Op, definitions: Definitions) -> int:
    return sum(_made_real(v, definitions) for v in op.args)


def _into_l1(op: Op, definitions: Definitions) -> int:
    return _made_real(moved(op), definitions) if op.attrs["space"] != "UB" else 0


BYTES: dict[Scratch, Callable[[Op, Definitions], int]] = {
    Scratch.OPERANDS: _operands,
    Scratch.SCALARS: _scalars,
    Scratch.FIRST: lambda op, d: _made_real(op.args[0], d),
    Scratch.SECOND: lambda op, d: _made_real(op.args[1], d),
    Scratch.COMBINED: lambda op, d: tile_bytes(op.operand(1)) if op.attrs["locked"] else 0,
    Scratch.ALL: _all,
    Scratch.INTO_L1: _into_l1,
    Scratch.PARTIALS: lambda op, d: _reduction(op),
    Scratch.OFFSETS: lambda op, d: op.results[0].numel * 4,
    Scratch.SLICED: lambda op, d: _sliced(op),
    Scratch.PAIRS: lambda op, d: 2 * op.results[0].numel * SORT_PAIR_BYTES,
    Scratch.STATED: lambda op, d: int(op.attrs["scratch"]),
}
NAMES = {
    **dict.fromkeys(
        (Scratch.OPERANDS, Scratch.SCALARS, Scratch.ALL, Scratch.FIRST, Scratch.SECOND), "expansion"
    ),
    Scratch.INTO_L1: "expansion",
    Scratch.COMBINED: "combined values",
    Scratch.PARTIALS: "partials",
    Scratch.OFFSETS: "offsets",
    Scratch.SLICED: "offsets",
    Scratch.PAIRS: "values with indices",
}

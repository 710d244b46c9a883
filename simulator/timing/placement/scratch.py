"""Scratch bytes that an operation needs in UB besides its operands and its result."""

from __future__ import annotations

from ...ir.building.buffers import moved
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
    if op.kind in ("binary", "compare", "select", "unary", "fma"):
        return _operands(op, definitions) + _widened(op)
    if op.kind in ("reduce", "arg_reduce"):
        return _reduction(op) + _made_real(op.args[0], definitions)
    if op.kind in ("store", "atomic"):
        return _made_real(op.args[1], definitions)
    if op.kind in ("slice", "cat", "gather", "scan", "sort", "histogram"):
        return sum(_made_real(v, definitions) for v in op.args) + _moving(op)
    if op.kind in ("cast", "extract_slice", "get_element"):
        return _made_real(op.args[0], definitions) + _offsets_of(op) + _halves_of_masks(op)
    if op.kind == "move":
        return _made_real(moved(op), definitions) if op.attrs["space"] != "UB" else 0
    if op.kind == "custom":
        return sum(_made_real(v, definitions) for v in op.args) + op.attrs["scratch"]  # type: ignore[no-any-return]
    if op.kind == "insert_slice":  # a whole tile that is a formula is written straight into the result
        return _made_real(op.args[1], definitions) + _offsets_of(op) + _halves_of_masks(op)
    return 0


def _made_real(v: Value | None, definitions: Definitions) -> int:
    """A tile that exists only as a view or a formula must be written out before this operation can use it."""
    if v is None or not v.shape:
        return 0
    return 0 if definitions.root(v) is not None and definitions.form(v) == TILE else tile_bytes(v)


def _operands(op: Op, definitions: Definitions) -> int:
    total = 0
    for i, v in enumerate(op.args):
        if v is None or not v.shape:
            continue
        form = definitions.form(v)
        if v.static.kind in ("affine", "box") and (form != SCALAR or op.kind == "select"):
            total += tile_bytes(v)
        elif form == "column":
            total += v.numel // v.shape[-1] * BLOCK_BYTES
        elif form == SCALAR and (op.name == "div" or (op.kind == "select" and i > 0)):
            total += tile_bytes(v)
    return total


def _widened(op: Op) -> int:
    """BF16 is computed in FP32: two widened operands."""
    v = op.args[0] if op.kind != "select" else op.args[1]
    if (
        v is None
        or not v.shape
        or not isinstance(v.dtype, DType)
        or v.dtype.name != "bf16"
        or op.kind == "select"
    ):
        return 0
    return 2 * v.numel * 4


def _offsets_of(op: Op) -> int:
    """Byte offsets of the elements, where a slice has to be gathered."""
    if op.kind not in ("extract_slice", "insert_slice") or slice_is_copied(op):
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
    """Masks are sliced as halves."""
    if op.kind not in ("extract_slice", "insert_slice") or not op.results[0].dtype.is_bool():
        return 0
    tiles = (*op.args[: 1 if op.kind == "extract_slice" else 2], *op.results)
    return sum(align(v.numel * HALF_BITS // 8, BLOCK_BYTES) for v in tiles if v is not None)


def _moving(op: Op) -> int:
    """Byte offsets of a gather; the pairs of value and index that a sort merges to and fro."""
    v = op.results[0]
    if op.kind == "gather":
        return v.numel * 4
    return 2 * v.numel * SORT_PAIR_BYTES if op.kind == "sort" else 0


def _reduction(op: Op) -> int:
    v = op.args[0]
    assert v is not None
    axis = op.attrs["axis"]
    if axis == len(v.shape) - 1:
        rows = v.numel // v.shape[-1]
        partials = -(-v.shape[-1] // REPEAT_LANES_FP32)
        return align(rows * partials * 4, BLOCK_BYTES) if partials > 1 else 0
    return tile_bytes(v) // 2 if v.shape[axis] > 2 else 0  # two halves: their sum is the result

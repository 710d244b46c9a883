"""Costs of operations that move elements inside of a tile, by the instruction of the product's table where it has one."""

from __future__ import annotations

import functools
import operator

from ...ir.program import Op, Value
from ..placement.layouts import BLOCK_BYTES, padded_elements
from ..placement.scratch import slice_is_copied
from .model import Cost
from .operands import Operands, bits_of, moved_bits


def slice(c: Operands, op: Op) -> Cost:
    """Whole blocks are copied, every second element is picked by a fixed pattern, anything else is gathered."""
    r, v = op.results[0], op.args[0]
    assert v is not None
    axis, step = op.attrs["axis"], op.attrs["step"]
    if axis != len(r.shape) - 1:
        return c.moved("copy", r)
    start = op.attrs["start"] * moved_bits(r) // 8
    if step == 1 and start % BLOCK_BYTES == 0:
        return c.moved("copy", r)
    return c.moved("gather_mask", v) if step in (1, 2) else c.gathered(r)


def extract_slice(c: Operands, op: Op) -> Cost:
    """Rows that lie on blocks are copied, an instruction for each plane; others are gathered element by element."""
    r = op.results[0]
    if slice_is_copied(op):
        return _of_masks(c, op, rows_copied(c, r))
    _note_slice(c, op)
    return _of_masks(c, op, c.gathered(r))


def img2col(c: Operands, op: Op) -> Cost:
    """Rows of channels are copied, an instruction for each plane of windows."""
    return rows_copied(c, op.results[0])


def insert_slice(c: Operands, op: Op) -> Cost:
    """Rows that lie on blocks are copied; others are spread by a gather and a selection in the rows that they touch."""
    full, sub = op.args[0], op.args[1]
    assert full is not None
    assert sub is not None
    if slice_is_copied(op):
        return _of_masks(c, op, rows_copied(c, sub))
    _note_slice(c, op)
    bits = max(16, moved_bits(full))
    rows = sub.numel // sub.shape[-1]
    elements = rows * -(-full.shape[-1] * bits // 256) * 256 // bits
    name = "fp16" if bits == 16 else "fp32"
    return _of_masks(c, op, c.gathered(sub).then(c.model.vector("select", name, elements, bits)))


def _of_masks(c: Operands, op: Op, cost: Cost) -> Cost:
    """Masks, of one bit an element, become halves by a selection first, and their result a mask by a comparison."""
    tiles = op.args[: 1 if op.kind == "extract_slice" else 2]
    if not op.results[0].dtype.is_bool():
        return cost
    for v in tiles:
        assert v is not None
        cost = c.model.vector("select", "fp16", padded_elements(v, 16), 16).then(cost)
    return cost.then(c.model.vector("compares", "fp16", padded_elements(op.results[0], 16), 16))


def _note_slice(c: Operands, op: Op) -> None:
    c.model.notes[
        f"{op.kind}: off the blocks of 32 bytes it is costed as a gather of its elements; the sequence is assumed"
    ] = None


def rows_copied(c: Operands, v: Value) -> Cost:
    """A copy with a stride between rows: one instruction for each plane of rows and columns."""
    bits = max(16, moved_bits(v))
    planes = v.numel // functools.reduce(operator.mul, v.shape[-2:], 1)
    name = "fp16" if bits == 16 else "fp32"
    return c.model.vector("copy", name, padded_elements(v, bits), bits, planes)


def get_element(c: Operands, op: Op) -> Cost:
    """The scalar unit reads one element of UB."""
    return c.model.scalar_loop(1)


def cat(c: Operands, op: Op) -> Cost:
    """A copy of all elements; parts of a last axis that do not start on a block are gathered."""
    r = op.results[0]
    parts = [v for v in op.args if v is not None]
    last = op.attrs["axis"] == len(r.shape) - 1
    aligned = all(v.shape[-1] * moved_bits(v) // 8 % BLOCK_BYTES == 0 for v in parts)
    return c.moved("copy", r) if aligned or not last else c.gathered(r)


def gather(c: Operands, op: Op) -> Cost:
    """Gather takes byte offsets: indices are scaled first, and get the start of their row if there are rows."""
    r = op.results[0]
    elements = padded_elements(r, 32)
    scaled = c.model.vector("muls", "int32", elements, 32)
    if len(r.shape) > 1:
        scaled = scaled.then(c.model.vector("add", "int32", elements, 32))
    return scaled.then(c.moved("gather", r))


def permute(c: Operands, op: Op) -> Cost:
    r = op.results[0]
    return c.model.transposed(r.numel, bits_of(r.dtype.name))

"""Costs of reductions, scans and sorts.

How a scan is cut into instructions nobody published, so that its use is listed as assumed.
"""

from __future__ import annotations

import functools
import math

from ...ir.program import Op, Value
from ..placement.layouts import BLOCK_BYTES, padded_elements
from .compiled_reductions import REDUCED_BY_INSTRUCTION, rows_reduced
from .model import Cost, CostModel
from .operands import Operands, bits_of, compute_type

SORT_REPEAT = 32  # elements of one repeat of Sort32 and of a merge


def reduce(c: Operands, op: Op) -> Cost:
    v = op.operand(0)
    return c.in_fp32(op, v, reduce_as(c, op, compute_type(v, op)))


def reduce_as(c: Operands, op: Op, dtype: str) -> Cost:
    """On elements of that type."""
    v, axis = op.operand(0), op.attrs["axis"]
    if axis == len(v.shape) - 1 and c.compiled:
        return rows_reduced(c, op.name, v, dtype)
    if axis == len(v.shape) - 1 and op.name in REDUCED_BY_INSTRUCTION:
        return _reduce_rows(c, op.name, v, dtype)
    return _fold(c, op.name, v, axis, dtype)


def arg_reduce(c: Operands, op: Op) -> Cost:
    """Along the last axis the reduction hands back indices too; else each fold compares and selects both."""
    v = op.args[0]
    assert v is not None
    axis, name = op.attrs["axis"], op.name.removeprefix("arg")
    if axis == len(v.shape) - 1:
        return c.in_fp32(op, v, _reduce_rows(c, name, v, compute_type(v)))
    steps = [_fold(c, row, v, axis, compute_type(v)) for row in (name, "compare", "select")]
    return c.in_fp32(op, v, functools.reduce(Cost.then, steps))


def _reduce_rows(c: Operands, name: str, v: Value, dtype: str) -> Cost:
    """One result per repeat, then the results by the same instruction again until one per row is left."""
    if c.by_blocks and v.shape[-1] % (c.model.repeat_bytes * 8 // bits_of(dtype)) == 0:
        return _by_blocks(c, name, v, dtype)
    instruction = "reduce_repeat_sum" if name == "sum" else "reduce_repeat_max"
    bits = bits_of(dtype)
    lanes = c.model.repeat_bytes * 8 // bits
    columns = v.shape[-1]
    rows = max(1, v.numel // columns)
    total: Cost | None = None
    while total is None or columns > 1:
        per_row = -(-columns // lanes)
        step = c.model.vector(instruction, dtype, rows * per_row * lanes, bits)
        total = step if total is None else total.then(step)
        columns = per_row
    return total


def _by_blocks(c: Operands, name: str, v: Value, dtype: str) -> Cost:
    """Rows are folded to a repeat, then one result per block of 32 bytes until one per row is left.

    FP32 blocks go at one repeat a cycle where whole repeats take seven.
    """
    bits = bits_of(dtype)
    lanes, block = c.model.repeat_bytes * 8 // bits, BLOCK_BYTES * 8 // bits
    rows, columns = v.numel // v.shape[-1], v.shape[-1]
    kind, step = ("sum", "add") if name == "sum" else ("max", name)
    steps = []
    while columns > lanes:
        upper = columns // lanes // 2 * lanes
        steps.append(c.model.vector(step, dtype, rows * upper, bits))
        columns -= upper
    while columns > 1:
        steps.append(c.model.vector(f"reduce_block_{kind}", dtype, rows * columns, bits))
        columns = -(-columns // block)
    return functools.reduce(Cost.then, steps)


def _fold(c: Operands, name: str, v: Value, axis: int, dtype: str) -> Cost:
    """Upper half onto lower half, elementwise, until one is left: each step waits for the one before."""
    bits = bits_of(dtype)
    rest = padded_elements(v, bits) // v.shape[axis]
    n, inner = v.shape[axis], padded_elements(v, bits) // math.prod(v.shape[: axis + 1])
    total: Cost | None = None
    while n > 1:
        lower = (n + 1) // 2
        met = c.banks is not None and not c.banks.apart(lower * inner * bits // 8)
        step = c.model.vector(
            "add" if name == "sum" else name, dtype, max(1, (n - lower) * rest), bits, conflict=met
        )
        total = step if total is None else total.then(step)
        n = lower
    return total or c.model.vector("copy", dtype, max(1, rest), bits)


def scan(c: Operands, op: Op) -> Cost:
    """Row after row is combined with the one before; along the last axis the tile is transposed and back."""
    r = op.results[0]
    n = r.shape[op.attrs["axis"]]
    row = max(1, r.numel // n)
    dtype = compute_type(r, op)
    bits = max(16, bits_of(dtype))
    name = "add" if op.name == "sum" else op.name
    c.model.notes[f"scan: costed as {n - 1} dependent instructions of one row; the sequence is assumed"] = (
        None
    )
    first = c.model.vector(name, dtype, row, bits)
    later = first._replace(occupancy=first.occupancy - c.model.masking(row, bits))  # the mask stays
    steps = [first, *[later] * (n - 2)] if n > 1 else [c.moved("copy", r)]
    if op.attrs["axis"] == len(r.shape) - 1 and row > 1:
        transposed = c.model.transposed(r.numel, bits)
        steps = [transposed, *steps, transposed]
    return c.in_fp32(op, r, functools.reduce(Cost.then, steps))


def sort(c: Operands, op: Op) -> Cost:
    """Sort32 of each 32 elements, then merges of four lists until one is left; ascending order negates twice."""
    r = op.results[0]
    n, rows = r.shape[-1], r.numel // r.shape[-1]
    repeats = rows * -(-n // SORT_REPEAT)
    steps = [repeated(c.model, "sort32", repeats)]
    length = SORT_REPEAT
    while length < n:
        steps.append(repeated(c.model, "mrgsort4", repeats))
        length *= 4
    if not op.attrs["descending"]:
        negated = c.model.vector("muls", "fp32", padded_elements(r, 32), 32)
        steps = [negated, *steps, negated]
    return functools.reduce(Cost.then, [*steps, c.moved("gather_mask", r)])


def repeated(model: CostModel, row: str, repeats: int) -> Cost:
    return model.vector(row, "any", repeats * model.repeat_bytes, 8)

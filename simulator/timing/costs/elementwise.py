"""Costs of operations on elements: arithmetic, comparisons, selections, conversions."""

from __future__ import annotations

import functools

from ...ir.operations import Steps, name_of, operation
from ...ir.program import Op, Value
from ..placement.layouts import SCALAR, padded_elements
from .model import Cost
from .operands import Operands, bits_of, compute_type


def unary(c: Operands, op: Op) -> Cost:
    r = op.results[0]
    return c.in_fp32(op, r, c.with_write_conflicts(op, c.whole(name_of(op), r, op=op)))


def binary(c: Operands, op: Op) -> Cost:
    r = op.results[0]
    dtype = compute_type(r)
    forms = [c.form(v) for v in op.args]
    name, extra = _instruction(c, op, forms, r)
    cost = c.stretched(name, dtype, r, forms, c.conflict(op))
    return c.in_fp32(op, r, c.with_write_conflicts(op, cost if extra is None else extra.then(cost)))


def _instruction(c: Operands, op: Op, forms: list[str], r: Value) -> tuple[str, Cost | None]:
    """Instruction of the operation, and what has to come before it."""
    if SCALAR not in forms:
        return name_of(op), None
    scalar = operation(op).scalar
    if scalar:
        negated = op.name == "sub" and forms[0] == SCALAR  # s - x: negate, then add
        return scalar, c.whole("muls", r) if negated else None
    return name_of(op), c.whole("duplicate", r)


def function(c: Operands, op: Op, steps: Steps) -> Cost:
    """A function made of several instructions, in FP32 (halves are widened before and narrowed after)."""
    r = op.results[0]
    elements = padded_elements(r, 32)
    c.model.note(
        f"{name_of(op)}: costed as {sum(n for _, n in steps)} instructions of FP32; the sequence is assumed"
    )
    each = [c.model.vector(row, "fp32", elements, 32) for row, n in steps for _ in range(n)]
    if r.dtype.name in ("fp16", "bf16"):
        tiles = [v for v in op.args if v is not None and c.form(v) != SCALAR]
        each = [c.model.cast(r.dtype.name, "fp32", elements, 32) for _ in tiles] + each
        each.append(c.model.cast("fp32", r.dtype.name, elements, 32))
    return functools.reduce(Cost.then, each).assumed()


def fma(c: Operands, op: Op) -> Cost:
    """Of integers: a product and a sum."""
    r = op.results[0]
    return c.whole("mul", r).then(c.whole("add", r))


def compare(c: Operands, op: Op) -> Cost:
    v = op.args[0]
    assert v is not None
    forms = [c.form(a) for a in op.args]
    dtype = compute_type(v)
    bits = bits_of(dtype)
    name = "compares" if SCALAR in forms else "compare"
    cost = c.model.vector(name, dtype, padded_elements(v, bits), bits, conflict=c.conflict(op))
    return c.in_fp32(op, v, cost)


def select(c: Operands, op: Op) -> Cost:
    r = op.results[0]
    cost = c.whole("select", r, c.conflict(op))
    for v in op.args[1:]:
        if c.form(v) == SCALAR:
            cost = c.whole("duplicate", r).then(cost)
    return cost


def cast(c: Operands, op: Op) -> Cost:
    v, r = op.args[0], op.results[0]
    assert v is not None
    if v.dtype.is_bool():
        return c.whole("select", r)
    bits = max(bits_of(v.dtype.name), bits_of(r.dtype.name))
    return c.with_write_conflicts(
        op, c.model.cast(v.dtype.name, r.dtype.name, padded_elements(r, bits), bits)
    )

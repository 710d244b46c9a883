"""Costs of operations on elements: arithmetic, comparisons, selections, conversions."""

from __future__ import annotations

import functools

from ...ir.building.core_operations import EQUALITY
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
    element = compute_type(r)
    return name_of(op), c.made_of_scalar(element, padded_elements(r, bits_of(element)))


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


def fixpipe_scaled(c: Operands, op: Op) -> Cost:
    """On the Vector unit: as FP32, times the scales, narrowed; int8 by way of FP16."""
    r, source, forms = op.results[0], op.operand(0).dtype.name, [c.form(v) for v in op.args]
    n = padded_elements(r, 32)
    row = operation(op).scalar if SCALAR in forms else operation(op).row
    steps = [c.model.cast(source, "fp32", n, 32)] if source != "fp32" else []
    steps += [c.stretched(row, "fp32", r, forms), c.model.cast("fp32", "fp16", n, 32)]
    if r.dtype.name != "fp16":
        steps.append(c.model.cast("fp16", r.dtype.name, padded_elements(r, 16), 16))
    return functools.reduce(Cost.then, steps)


def unpack_int4(c: Operands, op: Op) -> Cost:
    """As the cast of so many int8."""
    c.model.note("int4 to fp16: no figure is published; costed as int8 to fp16")
    return c.model.cast("int8", "fp16", padded_elements(op.results[0], 16), 16).assumed()


def fma(c: Operands, op: Op) -> Cost:
    """Of integers: a product and a sum."""
    r = op.results[0]
    return c.whole("mul", r).then(c.whole("add", r))


def divide(c: Operands, op: Op) -> Cost:
    """Quotient or remainder. Of integers by way of FP32: widened, divided, cast back; the remainder is x - q * y."""
    r = op.results[0]
    return binary(c, op) if r.dtype.is_floating() else divide_integers(c, op, r.dtype.name)


def divide_integers(c: Operands, op: Op, element: str) -> Cost:
    r = op.results[0]
    n, forms = padded_elements(r, 32), [c.form(a) for a in op.args]
    steps = [c.model.cast(element, "fp32", n, 32) for f in forms if f != SCALAR]
    if SCALAR in forms:
        steps.append(c.made_of_scalar("fp32", n))
    steps += [c.model.vector("div", "fp32", n, 32), c.model.cast("fp32", element, n, 32)]
    if op.name == "mod":
        steps += [c.model.vector(row, element, n, 32) for row in ("mul", "sub")]
    return functools.reduce(Cost.then, steps)


def exclusive_or(c: Operands, op: Op) -> Cost:
    """not (a and b) and (a or b); with all ones it is `not`."""
    r = op.results[0]
    if any(_all_ones(c, v) for v in op.args):
        return c.whole("not", r)
    return functools.reduce(Cost.then, [c.whole(row, r) for row in ("and", "not", "or", "and")])


def _all_ones(c: Operands, v: Value | None) -> bool:
    source = None if v is None else c.definitions.scalar_source(v)
    made = None if source is None else c.definitions.of(source)
    if v is None or made is None or made.kind != "const":
        return False
    return made.attrs["value"] in (-1, (1 << v.number.bits) - 1)


def compare(c: Operands, op: Op) -> Cost:
    v = op.operand(0)
    if v.dtype.is_int() and not v.dtype.is_bool():
        return compare_integers(c, op, v.dtype.name)
    forms = [c.form(a) for a in op.args]
    dtype = compute_type(v)
    bits = bits_of(dtype)
    name = "compares" if SCALAR in forms else "compare"
    cost = c.model.vector(name, dtype, padded_elements(v, bits), bits, conflict=c.conflict(op))
    return c.in_fp32(op, v, cost)


def compare_integers(c: Operands, op: Op, element: str) -> Cost:
    """int8 as FP16. For int32 there is equality only: a >= b where max(a, b) == a, a > b where max(a, b) != b; and != is
    not ==."""
    v, forms = op.operand(0), [c.form(a) for a in op.args]
    order = op.name not in EQUALITY
    if bits_of(element) == 8:
        n = padded_elements(v, 16)
        steps = [c.model.cast(element, "fp16", n, 16) for f in forms if f != SCALAR]
        row = "compares" if SCALAR in forms else "compare"
        steps.append(c.model.vector(row, "fp16", n, 16))
        return functools.reduce(Cost.then, steps if op.name != "ne" else [*steps, _not(c, op)])
    n, met = padded_elements(v, 32), c.conflict(op)
    steps = (
        [c.model.vector("maxs" if SCALAR in forms else "max", element, n, 32, conflict=met)] if order else []
    )
    other = forms[op.name in ("gt", "le")] if order else (SCALAR if SCALAR in forms else "")
    row = "compares" if other == SCALAR else "compare"
    steps.append(c.model.vector(row, element, n, 32, conflict=met and not order))
    return functools.reduce(Cost.then, [*steps, _not(c, op)] if op.name in ("ne", "lt", "gt") else steps)


def _not(c: Operands, op: Op) -> Cost:
    """Of the bits of a mask."""
    return c.model.vector("not", "int16", -(-op.results[0].numel // 16), 16)


def select(c: Operands, op: Op) -> Cost:
    r = op.results[0]
    cost, element = c.whole("select", r, c.conflict(op)), compute_type(r)
    for v in op.args[1:]:
        if c.form(v) == SCALAR:
            cost = c.made_of_scalar(element, padded_elements(r, bits_of(element))).then(cost)
    return cost


def cast(c: Operands, op: Op) -> Cost:
    v, r = op.args[0], op.results[0]
    assert v is not None
    if v.dtype.is_bool():
        return c.whole("select", r)
    bits = max(bits_of(v.dtype.name), bits_of(r.dtype.name))
    cost = c.model.cast(v.dtype.name, r.dtype.name, padded_elements(r, bits), bits)
    if len(op.args) > 1:
        c.model.note(
            "a stochastic rounding costs an addition of its random bits more than another; no unit here has one"
        )
        cost = c.model.vector("add", "int32", padded_elements(r, 32), 32).then(cost).assumed()
    return c.with_write_conflicts(op, cost)

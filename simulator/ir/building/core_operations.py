"""Entries of what `Builder`'s own methods and the compiler make: arithmetic, casts, products, memory, control."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np

from ...precision.dtypes import DType
from ...precision.formats import FP16, FP32, Format, get_format
from ...units import functions, vector
from ...units.cube import mmad
from ...units.cube_rules import CubeRules, operand_format
from ..operations import (
    FREE,
    RECORDED,
    WIDE,
    Context,
    Fallback,
    Operation,
    Scratch,
    ValueFunction,
    binary,
    by_element,
    define_all,
    elements,
    in_fp32,
    result_type,
    unary,
)
from ..program import Op
from .builder import Builder

EQUALITY = ("eq", "ne")


def _compared_one_by_one(op: Op) -> bool:
    """Integers, but for the equality of 8 and 32 bits and the order of signed ones (see `costs.elementwise.compare`)."""
    t = op.operand(0).dtype
    assert isinstance(t, DType)
    if not t.is_int() or t.is_bool():
        return False
    return t.bits not in (8, 32) or (op.name not in EQUALITY and not t.is_int_signed())


def _by_a_tile(op: Op) -> bool:
    """Whether the amounts of a shift differ between elements."""
    amounts = op.operand(1).static
    return not (amounts.kind in ("uniform", "scalar") or (amounts.kind == "affine" and not amounts.axes))


# See WIDE.
COMPARISON = Fallback(_compared_one_by_one, "{dtype} comparison has no vector instruction")
SHIFT = Fallback(_by_a_tile, "a shift to the right by a tile of amounts has no vector instruction")

# Conversions: (from, to) -> row. Others go through FP32.
CASTS = {
    ("fp16", "fp32"): "cast_f16_f32",
    ("fp32", "fp16"): "cast_f32_f16",
    ("bf16", "fp32"): "cast_bf16_f32",
    ("fp32", "bf16"): "cast_f32_bf16",
    ("fp32", "int32"): "cast_f32_s32",
    ("int32", "fp32"): "cast_s32_f32",
    ("int8", "fp16"): "cast_s8_f16",
    ("fp32", "int64"): "cast_f32_s64",
    **dict.fromkeys(
        (
            *(("fp16", t) for t in ("int8", "uint8", "int16", "int32")),
            *(("int16", t) for t in ("fp16", "fp32")),
            ("uint8", "fp16"),
            ("int64", "fp32"),
        ),
        "cast_other",
    ),
}


def _divided(compute: vector.UnitFunction) -> ValueFunction:
    """The value of a division; of integers by zero 0, which is an error where it is used."""
    quotient = elements(compute)

    def value(at: Context, op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        out = np.asarray(quotient(at, op, a, b))
        if result_type(op).is_int() and not b.all():
            at.interpreter.found_zeros(op, b == 0)
            out = np.where(b == 0, out.dtype.type(0), out)
        return out

    return value


def _division(compute: vector.UnitFunction) -> Operation:
    """Quotient or remainder of integers."""
    return Operation(
        "divide",
        "div",
        _divided(compute),
        near=True,
        rows=("duplicate", "mul", "sub"),
        scratch=Scratch.OPERANDS,
        flops=1,
        fallback=(WIDE,),
        elementwise=True,
        formula=True,
        may_fail=True,
        flushes=True,
        castable=True,
    )


def _cast(at: Context, op: Op, x: np.ndarray, random: np.ndarray | None = None) -> np.ndarray:
    rule = (op.attrs.get("rounding", ""), op.attrs.get("overflow", ""), random)
    return vector.cast(x, op.operand(0).number, result_type(op), at.numerics, *rule)


def _dot(at: Context, op: Op, a: np.ndarray, b: np.ndarray, acc: np.ndarray | None = None) -> np.ndarray:
    if acc is not None:
        acc = np.broadcast_to(acc, (max(x.shape[0] for x in (a, b, acc)), *acc.shape[1:]))
    stored = [op.operand(side).number.name for side in (0, 1)]
    return mmad(a, b, acc, rules=product_rules(at.numerics, op), on_grid=_read(at.numerics, op) == stored)


def _read(numerics: vector.Numerics, op: Op) -> list[str]:
    """The formats in which the Cube reads both operands."""
    stored = (op.operand(side).number.name for side in (0, 1))
    return [operand_format(name, op.attrs["precision"], numerics.hf32) for name in stored]


def product_rules(numerics: vector.Numerics, op: Op) -> CubeRules:
    """How the Cube makes this product (`dot`)."""
    types = [op.operand(side).number for side in (0, 1)]
    pairs = zip(types, _read(numerics, op), strict=True)
    left, right = (t.format if read == t.name else get_format(read) for t, read in pairs)
    return _rules(numerics.cube, left, right, op.attrs.get("acc_format"), op.attrs.get("scaled", False))


@functools.lru_cache(maxsize=256)
def _rules(
    cube: CubeRules, left: Format, right: Format, accumulator: DType | None, scaled: bool
) -> CubeRules:
    """Those of the device for a product. The FP16 accumulator that some products have is for FP16 operands only."""
    switches: dict[str, Any] = {"operand": left, "other": None if left is right else right}
    if accumulator is not None or (left, right) != (FP16, FP16):
        switches["accumulator"] = None if accumulator is None else accumulator.format
    rules = cube.with_switches(switches)
    if scaled:  # elements times their scales are on no grid of 8 bits
        return rules.with_switches({"block_k": rules.products_per_step, "operand": FP32, "other": None})
    return rules


def _reduce(at: Context, op: Op, x: np.ndarray) -> np.ndarray:
    def compute(dtype: DType) -> np.ndarray:
        return vector.reduce(op.name, x, op.attrs["axis"], dtype, at.numerics)

    t = result_type(op)
    return vector.in_fp32(compute, t, at.numerics) if in_fp32(op) else compute(t)


def _permute(at: Context, op: Op, x: np.ndarray) -> np.ndarray:
    seen = x.transpose(0, *(k + 1 for k in op.attrs["order"]))
    return seen if op.id in at.transposed else np.ascontiguousarray(seen)


# -- of one operand
define_all(
    {
        "abs": unary("abs", value=vector.rounded(np.abs), fallback=(WIDE,)),
        "neg": unary("muls", value=vector.rounded(np.negative), fallback=(WIDE,)),
        **{
            name: unary(value=vector.of_type(compute), fallback=by_element(name))
            for name, compute in {
                "popc": functions.bits_set,
                "clz": functions.leading_zeros,
                "ffs": functions.first_set,
                "brev": functions.reversed_bits,
            }.items()
        },
    },
    Builder.unary,
)
# -- of two operands
define_all(
    {
        "add": binary(
            "add", value=vector.in_one_pass("add", np.add), scalar="adds", castable=True, formula=True
        ),
        "sub": binary(
            "sub",
            value=vector.in_one_pass("sub", np.subtract),
            scalar="adds",
            castable=True,
            formula=True,
            rows=("muls",),
        ),
        "mul": binary(
            "mul", value=vector.in_one_pass("mul", np.multiply), scalar="muls", castable=True, formula=True
        ),
        "max": binary("max", value=vector.rounded(np.fmax), scalar="maxs", castable=True, formula=True),
        "min": binary("min", value=vector.rounded(np.fmin), scalar="mins", castable=True, formula=True),
        "div": binary(
            "div",
            value=vector.in_one_pass("div", np.divide),
            scratch=Scratch.OPERANDS | Scratch.SCALARS,
            rows=("duplicate",),
        ),
        "floordiv": _division(vector.rounded(vector.truncated_division)),
        "mod": _division(vector.rounded(np.fmod)),
        "and": binary("and", value=vector.rounded(np.bitwise_and), formula=True, fallback=()),
        "or": binary("or", value=vector.rounded(np.bitwise_or), formula=True, fallback=()),
        "xor": replace(
            binary(
                "or", value=vector.rounded(np.bitwise_xor), formula=True, fallback=(), rows=("and", "not")
            ),
            cost="exclusive_or",
        ),
        "shl": binary(
            "shift", value=vector.rounded(np.left_shift), scalar="shift", formula=True, may_fail=True
        ),
        "shr": binary(
            "shift",
            value=vector.rounded(np.right_shift),
            scalar="shift",
            formula=True,
            may_fail=True,
            fallback=(WIDE, SHIFT),
        ),
    },
    Builder.binary,
)
# -- others on elements
define_all(
    {
        "fma": Operation(
            "fma",
            value=lambda at, op, x, y, z: vector.fma(x, y, z, result_type(op), at.numerics),
            steps=(("fusedmuladd", 1),),
            scratch=Scratch.OPERANDS,
            flops=2,
            elementwise=True,
            fallback=(WIDE,),
            flushes=True,
            infer=Builder.fma,
        ),
        "compare": Operation(
            "compare",
            "compare",
            lambda at, op, a, b: vector.compare(op.name, a, b),
            scalar="compares",
            rows=("max", "maxs", "not", "cast_s8_f16"),
            scratch=Scratch.OPERANDS,
            flops=1,
            fallback=(COMPARISON,),
            castable=True,
            formula=True,
            flushes=True,
            infer=Builder.compare,
        ),
        "select": Operation(
            "select",
            "select",
            lambda at, op, c, a, b: vector.select(c, a, b),
            scratch=Scratch.OPERANDS | Scratch.SCALARS,
            flops=1,
            elementwise=True,
            infer=Builder.select,
        ),
        "cast": Operation(
            "cast",
            value=_cast,
            rows=tuple(dict.fromkeys(CASTS.values())),
            scratch=Scratch.FIRST,
            flops=1,
            elementwise=True,
            formula=True,
            infer=Builder.cast,
        ),
        "reduce": Operation(
            "reduce",
            value=_reduce,
            rows=("reduce_repeat_sum", "reduce_repeat_max"),
            scratch=Scratch.PARTIALS | Scratch.FIRST,
            flops=1,
            of_operand=True,
            fallback=(WIDE,),
            castable=True,
            flushes=True,
            infer=Builder.reduce,
        ),
        "permute": Operation(
            "permute", "transpose_5hd", _permute, view=True, formula=True, infer=Builder.permute
        ),
        "dot": Operation(RECORDED, value=_dot, infer=Builder.dot),
        # a tile that is a formula, written out as an operand of another operation
        "index": Operation(FREE, "adds", near=True, rows=("compares", "copy", "duplicate", "brcb")),
    }
)
# -- memory: lowering records the transfers itself
define_all(
    {
        "load": Operation(RECORDED, rows=("duplicate",), infer=Builder.load),
        "store": Operation(
            RECORDED, rows=("brcb",), scratch=Scratch.SECOND, effect=True, infer=Builder.store
        ),
        "atomic": Operation(
            RECORDED, scratch=Scratch.SECOND | Scratch.COMBINED, effect=True, infer=Builder.atomic
        ),
        **dict.fromkeys(("send", "receive"), Operation(RECORDED)),
    }
)
# -- the scalar unit, views and control flow
define_all(
    {
        **{
            name: Operation(FREE, formula=True, infer=getattr(Builder, name))
            for name in ("const", "program_id", "num_programs", "arange")
        },
        **{
            name: Operation(FREE, view=True, formula=True, infer=getattr(Builder, name))
            for name in ("splat", "expand_dims")
        },
        **{name: Operation(FREE, view=True, infer=getattr(Builder, name)) for name in ("reshape", "bitcast")},
        "broadcast": Operation(FREE, view=True, formula=True, infer=Builder.broadcast_to),
        "addptr": Operation(FREE, formula=True, infer=Builder.binary),
        "assert": Operation(FREE, effect=True),
        "defined": Operation(FREE, effect=True),  # written by checks/undefined, for values only
        "float64": Operation(FREE, effect=True),  # written by execution/float64, likewise
        **dict.fromkeys(("for", "while", "if"), Operation(FREE)),
    }
)

"""Values of arithmetic, casts, reductions, matrix products and transpositions.

Arrays are (P or 1, *shape). `ARITHMETIC` has the function of each kind of operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir.program import Op, Program
from ..precision.dtypes import DType
from ..units import vector
from ..units.cube import mmad
from ..units.cube_rules import operand_format
from .context import Context, result_type


def binary(at: Context, op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    dtype = result_type(op)
    if op.name in ("floordiv", "mod") and dtype.is_int() and not b.all():
        raise at.walk.divided_by_zero(op, b)
    return vector.binary(op.name, a, b, dtype, at.numerics)


def compare(at: Context, op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return vector.compare(op.name, a, b)


def unary(at: Context, op: Op, x: np.ndarray) -> np.ndarray:
    return vector.unary(op.name, x, result_type(op), at.numerics)


def fma(at: Context, op: Op, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return vector.fma(a, b, c, result_type(op), at.numerics)


def cast(at: Context, op: Op, x: np.ndarray) -> np.ndarray:
    source = op.args[0].dtype  # type: ignore[union-attr]
    assert isinstance(source, DType)
    rule = (op.attrs.get("rounding", "RINT"), op.attrs.get("overflow", ""))
    return vector.cast(x, source, result_type(op), at.numerics, *rule)


def select(at: Context, op: Op, c: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return vector.select(c, a, b)


def reduce(at: Context, op: Op, x: np.ndarray) -> np.ndarray:
    return vector.reduce(op.name, x, op.attrs["axis"], result_type(op), at.numerics)


def dot(at: Context, op: Op, a: np.ndarray, b: np.ndarray, acc: np.ndarray | None = None) -> np.ndarray:
    stored = op.args[0].dtype.name  # type: ignore[union-attr]
    operand = operand_format(stored, op.attrs["precision"], at.numerics.hf32)
    if acc is not None:
        acc = np.broadcast_to(acc, (max(x.shape[0] for x in (a, b, acc)), *acc.shape[1:]))
    rules = at.numerics.cube
    if operand != "fp16":  # an FP16 accumulator is for FP16 products only
        rules = rules.with_switches({"accumulator": None})
    return mmad(a, b, acc, rules=rules, operand=operand, on_grid=operand == stored)


def permute(at: Context, op: Op, x: np.ndarray) -> np.ndarray:
    seen = x.transpose(0, *(k + 1 for k in op.attrs["order"]))
    return seen if op.id in at.transposed else np.ascontiguousarray(seen)


def transposed_operands(program: Program) -> frozenset[int]:
    """Permutations (by id) whose tiles are operands of products and nothing else."""
    uses: dict[int, set[bool]] = {}
    yields = {v.id for op in program.walk() for r in op.regions for v in r.yields}
    for op in program.walk():
        for i, v in enumerate(op.args):
            if v is not None:
                uses.setdefault(v.id, set()).add(op.kind == "dot" and i < 2)
    tiles = [(op.id, op.results[0].id) for op in program.walk() if op.kind == "permute"]
    return frozenset(number for number, v in tiles if uses.get(v) == {True} and v not in yields)


ARITHMETIC: dict[str, Callable[..., Any]] = {
    "binary": binary,
    "compare": compare,
    "unary": unary,
    "fma": fma,
    "cast": cast,
    "select": select,
    "reduce": reduce,
    "dot": dot,
    "permute": permute,
}

"""The value of an elementwise operation by name, without a kernel: what its entry in the table of operations computes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ascendtile.simulator.execution.numpy_backend import ValueContext
from ascendtile.simulator.ir.building import OPERATIONS
from ascendtile.simulator.ir.program import Loc, Op, Value
from ascendtile.simulator.precision.dtypes import DType
from ascendtile.simulator.units.vector import Numerics


def unary(name: str, x: np.ndarray, dtype: DType, numerics: Numerics | None = None) -> np.ndarray:
    """name(x) in `dtype`; x is (P, *shape), halves as float32."""
    return _evaluate(name, (x,), dtype, numerics or Numerics())


def binary(
    name: str, a: np.ndarray, b: np.ndarray, dtype: DType, numerics: Numerics | None = None
) -> np.ndarray:
    """name(a, b), likewise."""
    return _evaluate(name, (a, b), dtype, numerics or Numerics())


def _evaluate(name: str, operands: tuple[np.ndarray, ...], dtype: DType, numerics: Numerics) -> np.ndarray:
    kind = "unary" if len(operands) == 1 else "binary"
    result = Value(0, dtype, operands[0].shape[1:], Loc("<test>", 1))
    op = Op(0, kind, name, (), (result,), {}, result.loc)
    no_interpreter: Any = None
    compute = OPERATIONS[name].value
    assert compute is not None
    return np.asarray(compute(ValueContext(no_interpreter, numerics, frozenset()), op, *operands))

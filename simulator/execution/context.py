"""What the evaluation of an operation knows beside its operands."""

from __future__ import annotations

from dataclasses import dataclass

from ..interpreter.state import InterpreterState
from ..ir.program import Op
from ..precision.dtypes import DType
from ..units.vector import Numerics


@dataclass(frozen=True)
class Context:
    """walk: whose programs are evaluated. transposed: permutations (by id) that need no copy, see `transposed_operands`."""

    walk: InterpreterState
    numerics: Numerics
    transposed: frozenset[int]


def result_type(op: Op) -> DType:
    """The element type of the result."""
    t = op.results[0].dtype
    assert isinstance(t, DType)
    return t

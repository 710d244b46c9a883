"""What the evaluation of an operation knows beside its operands."""

from __future__ import annotations

from typing import NamedTuple

from ..interpreter.state import InterpreterState
from ..ir.program import Program
from ..units.vector import Numerics


class ValueContext(NamedTuple):
    """transposed: permutations (by id) that need no copy, see `transposed_operands`."""

    interpreter: InterpreterState
    numerics: Numerics
    transposed: frozenset[int]


def transposed_operands(program: Program) -> frozenset[int]:
    """Permutations (by id) whose tiles are operands of products and nothing else."""
    uses: dict[int, set[bool]] = {}
    yields = {v.id for op in program.walk() for r in op.regions for v in r.yields}
    for op in program.walk():
        for i, v in enumerate(op.args):
            if v is not None:
                uses.setdefault(v.id, set()).add(op.kind == "dot" and i < 2)
    tiles = [(op.id, op.results[0].id) for op in program.of_kind("permute")]
    return frozenset(number for number, v in tiles if uses.get(v) == {True} and v not in yields)

"""Costs of operations of the user: what their class says; else one vector instruction over each operand, as assumed."""

from __future__ import annotations

import functools

from ...ir.program import Op
from ..placement.layouts import element_bits, padded_elements
from .model import Cost
from .operands import Operands


def custom(c: Operands, op: Op) -> Cost:
    if op.attrs["cycles"] is not None:
        return Cost(op.attrs["cycles"], 0.0)
    tiles = [v for v in (*op.args, *op.results) if v is not None and v.shape]
    c.model.notes[
        f"custom op {op.name}: its class states no `cycles`; costed as one vector instruction over each of its "
        f"{len(tiles)} tiles, which is assumed"
    ] = None
    steps = []
    for v in tiles:
        bits = 16 if element_bits(v) <= 16 else 32
        steps.append(c.model.vector("adds", f"fp{bits}", padded_elements(v, bits), bits))
    return functools.reduce(Cost.then, steps)

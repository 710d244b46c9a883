"""How much work the values of some programs are, without computing them: the same figure on every machine."""

from __future__ import annotations

import math
from typing import Any

from ...interpreter.backend import AddressBackend
from ...interpreter.program_order.loop_lanes import LoopLanes
from ...interpreter.state import Frame
from ...interpreter.values import OPAQUE, Pointers
from ...ir.program import Op

# Measured on one core of a server (Xeon, 2.x GHz); they only divide a budget, and no result depends on the machine.
SECONDS_OF_OPERATION = 10e-6
SECONDS_OF_ELEMENT = 1.5e-9
SECONDS_OF_PRODUCT = 2e-10


class CountedWork(AddressBackend):
    """Adds up operations, elements and products; of loops that `OneIteration` goes through once."""

    interpreter: OneIteration

    def __init__(self) -> None:
        super().__init__()
        self.operations = self.elements = self.products = 0

    @property
    def seconds(self) -> float:
        """Estimated processor time."""
        return (
            self.operations * SECONDS_OF_OPERATION
            + self.elements * SECONDS_OF_ELEMENT
            + self.products * SECONDS_OF_PRODUCT
        )

    def dense(self, op: Op, args: list[Any]) -> Any:
        a, r = op.operand(0) if op.args and op.args[0] is not None else None, op.results[0]
        if op.kind == "dot" and a is not None:
            self.products += self._times() * math.prod(r.shape) * a.shape[-1]
        self._count(max(r.numel, a.numel if a is not None else 1))
        return OPAQUE

    def access(self, op: Op, pointer: Pointers, mask: Any) -> None:
        self._count(op.operand(0).numel)

    def _count(self, elements: int) -> None:
        self.operations += self.interpreter.weight
        self.elements += self._times() * elements

    def _times(self) -> int:
        return self.interpreter.weight * len(self.interpreter.active)


class OneIteration(LoopLanes):
    """Goes once through each loop that hands something on. weight: how often what runs now would run."""

    weight = 1

    def iterations(
        self, op: Op, frame: Frame, lower: Any, step: Any, first: int, last: int, carried: list[Any]
    ) -> list[Any]:
        before, self.weight = self.weight, self.weight * (last - first)
        out = super().iterations(op, frame, lower, step, first, min(last, first + 1), carried)
        self.weight = before
        return out

    def op_while(self, op: Op, frame: Frame) -> None:
        frame.values.update((r.id, OPAQUE) for r in op.results)

"""How a program is interpreted for its records: in the source's order, or the parts of both cores side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...interpreter.lanes import lanes
from ...interpreter.two_cores.coscheduling import WHOLE, Interpreters
from ...ir.passes.split_cores import CUBE, VECTOR
from ..costs.l2_cache import FirstTouch
from ..trace.builder import TraceBuilder
from .context import LoweringPlan
from .lowering import Lowering


class Lowered(Interpreters[Lowering]):
    """Gives the records of programs. Those of parts come in the order in which the parts run.

    Records of one unit stay in the order of its part, and each comes after those that it waits for, which is all that the
    engine needs.
    """

    def lower(
        self, plan: LoweringPlan, numbers: np.ndarray, touch: FirstTouch, arguments: dict[str, Any]
    ) -> TraceBuilder:
        """The records of those programs."""
        main = self.of[WHOLE if WHOLE in self.of else VECTOR]
        main.prepare(plan, lanes(main.program, main.grid, numbers), touch)
        if main is not self.of.get(WHOLE):
            _share_records(plan, self.of[CUBE], main, numbers, touch)
        self.run(numbers, arguments)
        for core, one in self.of.items():
            one.flush(cube=core == CUBE)
        builder = main.recorder.builder
        builder.settle()  # what waits for its accesses may take slots for a second core
        return builder


def _share_records(
    plan: LoweringPlan, cube: Lowering, vector: Lowering, numbers: np.ndarray, touch: FirstTouch
) -> None:
    """The Cube's part adds its records to those of the Vector part, and both know where values are and flags stand."""
    cube.prepare(plan, numbers, touch)
    cube.record_to(vector.recorder.builder)
    cube.current, cube.flags.sets = vector.current, vector.flags.sets

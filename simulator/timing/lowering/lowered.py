"""How a program is walked for its records: in the source's order, or the parts of both cores side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...interpreter.lanes import lanes
from ...interpreter.two_cores.coscheduling import CoScheduled
from ...ir.passes.split_cores import CUBE, VECTOR
from ...ir.program import Program
from ..costs.l2_cache import FirstTouch
from ..trace.recorder import Recorder
from .context import Plan
from .lowering import Lowering
from .sub_cores import BothLanes, SubRecorder


class Lowered:
    """Walks programs in the source's order."""

    def __init__(self, program: Program, make: Callable[[Program], Lowering]) -> None:
        self.program = program
        self.walk = make(program)

    def found(self) -> tuple[str, ...]:
        """What a walk over values has to say, in words."""
        return self.walk.backend.found()

    def lower(
        self, plan: Plan, numbers: np.ndarray, touch: FirstTouch, arguments: dict[str, Any]
    ) -> Recorder:
        """The records of those programs."""
        walked = lanes(self.program, self.walk.grid, numbers)
        self.walk.prepare(plan, walked, touch)
        self.walk.walk(walked, arguments)
        self.walk.flush()
        return self.walk.recorder


class LoweredApart(Lowered):
    """Walks the parts of both cores; records come in the order in which the parts take turns.

    Records of one unit stay in the order of its part, and each comes after those that it waits for, which is all that the
    engine needs.
    """

    def __init__(self, program: Program, make: Callable[[Program], Lowering]) -> None:
        self.together = CoScheduled(program, make)
        self.parts = self.together.walks

    def found(self) -> tuple[str, ...]:
        return tuple(words for w in self.parts.values() for words in w.backend.found())

    def lower(
        self, plan: Plan, numbers: np.ndarray, touch: FirstTouch, arguments: dict[str, Any]
    ) -> Recorder:
        cube, vector = self.parts[CUBE], self.parts[VECTOR]
        vector.prepare(plan, lanes(vector.program, vector.grid, numbers), touch)
        cube.prepare(plan, numbers, touch)
        recorder: Recorder = vector.recorder
        cube.recorder = BothLanes(recorder) if isinstance(recorder, SubRecorder) else recorder
        cube.begin_waves(numbers)
        cube.current, cube.flags.sets = vector.current, vector.flags.sets
        self.together.walk(numbers, arguments)
        cube.flush(cube=True)
        vector.flush()
        return recorder


def lowering(program: Program, apart: bool, make: Callable[[Program], Lowering]) -> Lowered:
    """The walk that a launch needs."""
    return (LoweredApart if apart else Lowered)(program, make)

"""Walks the Cube's part and the Vector part of programs side by side, each until it has to wait for the other."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

from ...ir.passes.core_parts import parts
from ...ir.program import Program
from ..interpreter import Interpreter
from ..lanes import lanes
from .exchange import Exchange

W = TypeVar("W", bound=Interpreter)


class CoScheduled(Generic[W]):
    """The walks of both parts of a program. `make` makes the walk of a part."""

    def __init__(self, program: Program, make: Callable[[Program], W]) -> None:
        self.program = program
        self.walks = {core: make(part) for core, part in parts(program).items()}

    def walk(self, numbers: np.ndarray, arguments: dict[str, Any]) -> None:
        """Run the programs `numbers`. Raises `RunError` for a hang."""
        exchange = Exchange(self.program, int(numbers[0]))
        for core, w in self.walks.items():
            w.exchange, w.core = exchange, core
        exchange.run(
            {
                core: functools.partial(w.walk, lanes(w.program, w.grid, numbers), arguments)
                for core, w in self.walks.items()
            }
        )
        exchange.check_left_over()

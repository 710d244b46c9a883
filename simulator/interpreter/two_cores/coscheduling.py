"""Interprets a program as a whole, or its Cube part and its Vector part side by side, each until it waits for the other."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

from ...ir.passes.core_parts import parts
from ...ir.program import Program
from ...messages import Message
from ..interpreter import Interpreter
from ..lanes import lanes
from .exchange import Exchange

Kind = TypeVar("Kind", bound=Interpreter)
WHOLE = "whole"


class Interpreters(Generic[Kind]):
    """The interpreter of a program, or those of its parts by core. `make` makes the one of a program or part."""

    def __init__(self, program: Program, apart: bool, make: Callable[[Program], Kind]) -> None:
        self.program = program
        self.of = {core: make(part) for core, part in (parts(program) if apart else {WHOLE: program}).items()}

    def run(self, numbers: np.ndarray, arguments: dict[str, Any]) -> None:
        """Run the programs `numbers`. Raises `RunError` for a hang."""
        run = {
            core: functools.partial(one.run, lanes(one.program, one.grid, numbers), arguments)
            for core, one in self.of.items()
        }
        if WHOLE in run:
            run[WHOLE]()
            return
        exchange = Exchange(self.program, int(numbers[0]))
        for core, one in self.of.items():
            one.exchange, one.core = exchange, core
        exchange.run(run)
        exchange.check_left_over()

    def found(self) -> tuple[Message, ...]:
        """The warnings of all parts, each once."""
        return tuple(dict.fromkeys(message for one in self.of.values() for message in one.backend.found()))

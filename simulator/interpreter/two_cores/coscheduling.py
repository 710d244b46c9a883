"""Interprets a program as a whole, or its Cube part and its Vector part side by side, each until it waits for the other.

Programs come one after another, or some at once. Where one waits for what another one writes to memory, the next ones begin
meanwhile, as long as the product has cores for them: as on the device, where a program that has begun stays on its core, and
the next one, by number, begins on a core that is free.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import numpy as np

from ...ir.passes.core_parts import parts
from ...ir.program import Program
from ...messages import Message
from ..interpreter import Interpreter
from ..lanes import lanes
from .exchange import Exchange
from .turns import Turns, Work

Kind = TypeVar("Kind", bound=Interpreter)
Made = TypeVar("Made", bound="Interpreters[Any]")
WHOLE = "whole"


class Interpreters(Generic[Kind]):
    """The interpreter of a program, or those of its parts by core. `make` makes the one of a program or part."""

    def __init__(self, program: Program, apart: bool, make: Callable[[Program], Kind]) -> None:
        self.program = program
        self.of = {core: make(part) for core, part in (parts(program) if apart else {WHOLE: program}).items()}

    def run(self, numbers: np.ndarray, arguments: dict[str, Any], turns: Turns) -> None:
        """Run the programs `numbers`. Raises `RunError` for a hang."""
        run = {
            core: functools.partial(one.run, lanes(one.program, one.grid, numbers), arguments)
            for core, one in self.of.items()
        }
        for one in self.of.values():
            one.turns = turns
        if WHOLE in run:
            run[WHOLE]()
            return
        exchange = Exchange(self.program, int(numbers[0]), turns)
        for core, one in self.of.items():
            one.exchange, one.core = exchange, core
        exchange.run(run)
        exchange.check_left_over()

    def found(self) -> Iterable[Message]:
        """The warnings of all parts."""
        return (m for one in self.of.values() for m in (*one.overflows.messages(), *one.backend.found()))


class ProgramRuns(Generic[Made]):
    """All programs of a launch. chunks: numbers of those that run at once, in the order in which they begin.

    make: the interpreters for what runs on one core. run: interprets a chunk. cores: how many programs the
    product runs at once; asked where one waits.
    """

    def __init__(
        self,
        chunks: Iterable[np.ndarray],
        cores: Callable[[], int],
        make: Callable[[], Made],
        run: Callable[[Made, np.ndarray, Turns], None],
    ) -> None:
        self.chunks = deque(chunks)
        self.cores = cores
        self.make, self.run_chunk = make, run
        self.made: list[Made] = []
        self.begun = 0  # programs that have begun and are not over
        self.turns = Turns(self._more, lambda: sum(map(len, self.chunks)))

    def run(self) -> None:
        """Run all of them."""
        self.turns.run(self._one_after_another)

    def found(self) -> tuple[Message, ...]:
        """The warnings of all programs, each once."""
        return tuple(dict.fromkeys(m for one in self.made for m in one.found()))

    def _more(self) -> Work | None:
        free = self.chunks and self.begun + len(self.chunks[0]) <= self.cores()
        return self._one_after_another if free else None

    def _one_after_another(self) -> None:
        """On one core, as long as there are any."""
        own = self.make()
        self.made.append(own)
        while self.chunks and not self.turns.abandoned:
            numbers = self.chunks.popleft()
            self.begun += len(numbers)
            self.run_chunk(own, numbers, self.turns)
            self.begun -= len(numbers)

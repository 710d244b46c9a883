"""All programs of a grid over values, in chunks that fit the cache; one by one where they talk to each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..checks.asked import NONE_ASKED, Checks
from ..checks.undefined.watch import instrument
from ..checks.watching import watchers_of
from ..interpreter.arguments import runtime_arguments
from ..interpreter.interpreter import DEFAULT_STEP_LIMIT, Interpreter
from ..interpreter.lanes import chunk_size, program_order
from ..interpreter.program_order.loop_lanes import ChosenLanes, LoopLanes
from ..interpreter.two_cores.coscheduling import Interpreters, ProgramRuns
from ..interpreter.two_cores.turns import Turns
from ..ir.program import Program
from ..messages import Message
from ..units.vector import Numerics
from .numpy_backend import NumpyBackend, WithoutRounding

MOST_AT_ONCE = 64  # programs, where no product is given


def run_values(
    program: Program,
    grid: tuple[int, int, int],
    arguments: dict[str, Any],
    numerics: Numerics,
    *,
    one_by_one: bool = False,
    apart: bool = False,
    chunk: int | None = None,
    step_limit: int = DEFAULT_STEP_LIMIT,
    seed: int | None = None,
    waiting: frozenset[int] = frozenset(),
    progress: Callable[[int, int], None] | None = None,
    checks: Checks = NONE_ASKED,
    cores: Callable[[], int] = lambda: MOST_AT_ONCE,
    quiet: bool = False,
    exact: WithoutRounding | None = None,
    only: ChosenLanes | None = None,
) -> tuple[Message, ...]:
    """Execute every program of `grid`; tensors among `arguments` are read and written in place. Gives warnings as messages.

    `one_by_one` runs the programs one after another, each seeing what those before it wrote. `apart` interprets the parts of
    the Cube and the Vector core side by side (see `interpreter/two_cores`). `seed`: see `Device.atomic_seed`. `waiting`: see
    `NumpyBackend`. `checks`: those that are asked for. `cores`: how many programs the product
    runs at once. quiet: nothing is printed. exact: evaluates the program
    in another way, too. only: the programs, and iterations of independent loops, that are executed; None for all.
    """
    total = grid[0] * grid[1] * grid[2]
    size = 1 if one_by_one else chunk or chunk_size(program)
    values = runtime_arguments(program, arguments)

    watchers = (
        watchers_of(program, grid, arguments, checks) if only is None else ()
    )  # which look at all of a launch

    def interpreter(part: Program) -> Interpreter:
        backend = NumpyBackend(
            part, grid, numerics, frozenset() if apart else waiting, checks, watchers, quiet, exact
        )
        part = instrument(part, watchers)
        part = part if exact is None else exact.written(part)
        if only is None:
            return Interpreter(part, grid, backend, step_limit)
        return LoopLanes(part, grid, backend, step_limit, independent=only.independent, chosen=only)

    def run(one: Interpreters[Interpreter], numbers: np.ndarray, turns: Turns) -> None:
        one.run(numbers, values, turns)
        if progress is not None:
            progress(total - turns.left(), total)

    order = program_order(program, total, seed)
    if only is not None:
        order = order[np.isin(order, only.programs)]
    total = len(order)
    chunks = (order[first : first + size] for first in range(0, total, size))
    programs = ProgramRuns(chunks, cores, lambda: Interpreters(program, apart, interpreter), run)
    programs.run()
    return programs.found()

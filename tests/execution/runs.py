"""Runs a kernel's values with a given number of programs at once."""

from __future__ import annotations

from typing import Any

import numpy as np

import ascendtile.simulator as sim
from ascendtile.simulator.execution.run import run_values
from ascendtile.simulator.interpreter.program_order.order import must_run_one_by_one
from ascendtile.simulator.launch import prepare
from ascendtile.simulator.units.vector import Numerics


def run(kernel: Any, grid: Any, *args: Any, chunk: int | None = None, steps: int = 10**6, **kw: Any) -> Any:
    """The arguments after the run, arrays copied before it. Without `chunk` as a launch would do it."""
    args = tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args)
    call = prepare(kernel, grid, args, kw)
    run_values(
        call.program,
        call.grid,
        call.arguments,
        Numerics(),
        one_by_one=must_run_one_by_one(call.program, call.grid, call.arguments),
        chunk=chunk,
        step_limit=steps,
    )
    return args


def one_by_one(kernel: Any, grid: Any, *args: Any, **kw: Any) -> bool:
    """Whether a launch would run the programs in order."""
    call = prepare(kernel, grid, args, kw)
    return must_run_one_by_one(call.program, call.grid, call.arguments)


def launch(kernel: Any, grid: Any, *args: Any, **kw: Any) -> None:
    """A launch over values only, in place."""
    with sim.device(time=False):
        kernel[grid](*args, **kw)

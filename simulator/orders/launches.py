"""Launches that belong together, run for their values or followed for their expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..call import Call
from ..execution.float64.memory import Twins
from ..execution.run import run_values
from ..interpreter.tensors import as_array
from ..interpreter.two_cores.flags import scheduling
from ..launch import compute, programs_at_once
from ..numerics import numerics
from .accesses import ExpressionMemory
from .arithmetic import Arithmetic
from .elementwise import Elementwise, fold
from .expressions import ExpressionTable
from .following import Following


@dataclass(frozen=True)
class LaunchSequence:
    """Checked launches in order. inputs: the arrays by name whose elements are unknown; outputs: those that are compared."""

    calls: Sequence[Call]
    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray]

    def with_seed(self, seed: int) -> LaunchSequence:
        """The same with the programs in another order."""
        calls = [replace(c, device=replace(c.device, atomic_seed=seed)) for c in self.calls]
        return replace(self, calls=calls)

    @property
    def has_atomics(self) -> bool:
        """Whether another order of the programs is one that the device may take."""
        return any(c.program.of_kind("atomic") for c in self.calls)


@dataclass(frozen=True)
class Followed:
    """Numbers of the expressions of each output, in its shape; -1 where nothing was written.

    met: whether programs of a launch meet in memory. depends: places where the course of the run goes by data -> inputs by
    which it goes. unknowns: places that were not followed, with why.
    """

    outputs: Mapping[str, np.ndarray]
    depends: Mapping[str, set[str]] = field(default_factory=dict)
    unknowns: Mapping[str, str] = field(default_factory=dict)
    met: bool = False


def programs_meet(launches: LaunchSequence) -> bool:
    """Whether programs of a launch meet in memory; if not, no order of them can show."""
    return expressions_of(launches, Arithmetic(ExpressionTable(), fold)).met


def values_of(launches: LaunchSequence) -> dict[str, np.ndarray]:
    """Copies of the outputs after a run."""
    for call in launches.calls:
        compute(call, quiet=True)
    return {name: plain(x).copy() for name, x in launches.outputs.items()}


def expressions_of(launches: LaunchSequence, arithmetic: Arithmetic, finite: bool = True) -> Followed:
    """The expressions of the outputs after a run. finite: whether inputs are neither infinite nor NaN."""
    memory = ExpressionMemory(arithmetic.of, {n: plain(x) for n, x in launches.inputs.items()}, finite)
    depends: dict[str, set[str]] = {}
    unknowns: dict[str, str] = {}
    met = False
    for call in launches.calls:
        twins = Twins(memory, call.tensors.values())
        following = Following(Elementwise(arithmetic, numerics(call.device)), twins)
        _follow(call, following)
        twins.leave()
        met |= following.sharing.met
        unknowns |= following.unknowns
        for place, names in following.depends.items():
            depends.setdefault(place, set()).update(names)
    outputs = {name: memory.numbers_of(plain(x)) for name, x in launches.outputs.items()}
    return Followed(outputs, depends, unknowns, met)


def _follow(call: Call, following: Following) -> None:
    """One program after the other, but for those that meet at a barrier."""
    how = scheduling(call.program, call.grid, call.arguments, call.device.step_limit)
    meets = any(op.name == "all" for op in call.program.of_kind("sync"))
    run_values(
        call.program,
        call.grid,
        call.arguments,
        numerics(call.device),
        apart=how.apart,
        chunk=how.size if meets else 1,
        step_limit=call.device.step_limit,
        seed=call.device.atomic_seed,
        cores=lambda: programs_at_once(call),
        quiet=True,
        exact=following,
    )


def plain(x: object) -> np.ndarray:
    """A tensor of the host as an array that shares its memory."""
    array = as_array("", x)
    assert array is not None
    return array

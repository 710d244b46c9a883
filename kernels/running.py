"""`run_op`: inputs, launches and errors of one operator on one product."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..simulator.device import Device, device
from ..simulator.errors import UsageError
from ..simulator.execution.memory import Shape, as_array
from ..simulator.frontend import types as ty
from ..simulator.launch import options as numeric_options
from ..simulator.launch import prepare, run_call
from ..simulator.precision.metrics import ErrorReport, compare
from ..simulator.precision.rounding import encode
from ..simulator.products import Product
from ..simulator.run import Launch, Run
from .layout import copy_step
from .operator import Arrays, Case, Operator, Plan, Sizes, Step, Tensor, Workshop, dtype_name, dtype_of
from .registry import get_operator
from .words import listed, near

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class OpResult:
    """What one run of an operator gave. `outputs` is empty without values; `run` is the record that reports read."""

    outputs: Arrays
    run: Run
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def launches(self) -> tuple[Launch, ...]:
        """One record per kernel launch, in order; empty without time."""
        return self.run.launches

    @property
    def time_us(self) -> float:
        """Time of all launches with their overheads, in us."""
        return self.run.time_us

    @property
    def cycles(self) -> float:
        """AI Core cycles of all launches, without launch overhead."""
        return self.run.cycles

    @property
    def tiling(self) -> dict[str, Any]:
        """Every knob as really used."""
        return self.run.tiling

    @property
    def errors(self) -> dict[str, ErrorReport]:
        """Errors against float64 by output; empty if they were not asked for."""
        return self.run.errors


@dataclass(frozen=True)
class Problem:
    """What is to be run: tensors by name, options, and how the record names it."""

    tensors: Mapping[str, Tensor]
    options: dict[str, Any]
    dtype: str
    case: str | None


def run_op(
    name: str | Operator,
    case: str | Case | Sizes | None = None,
    dtype: str | None = None,
    product: str | Product | None = None,
    cube_math_type: str = "KEEP_DTYPE",
    tiling: Mapping[str, Any] | None = None,
    inputs: Mapping[str, Any] | None = None,
    seed: int = 0,
    values: bool = True,
    time: bool = True,
    errors: bool = True,
    distribution: str = "normal",
    progress: Progress | None = None,
    overrides: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> OpResult:
    """Run one operator.

    case: a case's name, or sizes by name; None is the first case. inputs: arrays by name instead of a case (numpy, torch
    on the CPU, or `sim.shape(...)` for time only), converted to `dtype` if that is given. dtype: None is the operator's
    first that the product has. product: None is that of the current device. tiling: knobs by name; what is left out the
    operator chooses. options: arguments of the operator, such as {"reduction": "sum"}. seed, distribution: of inputs made
    for a case. progress: called with (programs done, programs in all). Raises `UsageError`, or `RunError` for what would
    fail on the device.
    """
    op = get_operator(name)
    if not values and not time:
        raise UsageError(f"{op.name}: nothing to do, values and time are both off")
    choice = {"cube_math_type": cube_math_type, "values": values, "time": time, "overrides": overrides}
    with device(product, **choice) as machine:
        knobs = op.read_tiling(tiling or {})
        given = options or {}
        if inputs is None:
            problem = _of_case(op, op.case(case), dtype, machine, seed, distribution, given)
        elif case is not None:
            raise UsageError(f"{op.name}: give a case or inputs, not both")
        else:
            problem = _of_inputs(op, inputs, dtype, given)
        return _run(op, problem, knobs, machine, errors, progress)


# -- what is to be run -----------------------------------------------------------------------------------------------


def _of_case(
    op: Operator,
    case: Case,
    dtype: str | None,
    machine: Device,
    seed: int,
    distribution: str,
    options: Mapping[str, Any],
) -> Problem:
    here = op.dtypes_on(machine.product)
    name = op.dtype(dtype or here[0])
    op.require(machine.product, name)
    tensors: Mapping[str, Tensor]
    tensors = op.inputs(case, name, seed, distribution) if machine.values else op.shapes(case, name)
    return Problem(tensors, op.read_options({**case.options, **options}), name, case.name)


def _of_inputs(
    op: Operator, inputs: Mapping[str, Any], dtype: str | None, options: Mapping[str, Any]
) -> Problem:
    present = {n: x for n, x in inputs.items() if x is not None}
    _check_names(op, present)
    name = None if dtype is None else op.dtype(dtype)
    tensors = {n: _tensor(op, n, present[n], name) for n in (*op.required, *op.optional) if n in present}
    return Problem(tensors, op.read_options(options), name or dtype_name(tensors[op.main]), None)


def _check_names(op: Operator, present: Mapping[str, Any]) -> None:
    known = (*op.required, *op.optional)
    for n in present:
        if n not in known:
            raise UsageError(f"{op.name} has no input {n!r}{near(n, known)}")
    missing = [n for n in op.required if n not in present]
    if missing:
        raise UsageError(f"{op.name}: input {listed(missing)} missing; it takes {listed(known)}")


def _tensor(op: Operator, name: str, x: Any, dtype: str | None) -> Tensor:
    """An input as array or shape; converted if `dtype` is given, except where the operator fixes the type."""
    target = None if dtype is None else ty.from_name(op.fixed_dtypes.get(name, dtype))
    if isinstance(x, Shape):
        return Shape(x.shape, target) if target else x
    array = _scalar(x) if isinstance(x, int | float | np.generic) else as_array(f"{op.name}: {name}", x)
    if array is None:
        raise UsageError(
            f"{op.name}: {name!r} is a {type(x).__name__}; give a numpy array or a torch CPU tensor"
        )
    if array.dtype.kind in "iub" or ty.from_numpy(array.dtype.newbyteorder("=")) is None:
        raise UsageError(f"{op.name}: {name!r} holds {array.dtype}; it must hold {listed(op.dtypes, 'or')}")
    if target is not None and array.dtype != target.storage:
        return encode(array, target.name)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _scalar(x: Any) -> np.ndarray:
    """A Python number is fp32; a numpy number keeps its type."""
    return np.asarray(x if isinstance(x, np.generic) else np.float32(x))


# -- running it ------------------------------------------------------------------------------------------------------


def _run(
    op: Operator,
    problem: Problem,
    knobs: Mapping[str, Any],
    machine: Device,
    errors: bool,
    progress: Progress | None,
) -> OpResult:
    op.dtypes_on(machine.product)
    warnings = op.check(problem.tensors, problem.options, machine.product)
    workshop = Workshop(machine.product, machine.values)
    copies, tensors, notes = _contiguous(problem.tensors, workshop)
    plan = op.plan(tensors, problem.options, knobs, workshop)
    runs = _launch((*copies, *plan.steps), progress if machine.values else None)
    outputs = {n: x for n, x in plan.outputs.items() if isinstance(x, np.ndarray)}
    reports = _errors(op, problem, outputs) if errors and machine.values else {}
    words = (*notes, *plan.notes)
    return OpResult(
        outputs, _record(op, problem, plan, machine, runs, reports, warnings, words), warnings, words
    )


def _contiguous(
    tensors: Mapping[str, Tensor], workshop: Workshop
) -> tuple[list[Step], dict[str, Tensor], list[str]]:
    """Launches that copy strided inputs, the tensors after them, and words about it."""
    steps, out, notes = [], dict(tensors), []
    for name, x in tensors.items():
        if isinstance(x, np.ndarray) and x.size and not x.flags.c_contiguous:
            out[name] = workshop.tensor(x.shape, dtype_of(x))
            steps.append(copy_step(x, out[name], workshop.product.vector_cores))
            notes.append(f"{name} is strided: a launch of its own makes it contiguous first")
    return steps, out, notes


def _launch(steps: tuple[Step, ...], progress: Progress | None) -> list[Run]:
    total = sum(s.grid for s in steps)
    runs: list[Run] = []
    before = 0
    for step in steps:
        call = prepare(step.kernel, step.grid, (), step.arguments)
        runs.append(run_call(call, _shifted(progress, before, total)))
        before += step.grid
    return runs


def _shifted(progress: Progress | None, before: int, total: int) -> Progress | None:
    return None if progress is None else lambda done, _: progress(before + done, total)


def _errors(op: Operator, problem: Problem, outputs: Arrays) -> dict[str, ErrorReport]:
    arrays = {n: x for n, x in problem.tensors.items() if isinstance(x, np.ndarray)}
    golden = op.formula(arrays, problem.options)
    return {n: compare(x, golden[n], dtype_of(x).name) for n, x in outputs.items() if x.size}


def _record(
    op: Operator,
    problem: Problem,
    plan: Plan,
    machine: Device,
    runs: list[Run],
    errors: dict[str, ErrorReport],
    warnings: tuple[str, ...],
    notes: tuple[str, ...],
) -> Run:
    launches = [x for r in runs for x in r.launches]
    if launches:
        first = launches[0]
        launches[0] = replace(first, warnings=(*warnings, *first.warnings), notes=(*notes, *first.notes))
    return Run(
        name=op.name,
        product=machine.product.record,
        options={**numeric_options(machine), "multibuffer": plan.tiling.get("buffers"), **problem.options},
        launches=tuple(launches),
        errors=errors,
        op=op.name,
        case=problem.case,
        dtype=problem.dtype,
        cube_math_type=machine.cube_math_type,
        tiling=plan.tiling,
        inputs={n: f"{dtype_name(x)} {list(x.shape)}" for n, x in problem.tensors.items()},
        values_seconds=_seconds([r.values_seconds for r in runs]),
        time_seconds=_seconds([r.time_seconds for r in runs]),
    )


def _seconds(parts: list[float | None]) -> float | None:
    known = [s for s in parts if s is not None]
    return sum(known) if known else None

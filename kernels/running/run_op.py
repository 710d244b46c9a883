"""`run_op`: inputs, launches and errors of one operator on one product."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...simulator.call import Call
from ...simulator.device import ASCENDC, CUBE_MATH_TYPES, Device, device
from ...simulator.errors import BufferOverflowError, UsageError
from ...simulator.interpreter.tensors import Shape
from ...simulator.l2.chain import L2Chain, again_and_again
from ...simulator.l2.state import check_names
from ...simulator.launch import compute, fit, place, timed, with_values
from ...simulator.messages import Message, as_message, note
from ...simulator.numerics import asked_for
from ...simulator.numerics import options as numeric_options
from ...simulator.precision.metrics import ErrorReport, compare
from ...simulator.products import Product
from ...simulator.record.later import but
from ...simulator.record.run import Launch, Run
from ...simulator.trials.search import Trials
from ..operator.messages import listed
from ..operator.notes import call_notes, idle_mode, mode_name, value_warnings
from ..operator.operator import Case, Operator
from ..operator.parameter import AUTO, as_mapping
from ..operator.plan import Plan, PlanContext, Step
from ..operator.registry import get_operator
from ..operator.tensors import Arrays, Sizes, Tensor, dtype_name, dtype_of
from .advice import Advice, trials
from .fitting import plan_that_fits
from .given_outputs import check_apart, direct, kept_inputs, read_outputs, write_back
from .launching import call_of, tensor_names
from .problem import OpInputs, problem_of_case, problem_of_inputs, require_memory
from .strided_copies import copy_step

Progress = Callable[[int, int], None]
MAX_ELEMENTS = 2**31 - 1  # offsets are 32-bit integers


@dataclass(frozen=True)
class OpResult:
    """What one run of an operator gave. `outputs` is empty without values; `run` is the record that reports read."""

    outputs: Arrays
    run: Run
    warnings: tuple[Message, ...] = ()
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


@dataclass
class Launched:
    """What the launches gave, and the seconds of this machine that it took."""

    launches: list[Launch] = field(default_factory=list)
    time_seconds: float = 0.0
    values_seconds: float = 0.0
    tried: Trials = field(default_factory=Trials)
    value_warnings: list[Message] = field(default_factory=list)
    error_lines: dict[str, dict[str, float]] = field(default_factory=dict)

    def compute(self, call: Call, progress: Progress | None) -> None:
        """Values; and where the device asks for it, which lines' roundings make up the error of what the launch writes."""
        if call.device.errors != "lines":
            self.value_warnings += compute(call, progress)
            return
        found = with_values(call, progress)
        self.value_warnings += found.messages
        self.error_lines |= found.lines

    def add(self, launch: Launch | None, time_seconds: float, values_seconds: float) -> None:
        self.launches += [] if launch is None else [launch]
        self.time_seconds += time_seconds
        self.values_seconds += values_seconds


def run_op(
    name: str | Operator,
    case: str | Case | Sizes | None = None,
    dtype: str | None = None,
    product: str | Product | None = None,
    cube_math_type: str | int = "KEEP_DTYPE",
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
    explain: bool = False,
    out: Mapping[str, Any] | None = None,
) -> OpResult:
    """Run one operator.

    case: a case's name, or sizes by name; None is the first case. inputs: arrays by name instead of a case (numpy, torch
    on the CPU, or `sim.shape(...)` for time only), converted to `dtype` if that is given. dtype: None is the operator's
    first that the product has. product: None is that of the current device. cube_math_type: name or number.
    tiling: knobs by name; what is left out the
    operator chooses. options: arguments of the operator, such as {"reduction": "sum"}. out: arrays by name of output that
    take the results, of any strides and float type; what the operator does not write itself is cast and copied by
    launches. seed, distribution: of inputs made
    for a case. explain: whether to time each launch again with one limit lifted at a time, and the
    operator with one knob changed at a time. progress: called with (programs
    done, programs in all). Raises `UsageError`, or `RunError` for what would
    fail on the device.
    """
    op = get_operator(name)
    if not values and not time:
        raise UsageError(f"{op.name}: nothing to do, values and time are both off")
    choice = {
        "cube_math_type": mode_name(op, cube_math_type),
        "values": values,
        "time": time,
        "overrides": overrides,
    }
    choice["explain"] = explain
    with device(product, **choice) as machine:
        knobs = op.read_tiling(as_mapping(f"{op.name}: tiling", tiling, "knob to value"))
        given = as_mapping(f"{op.name}: options", options, "name to value")
        into = as_mapping(f"{op.name}: out", out, "output to array")
        if inputs is None:
            problem = problem_of_case(op, op.case(case), dtype, machine, seed, distribution, given)
        elif case is not None:
            raise UsageError(f"{op.name}: give a case or inputs, not both")
        else:
            tensors = as_mapping(f"{op.name}: inputs", inputs, "input to array")
            problem = problem_of_inputs(op, tensors, dtype, given)
        asked = {n: knobs[n] for n in tiling or {}}
        return _run(op, problem, knobs, asked, machine, errors, progress, into)


def _changed(op: Operator, asked: Mapping[str, Any], used: Mapping[str, Any]) -> tuple[Message, ...]:
    """Notes about knobs that the operator could not take as they were given."""
    return tuple(
        note(f"tiling {n}={x} was asked for{_instead(op.name, n, x, used[n])}")
        for n, x in asked.items()
        if x is not None and n in used and used[n] != x
    )


def _instead(op: str, name: str, asked: Any, used: Any) -> str:
    """What is done with a knob, and why as far as both values tell."""
    if used is None:
        return f" and is not used: {op} needs no such knob with this tiling"
    numbers = all(isinstance(x, int) and not isinstance(x, bool) for x in (asked, used))
    why = f"{op} chose it" if asked == AUTO else f"{op} cannot take it here"
    if numbers:
        why = (
            f"{op} takes no less here, or rounds it up"
            if used > asked
            else f"{op} takes no more here, or rounds it down"
        )
    return f", {name}={used} is used: {why}"


def _run(
    op: Operator,
    problem: OpInputs,
    knobs: Mapping[str, Any],
    asked: Mapping[str, Any],
    machine: Device,
    errors: bool,
    progress: Progress | None,
    out: Mapping[str, Any],
) -> OpResult:
    op.dtypes_on(machine.product)
    _check_tensors(op, problem, machine)
    warnings = tuple(map(as_message, op.check(problem.tensors, problem.options, machine.product)))
    if machine.values:
        require_memory(op, problem.tensors)
        warnings = (*warnings, *value_warnings(op, arrays_of(problem.tensors), machine))
    context = PlanContext(machine.product, machine.values)
    copies, tensors, notes = _contiguous(problem.tensors, context)
    shapes = {n: x if isinstance(x, Shape) else Shape(x.shape, dtype_of(x)) for n, x in tensors.items()}
    trial = PlanContext(machine.product, False)
    given: dict[str, np.ndarray] = {}
    if out:
        expected = op.plan(shapes, problem.options, knobs, trial).outputs
        given = read_outputs(op.name, out, expected)
        check_apart(op.name, given, problem.tensors)
        context = replace(context, given=direct(given, expected, problem.tensors))
    plan = plan_that_fits(op, tensors, problem.options, knobs, context)
    last, notes_of_out = write_back(given, plan.outputs, context, problem.tensors)
    plan = replace(plan, steps=(*plan.steps, *last), outputs={**plan.outputs, **given})
    notes += notes_of_out
    if not machine.values:
        notes += [f"out {n} is left as it is: values are off" for n in given]
    warnings = (*warnings, *_changed(op, asked, plan.tiling))

    def replan(tiling: dict[str, Any]) -> Plan:
        return op.plan(shapes, problem.options, tiling, trial)

    judged = errors and machine.values
    before = replace(problem, tensors=kept_inputs(given, problem.tensors)) if judged else problem
    try:
        launched = _launch(op.name, (*copies, *plan.steps), machine, progress)
        if machine.time and machine.explain:
            now_us = sum(x.time_us for x in launched.launches)
            launched.tried = trials(op, plan.tiling, machine, now_us, replan)
    except BufferOverflowError as e:
        given_knobs = {n: x for n, x in asked.items() if x is not None}
        advice = Advice(op, shapes, problem.options, machine.product, plan.tiling, given_knobs)
        text = f"{e.words}\n{advice.message([p.name for p in op.parameters])}"
        raise BufferOverflowError(text, e.space, e.need_bytes, e.have_bytes) from None
    outputs = {n: x for n, x in plan.outputs.items() if isinstance(x, np.ndarray) and machine.values}
    reports = _errors(op, before, outputs) if judged else {}
    told = (*notes, *_beyond(op, problem, machine), *plan.notes, *_about_cube(op, problem, plan, machine))
    return OpResult(
        outputs, _record(op, problem, plan, machine, launched, reports, warnings, told), warnings, told
    )


def _check_tensors(op: Operator, problem: OpInputs, machine: Device) -> None:
    """What holds for every operator: data where values are asked for, and sizes that 32-bit offsets reach."""
    for n, x in problem.tensors.items():
        if machine.values and isinstance(x, Shape):
            raise UsageError(f"{op.name}: {n!r} is a shape without data; give arrays, or ask for time only")
        if x.size > MAX_ELEMENTS:
            raise UsageError(
                f"{op.name}: {n!r} has {x.size} elements; the kernels reach at most {MAX_ELEMENTS}"
            )


def arrays_of(tensors: Mapping[str, Tensor]) -> Arrays:
    """Those of the tensors that have data."""
    return {n: x for n, x in tensors.items() if isinstance(x, np.ndarray)}


def _beyond(op: Operator, problem: OpInputs, machine: Device) -> tuple[str, ...]:
    strided = [n for n, x in arrays_of(problem.tensors).items() if x.size and not x.flags.c_contiguous]
    return call_notes(op, {n: dtype_name(x) for n, x in problem.tensors.items()}, strided, machine.product)


def _about_cube(op: Operator, problem: OpInputs, plan: Plan, machine: Device) -> list[str]:
    """What the Cube multiplies, of an operator that can do without it; or that the cubeMathType has no effect."""
    mode = machine.cube_math_type
    if plan.uses_cube and op.on_cube:
        found = op.on_cube.resolve(problem.tensors, machine.product, mode)
        how = f"{op.on_cube.text}: the Cube multiplies in {found.operand} (cube_math_type {mode})"
        return [how, *([found.warning] if found.warning else [])]
    idle = op.resolve is None and mode != CUBE_MATH_TYPES[0]
    return [without_cube(op, (mode,))] if idle else [*idle_mode(op, problem.tensors, machine.product, mode)]


def without_cube(op: Operator, modes: Sequence[str]) -> str:
    """That modes have no effect, why, and which tiling they are for."""
    way = f" with this tiling ({op.on_cube.text} does)" if op.on_cube else ""
    why = "multiplies its inputs in their own types" if op.uses_cube else f"does not use the Cube{way}"
    verb = "has" if len(modes) == 1 else "have"
    return f"cube_math_type {listed(modes)} {verb} no effect: {op.name} {why}"


def _contiguous(
    tensors: Mapping[str, Tensor], context: PlanContext
) -> tuple[list[Step], dict[str, Tensor], list[str]]:
    """Launches that copy strided inputs, the tensors after them, and notes about it."""
    steps, out, notes = [], dict(tensors), []
    for name, x in tensors.items():
        if isinstance(x, np.ndarray) and x.size and not x.flags.c_contiguous:
            out[name] = context.tensor(x.shape, dtype_of(x))
            steps.append(copy_step(x, out[name], context.product))
            notes.append(f"{name} is strided: a launch of its own makes it contiguous first")
    return steps, out, notes


def _launch(op: str, steps: tuple[Step, ...], machine: Device, progress: Progress | None) -> Launched:
    """The launches one after another, each timed before its values are computed, all placed before the first."""
    found = Launched()
    for step in steps:
        place(call_of(step))
    before, total = 0, sum(step.grid for step in steps)
    calls = [call_of(step) for step in steps]
    check_names(machine.l2, tensor_names(calls), op)
    with again_and_again(calls) as chain:
        for step in steps:
            launch, computed, seconds = None, False, 0.0
            if machine.time:
                launch, computed, seconds = _timed(call_of(step), chain)
            else:
                found.value_warnings += fit(call_of(step))
            begin = clock.perf_counter()
            if machine.values and not computed:
                found.compute(call_of(step), _shifted(progress, before, total))
            found.add(launch, seconds, clock.perf_counter() - begin)
            before += step.grid
    return found


def _timed(call: Call, chain: L2Chain | None) -> tuple[Launch | None, bool, float]:
    """The launch, whether its values are computed, and the seconds that it took to find out."""
    begin = clock.perf_counter()
    launch, computed = timed(call if chain is None else chain.entered(call), chain)
    return launch, computed, clock.perf_counter() - begin


def _shifted(progress: Progress | None, before: int, total: int) -> Progress | None:
    return None if progress is None else lambda done, _: progress(before + done, total)


def _errors(op: Operator, problem: OpInputs, outputs: Arrays) -> dict[str, ErrorReport]:
    golden = op.formula(arrays_of(problem.tensors), problem.options)
    return {n: compare(x, golden[n], dtype_of(x).name, where=True) for n, x in outputs.items() if x.size}


def _record(
    op: Operator,
    problem: OpInputs,
    plan: Plan,
    machine: Device,
    launched: Launched,
    errors: dict[str, ErrorReport],
    warnings: tuple[Message, ...],
    notes: tuple[str, ...],
) -> Run:
    launches = list(launched.launches)
    without_time = () if launches else warnings
    if launches:
        first = launches[0]
        launches[0] = but(first, warnings=(*warnings, *first.warnings), notes=(*notes, *first.notes))
    return Run(
        name=op.name,
        product=machine.product.record,
        options={
            **numeric_options(replace(machine, errors=False, reference=None)),
            "compiler": asked_for(machine, ASCENDC),
            "multibuffer": plan.tiling.get("buffers"),
            **problem.options,
            **problem.made,
        },
        launches=tuple(launches),
        errors=errors,
        changes=launched.tried.sorted_changes(sum(x.time_us for x in launches)),
        untried=launched.tried.untried,
        op=op.name,
        case=problem.case,
        dtype=problem.dtype,
        cube_math_type=machine.cube_math_type,
        tiling=plan.used,
        inputs={n: f"{dtype_name(x)} {list(x.shape)}" for n, x in problem.tensors.items()},
        values_seconds=launched.values_seconds if machine.values else None,
        time_seconds=launched.time_seconds if machine.time else None,
        value_warnings=(*without_time, *launched.value_warnings),
        error_lines=launched.error_lines,
    )

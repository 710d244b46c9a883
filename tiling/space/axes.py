"""The space of an operator's tilings: its own axes where it declares them, else what its knobs suggest; rules and bounds.

Besides knobs, the data type and the precision mode of the Cube may be axes; rules and bounds are then asked for each pair of
them, and a pair that the operator refuses is a rule that removes its points.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from ...kernels.bounds.vector import outputs_us
from ...kernels.operator.operator import Case, Operator
from ...kernels.operator.parameter import AUTO, Parameter
from ...kernels.operator.plan import Plan, PlanContext
from ...kernels.operator.tensors import Sizes, Tensors
from ...kernels.running.fitting import plan_that_fits
from ...kernels.running.launching import call_of, tensor_names
from ...kernels.running.problem import OpInputs, problem_of_case, problem_of_inputs
from ...simulator.device import MATH_MODES, Device, device
from ...simulator.errors import BufferOverflowError, RefusedError, UsageError
from ...simulator.interpreter.tensors import Shape
from ...simulator.l2.state import check_names
from ...simulator.products import Product
from .space import Columns, Point, Rule, Space, powers_of_two

SETTINGS = ("dtype", "cube_math_type")
COPIES = (1, 2)
LARGEST = 1 << 16
Pair = tuple[str, str]
Fits = Callable[..., Mapping[str, np.ndarray]]


class OperatorPoints:
    """Points of an operator on sizes of a case.

    given: knob, "dtype" or "cube_math_type" -> values instead of the usual ones, or one value to fix it. `space` has the
    axes and rules, `dtype` the data type where it is no axis. inputs: shapes by name instead of a case, whose types stay
    where no data type is given. Raises `UsageError` for an unknown knob or value.
    """

    def __init__(
        self,
        op: Operator,
        case: Case | None,
        machine: Product,
        dtype: str | None,
        mode: str,
        options: Mapping[str, Any],
        given: Mapping[str, Any],
        inputs: Mapping[str, Shape] | None = None,
    ) -> None:
        self.op, self.case, self.machine, self.options, self.inputs = op, case, machine, options, inputs
        settings = {n: _several(given[n]) for n in SETTINGS if n in given}
        knobs = {n: x for n, x in given.items() if n not in SETTINGS}
        dtypes: list[str | None] = [op.dtype(x) for x in settings.get("dtype", ())] or [dtype]
        modes = [_mode(x) for x in settings.get("cube_math_type", ())] or [mode]
        self.problems: dict[Pair, OpInputs] = {}
        self.refused: dict[Pair, str] = {}
        self.first = self._read(dtypes, modes)
        self.dtype = self.first.dtype
        self.mode = modes[0]
        axes = self._axes(knobs)
        self.asked = {n: axes[n] for n in knobs if n in axes}
        for n, values in (("dtype", dtypes), ("cube_math_type", modes)):
            if n in settings:
                axes[n] = tuple(values)
        self.space = Space(axes, [*self._refusals(), *self._rules(axes)])

    def usual(self) -> list[Point]:
        """What the operator chooses by itself, for each pair of settings; nothing where it breaks a value that was given.

        It may be beside the axes. A knob is None where the value that is used, if it is asked for, does not give the same.
        """
        found = (self._usual(pair) for pair in self.problems)
        return [x for x in found if x is not None]

    def _usual(self, pair: Pair) -> Point | None:
        problem, settings = self.problems[pair], dict(zip(SETTINGS, pair, strict=True))
        knobs = [n for n in self.space.axes if n not in SETTINGS]
        fixed = {n: values[0] for n, values in self.asked.items() if len(values) == 1}
        with device(self.machine, values=False, cube_math_type=pair[1]):
            try:
                used = self._used(problem, fixed)
                if not all(used.get(n) in values for n, values in self.asked.items() if n not in fixed):
                    return None
                point = {n: fixed.get(n, used.get(n)) for n in knobs}
                again = self._used(problem, point)
            except (UsageError, RefusedError):
                return None
        point = {n: x if n in fixed or again.get(n) == x else None for n, x in point.items()}
        return {n: point[n] if n in point else settings[n] for n in self.space.axes}

    def _used(self, problem: OpInputs, knobs: Mapping[str, Any]) -> Mapping[str, Any]:
        """The knobs as really used."""
        return self._planned(problem, knobs).tiling

    def _planned(self, problem: OpInputs, knobs: Mapping[str, Any]) -> Plan:
        bench, asked = PlanContext(self.machine, False), self.op.read_tiling(knobs)
        return plan_that_fits(self.op, problem.tensors, problem.options, asked, bench)

    def check_l2(self, l2: Any) -> None:
        """Raise `UsageError` for a tensor that `l2` names and no launch has: with the operator's own choice, or with another
        word of one knob."""
        if not isinstance(l2, Mapping):
            return
        words = ({n: x} for n, values in self.space.axes.items() for x in values if isinstance(x, str))
        changes = [{}, *(x for x in words if not x.keys() & set(SETTINGS))]
        found = [n for pair in self.problems for x in changes for n in self._tensors_with(pair, x)]
        if found:
            check_names(l2, found, self.op.name)

    def _tensors_with(self, pair: Pair, change: Mapping[str, Any]) -> list[str]:
        """Names of the tensors of its launches; none where they do not fit or are refused."""
        knobs = {n: values[0] for n, values in self.asked.items() if len(values) == 1 and n not in SETTINGS}
        with device(self.machine, values=False, cube_math_type=pair[1]):
            try:
                plan = self._planned(self.problems[pair], {**knobs, **change})
                return tensor_names(call_of(step) for step in plan.steps)
            except (UsageError, RefusedError, BufferOverflowError):
                return []

    def bounds(self, space: Space, numbers: np.ndarray) -> np.ndarray:
        """Least time in us of each point: the operator's own closed form, else that of writing its outputs."""
        columns = space.columns(numbers)
        out = np.zeros(len(numbers))
        for pair, chosen, some in self._each(columns):
            out[chosen] = self._bounds(pair, some, int(chosen.sum()))
        return out

    def _bounds(self, pair: Pair, columns: Columns, count: int) -> np.ndarray:
        problem = self.problems[pair]
        if self.op.bound_us is not None:
            try:
                ask = _with_options(self.op.bound_us, problem)
                return np.asarray(ask(problem.tensors, self.machine, pair[1], columns))
            except (KeyError, TypeError) as e:
                self._left_to_the_operator(e, columns)
        return np.full(count, self._outputs_us(problem, pair[1]))

    def _left_to_the_operator(self, e: Exception, columns: Columns) -> None:
        """Raise an error again, unless a rule or a closed form lacks a knob that is left to the operator."""
        missing = isinstance(e, KeyError) and e.args[0] in {p.name for p in self.op.parameters}
        if not missing and not any(x is None for column in columns.values() for x in column.tolist()):
            raise e

    def _outputs_us(self, problem: OpInputs, mode: str) -> float:
        with device(self.machine, values=False, cube_math_type=mode):
            try:
                bench = PlanContext(self.machine, False)
                plan = self.op.plan(problem.tensors, problem.options, self.op.read_tiling({}), bench)
            except (UsageError, RefusedError):
                return 0.0  # its own choice does not fit; others may
        return outputs_us(plan.outputs, problem.tensors, self.machine)

    def _read(self, dtypes: list[Any], modes: list[str]) -> OpInputs:
        """Inputs of every pair of settings; the first one that the operator takes."""
        errors: list[UsageError | RefusedError] = []
        for dtype in dtypes:
            for mode in modes:
                try:
                    problem = self._problem(dtype, mode)
                    self.problems[problem.dtype, mode] = problem
                except (UsageError, RefusedError) as e:
                    errors.append(e)
                    self.refused[str(dtype), mode] = str(e).splitlines()[0]
        if not self.problems:
            raise errors[0]
        return next(iter(self.problems.values()))

    def _problem(self, dtype: str | None, mode: str) -> OpInputs:
        with device(self.machine, values=False, cube_math_type=mode) as here:
            problem = problem_of_shapes(self.op, self.case, self.inputs, dtype, here, self.options)
            self.op.check(problem.tensors, problem.options, self.machine)
        return problem

    def _axes(self, given: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
        op, tensors = self.op, self.first.tensors
        known = {p.name: p for p in op.parameters}
        for name in given:
            if name not in known:
                raise UsageError(
                    f"{op.name} has no knob {name!r} to explore; it has {', '.join([*known, *SETTINGS])}"
                )
        if op.explored is not None:
            mode = next(iter(self.problems))[1]
            with device(self.machine, values=False, cube_math_type=mode):
                axes = dict(_with_options(op.explored, self.first)(tensors, self.machine))
        else:
            cores = self.machine.cube_cores if op.uses_cube else self.machine.vector_cores
            axes = {n: _suggested(p, tensors, cores) for n, p in known.items()}
        for name, values in given.items():
            axes[name] = tuple(known[name].read(f"{op.name}: knob", x) for x in _several(values))
        return {n: v for n, v in axes.items() if v and v != (None,)}

    def _refusals(self) -> list[Rule]:
        def rule(pair: Pair, why: str) -> Rule:
            def allows(**columns: np.ndarray) -> np.ndarray:
                dtype, mode = self._pair_columns(columns)
                return np.asarray(~((dtype == pair[0]) & (mode == pair[1])))

            return Rule(f"{pair[0]} with {pair[1]} is refused: {why}", allows, columns=True)

        return [rule(pair, why) for pair, why in self.refused.items()]

    def _rules(self, axes: Mapping[str, Any]) -> list[Rule]:
        fits = self.op.fits
        if fits is None or not axes:
            return []
        few = {n: Space(axes).columns(np.zeros(1, np.int64))[n] for n in axes}
        try:
            ask = _with_options(fits, self.first, axes)
            names = list(ask(self.first.tensors, self.machine, self.mode, few))
        except (KeyError, TypeError) as e:
            self._left_to_the_operator(e, few)
            return []
        return [self._rule(fits, name, axes) for name in names]

    def _rule(self, fits: Fits, name: str, axes: Mapping[str, Any]) -> Rule:
        def allows(**columns: np.ndarray) -> np.ndarray:
            out = np.ones(len(next(iter(columns.values()))), bool)
            for pair, chosen, some in self._each(columns):
                problem = self.problems[pair]
                ask = _with_options(fits, problem, axes)
                out[chosen] = ask(problem.tensors, self.machine, pair[1], some)[name]
            return out

        return Rule(name, allows, columns=True)

    def _each(self, columns: Columns) -> Iterator[tuple[Pair, np.ndarray, Columns]]:
        """Every pair of settings that is run, which points have it, and their columns."""
        dtype, mode = self._pair_columns(columns)
        for pair in self.problems:
            chosen = (dtype == pair[0]) & (mode == pair[1])
            if chosen.any():
                yield pair, chosen, {n: x[chosen] for n, x in columns.items()}

    def _pair_columns(self, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
        count = len(next(iter(columns.values()), np.zeros(1)))
        usual = {"dtype": self.dtype, "cube_math_type": self.mode}
        dtype, mode = (columns.get(n, np.full(count, x, object)) for n, x in usual.items())
        return np.asarray(dtype), np.asarray(mode)


def problem_of_shapes(
    op: Operator,
    case: str | Case | Sizes | None,
    inputs: Mapping[str, Shape] | None,
    dtype: str | None,
    machine: Device,
    options: Mapping[str, Any],
) -> OpInputs:
    """A case, or inputs, without their values."""
    if inputs is None:
        return problem_of_case(op, op.case(case), dtype, machine, 0, "normal", dict(options))
    problem = problem_of_inputs(op, inputs, dtype, dict(options))
    op.require(machine.product, problem.dtype)
    return problem


def _with_options(
    function: Callable[..., Any], problem: OpInputs, axes: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """A function of a space, with the operator's arguments and the axes of the space where it asks for them."""
    asks = inspect.signature(function).parameters
    known = {"options": problem.options} | ({} if axes is None else {"axes": axes})
    given = {n: x for n, x in known.items() if n in asks}
    return partial(function, **given) if given else function


def _mode(x: Any) -> str:
    if x not in MATH_MODES:
        raise UsageError(f"unknown cube_math_type {x!r}; allowed are {', '.join(MATH_MODES)}")
    return str(x)


def _several(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, list | tuple | range) else (values,)


def _suggested(p: Parameter, tensors: Tensors, cores: int) -> tuple[Any, ...]:
    """Choices: all but "auto". Numbers: powers of two up to the longest axis; cores: all and half; copies: 1 and 2."""
    if p.kind == "choice":
        return tuple(c for c in p.choices or () if c != AUTO)
    if p.name == "cores":
        return tuple(dict.fromkeys((cores, max(1, cores // 2))))
    if p.name == "buffers":
        return COPIES
    if p.high is not None and p.low is not None and p.high <= 1:
        return ()  # a switch of what is computed, no matter of tiling
    longest = max((max(x.shape, default=1) for x in tensors.values()), default=1)
    low, high = max(1, p.low or 1), min(LARGEST, longest if p.high is None else min(p.high, longest))
    return powers_of_two(low, max(low, high))

"""`explore`: the best tiling of an operator or of a kernel, with a proof where there can be one."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..kernels.operator.operator import Case, Operator
from ..kernels.operator.parameter import as_mapping
from ..kernels.operator.registry import get_operator
from ..kernels.operator.tensors import dtype_of
from ..kernels.running.problem import problem_of_inputs
from ..simulator.device import ASCENDC, CUBE_MATH_TYPES, current_device
from ..simulator.errors import UsageError
from ..simulator.interpreter.tensors import Shape
from ..simulator.products import Product, load_product
from .agreement import notes_about_values
from .device_state import about_l2, name_of_product, product_here, without_bounds
from .evaluate import OperatorProblem
from .heartbeats import STOPPED_SECONDS
from .kernel_problem import KernelProblem
from .results.exploration import OBJECTIVES, Exploration
from .results.store import Store
from .search.budget import Budget
from .search.exact import Report
from .search.sampling import SAMPLERS
from .space.axes import OperatorPoints
from .space.constraints import limit_of, rules_of, told_apart
from .space.declared import as_space, declared, with_axes
from .space.space import Point, Rule, Space
from .sweep import EXACT, Sweep, Task
from .workers import open_workers

Constraint = Callable[..., bool] | Rule


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM during a sweep. `exploration` is what was found until then; a store has kept it."""

    def __init__(self, exploration: Exploration) -> None:
        super().__init__(exploration.proof)
        self.exploration = exploration


def explore(
    what: str | Operator | Any,
    args: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    case: str | Mapping[str, Any] | None = None,
    dtype: str | None = None,
    product: str | Product | None = None,
    overrides: Mapping[str, Any] | None = None,
    cube_math_type: str | None = None,
    options: Mapping[str, Any] | None = None,
    space: Mapping[str, Any] | Space | None = None,
    constraint: Constraint | Sequence[Constraint] = (),
    grid: Any = None,
    objective: str = "time",
    budget: int | None = None,
    seconds: float | None = None,
    began: float | None = None,
    workers: int | str = 1,
    fallback: bool = False,
    worker_timeout: float = STOPPED_SECONDS,
    store: str | Path | None = None,
    cache: str | Path | None = None,
    sampler: str = "auto",
    seed: int = 0,
    report: Report = lambda done, left, best: None,
    inputs: Mapping[str, Any] | None = None,
) -> Exploration:
    """Find the best tiling.

    what: an operator (its name), a `@sim.jit` kernel, or a Triton one with its tuners (`triton.autotune`,
    `triton.heuristics`). For an operator: case (a name, or sizes) or inputs (arrays or `sim.shape(...)` by name, of their
    own types where no dtype is given), dtype, options; space: knob, "dtype" or "cube_math_type"
    -> values to try instead of the usual ones (one value fixes it). For a kernel: args by name or in order (arrays or
    `sim.shape(...)`), grid (a tuple, or a function of all arguments by name), space: constexpr -> values, also
    "multibuffer", "compiler" and "cube_math_type"; `tunable` declares space and grid beside the kernel, candidates bring
    their own. A `Space` brings its rules along.
    Without product, the device in force is explored on; its options (compiler, l2, ...) hold in any case.
    cube_math_type: without, that of the device in force for a kernel, KEEP_DTYPE for an operator.
    constraint: functions of a point's values that say whether it is legal. objective: "time" (us), "error" (mean absolute
    over mean absolute value; needs values of every point) or "ub" (bytes at the peak). Errors of a kernel are
    against its own float64 values, or the reference of the device in force. A constraint may also be a text, "error<1e-3",
    "time<20" (us) or "ub<131072" (bytes): points that are evaluated and not below it have no result. budget: points at
    most; seconds: likewise, bounds included, from `began` on (of `time.perf_counter`; without, from this call on).
    workers: 1, a number of processes, or an address "tcp://..." of a dask cluster; fallback: this process, if no cluster
    answers or it is lost; worker_timeout: seconds without a sign of life after which a process, which may be stopped, is
    replaced. store: a file that keeps every result; an interrupted sweep goes on from it. cache: such a file that nobody
    asked for: where it cannot be used, results are kept in memory, and a note says so. sampler: "exact" (with bounds),
    "tpe", "nsga2" (both Optuna), "random", or "auto": exact for all spaces that can be listed, else "tpe". seed: of the
    sampler, and of the inputs where values are computed. report: called with (points done, points left, best so far).

    Raises `UsageError` for an empty space, unknown knobs, a store of another version, or a cluster that does not answer;
    `Interrupted` with what was found so far.
    """
    _check(objective, budget, seconds, sampler, worker_timeout)
    begin = clock.perf_counter()
    limit = Budget(budget, seconds, begin if began is None else began)
    listed = isinstance(constraint, Sequence) and not isinstance(constraint, str)
    rules: list[Any] = list(constraint) if listed else [constraint]  # type: ignore[arg-type]
    limits = tuple(limit_of(x) for x in rules if isinstance(x, str))
    rules = [x for x in rules if not isinstance(x, str)]
    judged = objective == "error" or any(name == "error" for name, _ in limits)
    space = as_space(space) if space else None  # once: values may come from a generator
    given: dict[str, Any] = {"product": product_here(product), "overrides": dict(overrides or {})}
    if isinstance(what, str | Operator):
        if args is not None or grid is not None:
            raise UsageError(
                f"explore({what!r}): an operator takes case=..., not args or grid, which are for a kernel"
            )
        given |= {"case": case, "dtype": dtype, "options": dict(options or {}), "inputs": inputs}
        mode = cube_math_type or CUBE_MATH_TYPES[0]
        task = _operator(what, space.axes if space else {}, objective, seed, mode=mode, **given)
        rules += space.rules if space else ()
    else:
        if inputs is not None:
            raise UsageError("explore: inputs are those of an operator; a kernel takes args=...")
        mode = cube_math_type or current_device().cube_math_type
        task = _kernel(what, _by_name(what, args), grid, space, mode, **given)
    problem: Any = task.problem
    task = replace(task, problem=replace(problem, limits=limits, **_judged(problem, judged)))
    arguments = task.problem.arguments if isinstance(task.problem, KernelProblem) else {}
    rules = rules_of(rules, task.space.axes, arguments)
    points = Space(task.space.axes, told_apart([*task.space.rules, *rules]))
    task = replace(task, usual=tuple(p for p in task.usual if _allowed(p, rules)))
    crew = open_workers(task.problem, workers, fallback, worker_timeout)
    with Store(store or cache, cache=store is None) as kept, crew as pool:
        sweep = Sweep(task, points, objective, limit, pool, kept, report)
        found = sweep.run(sampler, seed)
        out = sweep.exploration(found, clock.perf_counter() - begin)
        out = sweep.described(_with_values(task, out, budget_left=not limit.late()))
    if found.interrupted:
        raise Interrupted(out)
    if isinstance(task.problem, KernelProblem) and not found.found and len(found.tried) == 1:
        ((message, count),) = found.tried.items()
        if found.above:
            raise UsageError(f"{task.title}: all {count:,} points that were tried {message}")
        raise UsageError(f"{task.title} runs at none of the {count:,} points that were tried: {message}")
    return out


def _judged(problem: Any, judged: bool) -> dict[str, Any]:
    """Whether errors are wanted; of a kernel also what they are against. Raises `UsageError` without data."""
    if not isinstance(problem, KernelProblem):
        return {"values": judged}
    if not judged:
        return {}
    without = [n for n, x in problem.arguments.items() if isinstance(x, Shape)]
    if without:
        raise UsageError(f"errors need data, and {without[0]!r} is a shape; give arrays")
    return {"errors": True, "reference": current_device().reference}


def _check(objective: str, budget: int | None, seconds: float | None, sampler: str, timeout: float) -> None:
    if objective not in OBJECTIVES:
        raise UsageError(f"objective must be one of {', '.join(OBJECTIVES)}, got {objective!r}")
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer | None):
        raise UsageError(f"budget is a number of evaluations, got {budget!r}; seconds= is a budget of time")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float | np.number | None):
        raise UsageError(f"seconds is a number, got {seconds!r}")
    if budget is not None and budget < 1:
        raise UsageError(f"budget must be at least one evaluation, got {budget}")
    if seconds is not None and not seconds > 0:
        raise UsageError(f"a budget of time must be above 0 seconds, got {seconds}")
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < float("inf"):
        raise UsageError(f"worker_timeout is a number of seconds above 0, got {timeout!r}")
    if sampler not in ("auto", EXACT, *SAMPLERS):
        raise UsageError(f"sampler must be one of auto, {EXACT}, {', '.join(SAMPLERS)}, got {sampler!r}")


def _operator(
    what: str | Operator,
    space: Mapping[str, Any],
    objective: str,
    seed: int,
    product: str | Product,
    overrides: dict[str, Any],
    case: str | Mapping[str, Any] | None,
    dtype: str | None,
    mode: str,
    options: dict[str, Any],
    inputs: Mapping[str, Any] | None,
) -> Task:
    op = get_operator(what)
    machine = load_product(product, overrides=overrides)
    chosen, tensors, shapes = _given(op, case, inputs, dtype, options, objective == "error")
    points = OperatorPoints(op, chosen, machine, dtype, mode, options, space, shapes)
    points.check_l2(current_device().l2)
    settings = {"dtype": points.dtype if shapes is None else dtype, "cube_math_type": points.mode}
    settings = {n: x for n, x in settings.items() if x is not None}
    named = chosen is not None and chosen.name in op.cases
    problem = OperatorProblem(
        op=op.name,
        case=chosen.name if chosen and named else dict(chosen.sizes) if chosen else "",
        inputs=tensors,
        product=product,
        overrides=overrides,
        options=options,
        fixed={n: x for n, x in settings.items() if n not in points.space.axes},
        values=objective == "error",
        seed=seed,
    )
    odd = without_bounds(problem.state)
    note = f"no bounds: the closed forms do not know the device's {', '.join(odd)}"
    bounds, notes = (None, (note,)) if odd and objective == "time" else (points.bounds, ())
    notes = (*notes, *about_l2(problem.state))
    about = (op.name, name_of_product(product), points.first.case, notes)
    return Task(
        problem, points.space, bounds, *about, current_device().code_by(ASCENDC), tuple(points.usual())
    )


def _given(
    op: Operator,
    case: str | Mapping[str, Any] | None,
    inputs: Mapping[str, Any] | None,
    dtype: str | None,
    options: Mapping[str, Any],
    values: bool,
) -> tuple[Case | None, Mapping[str, Any] | None, dict[str, Shape] | None]:
    """The case; or the inputs, without their numbers where nothing looks at those, and their shapes."""
    if inputs is None:
        return op.case(case), None, None
    if case is not None:
        raise UsageError(f"{op.name}: give a case or inputs, not both")
    named = as_mapping(f"{op.name}: inputs", inputs, "input to array")
    tensors = problem_of_inputs(op, named, dtype, dict(options)).tensors
    lacking = [n for n, x in tensors.items() if isinstance(x, Shape)]
    if values and lacking:
        raise UsageError(f"{op.name}: errors need the numbers of {', '.join(lacking)}; give arrays")
    shapes = {n: Shape(x.shape, dtype_of(x)) for n, x in tensors.items()}
    return None, tensors if values else shapes, shapes


def _kernel(
    what: Any,
    args: dict[str, Any],
    grid: Any,
    space: Mapping[str, Any] | Space | None,
    mode: str,
    product: str | Product,
    overrides: dict[str, Any],
) -> Task:
    found = with_axes(declared(what, args), space)
    name, kernel = found.kernel.name, found.kernel
    grid = found.grid if grid is None else grid
    if found.space is None:
        raise UsageError(
            f"explore({name}): give space={{...}}, the values of its compile-time parameters to try, or declare it beside "
            "the kernel (tiling.tunable)"
        )
    if grid is None:
        raise UsageError(f"explore({name}): give grid=(...) or a function of the arguments, as for a launch")
    known = {p.name for p in kernel.parameters} | {"multibuffer", "cube_math_type", "compiler"}
    for n in (*(as_space(space).axes if space else ()), *args):
        if n not in known:
            raise UsageError(f"{name} has no parameter {n!r}; it has {', '.join(sorted(known))}")
    for n in args:
        if n in found.space.axes:
            raise UsageError(f"explore({name}): {n!r} is in args and in the space; give it once")
    fixed = {} if "cube_math_type" in found.space.axes else {"cube_math_type": mode}
    problem = KernelProblem(kernel, grid, args, product, overrides, fixed, found.derived)
    notes = (*found.notes, *_of_no_tiling(kernel, found.space), *about_l2(problem.state))
    made = current_device().code_by()
    return Task(problem, found.space, None, name, name_of_product(product), None, notes, made)


def _of_no_tiling(kernel: Any, space: Space) -> list[str]:
    """Notes about axes that change what is computed."""
    given = {p.name for p in kernel.parameters} - set(kernel.constexprs)
    return [
        f"{n} is no compile-time parameter of {kernel.name}: its values may be different work, not ways to do the same"
        for n, values in space.axes.items()
        if n in given and len(values) > 1
    ]


def _by_name(what: Any, args: Mapping[str, Any] | Sequence[Any] | None) -> dict[str, Any]:
    """Arguments of a kernel by name; given in order they are its first ones."""
    if args is None or isinstance(args, Mapping):
        return dict(args or {})
    names = [p.name for p in declared(what, {}).kernel.parameters]
    if len(args) > len(names):
        raise UsageError(f"explore: {len(args)} args are more than the parameters {', '.join(names)}")
    return dict(zip(names, args, strict=False))


def _with_values(task: Task, out: Exploration, budget_left: bool) -> Exploration:
    """With notes about the values of a kernel's tilings."""
    if not isinstance(task.problem, KernelProblem) or out.interrupted or not out.found:
        return out
    late = ["values were not compared: the time was up"]
    found = notes_about_values(task.problem, out.ranked) if budget_left else late
    return replace(out, notes=(*out.notes, *found))


def _allowed(point: Point, rules: Sequence[Constraint]) -> bool:
    """Whether the user's rules allow a point, which may be beside the axes."""
    return Space({n: (x,) for n, x in point.items()}, rules).allowed(0) is None

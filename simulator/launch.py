"""A launch: arguments to types and tensors, then values and time on the current device."""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from . import launch_keywords
from . import progress as at_work
from .call import Call, check, describe_argument, what_ifs
from .checks.asked import checks_of
from .checks.watching import watchers_of
from .composite_arguments import is_composite, plan_of
from .device import Device, current_device, using
from .errors import EmptyGridError, NeedsDataError, TooLargeError, UsageError
from .execution.float64.launching import ValuesFound, compared, outputs_of, with_errors
from .execution.numpy_backend import NumpyBackend, WithoutRounding
from .execution.run import run_values
from .frontend.kernel_function import KernelFunction
from .gc_paused import uncollected
from .interpreter.interpreter import DataDependentError
from .interpreter.lanes import chunk_size
from .interpreter.program_order.loop_lanes import ChosenLanes
from .interpreter.program_order.order import reaches_anything
from .interpreter.tensors import memory_kept, tensor_argument
from .interpreter.two_cores.flags import Scheduling, scheduling
from .ir.building.composite import ArgumentPlan, ParameterPlan
from .ir.building.promotion import float_constant
from .ir.building.registry import Kernel, unwrap_all
from .ir.program import Program
from .ir.types import PointerType
from .l2.chain import L2Chain, current_chain
from .l2.state import check_names
from .launch_cache import Estimate, key_of, recall, remember
from .messages import FAULT, Message, note
from .numerics import numerics, options
from .observers import announce, announce_call, announce_time, calls_are_watched, is_quiet
from .precision import dtypes as ty
from .precision.dtypes import DType
from .precision.splits import SPLITS
from .record.later import but
from .record.outputs import Written
from .record.run import Launch, Run
from .timing.ub_bits import tell_ub_bits
from .trials.knobs import AskedFor, trials
from .trials.search import Trials
from .trials.values import Before, compare, tell_uncompared

MAX_PROGRAMS = 65_535 * 65_536
NOT_LOOKED_AT = note(
    "which elements have a value was not looked at: the time depends on data, and the kernel writes through addresses that "
    "are no arguments, so that it can run once only; launch it with sim.device(time=False) to look"
)
NO_ERRORS = note(
    "errors were not evaluated: the time depends on data, and the kernel writes through addresses that are no arguments, so "
    "that it can run once only; launch it with sim.device(time=False, errors=True)"
)


def launch(kernel: KernelFunction, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run:
    """Values (tensors are written in place) and time of one launch on the current device."""
    call = prepare(kernel, grid, args, kwargs)
    without = [n for n, x in call.tensors.items() if x.window is None]
    if call.device.values and without:
        raise UsageError(
            f"{kernel.name}: {without[0]!r} is a shape without data; use {kernel.name}.time(...) for time only"
        )
    _check_l2(call)
    announce_call(call)
    run = run_call(_with_mode_warning(call))
    announce(run)
    return run


def time_launch(kernel: KernelFunction, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run:
    """Time of one launch; no tensor is read, written or allocated."""
    call = _with_mode_warning(prepare(kernel, grid, args, kwargs))
    _check_l2(call)
    return run_call(replace(call, device=replace(call.device, values=False, time=True)))


def _check_l2(call: Call) -> None:
    """A launch on its own has the tensors that `l2` names; one of a script or a chain need not have all."""
    if current_chain() is None and not is_quiet():
        check_names(call.device.l2, list(call.tensors), call.kernel.name)


def _with_mode_warning(call: Call) -> Call:
    """Modes that the vendor's host library carries out by casting operands; a kernel of the user's own casts by itself."""
    mode = call.device.cube_math_type
    ways = {
        "USE_FP16": "cast the operands with .to(tl.float16)",
        "USE_FP32_ADD": "add the parts of a long sum in the kernel",
        **dict.fromkeys(SPLITS, "cut them into slices in the kernel"),
    }
    if mode not in ways or not call.program.of_kind("dot"):
        return call
    instead = ways[mode]
    message = f"cube_math_type {mode} has no effect on a kernel of your own: tl.dot multiplies what it is given; {instead}"
    return replace(call, warnings=(*call.warnings, note(message)))


def run_call(call: Call, progress: Callable[[int, int], None] | None = None) -> Run:
    x, y, z = call.grid
    with at_work.launching(call.kernel.name, x * y * z) as work:
        return _run_call(call, progress or work.tell)


def _run_call(call: Call, progress: Callable[[int, int], None]) -> Run:
    if call.device.explain and is_quiet():  # a tuner's candidate: the reasons for its time are not asked
        call = replace(call, device=replace(call.device, explain=False))
    device = call.device
    tell_ub_bits(call)
    launches: tuple[Launch, ...] = ()
    tried = Trials()
    seconds: dict[str, float | None] = {"time": None, "values": None}
    computed = False
    found = ValuesFound(())
    if device.time:  # first, so that a kernel that does not fit has written nothing
        begin = clock.perf_counter()
        chain = current_chain()
        call = call if chain is None else chain.entered(call)
        launch, computed = timed(call, chain)
        launches = (launch,)
        if device.explain:
            tried = trials(call, launch.time_us, lambda other: timed(other)[0])
        seconds["time"] = clock.perf_counter() - begin
    if tried.remade and not device.values:
        tell_uncompared(tried, launches[0].time_us)
    if device.values and not computed:
        before = Before(call, lambda other: compute(other, quiet=True)) if tried.remade else None
        told = () if device.time else (*call.warnings, *fit(call))  # a launch that is timed has them
        begin = clock.perf_counter()
        found = with_values(call, progress)
        found = replace(found, messages=(*told, *found.messages))
        seconds["values"] = clock.perf_counter() - begin
        if before is not None:
            compare(tried, launches[0].time_us, before)
    run = Run(
        name=call.kernel.name,
        product=device.product.record,
        options=options(call.device),
        launches=launches,
        cube_math_type=device.cube_math_type,
        tiling=call.named_constants,
        inputs={n: describe_argument(x) for n, x in call.arguments.items()},
        values_seconds=seconds["values"],
        time_seconds=seconds["time"],
        value_warnings=found.messages,
        errors=found.errors,
        error_lines=found.lines,
        changes=tried.sorted_changes(launches[0].time_us) if launches else {},
        untried=tried.untried,
    )
    return run.wrote(_written(call)) if device.values else run


def _written(call: Call) -> Written:
    """The tensors of a launch that has written them."""
    name = call.kernel.name

    def errors(now: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
        tensors = {n: t for n, x in now.items() if (t := tensor_argument(n, x)) is not None}
        return compared(tensors, right, name)

    return Written({n: t.source for n, t in outputs_of(call).items()}, errors)


def fit(call: Call) -> tuple[Message, ...]:
    """Refuse a kernel whose tiles do not fit in the buffers, also when its time is not asked; gives its faults there."""
    from .timing.estimate import make_plan

    return tuple(m for m in make_plan(call).warnings.messages() if m.kind == FAULT)


def place(call: Call) -> None:
    """Refuse a kernel whose tiles do not fit in the buffers; a part of `fit`, without costs."""
    from .timing.fitting import require_places

    require_places(call)


def timed(call: Call, chain: L2Chain | None = None) -> tuple[Launch, bool]:
    """Time of a launch, and whether its values had to be computed for it. chain: is told what it leaves in L2."""
    found, computed = _timed(call, chain is not None)
    if chain is not None:
        chain.leaves(call, found.left)
    announce_time(found.launch)
    return found.launch, computed


def _timed(call: Call, leaves: bool) -> tuple[Estimate, bool]:
    from .timing.estimate import estimate, estimate_with_values

    key = key_of(call, leaves)
    known = recall(key)
    if known is not None:
        return known, False
    try:
        with uncollected():
            found = estimate(call, leaves)
            found = found._replace(launch=with_freed(call, found.launch))
        remember(key, call, found)
        return found, False
    except DataDependentError as e:
        if not call.device.values:
            raise NeedsDataError(f"{e}; launch it with data: {call.kernel.name}[grid](...)") from None
    how, asked = numerics(call.device), checks_of(call.device)
    watchers = watchers_of(call.program, call.grid, call.arguments, asked)
    more = asked.check or asks_for_errors(call.device)
    again = more and not reaches_anything(call.program)

    def values(part: Program, waiting: frozenset[int]) -> NumpyBackend:
        return NumpyBackend(part, call.grid, how, waiting, asked, watchers, quiet=again)

    if not again:
        found = estimate_with_values(call, values, leaves)
        told = ((asked.check, NOT_LOOKED_AT), (asks_for_errors(call.device), NO_ERRORS))
        notes = tuple(text for given, text in told if given)
        return found._replace(launch=but(found.launch, warnings=(*found.launch.warnings, *notes))), True
    with memory_kept(
        call.tensors
    ):  # which elements are defined is looked at where instructions are not recorded
        return estimate_with_values(call, values, leaves), False


def estimated(call: Call, leaves: bool = False) -> Estimate:
    """Time of a launch without values. leaves: whether to say what it leaves in L2."""
    return _timed(call, leaves)[0]


def with_freed(call: Call, launch: Launch) -> Launch:
    """The launch with what single changes would free in its buffers, where it is to be explained."""
    if not call.device.explain:
        return launch
    from .timing import freeing

    return but(launch, buffers=freeing.with_freed(call, launch.buffers))


def asks_for_errors(device: Device) -> bool:
    """Whether a launch is to have the errors of what it writes."""
    return bool(device.errors) or device.reference is not None


def with_values(call: Call, progress: Callable[[int, int], None] | None = None) -> ValuesFound:
    """Values, and the errors that are asked for."""
    if not asks_for_errors(call.device):
        return ValuesFound(compute(call, progress))
    return with_errors(call, lambda exact, quiet: compute(call, progress, exact, quiet))


def compute(
    call: Call,
    progress: Callable[[int, int], None] | None = None,
    exact: WithoutRounding | None = None,
    quiet: bool = False,
    only: ChosenLanes | None = None,
) -> tuple[Message, ...]:
    """Values only; gives warnings. exact: is told of every operation, too. quiet: nothing is printed.

    only: programs of a launch that has parts (see `execution/chosen`), and nothing else is computed.
    """
    if only is not None and only.independent:
        how = Scheduling(False, max(1, chunk_size(call.program) * len(only.programs) // only.most))
    else:
        how = scheduling(call.program, call.grid, call.arguments, call.device.step_limit)
    return run_values(
        call.program,
        call.grid,
        call.arguments,
        numerics(call.device),
        apart=how.apart,
        chunk=how.size,
        waiting=how.waiting,
        step_limit=call.device.step_limit,
        seed=call.device.atomic_seed,
        progress=progress,
        checks=checks_of(call.device),
        cores=lambda: programs_at_once(call),
        quiet=quiet,
        exact=exact,
        only=only,
    )


def programs_at_once(call: Call) -> int:
    """How many programs the product runs at once."""
    from .timing.estimate import make_plan

    return make_plan(call).wiring.machine.cores


def prepare(kernel: KernelFunction, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """Check grid and arguments of a launch. Raises `UsageError`."""
    device = current_device()
    device, kwargs, warnings = launch_keywords.apply(device, kwargs, {p.name for p in kernel.parameters})
    given = kernel.arguments(args, kwargs)
    constants, arguments, types = _sort_arguments(kernel, given, device)
    meta = AskedFor(given)
    chosen = grid(meta) if callable(grid) else grid
    call = Call(kernel, _grid(kernel, chosen), arguments, constants, types, device, warnings)
    if device.explain or calls_are_watched():
        call = replace(call, grid_asks=tuple(meta.names), again=_again(device, kernel, grid, given))
    call = replace(call, warnings=(*call.warnings, *call.program.warnings))
    check(call)
    return replace(call, warnings=(*call.warnings, *what_ifs(call)))


def _again(
    device: Device, kernel: KernelFunction, grid: Any, given: dict[str, Any]
) -> Callable[[dict[str, Any], tuple[int, int, int] | None], Call]:
    def again(changed: dict[str, Any], other_grid: tuple[int, int, int] | None = None) -> Call:
        with using(device):
            return prepare(kernel, grid if other_grid is None else other_grid, (), {**given, **changed})

    return again


def _sort_arguments(
    kernel: KernelFunction, given: dict[str, Any], device: Device
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    constants: dict[str, Any] = {}
    arguments: dict[str, Any] = {}
    types: dict[str, Any] = {}
    storage = set(device.product.texts("dtypes.storage"))

    def plain(name: str, x: Any) -> ArgumentPlan:
        """Make `x` a parameter."""
        tensor = tensor_argument(name, x)
        if tensor is not None:
            _check_dtype(kernel, name, tensor.dtype, storage, device)
            arguments[name], types[name] = tensor, PointerType(tensor.dtype, const=name in kernel.only_read)
        else:
            arguments[name], types[name] = _scalar(kernel, name, x)
            if name in kernel.annotated:
                _check_dtype(kernel, name, types[name], storage, device)
        return ParameterPlan(name)

    for name, x in given.items():
        if name not in kernel.constexprs and is_composite(x):
            constants[name] = plan_of(name, x, plain)
        elif name in kernel.constexprs or x is None or isinstance(x, str | tuple | DType | Kernel):
            constants[name] = x.item() if isinstance(x, np.generic) else unwrap_all(x)
        else:
            plain(name, x)
    return constants, arguments, types


def _check_dtype(kernel: KernelFunction, name: str, dtype: DType, storage: set[str], device: Device) -> None:
    if dtype.name not in storage and not dtype.is_bool() and not dtype.is_foreign:
        raise UsageError(
            f"{kernel.name}: {name!r} is {dtype}, which {device.product.name} does not have; "
            f"it stores {', '.join(sorted(storage))}"
        )


def _scalar(kernel: KernelFunction, name: str, x: Any) -> tuple[Any, DType]:
    if isinstance(x, np.generic):
        x = x.item()
    if isinstance(x, bool | int | float):
        try:
            return (
                _annotated(x, kernel.annotated[name]) if name in kernel.annotated else (x, ty.of_argument(x))
            )
        except OverflowError as e:
            raise TooLargeError(f"{kernel.name}: {name!r}: {e}") from None
    raise UsageError(
        f"{kernel.name}: {name!r} is a {type(x).__name__}; a kernel takes numpy arrays, torch CPU tensors, "
        "numbers, and None, strings or tuples as compile-time values"
    )


def _annotated(x: bool | int | float, t: DType) -> tuple[Any, DType]:
    """A number for a parameter that is annotated with an element type; an integer must be one of the type."""
    if t.is_floating():
        return float_constant(float(x), t), t
    if isinstance(x, float) or not ty.limits(t)[0] <= x <= ty.limits(t)[1]:
        raise OverflowError(f"{x} is no {t}, which the parameter is annotated with")
    return (bool(x) if t.is_bool() else int(x)), t


def _grid(kernel: KernelFunction, grid: Any) -> tuple[int, int, int]:
    axes = tuple(grid) if isinstance(grid, tuple | list | np.ndarray) else (grid,)
    if not 1 <= len(axes) <= 3 or not all(
        isinstance(n, int | np.integer) and not isinstance(n, bool) for n in axes
    ):
        raise UsageError(f"{kernel.name}: a grid is one to three integers, got {grid!r}")
    if any(n < 1 for n in axes):
        message = (
            f"{kernel.name}: every axis of the grid must be at least 1, got {tuple(int(n) for n in axes)}"
        )
        raise UsageError(message) if any(n < 0 for n in axes) else EmptyGridError(message)
    x, y, z = (*(int(n) for n in axes), 1, 1)[:3]
    if x * y * z > MAX_PROGRAMS:
        raise UsageError(
            f"{kernel.name}: the grid {(x, y, z)} has {x * y * z} programs, the limit is {MAX_PROGRAMS}"
        )
    return x, y, z


__all__ = ["compute", "launch", "prepare", "run_call", "time_launch"]

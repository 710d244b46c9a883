"""One point of a space, evaluated: time, bound, buffers and, where asked for, error.

Problems are plain data: workers get copies. A problem says what to run: `OperatorProblem` is an operator with its sizes, a
user's kernel with arguments is in `kernel_problem.py`.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..kernels.operator.operator import Operator
from ..kernels.operator.plan import Plan, PlanContext
from ..kernels.operator.registry import get_operator
from ..kernels.running.launching import timed_once
from ..kernels.running.run_op import run_op
from ..simulator.device import device
from ..simulator.errors import AscendtileError, BufferOverflowError, RefusedError, UsageError
from ..simulator.products import Product, load_product
from ..simulator.record.codec import decode_plain
from ..simulator.record.files import picked
from ..simulator.record.run import Launch, add_up
from .device_state import state_here
from .space.axes import SETTINGS, problem_of_shapes
from .space.space import Point

Limits = tuple[tuple[str, float], ...]  # (a figure of UNITS, below which it must be)
UNITS = {"error": "", "time": " us", "ub": " bytes"}
SAME_POINTS = 100_000  # tilings as really used that are remembered with their evaluation

# Every tiling asks for the same megabytes again. The C library gives blocks as large as the largest one that was freed so
# far back to its own heap, not to the system, whose new pages took a twentieth of the time: 8 MiB are asked for and freed.
np.empty(8 << 20, np.uint8)


@dataclass(frozen=True)
class Evaluation:
    """What came out of one point.

    time_us is None where the point was refused (`refused`: the rule) or failed (`failed`: the message). need_bytes,
    have_bytes: where it does not fit, what its tiles take of the buffer that `refused` names. over: its figure that is not
    below a limit, which `refused` names. tiling: the knobs as
    really used. bound_us: the largest bound of the launches, `bound` its name; waits: what holds the pipe up that is busy
    most, as shares of the time (reasons of the engine's stalls), with its own "busy". errors: output ->
    mean absolute error over mean absolute value; None where values were not asked for. what_if: whether the product lacks
    something that ran, whose time is then by a stated rate.
    """

    time_us: float | None = None
    bound_us: float | None = None
    bound: str | None = None
    ub_peak_bytes: int | None = None
    errors: dict[str, float] | None = None
    pipe: str | None = None
    waits: dict[str, float] = field(default_factory=dict)
    tiling: dict[str, Any] = field(default_factory=dict)
    refused: str | None = None
    failed: str | None = None
    need_bytes: int | None = None
    have_bytes: int | None = None
    over: float | None = None
    what_if: bool = False

    @property
    def error(self) -> float | None:
        """The largest over the outputs."""
        return None if self.errors is None else max(self.errors.values(), default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; not by `asdict`, which takes as long as a part of an evaluation."""
        values = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {n: dict(x) if isinstance(x, dict) else x for n, x in values}


def within(e: Evaluation, limits: Limits) -> Evaluation:
    """The evaluation, or the refusal of one whose figures are not below a limit."""
    for name, most in limits:
        value = {"error": e.error, "time": e.time_us, "ub": e.ub_peak_bytes}[name]
        if e.time_us is not None and (value is None or not value < most):
            told = value if value is not None and math.isfinite(value) else None
            return Evaluation(
                refused=f"do not keep {name}<{most:.10g}{UNITS[name]}", over=told, tiling=e.tiling
            )
    return e


def evaluation_of(data: Mapping[str, Any]) -> Evaluation | None:
    """What `to_dict` gave, read again; None if it is something else, or has what no evaluation has."""
    try:
        found: Evaluation = decode_plain(data, Evaluation, "result")
    except UsageError:
        return None
    said = found.time_us is not None or (found.refused or found.failed) is not None
    return found if said and not oddity(found) else None


def oddity(e: Evaluation) -> str:
    """What no evaluation has: a figure below 0 or without an end, a knob that is no knob's value; "" where all is well."""
    figures = picked(e, "time_us bound_us ub_peak_bytes need_bytes have_bytes over") | e.waits
    odd = [f"{n[:40]} is {x}" for n, x in figures.items() if x is not None and not 0 <= x < math.inf]
    odd += [f"the knob {n[:40]} is {str(x)[:40]}" for n, x in e.tiling.items() if not is_value(x)]
    return next(iter(odd), "a time of 0 us" if e.time_us == 0 else "")


def is_value(x: Any) -> bool:
    """Whether a knob can have this value: a text, a number, nothing, or several of them."""
    if isinstance(x, tuple | list):
        return all(not isinstance(part, tuple | list) and is_value(part) for part in x)
    return x is None or isinstance(x, str | int) or (isinstance(x, float) and math.isfinite(x))


class TilingProblem(Protocol):
    """What to run at each point."""

    @property
    def product(self) -> str | Product: ...

    @property
    def overrides(self) -> Mapping[str, float]: ...

    def describe(self) -> dict[str, Any]:
        """All that its results depend on, besides the point and the code."""
        ...

    def evaluate(self, point: Point) -> Evaluation: ...


@dataclass(frozen=True)
class OperatorProblem:
    """An operator on sizes of a case, or on inputs: arrays where values are wanted, else shapes.

    fixed: knobs and settings of every point; values: whether errors are wanted. limits: what the figures of a point must
    be below.

    state: options of the device, by name; without, those of the device in force.
    """

    op: str
    case: str | Mapping[str, Any]
    product: str | Product
    overrides: Mapping[str, float]
    options: Mapping[str, Any]
    fixed: Mapping[str, Any]
    values: bool = False
    seed: int = 0
    state: Mapping[str, Any] = field(default_factory=state_here)
    inputs: Mapping[str, Any] | None = None
    limits: Limits = ()

    @cached_property
    def identity(self) -> str:
        """The same text for the same problem."""
        return json.dumps(self.describe(), sort_keys=True, default=str)

    def describe(self) -> dict[str, Any]:
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        if self.inputs is None:
            del own["inputs"]  # as it was before there were any: stores of a case stay valid
        else:
            own["inputs"] = {n: _fingerprint(x) for n, x in self.inputs.items()}
        if not self.limits:
            del own["limits"]
        return {**own, "product": machine_of(self).fingerprint}

    def evaluate(self, point: Point) -> Evaluation:
        whole = {**self.fixed, **point}
        settings = {n: whole.pop(n) for n in SETTINGS if n in whole}
        try:
            found = self._with_values(whole, settings) if self.values else self._time(whole, settings)
            return within(found, self.limits)
        except BufferOverflowError as e:
            return misfit(e)
        except (RefusedError, UsageError) as e:
            return Evaluation(refused=str(e).splitlines()[0])
        except AscendtileError as e:
            return Evaluation(failed=str(e).splitlines()[0])

    def _with_values(self, knobs: dict[str, Any], settings: Mapping[str, Any]) -> Evaluation:
        given = self.case if isinstance(self.case, str) else dict(self.case)
        machine = machine_of(self)
        with device(machine, **self.state):
            chosen: dict[str, Any] = {"tiling": knobs, "options": self.options, "seed": self.seed, **settings}
            of = {"case": given} if self.inputs is None else {"inputs": self.inputs}
            run = run_op(self.op, product=machine, **of, **chosen).run
        errors = {n: 2.0**-e.effective_bits for n, e in run.errors.items()}
        return evaluation(run.launches, run.tiling, errors)

    def _time(self, knobs: dict[str, Any], settings: Mapping[str, Any]) -> Evaluation:
        op, machine = get_operator(self.op), machine_of(self)
        mode = settings.get("cube_math_type", "KEEP_DTYPE")
        with device(machine, **self.state, cube_math_type=mode, values=False, timeline=0, details=False):
            plan = self._plan(op, machine, knobs, settings.get("dtype"))
            key = (self.identity, *settings.items(), *plan.tiling.items())
            if key not in _same:
                if len(_same) >= SAME_POINTS:
                    _same.clear()
                _same[key] = evaluation(timed_once(plan.steps), plan.used, None)
        return _same[key]

    def _plan(self, op: Operator, machine: Product, knobs: dict[str, Any], dtype: str | None) -> Plan:
        given = _frozen(self.case), _frozen(self.inputs)
        tensors, options = _tensors(self.op, *given, dtype, machine, _frozen(self.options))
        op.check(tensors, options, machine)
        return op.plan(tensors, options, op.read_tiling(knobs), PlanContext(machine, False))


# Points that an operator turns into the same tiling take the same time. Key: problem, settings, tiling as really used.
_same: dict[Any, Evaluation] = {}


def machine_of(problem: TilingProblem) -> Product:
    """The product with its overrides."""
    return _machine(problem.product, tuple(sorted(problem.overrides.items())))


@lru_cache(maxsize=64)
def _machine(product: str | Product, overrides: tuple[tuple[str, float], ...]) -> Product:
    return load_product(product, overrides=dict(overrides))


def _fingerprint(x: Any) -> list[Any]:
    """Dimensions, type, and of an array its bytes."""
    data = hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest() if isinstance(x, np.ndarray) else ""
    return [list(x.shape), str(x.dtype), data]


def _frozen(x: Any) -> Any:
    return tuple(sorted(x.items())) if isinstance(x, Mapping) else x


@lru_cache(maxsize=64)
def _tensors(
    op_name: str, case: Any, inputs: Any, dtype: str | None, machine: Product, options: Any
) -> tuple[Any, Any]:
    """Shapes of the inputs and read options: the same for all points of one data type."""
    op, shapes = get_operator(op_name), None if inputs is None else dict(inputs)
    given = case if isinstance(case, str) else dict(case or ())
    with device(machine, values=False) as here:
        problem = problem_of_shapes(op, given if shapes is None else None, shapes, dtype, here, dict(options))
    return problem.tensors, problem.options


def evaluation(
    launches: tuple[Launch, ...], tiling: Mapping[str, Any], errors: dict[str, float] | None
) -> Evaluation:
    bounds = add_up(x.bounds for x in launches)
    name = max(bounds, key=lambda n: bounds[n], default=None)
    peak = max((x.buffers["UB"].peak_bytes for x in launches if "UB" in x.buffers), default=0)
    pipe, waits = _waits(launches)
    bound_us = None if name is None else bounds[name]
    time_us = sum(x.time_us for x in launches)
    what_if = any(m.is_what_if for x in launches for m in x.warnings)
    return Evaluation(time_us, bound_us, name, peak, errors, pipe, waits, dict(tiling), what_if=what_if)


def _waits(launches: tuple[Launch, ...]) -> tuple[str | None, dict[str, float]]:
    """The pipe that is busy most in the longest launch, and shares of the launch's cycles."""
    if not launches:
        return None, {}
    longest = max(launches, key=lambda x: x.time_us)
    name = max(longest.pipes, key=lambda n: longest.pipes[n].busy_cycles)
    pipe, cycles = longest.pipes[name], longest.cycles or 1.0
    return name, {"busy": pipe.busy_cycles / cycles, **{r: c / cycles for r, c in pipe.stalls.items()}}


def misfit(e: BufferOverflowError) -> Evaluation:
    """A point whose tiles have no room, with the numbers of the buffer that the error names."""
    found = re.search(r"\b(UB|L1|L0A|L0B|L0C|BT)\b", e.words, re.IGNORECASE)
    space = e.space or (found.group().upper() if found else "a buffer")
    numbers = (e.need_bytes, e.have_bytes) if e.have_bytes else (None, None)
    return Evaluation(refused=f"does not fit in {space}", need_bytes=numbers[0], have_bytes=numbers[1])


@lru_cache(maxsize=1)
def engine_version() -> str:
    """A hash of the code that makes a result: of simulator, kernels and tiling. Another one means other numbers."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for folder in ("simulator", "kernels", "tiling"):
        for path in sorted((root / folder).rglob("*.py*")):
            if path.suffix in (".py", ".pyx", ".pxd"):
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def sweep_name(problem: TilingProblem) -> str:
    """A hash of what all points of a sweep have in common."""
    text = json.dumps({**problem.describe(), "engine": engine_version()}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()

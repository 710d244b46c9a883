"""Which lines of a step's kernels make up its part of a chain's error.

The launches of the step are made again as `sim.device(errors="lines")` makes them: their outputs without any rounding, then
with the roundings of one line more each time. What lies behind the step is evaluated in float64 of each of these; its casts
come last, so that the lines of a step add up to what its own sources have together. Where a launch takes what another one of
the same operator made, the lines of that one share its part as they share the error of what it made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...simulator.device import device
from ...simulator.errors import UsageError
from ...simulator.execution.float64.launching import EARLIER, ValuesFound
from ...simulator.execution.float64.sharing import shares
from ...simulator.launch import with_values
from ..operator.messages import near
from ..operator.plan import Plan, PlanContext, Step
from ..operator.tensors import Arrays
from ..running.fitting import plan_that_fits
from ..running.launching import call_of
from .assignment import Assignment
from .bench import ChainBench
from .blame import ChainBlame, continued
from .chain import ChainStep
from .lowering import LoweredStep
from .storage import values_of

CAST = "cast of {} to {}"  # in place of a line
FORMULA = "float64 of the kernel, beside the formula of the operator"
LEAST = 1e-9  # share that is told of FORMULA
Shares = dict[str, float]


@dataclass(frozen=True)
class _Rounded:
    """One more source of roundings, and what the outputs of the operator are with it."""

    label: str
    outputs: Arrays


def lines_of(
    bench: ChainBench,
    assignment: Assignment,
    stored: Mapping[str, np.ndarray],
    blame: ChainBlame,
    only: tuple[str, ...] | None,
) -> ChainBlame:
    """The blame with the lines of every step, or of some. Raises `UsageError` for a step that there is not."""
    names = [s.name for s in bench.chain.order]
    for n in only or ():
        if n not in names:
            raise UsageError(f"the chain {bench.chain.name} has no step {n!r}{near(n, names)}")
    chosen = [s for s in bench.chain.order if only is None or s.name in only]
    real = {n: values_of(x) for n, x in stored.items()}
    found = {s.name: _of_step(bench, s, assignment, stored, real) for s in chosen}
    return replace(blame, lines={n: {s: by[n] for s, by in found.items()} for n in bench.chain.outputs})


def _of_step(
    bench: ChainBench,
    step: ChainStep,
    assignment: Assignment,
    stored: Mapping[str, np.ndarray],
    real: Arrays,
) -> dict[str, Shares]:
    """Output of the chain -> "file:line" -> share."""
    low, order = bench.lowered(step, assignment), bench.chain.order
    later = order[order.index(step) + 1 :]
    now = {n: real[n] for n in bench.chain.tensors}
    before = continued(bench, now, bench.formula(step, now), later)
    rounded, earlier = _roundings(bench, low, stored)
    labels, steps = [""], [bench.reference, before]  # a label for each way from one to the next
    for x in rounded:
        made = {t: x.outputs[n].reshape(bench.shapes[t]) for n, t in step.outputs.items()}
        steps.append(continued(bench, before, made, later))
        labels.append(x.label)
    for cast in (c for c in low.casts if not c.reads):
        steps.append(continued(bench, steps[-1], {cast.tensor: real[cast.tensor]}, later))
        labels.append(CAST.format(cast.tensor, assignment.formats[cast.tensor]))
    outputs = [{n: s[n] for n in bench.chain.outputs} for s in (*steps, real)]
    parts = shares(outputs, [str(k) for k in range(len(steps))])
    return {n: _by_label(labels[1:], list(by.values())[1:-1], earlier) for n, by in parts.items()}


def _by_label(labels: list[str], parts: list[float], earlier: Shares) -> Shares:
    """Shares of equal labels together, what earlier launches left apart by their lines."""
    out: Shares = {}
    for label, part in zip(labels, parts, strict=True):
        among = earlier if label == EARLIER and earlier else {label: 1.0}
        for name, weight in among.items():
            out[name] = out.get(name, 0.0) + part * weight
    return {n: x for n, x in out.items() if n != FORMULA or abs(x) > LEAST}


def _roundings(
    bench: ChainBench, low: LoweredStep, stored: Mapping[str, np.ndarray]
) -> tuple[list[_Rounded], Shares]:
    """The operator without rounding, then with that of one line more each time; and the lines of launches before the last,
    with their parts of what those made."""
    op, earlier = low.step.operator, Shares()
    out: list[_Rounded] = []
    how: dict[str, Any] = {"cube_math_type": low.mode, "errors": "lines", "time": False}
    with device(bench.product, **how):
        options, knobs = op.read_options(low.step.options), op.read_tiling(low.step.tiling)
        inputs = bench.loaded(low, dict(stored))
        plan = plan_that_fits(op, inputs, options, knobs, PlanContext(bench.product, True))
        found = [(launch, with_values(call_of(launch))) for launch in plan.steps]
    now = {n: values_of(x) for n, x in plan.outputs.items() if isinstance(x, np.ndarray)}
    written = [(_written(launch, plan, told), told) for launch, told in found]
    for names, told in written:
        now |= {n: told.steps[0][parameter] for parameter, n in names.items()}
    out.append(_Rounded(FORMULA, dict(now)))
    for names, told in written:
        if not names:
            earlier = _joined(told, earlier)
        for label, values in _steps(told) if names else ():
            now |= {n: values[parameter] for parameter, n in names.items()}
            out.append(_Rounded(label, dict(now)))
    return out, earlier


def _written(launch: Step, plan: Plan, told: ValuesFound) -> dict[str, str]:
    """Parameter that the kernel writes, with roundings -> output of the operator, of those that it is given whole."""
    made = told.steps[0] if told.steps else {}
    arrays = {n: x for n, x in plan.outputs.items() if isinstance(x, np.ndarray)}
    return {
        parameter: n
        for parameter, x in launch.arguments.items()
        for n, y in arrays.items()
        if parameter in made and x.ctypes.data == y.ctypes.data and x.size == y.size
    }


def _steps(told: ValuesFound) -> Iterator[tuple[str, Mapping[str, np.ndarray]]]:
    """Label, and the outputs with the roundings up to it."""
    labels = list(next(iter(told.lines.values()), ()))
    return zip(labels, told.steps[1:], strict=True)


def _joined(told: ValuesFound, earlier: Shares) -> Shares:
    """The lines of a launch with their mean parts of what it made; what came from before it apart by its own lines."""
    out: Shares = {}
    for by in told.lines.values():
        for label, part in by.items():
            among = earlier if label == EARLIER and earlier else {label: 1.0}
            for name, weight in among.items():
                out[name] = out.get(name, 0.0) + part * weight / len(told.lines)
    return out or earlier

"""`run_chain`: values, errors, blame and time of one assignment of a chain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ...simulator.device import device
from ...simulator.errors import UsageError
from ...simulator.precision.metrics import ErrorReport, compare, is_comparable
from ...simulator.precision.need import Kept, Need
from ...simulator.products import Product
from ..study.rows import read_need
from .assignment import Assignment, assigned, in_short
from .bench import ChainBench
from .blame import blame_of
from .chain import Chain, ChainStep
from .lines import lines_of
from .registry import get_chain
from .results import ChainRun, StepRun, TensorRun, TimedCast, what_if_notes
from .storage import values_of


def run_chain(
    chain: str | Chain,
    sizes: Mapping[str, int] | None = None,
    formats: Mapping[str, str] | None = None,
    modes: Mapping[str, str | int] | None = None,
    product: str | Product | None = None,
    overrides: Mapping[str, Any] | None = None,
    seed: int = 0,
    distribution: str = "normal",
    inputs: Mapping[str, Any] | None = None,
    need: Mapping[str, Any] | Need | None = None,
    values: bool = True,
    time: bool = True,
    blame: bool = True,
    lines: bool | str | Iterable[str] = False,
) -> ChainRun:
    """Run a chain.

    chain: one of `chains()`, or a `Chain`. sizes: by name; the others have their usual values. formats: tensor or group, or
    "all", -> format (fp32, fp16, bf16, or, as a what-if, any other number or block format). modes: step or group, or
    "products", -> cubeMathType. product: None is that of the current device. inputs: arrays by name in place of numbers
    that are drawn with seed and distribution. need: as of `precision_study`, of every output. blame: whether to find which
    step's and which tensor's roundings make up the errors; lines: of all steps, or of these, also by line.
    Raises `UsageError`, or `RunError` for what would fail on the device.
    """
    if not values and (need is not None or lines or not time):
        what = "a need and lines are about values" if time else "values and time are both off"
        raise UsageError(f"nothing to do: {what}")
    found = get_chain(chain)
    wanted = None if need is None else read_need(need, [("", "float32")])
    with device(product, overrides=overrides or {}):
        bench = ChainBench(found, sizes, seed, distribution, inputs)
        return run_on(bench, assigned(found, formats, modes), wanted, values, time, blame, lines)


def run_on(
    bench: ChainBench,
    assignment: Assignment,
    need: Need | None = None,
    values: bool = True,
    time: bool = True,
    blame: bool = True,
    lines: bool | str | Iterable[str] = False,
) -> ChainRun:
    """The same on a bench, on whose device it has to be called."""
    stored = bench.values(assignment) if values else {}
    steps = tuple(_step(bench, s, assignment, time) for s in bench.chain.order)
    tensors = {n: _tensor(bench, n, assignment, stored) for n in bench.chain.tensors}
    told = blame_of(bench, assignment, stored) if values and (blame or lines) else None
    if told is not None and lines:
        some = None if lines is True else (lines,) if isinstance(lines, str) else tuple(lines)
        told = lines_of(bench, assignment, stored, told, some)
    return ChainRun(
        chain=bench.chain.name,
        title=bench.chain.title,
        product=bench.product.name,
        sizes=bench.sizes,
        data={"seed": bench.numbers.seed, "distribution": bench.numbers.distribution}
        if bench.inputs is None
        else {},
        assignment=assignment,
        chosen={n: x for by in in_short(bench.chain, assignment) for n, x in by.items()},
        outputs=bench.chain.outputs,
        steps=steps,
        tensors=tensors,
        need=need,
        kept=judged(bench, need, stored, tensors) if need and values else {},
        blame=told,
        notes=what_if_notes(steps, tensors, bench.product.name),
        values=stored,
        exact=bench.reference if values else {},
    )


def judged(
    bench: ChainBench, need: Need, stored: Mapping[str, np.ndarray], tensors: Mapping[str, TensorRun]
) -> dict[str, Kept]:
    """What a need says of every output, against float64 of the numbers before any rounding."""
    errors = {n: tensors[n].error for n in bench.chain.outputs}
    return {
        n: need.judge(values_of(stored[n]), bench.reference[n], e) for n, e in errors.items() if e is not None
    }


def error_of(bench: ChainBench, name: str, x: np.ndarray, assignment: Assignment) -> ErrorReport:
    """The error of a tensor, in ulp of its format, or of FP32 where no figures are known for that."""
    fmt = bench.storage(assignment.formats[name]).ulp_of
    return compare(values_of(x), bench.reference[name], fmt if is_comparable(fmt) else "fp32")


def _tensor(
    bench: ChainBench, name: str, assignment: Assignment, stored: Mapping[str, np.ndarray]
) -> TensorRun:
    storage = bench.storage(assignment.formats[name])
    error = error_of(bench, name, stored[name], assignment) if stored else None
    lost = storage.lost(bench.reference[name]) if stored else None
    return TensorRun(name, storage.name, storage.what_if, bench.shapes[name], error, lost)


def _step(bench: ChainBench, step: ChainStep, assignment: Assignment, time: bool) -> StepRun:
    low = bench.lowered(step, assignment)
    about = (step.name, step.operator.name, low.dtype, assignment.modes.get(step.name))
    if not time:
        return StepRun(*about, None, None, tuple(TimedCast(c, None) for c in low.casts))
    found, casts = bench.step_time(low), [(c, bench.cast_time(c, step)) for c in low.casts]
    said = (text for x in (found, *(x for _, x in casts)) for text in x.what_ifs)
    timed = tuple(TimedCast(c, x.time_us) for c, x in casts)
    return StepRun(*about, found.time_us, found.launches, timed, tuple(dict.fromkeys(said)))

"""What the process of the task does where values are looked at in positions. Importing this module imports torch.

As `tasks/reference.py` for whole values: functions of plain data for JSON, and files in memory by name. A request has one
case. Both make the same inputs from the same seed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from ....simulator.record.codec import Encoder
from ..exchange import Zeros, forms_in, to_message
from ..processes.arrays import packed, unpacked
from ..tasks.comparing import OutputForm, checked_positions, one_report, other_form, with_note
from ..tasks.loading import Arguments, LoadedTask, as_list, loaded_task
from ..tasks.tolerances import EXACT, tolerance
from ..verdict import ComparedOutput, Tolerance
from .lazy_inputs import Repeated, lazy_inputs
from .positions import drawn_positions
from .reference.at_positions import LEAST_POSITIONS, ReferenceAt
from .refusals import NotSampledError
from .repeated_arrays import RepeatedArrays

MOST_BYTES = 1 << 36
CALLS = ("first", "second")
GIVEN = ("positions", "values", "written")  # by the answer's process, of each output
Answer = tuple[dict[str, Any], dict[str, int]]


def values_at(request: dict[str, Any], fds: dict[str, int]) -> Answer:
    """As `tasks.reference.values`, with the files that large inputs repeat, and positions of the outputs for each call.

    {"refused": why} for a task that cannot be sampled.
    """
    try:
        with loaded_task(request) as task:
            return _values_at(task, request)
    except NotSampledError as e:
        return {"refused": str(e)}, {}


def _values_at(task: LoadedTask, request: Mapping[str, Any]) -> Answer:
    files: dict[str, int] = {}
    answer: dict[str, Any] = {"layouts": {}}
    model = task.model()
    for k, call in enumerate(CALLS):
        made, arguments = _inputs(task, request, k)
        arrays = RepeatedArrays(made)
        answer[call] = [to_message(list(arguments), arrays, "case")]
        if k == 0:
            answer["init"] = to_message(list(task.init()), arrays, "init")
            answer["state"] = (
                to_message(dict(model.state_dict()), arrays, "state")
                if hasattr(model, "state_dict")
                else None
            )
        answer["layouts"][call], files[call] = packed(arrays)
        files |= arrays.descriptors(call)
        reference = _reference(model, arguments, made)
        chosen = {str(n): _drawn(reference, request, k, n) for n in range(len(reference.shapes))}
        chosen["seed"] = np.array([_seed_of(request, k, len(chosen)) % (1 << 63)], np.int64)
        answer["layouts"][f"positions.{call}"], files[f"positions.{call}"] = packed(chosen)
    return answer, files


def _inputs(task: LoadedTask, request: Mapping[str, Any], k: int) -> tuple[Repeated, Arguments]:
    """The case's inputs for call `k`, large ones filled lazily."""
    seed = (int(request["seed"]) + k) % (1 << 63)
    with lazy_inputs(seed) as made:
        return made, task.cases(seed)[request["cases"][0]]


def _seed_of(request: Mapping[str, Any], k: int, output: int) -> int:
    """Of the positions of an output in call `k`."""
    return int(request["seed"]) * 1009 + 101 * k + output


def _drawn(reference: ReferenceAt, request: Mapping[str, Any], k: int, output: int) -> np.ndarray:
    """Positions of an output that are asked for in call `k`, those that say most first: the same whenever they are drawn."""
    return reference.affordable(
        output, drawn_positions(reference.shapes[output], _seed_of(request, k, output))
    )


def _reference(model: Any, arguments: Arguments, made: Repeated) -> ReferenceAt:
    args, named = arguments
    call = model if callable(model) else model.forward

    def outputs(*given: Any) -> list[Any]:
        return as_list(call(*given[: len(args)], **dict(zip(named, given[len(args) :], strict=True))))

    return ReferenceAt(outputs, [*args, *named.values()], made)


def judged_at(request: dict[str, Any], fds: dict[str, int]) -> Answer:
    """As `tasks.reference.judged`, of the positions that the answer's process gave."""
    arrays = unpacked(request["layout"], fds["outputs"], MOST_BYTES)
    found: list[list[ComparedOutput]] = []
    try:
        with loaded_task(request) as task:
            model = task.model()
            for k in range(len(CALLS)):
                made, arguments = _inputs(task, request, k)
                reference = _reference(model, arguments, made)
                found.append(_compared(reference, request, k, arrays))
    except NotSampledError as e:
        return {"refused": str(e)}, {}
    fewest = min(found, key=len)
    every = [one_report([call[n] for call in found]) for n in range(len(fewest))]
    return {"outputs": [[Encoder({}).encode(x, ComparedOutput) for x in every]]}, {}


def _compared(
    reference: ReferenceAt, request: Mapping[str, Any], k: int, arrays: Mapping[str, np.ndarray]
) -> list[ComparedOutput]:
    forms = forms_in(request["calls"][0][k])
    if len(forms) != len(reference.shapes):
        words = f"{len(forms)} outputs were returned, the task's Model gives {len(reference.shapes)}"
        return [_nothing("outputs", words)]
    return [_one(reference, request, n, form, arrays, k) for n, form in enumerate(forms)]


def _one(
    reference: ReferenceAt,
    request: Mapping[str, Any],
    n: int,
    form: Zeros | None,
    arrays: Mapping[str, np.ndarray],
    k: int,
) -> ComparedOutput:
    path = f"0.{k}.{n}"
    name, shape, dtype = f"output {n}", reference.shapes[n], reference.dtypes[n]
    if form is None:
        return _nothing(name, f"{name} is no tensor, the task's is one")
    rule = tolerance(request["benchmark"], dtype)
    other = other_form((form.shape, form.dtype), (shape, dtype))
    if other and not (rule.any_form and math.prod(form.shape) == math.prod(shape)):
        return _nothing(name, f"{name} {other}")
    given = tuple(np.asarray(arrays.get(f"{path}.{what}", np.empty(0))) for what in GIVEN)
    drawn = _drawn(reference, request, k, n)
    found = _at_positions(reference, n, (form.shape, form.dtype), given[:2], drawn, rule)
    return with_note(_with_unwritten(found, given[2]), other)


def _with_unwritten(found: ComparedOutput, written: np.ndarray) -> ComparedOutput:
    """Of a wrong output, at how many of the positions that the answer's process gave no kernel wrote."""
    none = int((written == 0).sum())
    if found.passed or not none:
        return found
    return replace(found, message=f"{found.message}; no kernel writes {none} of {written.size} positions")


def _at_positions(
    reference: ReferenceAt,
    n: int,
    form: OutputForm,
    given: tuple[np.ndarray, ...],
    drawn: np.ndarray,
    rule: Tolerance,
) -> ComparedOutput:
    """What the answer's process says that it computed: drawn positions, and others as far as the reference can be had."""
    positions, got = given
    storage, wanted = (np.dtype(getattr(ml_dtypes, x, x)) for x in (form[1], reference.dtypes[n]))
    legal = (
        positions.dtype == np.int64
        and positions.shape == got.shape
        and got.dtype == storage
        and len(positions)
    )
    if not legal or positions.min() < 0 or positions.max() >= math.prod(form[0]):
        raise NotSampledError("the answer's process gave no values at positions")
    told = required(positions, drawn)
    order = np.random.default_rng(len(positions)).permutation(len(positions))
    order = order[np.argsort(~np.isin(positions[order], drawn), kind="stable")]  # the drawn ones first
    kept = np.sort(order[: len(reference.first(n, positions[order]))])
    exact = reference.values(n, positions[kept])
    compared = (got[kept], exact.astype(wanted), exact)
    found = checked_positions(f"output {n}", form, positions[kept].tolist(), compared, rule)
    return replace(found, message=told) if told and found.passed else found


def required(positions: np.ndarray, drawn: np.ndarray) -> str:
    """What is to be said of the positions of an output that has values there, "" where the first drawn ones are among them.

    Where programs were drawn in place of positions, as many drawn positions must be in what they wrote.
    `NotSampledError`: the answer's process looked elsewhere.
    """
    first = drawn[:LEAST_POSITIONS]
    among = int(np.isin(drawn, positions).sum())
    if among < len(first):
        raise NotSampledError(
            f"the answer's process gave values at {among} of {len(drawn)} drawn positions, "
            f"at least {len(first)} are asked for"
        )
    if np.isin(first, positions).all():
        return ""
    return f"programs were drawn in place of positions; {among} of {len(drawn)} drawn positions are in what they wrote"


def _nothing(name: str, message: str) -> ComparedOutput:
    return ComparedOutput(
        name=name, shape=(), dtype="", elements=0, checked=0, tolerance=EXACT, passed=False, message=message
    )

"""Errors of one launch: against its own program in float64, or against a reference of the user's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UsageError
from ...interpreter.program_order.order import directions
from ...interpreter.tensors import Tensor, as_array, memory_kept
from ...messages import Message, note
from ...precision.metrics import ErrorReport, compare, is_comparable
from ...units.vector import decode
from .evaluation import Float64Evaluation
from .memory import Float64Memory, Twins
from .sharing import Line, Roundings, shares

if TYPE_CHECKING:
    from ...call import Call

# Runs the programs of a launch, evaluated without rounding, too; whether quietly; gives what the values showed.
Running = Callable[[Float64Evaluation | None, bool], tuple[Message, ...]]

EARLIER = "earlier launches"  # in place of a line: what their roundings left in the tensors


@dataclass(frozen=True)
class ValuesFound:
    """messages: what the values showed. errors: of each output. lines: output -> "file:line" -> share of its error. steps:
    what the outputs are with the roundings of no line, of the first of `lines`, ... of all."""

    messages: tuple[Message, ...]
    errors: dict[str, ErrorReport] = field(default_factory=dict)
    lines: dict[str, dict[str, float]] = field(default_factory=dict)
    steps: tuple[Mapping[str, np.ndarray], ...] = field(default=(), repr=False, compare=False)


def with_errors(call: Call, run: Running) -> ValuesFound:
    """Values of a launch, with the errors that its device asks for."""
    device = call.device
    if device.reference is not None:
        before = arguments_of(call) if callable(device.reference) else {}
        messages = run(None, False)
        right = _right(call, device.reference, before)
        return ValuesFound(messages, compared(outputs_of(call), right, call.kernel.name))
    if device.errors == "lines":
        return _by_lines(call, run)
    twins = Twins(device.float64 or Float64Memory(), call.tensors.values())
    evaluation = Float64Evaluation(twins)
    messages = run(evaluation, False)
    errors, steps = _errors(call, twins)
    twins.leave()
    return ValuesFound((*messages, *_notes(call, evaluation, steps)), errors)


def _by_lines(call: Call, run: Running) -> ValuesFound:
    """The first evaluation finds which lines round; each of the next has the roundings of one line more.

    Where tensors come with an error of earlier launches, the second evaluation has that and no rounding.
    """
    memory, first = call.device.float64 or Float64Memory(), Roundings()
    twins = Twins(memory, call.tensors.values())
    evaluation = Float64Evaluation(twins, first)
    with memory_kept(call.tensors):
        messages = run(evaluation, False)
        errors, begun = _errors(call, twins)
        real = {n: _elements(t).astype(np.float64) for n, t in outputs_of(call).items() if n in begun}
    lines = [f"{file}:{line}" for file, line in first.lines]
    names, steps = ([EARLIER] if twins.inherits else []) + lines, [begun]
    for k in range(1, len(names)):
        with memory_kept(call.tensors):
            steps.append(_with_roundings(call, first.lines[: k - twins.inherits], run))
    last = Twins(memory, call.tensors.values())
    run(Float64Evaluation(last), True)  # what stays in memory, and in the twins for the next launch
    last.leave()
    steps.append(real)
    notes = _notes(call, evaluation, begun)
    told = (shares(steps, names), tuple(steps)) if names and begun else ({}, ())
    return ValuesFound((*messages, *notes), errors, *told)


def _with_roundings(call: Call, lines: list[Line], run: Running) -> dict[str, np.ndarray]:
    """The outputs from what the tensors really hold, with the roundings of some lines."""
    twins = Twins(Float64Memory(), call.tensors.values())
    run(Float64Evaluation(twins, Roundings(lines)), True)
    return _errors(call, twins, measure=False)[1]


# ---- outputs ----


def outputs_of(call: Call) -> dict[str, Tensor]:
    """Tensors that the kernel writes, by the name of the parameter."""
    written = [n for n, way in directions(call.program).items() if "out" in way]
    return {n: t for n in written if isinstance(t := call.arguments.get(n), Tensor) and t.elements}


def _elements(t: Tensor) -> np.ndarray:
    """What a tensor holds, in its shape."""
    array = as_array(t.name, t.source)
    assert array is not None
    return np.asarray(decode(array, t.dtype)) if t.dtype.is_floating() else array


def _twin_elements(t: Tensor, twin: Tensor) -> np.ndarray:
    """What its twin holds where a tensor has its elements."""
    array = as_array(t.name, t.source)
    assert array is not None
    assert twin.window is not None
    at = np.full(array.shape, twin.origin, np.int64)
    for axis, (n, s) in enumerate(zip(array.shape, array.strides, strict=True)):
        at += (np.arange(n) * (s // array.itemsize)).reshape(n, *(1,) * (array.ndim - axis - 1))
    return np.asarray(twin.window[at])


def _errors(
    call: Call, twins: Twins, measure: bool = True
) -> tuple[dict[str, ErrorReport], dict[str, np.ndarray]]:
    """Of each output its errors, and what it would be; a kernel without floating-point numbers has none to make."""
    errors, right = {}, {}
    for name, t in outputs_of(call).items():
        twin = twins.of(t)
        if twin is not None and is_comparable(t.dtype.format):
            right[name] = _twin_elements(t, twin)
            if measure:
                errors[name] = compare(_elements(t), right[name], t.dtype.format, where=True)
        elif measure and not call.program.floats and not t.dtype.is_floating():
            whole = _elements(t).astype(np.float64)
            errors[name] = compare(whole, whole, "fp32")
    return errors, right


def _notes(call: Call, evaluation: Float64Evaluation, right: Mapping[str, Any]) -> list[Message]:
    """What the float64 values do not follow."""
    places = [f"{what} at {place}" for place, what in sorted(evaluation.not_followed.items())]
    out = []
    if places:
        behind = f"float64 values start again from those of the run behind {', '.join(places[:8])}"
        out.append(f"{behind}: errors made before are not in them")
    left = [n for n, t in outputs_of(call).items() if n not in right and call.program.floats]
    if left:
        why = "integers are those of the run, also where they are made of floating-point numbers"
        out.append(f"no error of {', '.join(left)}: {why}")
    return [note(text) for text in out]


# ---- a reference ----


def arguments_of(call: Call) -> dict[str, Any]:
    """What a reference is called with: every argument by name, floating-point tensors as float64 copies."""
    return {**call.constants, **{n: _argument(x) for n, x in call.arguments.items()}}


def _argument(x: Any) -> Any:
    if not isinstance(x, Tensor):
        return x
    with np.errstate(invalid="ignore"):  # nobody may have written there
        return _elements(x).astype(np.float64) if x.dtype.is_floating() else _elements(x).copy()


def _right(call: Call, reference: Any, before: dict[str, Any]) -> Mapping[str, Any]:
    """The right outputs by name; a mapping may be of other kernels, too."""
    names = outputs_of(call)
    if not callable(reference):
        return {n: x for n, x in reference.items() if n in names}
    asked = inspect.signature(reference).parameters.values()
    if not any(p.kind is p.VAR_KEYWORD for p in asked):
        before = {p.name: before[p.name] for p in asked if p.name in before}
    try:
        found = reference(**before)
    except Exception as e:
        raise UsageError(f"{call.kernel.name}: the reference raised {type(e).__name__}: {e}") from e
    if isinstance(found, Mapping):
        return found
    if len(names) != 1:
        raise UsageError(
            f"{call.kernel.name} writes {len(names)} tensors ({', '.join(names) or 'none'}); its reference must give a dict "
            "of arrays by these names"
        )
    return {next(iter(names)): found}


def compared(outputs: Mapping[str, Tensor], right: Mapping[str, Any], kernel: str) -> dict[str, ErrorReport]:
    """Errors of outputs against arrays of the same shapes, by name. Raises `UsageError`."""
    errors = {}
    for name, golden in right.items():
        if name not in outputs:
            raise UsageError(f"{kernel} writes no tensor {name!r}; it writes {', '.join(outputs) or 'none'}")
        t, array = outputs[name], as_array(name, golden)
        array = np.asarray(golden) if array is None else array
        shape = _elements(t).shape
        if array.shape != shape:
            raise UsageError(
                f"{kernel}: {name} has shape {shape}, its reference {array.shape}; they must be equal"
            )
        if array.dtype == bool and t.dtype.is_floating():
            raise UsageError(
                f"{kernel}: the reference of {name} is an array of truth values, {name} holds {t.dtype.name}"
            )
        fmt = t.dtype.format if is_comparable(t.dtype.format) else "fp32"
        errors[name] = compare(_elements(t), array, fmt, where=True)
    return errors

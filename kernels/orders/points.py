"""Tilings of an operator that are compared: its own, and each knob changed alone."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...simulator.device import Device
from ...simulator.interpreter.tensors import Shape
from ..operator.operator import Operator
from ..operator.plan import Plan
from ..operator.tensors import Knobs, dtype_of
from ..running.problem import OpInputs

MOST_VALUES = 3  # of one knob, where its space gives more
# These say where work runs and how it is copied; `cores` has an axis of its own. Numpy's order of additions is none.
LEFT_OUT = {"cores": (), "accumulate": ("exact",)}


def one_knob_each(
    op: Operator, problem: OpInputs, machine: Device, plan: Plan, asked: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[str, Knobs]]:
    """A name and the knobs of each. asked: values by knob; without, some of the operator's own space."""
    for knob, values in (asked or _space(op, problem, machine)).items():
        for value in values if asked else _some(values):
            if value is not None and (asked or plan.tiling.get(knob) != value):
                yield f"{knob}={value}", {knob: value}


def _space(op: Operator, problem: OpInputs, machine: Device) -> dict[str, Sequence[Any]]:
    shapes = {n: Shape(x.shape, dtype_of(x)) for n, x in problem.tensors.items()}
    out: dict[str, Sequence[Any]] = {p.name: p.choices for p in op.parameters if p.choices}
    if op.explored is not None:
        more = {"options": problem.options} if "options" in inspect.signature(op.explored).parameters else {}
        out |= op.explored(shapes, machine.product, **more)
    return {n: LEFT_OUT.get(n, x) for n, x in out.items()}


def _some(values: Sequence[Any]) -> list[Any]:
    """The first, the last and one between."""
    every = list(values)
    if len(every) <= MOST_VALUES:
        return every
    return [every[0], every[len(every) // 2], every[-1]]

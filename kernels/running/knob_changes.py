"""Changes of one knob at a time, and what they do to the time: the ways out of a bottleneck that are in the user's hands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...simulator.device import Device, device
from ...simulator.errors import AscendtileError
from ..operator.operator import Operator
from ..operator.parameter import Parameter
from ..operator.plan import Plan
from ..operator.tensors import Knobs
from .launching import timed_steps


def changes(
    op: Operator, tiling: Knobs, machine: Device, now_us: float, replan: Callable[[dict[str, Any]], Plan]
) -> dict[str, float]:
    """ "rows 1 -> 2" -> time in us with that knob changed and the others as they were used, the best change first.

    Numbers are doubled and halved, choices replaced by each other one. What the operator refuses, does not fit, or needs
    data to be timed is left out, and so is what it turns into the tiling that it was, or what only chooses the order of sums
    for values.
    """
    found: dict[str, float] = {}
    with device(machine.product, values=False, time=True, timeline=0, explain=False, details=False):
        for p in op.parameters:
            for value in _other_values(p, tiling.get(p.name)):
                time_us = _time({**tiling, p.name: value}, tiling, replan)
                if time_us is not None and time_us != now_us:
                    found[f"{p.name} {tiling.get(p.name)} -> {value}"] = time_us
    return dict(sorted(found.items(), key=lambda item: item[1]))


def _other_values(p: Parameter, now: Any) -> Iterator[Any]:
    if p.kind == "choice":
        yield from (x for x in p.choices or () if x != now)
    elif isinstance(now, int) and not isinstance(now, bool):
        yield from (
            x for x in _doubled_and_halved(now) if (p.low or 0) <= x <= (x if p.high is None else p.high)
        )


def _doubled_and_halved(now: int) -> tuple[int, ...]:
    return (2 * now, now // 2) if now > 1 else (2,)


def _time(
    tiling: dict[str, Any], used: Mapping[str, Any], replan: Callable[[dict[str, Any]], Plan]
) -> float | None:
    try:
        plan = replan(tiling)
        if plan.tiling == dict(used):
            return None
        return sum(launch.time_us for launch in timed_steps(plan.steps))
    except AscendtileError:
        return None

"""Steps of a plan as calls of the simulator: every place that times, fits or computes one goes through here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...simulator.call import Call
from ...simulator.device import ASCENDC, Device, current_device, device
from ...simulator.launch import place, prepare, timed
from ...simulator.record.later import whole
from ...simulator.record.run import Launch
from ..operator.plan import Step

KEPT = 1000  # launches that are remembered


def call_of(step: Step) -> Call:
    """The checked launch on the current device with the step's own switches, made once. Raises `UsageError`."""
    here = current_device()
    found: tuple[Device, Call] | None = vars(step).get("call")
    if found is None or found[0] is not here:
        with device(**{"compiler": here.compiler or ASCENDC, **step.switches}):
            found = here, prepare(step.kernel, step.grid, (), step.arguments)
        vars(step)["call"] = found
    return found[1]


def timed_once(steps: Iterable[Step]) -> tuple[Launch, ...]:
    """As `timed_steps` for shapes, where the same launch on the same device is timed only once in this process.

    Every step is placed before the first is timed: raises `BufferOverflowError` for a later one without that work.
    """
    keys = [(step, _key(step)) for step in steps]
    for step, key in keys:
        if key not in _known:
            place(call_of(step))
    return tuple(_timed_once(step, key) for step, key in keys)


def _key(step: Step) -> Any:
    return (step.kernel, step.grid, *map(_hashable, (vars(current_device()), step.arguments, step.switches)))


def _timed_once(step: Step, key: Any) -> Launch:
    found = _known.pop(key, None) or whole(timed_steps((step,))[0])
    _known[key] = found  # at the end of the queue: those that were not asked for again leave first
    if len(_known) > KEPT:
        del _known[next(iter(_known))]
    return found


def _hashable(x: Any) -> Any:
    return tuple((n, _hashable(v)) for n, v in sorted(x.items())) if isinstance(x, Mapping) else x


_known: dict[Any, Launch] = {}


def timed_steps(steps: Iterable[Step]) -> tuple[Launch, ...]:
    """Time of each launch on the current device, in order. Raises what would fail there."""
    return tuple(timed(call_of(step))[0] for step in steps)

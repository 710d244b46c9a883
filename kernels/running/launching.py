"""Steps of a plan as calls of the simulator: every place that times, fits or computes one goes through here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...simulator.call import Call
from ...simulator.device import ASCENDC, Device, current_device, device
from ...simulator.l2.chain import L2Chain, again_and_again
from ...simulator.launch import estimated, place, prepare, timed
from ...simulator.launch_cache import Estimate
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


def tensor_names(calls: Iterable[Call]) -> list[str]:
    """What `l2` may name of launches that belong together."""
    return [n for call in calls for n in call.tensors]


def timed_once(steps: Iterable[Step]) -> tuple[Launch, ...]:
    """As `timed_steps` for shapes, where the same launch on the same device is timed only once in this process.

    Every step is placed before the first is timed: raises `BufferOverflowError` for a later one without that work.
    """
    every = [(step, _key(step)) for step in steps]
    for step, key in every:
        if key not in _placed:
            place(call_of(step))
            _keep(_placed, key, None)
    with again_and_again([call_of(step) for step, _ in every] if len(every) > 1 else ()) as chain:
        return tuple(_timed_once(step, key, chain) for step, key in every)


def _key(step: Step) -> Any:
    return (step.kernel, step.grid, *map(_hashable, (vars(current_device()), step.arguments, step.switches)))


def _timed_once(step: Step, key: Any, chain: L2Chain | None) -> Launch:
    if chain is None:
        return (_known.get(key) or _estimated(key, call_of(step), False)).launch
    call = chain.entered(call_of(step))
    key = (*key, repr(call.device.l2))
    found = _known.get(key) or _estimated(key, call, True)
    chain.leaves(call, found.left)
    return found.launch


def _estimated(key: Any, call: Call, leaves: bool) -> Estimate:
    found = estimated(call, leaves)
    _keep(_known, key, found._replace(launch=whole(found.launch)))
    return found


def _keep(known: dict[Any, Any], key: Any, found: Any) -> None:
    """Those that came first leave first."""
    known[key] = found
    if len(known) > KEPT:
        del known[next(iter(known))]


def _hashable(x: Any) -> Any:
    return tuple((n, _hashable(v)) for n, v in sorted(x.items())) if isinstance(x, Mapping) else x


_known: dict[Any, Estimate] = {}
_placed: dict[Any, None] = {}


def timed_steps(steps: Iterable[Step]) -> tuple[Launch, ...]:
    """Time of each launch on the current device, in order. Raises what would fail there."""
    calls = [call_of(step) for step in steps]
    with again_and_again(calls) as chain:
        return tuple(timed(x if chain is None else chain.entered(x), chain)[0] for x in calls)

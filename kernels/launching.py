"""Steps of a plan as calls of the simulator: every place that times, fits or computes one goes through here."""

from __future__ import annotations

from collections.abc import Iterable

from ..simulator.device import device
from ..simulator.launch import Call, prepare, timed
from ..simulator.run import Launch
from .operator import Step


def call_of(step: Step) -> Call:
    """The checked launch on the current device with the step's own switches. Raises `UsageError`."""
    with device(**step.switches):
        return prepare(step.kernel, step.grid, (), step.arguments)


def timed_steps(steps: Iterable[Step]) -> tuple[Launch, ...]:
    """Time of each launch on the current device, in order. Raises what would fail there."""
    return tuple(timed(call_of(step))[0] for step in steps)

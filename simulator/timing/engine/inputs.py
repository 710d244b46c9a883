"""The machine that the engine takes: pipes, cores and shared bandwidth.

All times are in cycles of the core clock, all amounts in bytes. Every object checks itself when it is made,
so that the loop has no error path.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.timing.engine._engine import (
    MAX_CHANNELS,
    MAX_PIPES,
    MAX_RESOURCES,
    MAX_SHARES,
    MAX_UNITS,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PipeSpec:
    """One pipe of a core.

    Args:
        name: as the vendor spells it ("MTE2", "V").
        unit: name of the unit whose scalar stage issues to this pipe ("AIC", "AIV0").
        queue_depth: records that can be issued and not yet started, at least 1; means nothing for a scalar
            pipe.
        scalar: records of this pipe execute in line with issue; at most one such pipe per unit.
        twin: unit of an equal pipe that does the same at the same time, and has no records of its own; "" for none.
    """

    name: str
    unit: str
    queue_depth: int = 16
    scalar: bool = False
    twin: str = ""

    def __post_init__(self) -> None:
        if self.queue_depth < 1:
            raise UsageError(f"pipe {self.name}: queue_depth is {self.queue_depth}, it must be at least 1")


@dataclass(frozen=True, kw_only=True, slots=True)
class Resource:
    """Bandwidth that all cores share (HBM, L2)."""

    name: str
    bytes_per_cycle: float

    def __post_init__(self) -> None:
        _positive(f"resource {self.name}: bytes_per_cycle", self.bytes_per_cycle)


@dataclass(frozen=True, kw_only=True, slots=True)
class Channel:
    """A class of transfers: the rate limit of each one, and the numbers of the shared resources that it draws
    on.

    A number that is there twice stands for two ports side by side that each have a share of the resource. Rate and
    amounts are those of one port.
    """

    name: str
    port_bytes_per_cycle: float
    resources: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _positive(f"channel {self.name}: port_bytes_per_cycle", self.port_bytes_per_cycle)

    @property
    def ports(self) -> int:
        """How many move an amount each."""
        return max(Counter(self.resources).values(), default=1)


CYCLES = ("dispatch_cycles", "start_cycles", "core_start_cycles", "cross_pipe_cycles", "issue_cycles")


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """A number of equal cores and what they share.

    Args:
        pipes: the pipes of one core.
        cores: number of cores.
        channels, resources: see there.
        dispatch_cycles: from a core being free to its next program; not charged for a core's first program.
        start_cycles: what the one that hands out programs takes for each: starts follow each other at least so far apart.
        core_start_cycles: the same for the first program of each core, which may take longer.
        cross_pipe_cycles: added to a dependency whose two records are on different pipes.
        issue_cycles: time of the scalar stage per hardware instruction.
    """

    pipes: tuple[PipeSpec, ...]
    cores: int
    channels: tuple[Channel, ...] = ()
    resources: tuple[Resource, ...] = ()
    dispatch_cycles: float = 0.0
    start_cycles: float = 0.0
    core_start_cycles: float = 0.0
    cross_pipe_cycles: float = 0.0
    issue_cycles: float = 0.0

    def __post_init__(self) -> None:
        _within("machine: number of cores", self.cores, 1, None)
        _within("machine: number of pipes", len(self.pipes), 1, MAX_PIPES)
        _within("machine: number of units", len(self.units), 1, MAX_UNITS)
        _within("machine: number of channels", len(self.channels), 0, MAX_CHANNELS)
        _within("machine: number of resources", len(self.resources), 0, MAX_RESOURCES)
        for name in CYCLES:
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise UsageError(f"machine: {name} is {value}, it must be finite and at least 0")
        self._check_channels()
        for unit, count in Counter(p.unit for p in self.pipes if p.scalar).items():
            _within(f"machine: number of scalar pipes of unit {unit}", count, 0, 1)

    @property
    def units(self) -> tuple[str, ...]:
        """Names of the units, in the order of their first pipe."""
        return tuple(dict.fromkeys(p.unit for p in self.pipes))

    def _check_channels(self) -> None:
        for channel in self.channels:
            for number in channel.resources:
                if not 0 <= number < len(self.resources):
                    count = len(self.resources)
                    raise UsageError(
                        f"channel {channel.name}: resource {number}, the machine has {count} of them"
                    )
            if channel.ports > MAX_SHARES:
                raise UsageError(
                    f"channel {channel.name}: resources {channel.resources} has one {channel.ports} times, "
                    f"it must be at most {MAX_SHARES}"
                )


def _positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise UsageError(f"{name} is {value}, it must be finite and more than 0")


def _within(name: str, value: int, least: int, most: int | None) -> None:
    if value < least or (most is not None and value > most):
        limits = f"at least {least}" if most is None else f"{least} to {most}"
        raise UsageError(f"{name} is {value}, it must be {limits}")

"""The launches of a script, added up as they come: what is kept does not grow with their number."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ...messages import Message
from ...record.run import Run

MOST_GROUPS = 200
MOST_FAULTS = 100  # of a group: they may differ in the element that they name


@dataclass
class LaunchGroup:
    """Launches of one kernel that are alike: who made the code, grid, compile-time values, kinds of arguments.

    dearest: the one that took longest. various: whether unlike ones had to be put together. faults: what is wrong or
    undefined on the device, with the number of launches that it was found in.
    """

    kernel: str
    grid: tuple[int, int, int] | None
    dearest: Run
    count: int = 0
    time_us: float = 0.0
    cycles: float = 0.0
    various: bool = False
    faults: dict[Message, int] = field(default_factory=dict)

    def add(self, run: Run, time_us: float, cycles: float, faults: Iterable[Message]) -> None:
        """One launch more; `run` is it, or one like it that took at least as long."""
        self.count += 1
        for fault in faults:
            if fault in self.faults or len(self.faults) < MOST_FAULTS:
                self.faults[fault] = self.faults.get(fault, 0) + 1
        self.time_us += time_us
        self.cycles += cycles
        if run.time_us > self.dearest.time_us:
            self.dearest = run


@dataclass
class Collector:
    """All launches of a script, by group; `tell` is what `watch` is given.

    processes: how many others than the script's own launched kernels; unread_processes: those that ended while they wrote a
    launch down, which is lacking. tensors: names of the tensor arguments of all launches; written: of those
    that kernels of this process wrote.
    """

    groups: dict[Any, LaunchGroup] = field(default_factory=dict)
    processes: int = 0
    unread_processes: int = 0
    tensors: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)

    def tell(self, run: Run) -> Any:
        """Add a launch; gives the key of its row."""
        return self.add(key_of(run), run, run.time_us, run.cycles, run.faults)

    def add(self, key: Any, run: Run, time_us: float, cycles: float, faults: Iterable[Message]) -> Any:
        """Add a launch that took `time_us` and has those `faults` to the row `key`; `run` is it, or one like it that took at
        least as long."""
        self.tensors.update(_tensors_of(run))
        self.written.update(run.written)
        if key not in self.groups and len(self.groups) >= MOST_GROUPS:
            key = ("various", run.name)
        if key not in self.groups:
            grid = run.launches[0].grid if run.launches and key[0] != "various" else None
            self.groups[key] = LaunchGroup(run.name, grid, run, various=key[0] == "various")
        self.groups[key].add(run, time_us, cycles, faults)
        return key

    @property
    def by_time(self) -> list[LaunchGroup]:
        """Groups, dearest first."""
        return sorted(self.groups.values(), key=lambda g: (-g.time_us, -g.count))

    @property
    def faulty(self) -> list[LaunchGroup]:
        """Groups with faults, in the order in which they were launched first."""
        return [g for g in self.groups.values() if g.faults]

    @property
    def dearest(self) -> Run | None:
        """The single launch that took longest."""
        runs = [g.dearest for g in self.groups.values()]
        return max(runs, key=lambda r: r.time_us) if runs else None

    @property
    def timed(self) -> bool:
        """Whether time was asked for."""
        return any(g.dearest.launches for g in self.groups.values())

    @property
    def count(self) -> int:
        return sum(g.count for g in self.groups.values())

    @property
    def time_us(self) -> float:
        return sum(g.time_us for g in self.groups.values())

    @property
    def cycles(self) -> float:
        return sum(g.cycles for g in self.groups.values())


def key_of(run: Run) -> tuple[Any, ...]:
    """Launches with the same key are one row."""
    launch = run.launches[0] if run.launches else None
    grid = launch.grid if launch else None
    constants = tuple((n, repr(x)) for n, x in run.tiling.items())
    kinds = tuple((n, run.inputs[n].partition("[")[0]) for n in _tensors_of(run))
    return ("alike", run.name, launch.compiler if launch else "", grid, constants, kinds)


def _tensors_of(run: Run) -> list[str]:
    """Names of its tensor arguments, in order."""
    return [n for n, text in run.inputs.items() if text.endswith("]")]

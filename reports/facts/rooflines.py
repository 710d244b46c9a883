"""A launch as points of a roofline: for each unit, where it stands under its peak and under each path to memory."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...simulator.record.run import Launch, Roof

# Unit -> the paths to memory that feed it, from the farthest; HBM and L2 are shared.
LEVELS = {
    "Cube": ("HBM", "L2", "GM to L1", "L1 to L0A", "L1 to L0B", "L0C to GM"),
    "Vector": ("HBM", "L2", "GM to UB", "UB to GM"),
}


@dataclass(frozen=True)
class Level:
    """One path to memory. intensity: operations for each byte. gb_per_s: its most; used: part of that, 0 to 1."""

    name: str
    bytes: float
    gb_per_s: float
    intensity: float
    used: float


@dataclass(frozen=True)
class UnitRoofline:
    """One unit. gops: operations of the launch per ns of its time; peaks: data type -> the most (likewise)."""

    name: str
    operations: float
    gops: float
    peaks: dict[str, float]
    levels: tuple[Level, ...]

    @property
    def reached(self) -> float:
        """Part of the time that the operations would take at the peaks of their types alone."""
        return self.gops / max(self.peaks.values(), default=math.inf)


def units(launch: Launch) -> tuple[UnitRoofline, ...]:
    """The units that the launch computes on."""
    found = (_unit(launch, name) for name in LEVELS)
    return tuple(u for u in found if u is not None)


def _unit(launch: Launch, name: str) -> UnitRoofline | None:
    mine = {n.removeprefix(f"{name} "): r for n, r in launch.roofs.items() if n.startswith(f"{name} ")}
    operations = sum(r.amount for r in mine.values())
    ns = launch.time_us * 1e3
    if not _sane(operations) or not _sane(ns):
        return None
    paths = ((n, launch.roofs[n]) for n in LEVELS[name] if n in launch.roofs)
    levels = tuple(_level(n, r, operations, ns) for n, r in paths if _sane(r.amount) and _sane(r.per_us))
    peaks = {t: r.per_us / 1e3 for t, r in mine.items() if _sane(r.per_us)}
    return UnitRoofline(name, operations, operations / ns, peaks, levels)


def _level(name: str, r: Roof, operations: float, ns: float) -> Level:
    return Level(name, r.amount, r.per_us / 1e3, operations / r.amount, r.amount / ns / (r.per_us / 1e3))


def _sane(x: float) -> bool:
    return math.isfinite(x) and x > 0

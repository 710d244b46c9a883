"""Closed-form lower bounds of a launch: no schedule can be faster than any of them.

Each pipe: the work of all programs spread evenly over the cores, and the work of the dearest program. Each shared
resource: bytes over rate. Issue, dispatch and launch: their own sums. The simulated time stands beside them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..engine.engine import Machine, ProgramGroup, Trace
from ..engine.machine import WRITES, Wiring
from . import _work as _work


def add_work(trace: Trace, place: np.ndarray, rate: np.ndarray, floor: bool, out: np.ndarray) -> None:
    """Add what each program asks of the instructions of a trace to the row of `out` of each; see `_work.pyx`."""
    t, where = trace, place.astype(np.int64)
    _work.add_work(t.instructions, t.counts, t.rows, t.table, t.cycles, where, rate, floor, out)


def pipe_work(machine: Machine, group: ProgramGroup) -> np.ndarray:
    """[pipes, programs] cycles that each program needs of each pipe when no other program uses the memory."""
    rates = np.array([*(c.port_bytes_per_cycle for c in machine.channels), 1.0])
    out = np.zeros((len(machine.pipes), len(group.programs)))
    add_work(group.trace, group.trace.pipe, rates[np.maximum(group.trace.channel, -1)], True, out)
    return out


def written_share(machine: Machine, groups: Sequence[ProgramGroup]) -> float:
    """Which part of the bytes that cores move are writes; half of them if there are none."""
    way = np.array([int(c in WRITES) for c in range(len(machine.channels))] + [-1])
    moved = np.zeros(2)
    for group in groups:
        of_group = np.zeros((2, len(group.programs)))
        place = way[np.maximum(group.trace.channel, -1)]
        add_work(group.trace, place, np.ones(len(place)), False, of_group)
        moved += of_group.sum(axis=1)
    return float(moved[1] / moved.sum()) if moved.any() else 0.5


def bounds_us(
    wiring: Wiring,
    groups: Sequence[ProgramGroup],
    resource_bytes: np.ndarray,
    overhead_us: float,
    cycles_per_us: float,
) -> dict[str, float]:
    """Name -> least time in us."""
    machine = wiring.machine
    work = np.concatenate([pipe_work(machine, g) for g in groups], axis=1)
    programs = work.shape[1]
    out: dict[str, float] = {}
    for name, p in wiring.told:
        cycles = max(work[p].sum() / machine.cores, work[p].max(initial=0.0))
        out[name] = float(cycles) / cycles_per_us
    for resource, moved in zip(machine.resources, resource_bytes, strict=True):
        out[resource.name] = float(moved) / resource.bytes_per_cycle / cycles_per_us
    waves = -(-programs // machine.cores)
    out["launch"] = overhead_us + (waves - 1) * machine.dispatch_cycles / cycles_per_us
    return out

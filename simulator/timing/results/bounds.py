"""Closed-form lower bounds of a launch: no schedule can be faster than any of them.

Each pipe: the work of all programs spread evenly over the cores, and the work of the dearest program. Each shared
resource: bytes over rate. Issue, dispatch and launch: their own sums. The simulated time stands beside them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..engine.engine import Machine, ProgramGroup
from ..engine.machine import Wiring

MOST = 1 << 19  # numbers that are looked at in one go


def pipe_work(machine: Machine, group: ProgramGroup) -> np.ndarray:
    """[pipes, programs] cycles that each program needs of each pipe when no other program uses the memory."""
    out = np.zeros((len(machine.pipes), len(group.programs)))
    for met in group.trace.met():
        _add_work(out, machine, group, *met)
    return out


def _add_work(
    out: np.ndarray,
    machine: Machine,
    group: ProgramGroup,
    which: np.ndarray,
    column: np.ndarray,
    least: np.ndarray,
    times: np.ndarray,
) -> None:
    """Add some of what is met, see `Trace.met`."""
    trace = group.trace
    ports = np.array([c.port_bytes_per_cycle for c in machine.channels] or [1.0])
    channel, pipe = trace.channel[which], trace.pipe[which]
    transfer = channel >= 0
    rate = np.where(transfer, ports[np.maximum(channel, 0)], 1.0)
    constant = np.where(transfer, np.maximum(least, trace.amount[which] / rate), least) * times
    alike = column < 0
    out += np.bincount(pipe[alike], constant[alike], len(out))[:, None]
    varying = np.flatnonzero(~alike)
    for part in np.array_split(varying, 1 + len(varying) * len(group.programs) // MOST):
        rows = trace.table[column[part]]
        floor = np.where(transfer[part], least[part], 0.0)[:, None]
        cycles = np.where(rows < 0, 0.0, np.maximum(floor, rows / rate[part, None])) * times[part, None]
        for p in np.unique(pipe[part]).tolist():
            out[p] += cycles[pipe[part] == p].sum(axis=0)


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
    for p in range(len(machine.pipes)):
        cycles = max(work[p].sum() / machine.cores, work[p].max(initial=0.0))
        out[wiring.pipe_name(p)] = float(cycles) / cycles_per_us
    for resource, moved in zip(machine.resources, resource_bytes, strict=True):
        out[resource.name] = float(moved) / resource.bytes_per_cycle / cycles_per_us
    waves = -(-programs // machine.cores)
    out["launch"] = overhead_us + (waves - 1) * machine.dispatch_cycles / cycles_per_us
    return out

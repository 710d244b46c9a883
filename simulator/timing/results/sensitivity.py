"""What holds a launch up: its time with one limit lifted at a time, everything else as it was.

The trace stays, so this costs one pass of the engine for each limit. A lifted pipe takes no time; lifted bandwidth is a
million times what it is; lifted buffers make no transfer wait for a tile that is still being read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..engine.engine import Machine, ProgramGroup, simulate
from ..engine.layout import code_of
from ..engine.machine import Wiring

AMPLE = 1e6
WITHOUT_BUFFERS, WITHOUT_FLAGS, WITHOUT_DISPATCH = "buffers", "flags", "dispatch"


def lifted_cycles(wiring: Wiring, groups: Sequence[ProgramGroup]) -> dict[str, float]:
    """Limit -> cycles of the launch without it: "HBM", "L2", pipes by name, "buffers", "flags", "dispatch"."""
    code = code_of(groups)  # of most limits, which change the machine only
    return {
        name: simulate(
            machine,
            changed,
            by_line=False,
            buffers=name != WITHOUT_BUFFERS,
            code=code if changed is groups else None,
        ).cycles
        for name, machine, changed in _limits(wiring, groups)
    }


def _limits(
    wiring: Wiring, groups: Sequence[ProgramGroup]
) -> Iterator[tuple[str, Machine, Sequence[ProgramGroup]]]:
    machine = wiring.machine
    for k, resource in enumerate(machine.resources):
        yield resource.name, _without_resource(machine, k), groups
    for p in _used_pipes(machine, groups):
        ports = _channels_of(groups, p)
        yield wiring.pipe_name(p), _without_ports(machine, ports), [_without_pipe(g, p) for g in groups]
    yield WITHOUT_BUFFERS, machine, groups
    yield WITHOUT_FLAGS, replace(machine, cross_pipe_cycles=0.0), groups
    if sum(len(g.programs) for g in groups) > machine.cores:
        yield WITHOUT_DISPATCH, replace(machine, dispatch_cycles=0.0), groups


def _used_pipes(machine: Machine, groups: Sequence[ProgramGroup]) -> list[int]:
    return [p for p in range(len(machine.pipes)) if any((g.trace.pipe == p).any() for g in groups)]


def _channels_of(groups: Sequence[ProgramGroup], pipe: int) -> set[int]:
    """Channels on which this pipe moves bytes."""
    found = [np.unique(g.trace.channel[(g.trace.pipe == pipe) & (g.trace.channel >= 0)]) for g in groups]
    return {int(c) for some in found for c in some}


def _without_resource(machine: Machine, k: int) -> Machine:
    resources = list(machine.resources)
    resources[k] = replace(resources[k], bytes_per_cycle=AMPLE * resources[k].bytes_per_cycle)
    return replace(machine, resources=tuple(resources))


def _without_ports(machine: Machine, channels: set[int]) -> Machine:
    """Ports of these channels as wide as anything; what they share stays."""
    changed = [
        replace(c, port_bytes_per_cycle=AMPLE * c.port_bytes_per_cycle) if k in channels else c
        for k, c in enumerate(machine.channels)
    ]
    return replace(machine, channels=tuple(changed))


def _without_pipe(group: ProgramGroup, pipe: int) -> ProgramGroup:
    """The pipe's records take no time of their own; bytes still pass through what is shared."""
    trace = group.trace
    mine = trace.pipe == pipe
    table = trace.table
    chosen = mine & (trace.channel < 0)
    varying = np.flatnonzero(chosen & (trace.column >= 0) & (trace.counts > 0)).tolist()
    if varying:
        table = table.copy()
    for i in varying:
        rows = table[trace.column[i] : trace.column[i] + trace.rows[i]]
        np.minimum(rows, 0.0, out=rows)  # below zero: the program skips the record
    changed = trace.instructions.copy()
    for name in ("occupancy", "latency"):
        changed[name][mine] = 0.0
    changed["cycles"][mine] = -1
    return replace(group, trace=replace(trace, instructions=changed, table=table))

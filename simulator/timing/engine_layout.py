"""Lays the engine's inputs out as the rows that the loop reads (fields and order as in _core.pxd)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.timing import _layout
from ascendtile.simulator.timing.engine_inputs import Array, Group, Machine, Trace


def _row(**kinds: str) -> np.dtype[Any]:
    return np.dtype(list(kinds.items()), align=True)


PIPE = _row(unit="i4", scalar="i4", depth="i4", first="i4")
CHANNEL = _row(port="f8", uses="i8")
RECORD = _row(
    occupancy="f8",
    latency="f8",
    amount="f8",
    dep_first="i4",
    dep_count="i4",
    column="i4",
    instructions="i4",
    line="i4",
    pipe="i1",
    channel="i1",
)
PROGRAM = _row(first="i8", count="i8", reach="i8", row="i8")
SPAN = _row(start="f8", end="f8", core="i4")
TIMELINE = _row(
    **dict.fromkeys(("start", "end", "done", "gap", "beyond", "amount"), "f8"),
    **dict.fromkeys(("core", "program", "record", "waited", "pipe", "reason"), "i4"),
)


@dataclass(frozen=True, slots=True)
class Layout:
    """All traces one behind the other, and per program where its own begin."""

    pipes: Array
    channels: Array
    capacity: npt.NDArray[np.float64]
    records: Array
    deps: npt.NDArray[np.int32]
    table: npt.NDArray[np.float64]
    programs: Array
    lines: int


def lay_out(machine: Machine, groups: Sequence[Group]) -> Layout:
    """Check the groups against the machine and pack both."""
    for group in groups:
        _check_numbers(machine, group.trace)
    _check_size(sum(len(g.trace.dep) for g in groups))
    records, deps, reach = _pack_traces([g.trace for g in groups])
    return Layout(
        pipes=_pack_pipes(machine, groups),
        channels=_pack_channels(machine),
        capacity=_filled([np.array([r.bytes_per_cycle for r in machine.resources])], np.dtype("f8"), 1.0),
        records=records,
        deps=deps,
        table=_filled([g.trace.table.T.ravel() for g in groups], np.dtype("f8")),
        programs=_pack_programs(groups, reach),
        lines=1 + max((int(g.trace.line.max(initial=0)) for g in groups), default=0),
    )


def _check_numbers(machine: Machine, trace: Trace) -> None:
    for name, names in (("pipe", machine.pipes), ("channel", machine.channels)):
        values = getattr(trace, name)
        if values.max(initial=-1) >= len(names):
            r = int(values.argmax())
            raise UsageError(f"trace: {name}[{r}] is {values[r]}: the machine has {len(names)} of them")


def _check_size(deps: int) -> None:
    if deps > np.iinfo(np.int32).max:
        raise UsageError(f"{deps} dependencies in all traces, {np.iinfo(np.int32).max} are allowed")


def _pack_pipes(machine: Machine, groups: Sequence[Group]) -> Array:
    count = len(machine.pipes)
    longest = np.ones(count, np.int64)
    for group in groups:
        longest = np.maximum(longest, np.bincount(group.trace.pipe, minlength=count))
    rows = np.zeros(count, PIPE)
    rows["unit"] = [machine.units.index(p.unit) for p in machine.pipes]
    rows["scalar"] = [p.scalar for p in machine.pipes]
    # A queue that holds all records of a pipe never fills: a deeper one only costs memory.
    rows["depth"] = [min(p.queue_depth, int(n)) for p, n in zip(machine.pipes, longest, strict=True)]
    rows["first"] = _offsets(rows["depth"])
    return rows


def _pack_channels(machine: Machine) -> Array:
    rows = np.ones(max(1, len(machine.channels)), CHANNEL)
    for row, channel in zip(rows, machine.channels, strict=False):
        row["port"] = channel.port_bytes_per_cycle
        row["uses"] = sum(1 << number for number in channel.resources)
    return rows


def _pack_traces(traces: Sequence[Trace]) -> tuple[Array, npt.NDArray[np.int32], list[int]]:
    """Rows, dependencies, and per trace how far back its dependencies go."""
    firsts, dep_firsts = _offsets([t.records for t in traces]), _offsets([len(t.dep) for t in traces])
    records = np.zeros(max(1, sum(t.records for t in traces)), RECORD)
    deps = np.zeros(max(1, sum(len(t.dep) for t in traces)), np.int32)
    reach = []
    for trace, first, dep_first in zip(traces, firsts, dep_firsts, strict=True):
        columns = {item.name: getattr(trace, item.name) for item in fields(trace) if item.name != "table"}
        found = _layout.pack(
            **columns,
            skippable=np.append((trace.table < 0).any(axis=1), False).astype(np.int8),
            waited=np.zeros(trace.records, np.uint16),
            records=records[first : first + trace.records],
            deps=deps,
            dep_first=dep_first,
        )
        reach.append(found)
    return records, deps, reach


def _pack_programs(groups: Sequence[Group], reach: list[int]) -> Array:
    total = sum(len(g.programs) for g in groups)
    numbers = np.concatenate([np.empty(0, np.int64), *(g.programs for g in groups)])
    if not np.array_equal(np.sort(numbers), np.arange(total)):
        raise UsageError(
            f"groups: the launch numbers of {total} programs must be 0 to {total - 1}, each once"
        )
    rows = np.zeros(total, PROGRAM)
    firsts = _offsets([g.trace.records for g in groups])
    tables = _offsets([g.trace.table.size for g in groups])
    for i, group in enumerate(groups):
        rows["first"][group.programs] = firsts[i]
        rows["count"][group.programs] = group.trace.records
        rows["reach"][group.programs] = reach[i]
        rows["row"][group.programs] = tables[i] + np.arange(len(group.programs)) * len(group.trace.table)
    return rows


def _offsets(counts: Sequence[int] | Array) -> list[int]:
    return list(accumulate((int(c) for c in counts), initial=0))[:-1]


def _filled(parts: list[Array], kind: np.dtype[Any], filler: float = 0) -> Array:
    """The parts behind one another; one filler entry if there is nothing, as the loop takes no empty
    array."""
    joined = np.concatenate(parts) if len(parts) > 1 else parts[0]
    return np.ascontiguousarray(joined, kind) if len(joined) else np.full(1, filler, kind)

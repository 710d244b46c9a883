"""Lays the engine's inputs out as the rows that the loop reads (fields and order as in _core.pxd)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.timing.engine import _layout
from ascendtile.simulator.timing.engine._engine import MEETINGS
from ascendtile.simulator.timing.engine.inputs import COLUMNS, MEETING, Array, Group, Machine, Trace
from ascendtile.simulator.timing.engine.runs import Runs


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
RUN = _row(start="i8", first="i8", length="i8")
PROGRAM = _row(
    **dict.fromkeys(
        ("first", "count", "reach", "row", "run", "runs", "order", "keep", "keeps"),
        "i8",
    )
)
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
    runs: Array
    order: npt.NDArray[np.int32]
    keep: npt.NDArray[np.int64]
    lines: int
    expected: npt.NDArray[np.int64]  # pipes that come to a meeting of each kind


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
        **_pack_runs([g.trace.runs for g in groups]),
        expected=_expected(groups),
        lines=1 + max((int(g.trace.line.max(initial=0)) for g in groups), default=0),
    )


def _check_numbers(machine: Machine, trace: Trace) -> None:
    for name, names in (("pipe", machine.pipes), ("channel", machine.channels)):
        values = getattr(trace, name)
        if values.max(initial=-1) >= len(names):
            r = int(values.argmax())
            raise UsageError(f"trace: {name}[{r}] is {values[r]}: the machine has {len(names)} of them")


def _expected(groups: Sequence[Group]) -> npt.NDArray[np.int64]:
    """Every pipe that has a meeting of a kind comes to all of that kind, in every program."""
    found = np.zeros(MEETINGS, np.int64)
    for group in groups:
        for kind in range(MEETINGS):
            pipes = np.unique(group.trace.pipe[group.trace.channel == MEETING - kind])
            found[kind] += len(pipes) * len(group.programs)
    return found


def _check_size(deps: int) -> None:
    if deps > np.iinfo(np.int32).max:
        raise UsageError(f"{deps} dependencies in all traces, {np.iinfo(np.int32).max} are allowed")


def _pack_pipes(machine: Machine, groups: Sequence[Group]) -> Array:
    count = len(machine.pipes)
    longest = np.ones(count)
    for group in groups:
        longest = np.maximum(longest, np.bincount(group.trace.pipe, group.trace.counts, count))
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
    firsts, dep_firsts = _offsets([len(t.pipe) for t in traces]), _offsets([len(t.dep) for t in traces])
    records = np.zeros(max(1, sum(len(t.pipe) for t in traces)), RECORD)
    deps = np.zeros(max(1, sum(len(t.dep) for t in traces)), np.int32)
    reach = []
    for trace, first, dep_first in zip(traces, firsts, dep_firsts, strict=True):
        rows = records[first : first + len(trace.pipe)]
        how = _pack_kinds if trace.runs is not None else _pack_trace
        reach.append(how(trace, rows, deps, dep_first))
    return records, deps, reach


def _pack_trace(trace: Trace, rows: Array, deps: npt.NDArray[np.int32], dep_first: int) -> int:
    return _layout.pack(
        **{name: getattr(trace, name) for name in COLUMNS if name != "table"},
        skippable=np.append((trace.table < 0).any(axis=1), False).astype(np.int8),
        waited=np.zeros(len(trace.pipe), np.uint16),
        records=rows,
        deps=deps,
        dep_first=dep_first,
    )


def _pack_kinds(trace: Trace, rows: Array, deps: npt.NDArray[np.int32], dep_first: int) -> int:
    """Of a trace with runs."""
    for name in ("occupancy", "latency", "amount", "column", "instructions", "line", "pipe", "channel"):
        rows[name] = getattr(trace, name)
    rows["dep_first"] = dep_first + trace.dep_start[:-1]
    rows["dep_count"] = np.diff(trace.dep_start)
    back = trace.dep >= 0
    packed = np.where(back, trace.dep, -1 - trace.dep) << 3 | trace.dep_kind
    deps[dep_first : dep_first + len(packed)] = np.where(back, packed, -1 - packed)
    return int(trace.dep.max(initial=0))


def _pack_runs(found: Sequence[Runs | None]) -> dict[str, Array]:
    """All runs, orders and kept records behind one another."""
    own = [r for r in found if r is not None]
    rows = np.zeros(max(1, sum(len(r.start) for r in own)), RUN)
    for name in ("start", "first", "length"):
        values = [getattr(r, name) for r in own]
        rows[name][: sum(len(v) for v in values)] = np.concatenate([np.zeros(0, np.int64), *values])
    empty = np.zeros(0, np.int64)
    return {
        "runs": rows,
        "order": _filled([empty, *(r.order for r in own)], np.dtype(np.int32)),
        "keep": _filled([empty, *(r.keep for r in own)], np.dtype(np.int64)),
    }


def _pack_programs(groups: Sequence[Group], reach: list[int]) -> Array:
    total = sum(len(g.programs) for g in groups)
    numbers = np.concatenate([np.empty(0, np.int64), *(g.programs for g in groups)])
    if not np.array_equal(np.sort(numbers), np.arange(total)):
        raise UsageError(
            f"groups: the launch numbers of {total} programs must be 0 to {total - 1}, each once"
        )
    rows = np.zeros(total, PROGRAM)
    firsts = _offsets([len(g.trace.pipe) for g in groups])
    runs = [_run_places(g.trace.runs) for g in groups]
    own = {name: _offsets([r[name] for r in runs]) for name in ("runs", "order", "keeps")}
    tables = _offsets([g.trace.table.size for g in groups])
    for i, group in enumerate(groups):
        rows["first"][group.programs] = firsts[i]
        rows["count"][group.programs] = group.trace.records
        rows["reach"][group.programs] = reach[i]
        rows["run"][group.programs], rows["runs"][group.programs] = own["runs"][i], runs[i]["runs"]
        rows["keep"][group.programs], rows["keeps"][group.programs] = own["keeps"][i], runs[i]["keeps"]
        rows["order"][group.programs] = own["order"][i]
        rows["row"][group.programs] = tables[i] + np.arange(len(group.programs)) * len(group.trace.table)
    return rows


def _run_places(runs: Runs | None) -> dict[str, int]:
    """How many rows there are of each sort."""
    if runs is None:
        return dict.fromkeys(("runs", "order", "keeps"), 0)
    return {"runs": len(runs.start), "order": len(runs.order), "keeps": len(runs.keep)}


def _offsets(counts: Sequence[int] | Array) -> list[int]:
    return list(accumulate((int(c) for c in counts), initial=0))[:-1]


def _filled(parts: list[Array], kind: np.dtype[Any], filler: float = 0) -> Array:
    """The parts behind one another; one filler entry if there is nothing, as the loop takes no empty
    array."""
    joined = np.concatenate(parts) if len(parts) > 1 else parts[0]
    return np.ascontiguousarray(joined, kind) if len(joined) else np.full(1, filler, kind)

"""Lays the engine's inputs out as the rows that the loop reads (fields and order as in _state.pxd)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.timing.engine._code import Code
from ascendtile.simulator.timing.engine._engine import BARRIERS, SHARE_BITS
from ascendtile.simulator.timing.engine.inputs import Machine
from ascendtile.simulator.timing.engine.trace import (
    BARRIER,
    GAIN,
    INSTRUCTION,
    LOOP,
    ROTATING,
    Array,
    ProgramGroup,
    Trace,
)

PIPE = np.dtype([(n, "i4") for n in ("unit", "scalar", "depth", "first", "count")], align=True)
CHANNEL = np.dtype([("port", "f8"), ("uses", "i8")], align=True)
PROGRAM = np.dtype([("trace", "i4"), ("step", "i4"), ("first", "i8")], align=True)
SPAN = np.dtype([("start", "f8"), ("end", "f8"), ("core", "i4")], align=True)
TIMELINE = np.dtype(
    [(n, "f8") for n in ("start", "end", "done", "gap", "beyond", "amount")]
    + [(n, "i4") for n in ("core", "program", "record", "instruction", "waited", "pipe", "reason")],
    align=True,
)
# Fields of `Trace` that lie one behind the other, with their types, in the order in which a row of TRACE has them.
PARTS: dict[str, Any] = {
    "instructions": INSTRUCTION,
    "code": np.int32,
    "loops": LOOP,
    "gains": GAIN,
    "slots": np.int32,
    "strides": np.int64,
    "rotating": ROTATING,
    "choices": np.int64,
    "items": np.int32,
    "cycles": np.float64,
    "flags": np.int8,
}
TRACE = np.dtype(
    [("instructions", "i8"), ("code", "i8"), ("length", "i8"), *((n, "i8") for n in list(PARTS)[2:])]
)


class Layout(NamedTuple):
    """All traces one behind the other, and the machine that they run on."""

    pipes: Array
    channels: Array
    capacity: npt.NDArray[np.float64]
    code: Code
    programs: int
    records: int  # of all programs, with those that they skip
    lines: int
    expected: npt.NDArray[np.int64]  # pipes that arrive at a barrier of each kind


def lay_out(machine: Machine, groups: Sequence[ProgramGroup], code: Code | None = None) -> Layout:
    """Check the groups against the machine and pack both. code: of the groups, if somebody has it."""
    for group in groups:
        _check_numbers(machine, group.trace)
    return Layout(
        pipes=_pack_pipes(machine, groups),
        channels=_pack_channels(machine),
        capacity=_joined([np.array([r.bytes_per_cycle for r in machine.resources])], np.float64, 1.0),
        code=code_of(groups) if code is None else code,
        programs=sum(len(g.programs) for g in groups),
        records=sum(g.trace.records * len(g.programs) for g in groups),
        expected=_expected(groups),
        lines=1 + max((int(g.trace.line.max(initial=0)) for g in groups), default=0),
    )


def code_of(groups: Sequence[ProgramGroup]) -> Code:
    """All traces, and which of them each program runs."""
    traces = [g.trace for g in groups]
    rows = np.zeros(len(traces), TRACE)
    rows["length"] = [t.length for t in traces]
    for name in PARTS:
        rows[name] = _offsets([len(getattr(t, name)) for t in traces])
    return Code(
        rows,
        _pack_programs(groups),
        *(_joined([getattr(t, name) for t in traces], kind) for name, kind in PARTS.items()),
        _joined([np.ravel(t.table) for t in traces], np.float64),
        max(t.depth for t in traces),
        1 + max(max(int(x["counter"].max(initial=0)) for x in (t.gains, t.rotating)) for t in traces),
        max(len(t.flags) for t in traces),
    )


def _check_numbers(machine: Machine, trace: Trace) -> None:
    for name, names in (("pipe", machine.pipes), ("channel", machine.channels)):
        values = getattr(trace, name)
        if values.max(initial=-1) >= len(names):
            r = int(values.argmax())
            raise UsageError(f"trace: {name}[{r}] is {values[r]}: the machine has {len(names)} of them")


def _expected(groups: Sequence[ProgramGroup]) -> npt.NDArray[np.int64]:
    """A pipe that has a barrier of a kind arrives at all of that kind, in every program."""
    found = np.zeros(BARRIERS, np.int64)
    for group in groups:
        if group.trace.channel.min(initial=0) > BARRIER:
            continue
        for kind in range(BARRIERS):
            pipes = np.unique(group.trace.pipe[group.trace.channel == BARRIER - kind])
            found[kind] += len(pipes) * len(group.programs)
    return found


def _pack_pipes(machine: Machine, groups: Sequence[ProgramGroup]) -> Array:
    count = len(machine.pipes)
    longest = np.ones(count)
    for group in groups:
        longest = np.maximum(longest, np.bincount(group.trace.pipe, group.trace.counts, count))
    rows = np.zeros(count, PIPE)
    rows["unit"] = [machine.units.index(p.unit) for p in machine.pipes]
    rows["scalar"] = [p.scalar for p in machine.pipes]
    rows["count"] = [1 + bool(p.twin) for p in machine.pipes]
    # A queue that holds all records of a pipe never fills: a deeper one only costs memory.
    rows["depth"] = [min(p.queue_depth, int(n)) for p, n in zip(machine.pipes, longest, strict=True)]
    rows["first"] = _offsets(rows["depth"])
    return rows


def _pack_channels(machine: Machine) -> Array:
    rows = np.ones(max(1, len(machine.channels)), CHANNEL)
    for row, channel in zip(rows, machine.channels, strict=False):
        row["port"] = channel.port_bytes_per_cycle
        row["uses"] = sum(1 << SHARE_BITS * number for number in channel.resources)
    return rows


def _pack_programs(groups: Sequence[ProgramGroup]) -> Array:
    total = sum(len(g.programs) for g in groups)
    numbers = np.concatenate([np.empty(0, np.int64), *(g.programs for g in groups)])
    if not np.array_equal(np.sort(numbers), np.arange(total)):
        raise UsageError(
            f"groups: the launch numbers of {total} programs must be 0 to {total - 1}, each once"
        )
    rows = np.zeros(total, PROGRAM)
    tables = _offsets([g.trace.table.size for g in groups])
    for i, group in enumerate(groups):
        rows["trace"][group.programs] = i
        rows["step"][group.programs] = len(group.programs)
        rows["first"][group.programs] = tables[i] + np.arange(len(group.programs))
    return rows


def _offsets(counts: Sequence[int] | Array) -> list[int]:
    return list(accumulate((int(c) for c in counts), initial=0))[:-1]


def _joined(parts: Sequence[Array], kind: Any, filler: float = 0) -> Array:
    """The parts behind one another; one filler entry if there is nothing, as the loop takes no empty array."""
    joined = np.concatenate(parts) if len(parts) > 1 else parts[0]
    if len(joined):
        return np.ascontiguousarray(joined, kind)
    return np.full(1, filler, kind) if np.dtype(kind).names is None else np.zeros(1, kind)

"""What the engine takes: a machine of pipes, cores and shared bandwidth, and streams of instruction records.

All times are in cycles of the core clock, all amounts in bytes. Every object checks itself when it is made,
so that the loop has no error path.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.timing.engine._engine import (
    MAX_CHANNELS,
    MAX_PIPES,
    MAX_RESOURCES,
    MAX_UNITS,
    MEETINGS,
)
from ascendtile.simulator.timing.engine._validate import sound
from ascendtile.simulator.timing.engine.ragged import Ragged
from ascendtile.simulator.timing.engine.runs import Runs

Array = npt.NDArray[Any]

MEETING = -2  # as the channel of a record: a meeting of all programs, of `MEETINGS` kinds from there down
MAX_RECORDS = 1 << 28  # a dependency is packed with three bits into 32
MAX_RUN_RECORDS = (1 << 31) - 1
# Kinds of a dependency: read after write; write after read or write; a flag that a program sets and waits for.
DATA, BUFFER, FLAG = 0, 1, 2


@dataclass(frozen=True, kw_only=True, slots=True)
class PipeSpec:
    """One pipe of a core.

    Args:
        name: as the vendor spells it ("MTE2", "V").
        unit: name of the unit whose scalar stage issues to this pipe ("AIC", "AIV0").
        queue_depth: records that can be issued and not yet started, at least 1; means nothing for a scalar
            pipe.
        scalar: records of this pipe execute in line with issue; at most one such pipe per unit.
    """

    name: str
    unit: str
    queue_depth: int = 16
    scalar: bool = False

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
    on."""

    name: str
    port_bytes_per_cycle: float
    resources: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _positive(f"channel {self.name}: port_bytes_per_cycle", self.port_bytes_per_cycle)


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """A number of equal cores and what they share.

    Args:
        pipes: the pipes of one core.
        cores: number of cores.
        channels, resources: see there.
        dispatch_cycles: from a core being free to its next program; not charged for a core's first program.
        cross_pipe_cycles: added to a dependency whose two records are on different pipes.
        issue_cycles: time of the scalar stage per hardware instruction.
    """

    pipes: tuple[PipeSpec, ...]
    cores: int
    channels: tuple[Channel, ...] = ()
    resources: tuple[Resource, ...] = ()
    dispatch_cycles: float = 0.0
    cross_pipe_cycles: float = 0.0
    issue_cycles: float = 0.0

    def __post_init__(self) -> None:
        _within("machine: number of cores", self.cores, 1, None)
        _within("machine: number of pipes", len(self.pipes), 1, MAX_PIPES)
        _within("machine: number of units", len(self.units), 1, MAX_UNITS)
        _within("machine: number of channels", len(self.channels), 0, MAX_CHANNELS)
        _within("machine: number of resources", len(self.resources), 0, MAX_RESOURCES)
        for name in ("dispatch_cycles", "cross_pipe_cycles", "issue_cycles"):
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
            if len(set(channel.resources)) < len(channel.resources):
                raise UsageError(f"channel {channel.name}: resources {channel.resources} has one twice")


@dataclass(frozen=True, kw_only=True)
class Trace:
    """R instruction records in program order, shared by the P programs of a group.

    Args:
        pipe: [R] number of the pipe.
        occupancy: [R] cycles that the pipe is taken; for a transfer the least cycles.
        latency: [R] cycles from the pipe being done to the result being usable.
        channel: [R] -1 for a fixed cost, else the channel that carries the transfer; below -1: a meeting, whose kind
            is MEETING - channel.
        amount: [R] bytes of a transfer; 0 leaves the occupancy only.
        column: [R] -1, or a row of `table`.
        table: [V, P] per program the bytes of a transfer or the occupancy of a fixed cost; negative: the
            program does not execute the record, which is then done together with the record before it on its
            pipe.
        instructions: [R] hardware instructions that the record stands for.
        line: [R] source line (or any number the caller wants cycles added up by).
        dep_start, dep, dep_kind: record r depends on the records dep[dep_start[r] : dep_start[r + 1]], all
            before r; dep_kind is DATA, BUFFER or FLAG.
        runs: None, or the order of the records; the arrays then are those of the kinds of records. A dependency
            is told by how many records it goes back (-1 - k: it is the record runs.keep[k]), and its kind has
            the bit CROSSES if that record is on another pipe.
        uses: None, or the slots that the first records read, write and clobber; nothing here depends on them.
    """

    pipe: Array
    occupancy: Array
    latency: Array
    channel: Array
    amount: Array
    instructions: Array
    line: Array
    dep_start: Array
    dep: Array
    dep_kind: Array
    column: Array | None = None
    table: Array = field(default_factory=lambda: np.empty((0, 0)))
    runs: Runs | None = None
    uses: tuple[Ragged, Ragged, Ragged] | None = None

    def __post_init__(self) -> None:
        if self.column is None:
            object.__setattr__(self, "column", np.full(np.size(self.pipe), -1, np.int32))
        for name in COLUMNS:
            object.__setattr__(self, name, _convert("trace", name, getattr(self, name)))
        _check_shapes(self)
        if self.runs is None and sound(**{n: getattr(self, n) for n in COLUMNS}, kinds=FLAG + 1):
            return
        for name in ("occupancy", "latency", "amount"):
            values = getattr(self, name)
            _refuse(
                f"trace: {name}",
                values,
                ~(values >= 0) | np.isinf(values),
                "it must be finite and at least 0",
            )
        for name, least in (
            ("pipe", 0),
            ("channel", MEETING + 1 - MEETINGS),
            ("column", -1),
            ("instructions", 0),
            ("line", 0),
        ):
            values = getattr(self, name)
            _refuse(f"trace: {name}", values, values < least, f"it must be at least {least}")
        if not np.isfinite(self.table).all():
            raise UsageError("trace: table has an entry that is not finite; a negative one skips the record")
        _check_dependencies(self)

    @property
    def records(self) -> int:
        """Number of records."""
        return len(self.pipe) if self.runs is None else self.runs.records

    def kinds_of(self, records: Array) -> Array:
        """Where the arrays have the records with these numbers."""
        return records if self.runs is None else self.runs.kinds_of(records)

    @functools.cached_property
    def counts(self) -> npt.NDArray[np.int64] | None:
        """How many records each entry of the arrays stands for; None: one each."""
        return None if self.runs is None else self.runs.counts(len(self.pipe))


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Programs that run the same trace: programs[j] is the launch number of the program with column j of its
    table."""

    trace: Trace
    programs: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "programs", _convert("group", "programs", self.programs))
        if self.programs.ndim != 1:
            raise UsageError(f"group: programs has {self.programs.ndim} dimensions, not 1")
        values, columns = self.trace.table.shape
        if values and columns != len(self.programs):
            raise UsageError(f"group: the table has {columns} columns for {len(self.programs)} programs")


_TYPES: dict[str, type[np.generic]] = {
    **dict.fromkeys(("occupancy", "latency", "amount", "table"), np.float64),
    **dict.fromkeys(("pipe", "channel", "dep_kind"), np.int8),
    **dict.fromkeys(("column", "instructions", "line", "dep"), np.int32),
    **dict.fromkeys(("dep_start", "programs"), np.int64),
}


COLUMNS = (
    "pipe",
    "occupancy",
    "latency",
    "channel",
    "amount",
    "instructions",
    "line",
    "dep_start",
    "dep",
    "dep_kind",
    "column",
    "table",
)


def _convert(owner: str, name: str, values: Any) -> Array:
    given = np.asarray(values)
    wanted = np.dtype(_TYPES[name])
    if given.dtype == wanted:
        out = np.ascontiguousarray(given)
        return out if out.flags.aligned else out.copy()
    if given.size and given.dtype.kind not in ("iub" if wanted.kind == "i" else "iubf"):
        raise UsageError(f"{owner}: {name} has type {given.dtype}, {wanted} is needed")
    if wanted.kind == "i" and given.size:
        limits = np.iinfo(wanted)
        outside = (given < limits.min) | (given > limits.max)
        _refuse(f"{owner}: {name}", given, outside, f"{limits.min} to {limits.max} is allowed")
    return np.ascontiguousarray(given, wanted)


def _check_shapes(trace: Trace) -> None:
    for name in COLUMNS:
        dims = 2 if name == "table" else 1
        if getattr(trace, name).ndim != dims:
            raise UsageError(f"trace: {name} has {getattr(trace, name).ndim} dimensions, not {dims}")
    kinds = len(trace.pipe)
    sizes = dict.fromkeys(
        ("occupancy", "latency", "channel", "amount", "instructions", "line", "column"), kinds
    )
    sizes |= {"dep_start": kinds + 1, "dep_kind": len(trace.dep)}
    for name, size in sizes.items():
        if len(getattr(trace, name)) != size:
            raise UsageError(f"trace: {name} has {len(getattr(trace, name))} entries where {size} are needed")
    most = MAX_RECORDS if trace.runs is None else MAX_RUN_RECORDS
    _within("trace: number of records", trace.records, 0, most)


def _check_dependencies(trace: Trace) -> None:
    assert trace.column is not None
    rows = len(trace.table)
    _refuse("trace: column", trace.column, trace.column >= rows, f"the table has {rows} rows")
    counts = np.diff(trace.dep_start)
    _refuse("trace: dep_start", trace.dep_start, np.append(counts < 0, False), "the next one is less")
    if trace.dep_start[0] != 0 or trace.dep_start[-1] != len(trace.dep):
        ends = f"{trace.dep_start[0]} to {trace.dep_start[-1]}"
        raise UsageError(
            f"trace: dep_start runs from {ends}, not from 0 to the {len(trace.dep)} entries of dep"
        )
    if trace.runs is not None:
        return  # made by `packing.py` from dependencies of records
    kinds = trace.dep_kind
    _refuse(
        "trace: dep_kind",
        kinds,
        (kinds < DATA) | (kinds > FLAG),
        f"{DATA}, {BUFFER} and {FLAG} are the kinds",
    )
    owner = np.repeat(np.arange(trace.records, dtype=np.int32), counts)
    late = (trace.dep >= owner) | (trace.dep < 0)
    if late.any():
        i = int(late.argmax())
        raise UsageError(
            f"trace: record {owner[i]} depends on record {trace.dep[i]}: only an earlier one is allowed"
        )


def _refuse(name: str, values: Array, bad: npt.NDArray[np.bool_], rule: str) -> None:
    if bad.any():
        i = int(bad.argmax())
        raise UsageError(f"{name}[{i}] is {values.ravel()[i]}: {rule}")


def _positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise UsageError(f"{name} is {value}, it must be finite and more than 0")


def _within(name: str, value: int, least: int, most: int | None) -> None:
    if value < least or (most is not None and value > most):
        limits = f"at least {least}" if most is None else f"{least} to {most}"
        raise UsageError(f"{name} is {value}, it must be {limits}")

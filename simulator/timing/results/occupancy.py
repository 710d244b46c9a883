"""Bytes of each buffer that hold a value, over the time of one core: from the first write into a slot to its last read.

The records say which slots they read and write, the engine when they ran. A slot that is written once more before anybody
has read it (a sum in L0C, a tile that comes in two parts) holds one value all the while. A transfer that is skipped leaves
the write to the one before it that brings the tile in its place (see `_held.pyx`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..engine.engine import EngineResult, Group
from ..engine.inputs import Trace
from ..lowering.context import Plan
from . import _occupancy as _held

MOST_ROWS = 100_000  # records that are looked at
MOST_POINTS = 2000  # changes that are told of a buffer

Lives = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # number of a space, from when to when, bytes
Rows = dict[str, np.ndarray]  # fields of the timeline, of one program, by record
Points = tuple[tuple[float, int], ...]


def held(plan: Plan, result: EngineResult, groups: Sequence[Group]) -> dict[str, Points]:
    """Buffer -> (cycle, bytes held from then on), of the core with most records in the timeline; as far as they are kept.

    Of a long walk it is known which slots its first records use: a value that only later ones read again ends too early.
    """
    t = result.timeline
    if not len(t):
        return {}
    at = np.flatnonzero(t["core"] == np.bincount(t["core"]).argmax())[:MOST_ROWS]
    at = at[np.lexsort((t["record"][at], t["program"][at]))]
    mine = {n: t[n][at] for n in ("program", "record", "pipe", "start", "end", "amount")}
    until = min(result.timeline_until, float(mine["start"].max()) if len(at) == MOST_ROWS else np.inf)
    spaces = list(plan.placement.buffers)
    ends = np.append(np.flatnonzero(np.diff(mine["program"])) + 1, len(at)).tolist()
    found: list[Lives] = []
    for first, end in zip([0, *ends], ends, strict=False):
        rows = {n: x[first:end] for n, x in mine.items()}
        trace = next(g.trace for g in groups if rows["program"][0] in g.programs)
        unknown = rows["start"][rows["record"] >= _known(trace)]
        until = min(until, np.nextafter(unknown.min(initial=np.inf), 0))
        found += [*_lives(plan, rows, trace, spaces), *_scratch(plan, rows, trace, spaces)]
    if not found:
        return {}
    every = [np.concatenate(x) for x in zip(*found, strict=True)]
    return {name: _points(every, k, until) for k, name in enumerate(spaces) if (every[0] == k).any()}


def _known(trace: Trace) -> int:
    """Of so many records, the first ones, it is known which slots they use."""
    return 0 if trace.uses is None else len(trace.uses[0].start) - 1


def _lives(plan: Plan, rows: Rows, trace: Trace, spaces: list[str]) -> Iterator[Lives]:
    """How long each value of one program is in its slot."""
    if trace.uses is None:
        return
    reads, writes, clobbers = trace.uses
    known = _known(trace)
    count = int(np.searchsorted(rows["record"], known))
    record, pipe, begin, done, amount = (
        rows[n][:count] for n in ("record", "pipe", "start", "end", "amount")
    )
    slots = 1 + max((int(x.item.max(initial=-1)) for x in trace.uses), default=-1)
    space, size = np.full(slots, -1), np.zeros(slots, np.int64)
    for s in plan.placement.slots:
        space[s.number : s.number + s.copies], size[s.number : s.number + s.copies] = (
            spaces.index(s.space),
            s.size,
        )
    most = 3 * len(writes.item) + slots + 1
    slot, start, end = np.empty(most, np.int32), np.empty(most), np.empty(most)
    count = _held.lives(
        (space >= 0).astype(np.int8),
        *(record, pipe, begin, done),
        (amount != 0).astype(np.int8),
        np.ascontiguousarray(trace.pipe[trace.kinds_of(np.arange(known))], np.int8),
        *(reads.start, reads.item, writes.start, writes.item, clobbers.start, clobbers.item),
        *(slot, start, end),
    )
    slot = slot[:count]
    yield space[slot], start[:count], end[:count], size[slot]


def _scratch(plan: Plan, rows: Rows, trace: Trace, spaces: list[str]) -> Iterator[Lives]:
    """What operations use while they run."""
    if not plan.scratch:
        return
    kinds = trace.kinds_of(rows["record"])
    line, occupancy = trace.line[kinds], trace.occupancy[kinds]
    for (number, cycles), slot in plan.scratch.items():
        mine = (line == number) & (occupancy == cycles)
        start, end = rows["start"][mine], rows["end"][mine]
        yield np.full(len(start), spaces.index(slot.space)), start, end, np.full(len(start), slot.total)


def _points(every: Sequence[np.ndarray], space: int, until: float) -> Points:
    """Stairs: what ends at a moment goes before what begins there."""
    mine = every[0] == space
    start, end, size = (x[mine] for x in every[1:])
    cycle, change = np.concatenate([end, start]), np.concatenate([-size, size])
    order = np.argsort(cycle, kind="stable")  # ends come first
    cycle, total = cycle[order], change[order].cumsum()
    last = np.append(cycle[1:] != cycle[:-1], True) & (cycle <= until)
    cycle, total = cycle[last], total[last]
    new = np.append(True, total[1:] != total[:-1])[: len(total)]
    return tuple(zip(cycle[new].tolist()[:MOST_POINTS], total[new].tolist()[:MOST_POINTS], strict=True))

"""Bytes of each buffer that hold a value, over the time of one core: from the first write into a slot to its last read.

The records say which slots they read and write, the engine when they ran. A slot that is written once more before anybody
has read it (a sum in L0C, a tile that comes in two parts) holds one value all the while. A transfer that is skipped leaves
the write to the one before it that brings the tile in its place (see `_occupancy.pyx`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..engine._code import Code, unroll
from ..engine.engine import EngineResult, ProgramGroup
from ..engine.trace import Trace
from ..lowering.context import LoweringPlan
from . import _occupancy as _occupancy

MOST_ROWS = 100_000  # records that are looked at
MOST_RECORDS = 1 << 20  # of a program, with those that it skips, whose slots are looked at
MOST_POINTS = 2000  # changes that are told of a buffer

Lives = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # number of a space, from when to when, bytes
Rows = dict[str, np.ndarray]  # fields of the timeline, of one program, by record
Points = tuple[tuple[float, int], ...]


def occupancy(
    plan: LoweringPlan, result: EngineResult, groups: Sequence[ProgramGroup], code: Code
) -> dict[str, Points]:
    """Buffer -> (cycle, bytes held from then on), of the core with most records in the timeline; as far as they are kept.

    code: of the groups. Of a long program only the first records are read, so a value that later ones read again ends
    too early.
    """
    t = result.timeline
    if not len(t):
        return {}
    at = np.flatnonzero(t["core"] == np.bincount(t["core"]).argmax())[:MOST_ROWS]
    at = at[np.lexsort((t["record"][at], t["program"][at]))]
    mine = {n: t[n][at] for n in ("program", "record", "instruction", "pipe", "start", "end", "amount")}
    until = min(result.timeline_until, float(mine["start"].max()) if len(at) == MOST_ROWS else np.inf)
    spaces = list(plan.placement.buffers)
    ends = np.append(np.flatnonzero(np.diff(mine["program"])) + 1, len(at)).tolist()
    found: list[Lives] = []
    for first, end in zip([0, *ends], ends, strict=False):
        rows = {n: x[first:end] for n, x in mine.items()}
        program = int(rows["program"][0])
        trace = next(g.trace for g in groups if program in g.programs)
        unrolled = _unrolled(code, program, 1 + int(rows["record"].max()))
        lives, known = _lives(plan, rows, trace, unrolled, spaces)
        unknown = rows["start"][rows["record"] >= known]
        until = min(until, np.nextafter(unknown.min(initial=np.inf), 0))
        found += [lives, *_scratch(plan, rows, trace, spaces)]
    if not found:
        return {}
    every = [np.concatenate(x) for x in zip(*found, strict=True)]
    return {name: _points(every, k, until) for k, name in enumerate(spaces) if (every[0] == k).any()}


def _unrolled(code: Code, program: int, records: int) -> tuple[np.ndarray, ...]:
    """The first records of a program, among them so many that it does not skip, as far as they are looked at."""
    limit = min(2 * records, MOST_RECORDS)
    while True:
        found = unroll(code, program, limit)
        if limit == MOST_RECORDS or len(found[0]) < limit or limit - int(found[1].sum()) >= records:
            return found
        limit = min(4 * limit, MOST_RECORDS)


def _lives(
    plan: LoweringPlan, rows: Rows, trace: Trace, unrolled: tuple[np.ndarray, ...], spaces: list[str]
) -> tuple[Lives, int]:
    """How long each value of one program is in its slot; and of how many records, the first ones, that is known."""
    instruction, skipped, starts, slots = unrolled
    number = np.flatnonzero(~skipped)  # among all records of those that the program executes
    count = int(np.searchsorted(rows["record"], len(number)))
    record = number[rows["record"][:count]].astype(np.int32)
    space, size = np.full(len(trace.flags), -1), np.zeros(len(trace.flags), np.int64)
    for s in plan.placement.slots:
        space[s.number : s.number + s.copies] = spaces.index(s.space)
        size[s.number : s.number + s.copies] = s.size
    most = 3 * len(slots) + len(space) + 1
    slot, start, end = np.empty(most, np.int32), np.empty(most), np.empty(most)
    found = _occupancy.lives(
        (space >= 0).astype(np.int8),
        record,
        rows["pipe"][:count],
        rows["start"][:count],
        rows["end"][:count],
        (rows["amount"][:count] != 0).astype(np.int8),
        np.ascontiguousarray(trace.pipe[instruction], np.int8),
        starts,
        slots,
        slot,
        start,
        end,
    )
    slot = slot[:found]
    return (space[slot], start[:found], end[:found], size[slot]), len(number)


def _scratch(plan: LoweringPlan, rows: Rows, trace: Trace, spaces: list[str]) -> Iterator[Lives]:
    """What operations use while they run."""
    if not plan.scratch:
        return
    line, occupancy = trace.line[rows["instruction"]], trace.occupancy[rows["instruction"]]
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

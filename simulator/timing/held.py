"""Bytes of each buffer that hold a value, over the time of one core: from the first write into a slot to its last read.

The records say which slots they read and write, the engine when they ran. A slot that is written once more before anybody
has read it (a sum in L0C, a tile that comes in two parts) holds one value all the while.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from .engine import EngineResult, Group
from .engine_inputs import Trace
from .plan import Plan

MOST_ROWS = 100_000  # records that are looked at
MOST_POINTS = 2000  # changes that are told of a buffer
PARTS = 2  # records before the one that writes a tile that may bring parts of it

Life = tuple[str, float, float, int]  # buffer, from when to when, bytes
Points = tuple[tuple[float, int], ...]


def held(plan: Plan, result: EngineResult, groups: Sequence[Group]) -> dict[str, Points]:
    """Buffer -> (cycle, bytes held from then on), of the core with most records in the timeline; as far as they are kept."""
    t = result.timeline
    if not len(t):
        return {}
    mine = t[t["core"] == np.bincount(t["core"]).argmax()][:MOST_ROWS]
    sizes = {s.number + k: (s.space, s.size) for s in plan.placement.slots for k in range(s.copies)}
    lives: dict[str, list[Life]] = {space: [] for space in plan.placement.buffers}
    for number in dict.fromkeys(mine["program"].tolist()):
        trace = next(g.trace for g in groups if number in g.programs)
        rows = mine[mine["program"] == number]
        for life in (*_lives(rows, trace, sizes), *_scratch(plan, rows, trace)):
            lives[life[0]].append(life)
    until = min(result.timeline_until, float(mine["start"].max()) if len(mine) == MOST_ROWS else np.inf)
    return {space: _points(found, until) for space, found in lives.items() if found}


def _lives(rows: np.ndarray, trace: Trace, sizes: dict[int, tuple[str, int]]) -> Iterator[Life]:
    """How long each value of one program is in its slot."""
    if trace.uses is None:
        return
    reads, writes, clobbers = trace.uses
    rows = np.sort(rows[rows["record"] < len(reads.start) - 1], order="record")
    now: dict[
        int, list[float]
    ] = {}  # slot -> since when, until when, whether it was read since it was written
    begun: dict[
        int, tuple[int, int, float]
    ] = {}  # slot -> transfer that may bring a part of it, its pipe, and when
    fields = [rows[n].tolist() for n in ("record", "pipe", "start", "end", "amount")]
    ran = set(fields[0])
    for r, pipe, start, end, amount in zip(*fields, strict=True):
        read = [s for s in reads.of(r) if s in now]
        for s in read:
            now[s][1:] = max(now[s][1], end), True
        for s in (*writes.of(r), *(_instead(r, pipe, ran, trace) if amount else ())):
            if s not in sizes:
                continue
            before = now.get(s)
            if before is not None and (s in read or not before[2]):
                before[1:] = max(before[1], end), False
                continue
            if before is not None:
                yield _named(sizes[s], before)
            part, its_pipe, since = begun.get(s, (-1, pipe, start))
            now[s] = [since if part >= r - PARTS and its_pipe == pipe else start, end, False]
        if amount:
            begun.update((s, (r, pipe, start)) for s in clobbers.of(r))
    for s, last in now.items():
        yield _named(sizes[s], last)


def _instead(r: int, pipe: int, ran: set[int], trace: Trace) -> list[int]:
    """Slots that a transfer fills in place of one of the next, which writes them and which its program skips."""
    assert trace.uses is not None
    _, writes, clobbers = trace.uses
    mine = clobbers.of(r)
    if not mine:
        return []
    later = [k for k in range(r + 1, min(r + 1 + PARTS, len(writes.start) - 1)) if k not in ran]
    same = [k for k in later if trace.pipe[trace.kinds_of(np.array([k]))[0]] == pipe]
    return [s for k in same for s in writes.of(k) if s in mine]


def _named(what: tuple[str, int], life: list[float]) -> Life:
    return what[0], life[0], life[1], what[1]


def _scratch(plan: Plan, rows: np.ndarray, trace: Trace) -> Iterator[Life]:
    """What operations use while they run."""
    if not plan.scratch:
        return
    kinds = trace.kinds_of(rows["record"])
    keys = zip(trace.line[kinds].tolist(), trace.occupancy[kinds].tolist(), strict=True)
    for row, key in zip(rows, keys, strict=True):
        slot = plan.scratch.get(key)
        if slot is not None:
            yield slot.space, float(row["start"]), float(row["end"]), slot.total


def _points(lives: list[Life], until: float) -> Points:
    """Stairs: what ends at a moment goes before what begins there."""
    changes = sorted(
        [(end, -size) for _, _, end, size in lives] + [(start, size) for _, start, _, size in lives]
    )
    out: list[tuple[float, int]] = []
    total = 0
    for cycle, change in changes:
        total += change
        if cycle > until:
            break
        if out and out[-1][0] == cycle:
            out.pop()
        if not out or out[-1][1] != total:
            out.append((cycle, total))
    return tuple(out[:MOST_POINTS])

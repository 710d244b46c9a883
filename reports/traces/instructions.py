"""What a trace says of one instruction: its name, its line, what it waited for. Read from the record, nothing is added."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .selection import TracePart


@dataclass(frozen=True)
class Told:
    """One instruction, in us. place: its row in the timeline. gap_us: the pipe was free before it, for `reason`.
    waited: row of the instruction that it waited for, if that is known."""

    place: int
    core: int
    pipe: str
    name: str
    start: float
    end: float
    gap_us: float
    reason: str | None
    waited: int | None
    details: dict[str, Any]


def instructions(part: TracePart) -> Iterator[Told]:
    """The instructions of a part, by start."""
    t, rows = part.timeline, part.rows
    arrays = (rows, t.core[rows], t.pipe[rows], part.start, part.end)
    more = (_gaps(part), _of(t.reason, rows, -1), _of(t.waited, rows, -1))
    columns = zip(*(x.tolist() for x in arrays), *more, strict=True)
    for place, core, pipe, start, end, gap, reason, waited in columns:
        why = t.reasons[reason] if 0 <= reason < len(t.reasons) else None
        cause, details = waited if waited >= 0 else None, _details(part, place)
        yield Told(place, core, t.pipes[pipe], name_of(part, place), start, end, gap, why, cause, details)


def name_of(part: TracePart, place: int) -> str:
    """The operation, or the path of a transfer; the pipe's name in records that know no better."""
    t = part.timeline
    return (t.names[int(t.name[place])] if t.name is not None else "") or t.pipes[int(t.pipe[place])]


def _details(part: TracePart, place: int) -> dict[str, Any]:
    t = part.timeline
    number = int(t.line[place])
    lines = part.launch.lines[number : number + 1] if number >= 0 else ()
    out: dict[str, Any] = {
        n: x for line in lines for n, x in (("line", f"{line.file}:{line.line}"), ("source", line.source))
    }
    cycles = {"start_cycle": t.start, "end_cycle": t.end, "done_cycle": t.done}
    out |= {"program": int(t.program[place]), **{n: float(x[place]) for n, x in cycles.items()}}
    if t.bytes is not None and t.bytes[place]:
        out["bytes"] = int(t.bytes[place])
    if t.bandwidth is not None and t.bandwidth[place] > 0:
        out["shared_bandwidth_cycles"] = float(t.bandwidth[place])
    return out


def _gaps(part: TracePart) -> list[float]:
    gap = part.timeline.gap
    found = np.zeros(len(part.rows)) if gap is None else gap[part.rows] * part.us_per_cycle
    return [float(x) for x in found]


def _of(values: np.ndarray | None, rows: np.ndarray, absent: int) -> list[int]:
    return [absent] * len(rows) if values is None else [int(x) for x in values[rows]]

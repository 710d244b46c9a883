"""Which instructions of a run a trace shows, in us since the run began.

Of a timeline that was cut these are the instructions of the cycles that it tells whole (`told_part`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ...simulator.errors import UsageError
from ...simulator.record.run import Launch, Run, Timeline
from ..facts.texts import clean
from ..facts.timelines import NOTHING, told_part, told_until

LIMIT = 100_000  # instructions; about 50 MB of JSON, which the viewers still open at once
MOST = 2_000_000  # MindStudio Insight advises against files above 1 GB


@dataclass(frozen=True)
class TracePart:
    """The chosen instructions of one launch.

    rows: their places in the launch's timeline, by start. start, end: [rows] in us since the run began.
    begins_us: when the launch's first cycle is. us_per_cycle: of the AI Core clock. told_us: up to when every instruction is
    there; the launch's end if all are, or if the record does not say. title: of its tracks ("launch 0 kernel"); number is
    its own among all parts of a trace.
    """

    number: int
    launch: Launch
    timeline: Timeline
    rows: np.ndarray
    start: np.ndarray
    end: np.ndarray
    begins_us: float
    us_per_cycle: float
    told_us: float
    title: str


@dataclass(frozen=True)
class Selection:
    """All counts are of records. parts: launch by launch. instructions: how many are shown. recorded: how many the run's
    record has to show, in the window or not. complete: whether every one of the run is shown. window_us: what was asked for.
    """

    parts: tuple[TracePart, ...]
    instructions: int
    recorded: int
    complete: bool
    window_us: tuple[float, float] | None = None


def select(run: Run, window_us: tuple[float, float] | None = None, limit: int = LIMIT) -> Selection:
    """The first `limit` instructions of the window, which is all the time if not given.

    Raises:
        UsageError: there is no timeline, the window is empty or before 0, or the limit is not in 1 to 2 000 000.
    """
    if not 1 <= limit <= MOST:
        raise UsageError(f"a trace has 1 to {MOST} instructions, {limit} were asked for")
    low, high = _window(window_us)
    every, complete, begins = [], True, 0.0
    for number, launch in enumerate(run.launches):
        part = _part(number, launch, begins)
        complete = complete and part is not None and part.timeline.complete
        if part is not None:
            every.append(part)
        begins += launch.time_us
    found = [_keep(part, np.flatnonzero((part.end >= low) & (part.start < high))) for part in every]
    inside, recorded = (sum(len(p.rows) for p in parts) for parts in (found, every))
    if not inside:
        raise UsageError(_nothing(run, every, low, high))
    shown = min(inside, limit)
    return Selection(_first(found, limit), shown, recorded, complete and shown == recorded, window_us)


def beside(a: Selection, b: Selection) -> Selection:
    """Both on one axis of time, which begins with both runs; their tracks say A and B."""
    first = 1 + max(p.number for p in a.parts)
    parts = [replace(p, title=f"A {p.title}") for p in a.parts]
    parts += [replace(p, title=f"B {p.title}", number=first + p.number) for p in b.parts]
    shown, recorded = a.instructions + b.instructions, a.recorded + b.recorded
    return Selection(tuple(parts), shown, recorded, a.complete and b.complete, a.window_us)


def _window(window_us: tuple[float, float] | None) -> tuple[float, float]:
    if window_us is None:
        return 0.0, math.inf
    low, high = window_us
    if not 0 <= low < high:
        raise UsageError(
            f"the window is {low:g} to {high:g} us; it must begin at 0 or later and end after that"
        )
    return low, high


def _nothing(run: Run, parts: list[TracePart], low: float, high: float) -> str:
    """Why the window shows nothing, and where there is something."""
    name = clean(run.name, 60)
    if not any(x.timeline is not None for x in run.launches):
        return (
            f"{name} has no timeline: it was run for values only or with timeline=0; run it again with time and the "
            "device option timeline, as sim.device(..., timeline=20000)"
        )
    if not any(len(p.rows) for p in parts):
        return f"{name}: {NOTHING}; run it again with a larger number"
    span = f"between {low:g} and {high:g} us" if high < math.inf else f"from {low:g} us on"
    return f"no instruction of {name} runs {span}: {_why(run, parts, low, high)}"


def _why(run: Run, parts: list[TracePart], low: float, high: float) -> str:
    if low >= run.time_us:
        return f"the run takes {run.time_us:g} us"
    cut = next((p for p in parts if not p.timeline.complete and p.told_us <= low < _ends(p)), None)
    if cut is not None:
        return (
            f"of launch {cut.number}, which runs then, the record keeps the first instructions, up to {cut.told_us:g} us; "
            "run it again with a larger device option timeline"
        )
    spans = [(float(p.start.min()), float(p.end.max())) for p in parts if len(p.rows)]
    before = [f"the last one before ends at {e:g} us" for _, e in reversed(spans) if e <= low][:1]
    after = [f"the next one begins at {s:g} us" for s, _ in spans if s >= high][:1]
    return "; ".join(["no pipe works then", *before, *after])


def _ends(part: TracePart) -> float:
    """When its launch is over, in us since the run began."""
    return part.begins_us + part.launch.cycles * part.us_per_cycle


def _part(number: int, launch: Launch, begins: float) -> TracePart | None:
    if launch.timeline is None or not len(launch.timeline.start):
        return None
    whole, until = launch.timeline, told_until(launch.timeline)
    per_cycle = launch.us_per_cycle if launch.cycles > 0 else math.nan
    times = np.stack([whole.start, whole.end, whole.done]).astype(np.float64)
    if not (math.isfinite(per_cycle) and per_cycle > 0 and np.isfinite(times).all()):
        raise UsageError(f"launch {number}: its times are no numbers, this record is damaged")
    zero, t = begins + launch.overhead_us, told_part(whole)
    start, end = (zero + x.astype(np.float64) * per_cycle for x in (t.start, t.end))
    order = np.argsort(start, kind="stable")
    title = f"launch {number} {clean(launch.kernel, 120)}"
    told = zero + (launch.cycles if until is None else until) * per_cycle
    return TracePart(number, launch, t, order, start[order], end[order], zero, per_cycle, told, title)


def _first(parts: list[TracePart], limit: int) -> tuple[TracePart, ...]:
    kept = []
    for part in parts:
        taken = min(len(part.rows), limit)
        limit -= taken
        if taken:
            kept.append(_keep(part, np.arange(taken)))
    return tuple(kept)


def _keep(part: TracePart, places: np.ndarray) -> TracePart:
    cut = {n: getattr(part, n)[places] for n in ("rows", "start", "end")}
    return replace(part, **cut)

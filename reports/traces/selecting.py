"""Which instructions of a run a trace shows, in us since the run began."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.run import Launch, Run, Timeline

LIMIT = 100_000  # instructions; about 50 MB of JSON, which the viewers still open at once
MOST = 2_000_000  # MindStudio Insight advises against files above 1 GB


@dataclass(frozen=True)
class Part:
    """The chosen instructions of one launch.

    rows: their places in the launch's timeline, by start. start, end, done: [rows] in us since the run began.
    begins_us: when the launch's first cycle is. us_per_cycle: of the AI Core clock.
    """

    number: int
    launch: Launch
    timeline: Timeline
    rows: np.ndarray
    start: np.ndarray
    end: np.ndarray
    done: np.ndarray
    begins_us: float
    us_per_cycle: float


@dataclass(frozen=True)
class Selection:
    """parts: launch by launch. instructions: how many are shown. recorded: how many the record has in the window.
    complete: whether the record has every instruction of the run."""

    parts: tuple[Part, ...]
    instructions: int
    recorded: int
    complete: bool


def select(run: Run, window_us: tuple[float, float] | None = None, limit: int = LIMIT) -> Selection:
    """The first `limit` instructions of the window, which is all the time if not given.

    Raises:
        UsageError: there is no timeline, the window is empty or before 0, or the limit is not in 1 to 2 000 000.
    """
    if not 1 <= limit <= MOST:
        raise UsageError(f"a trace has 1 to {MOST} instructions, {limit} were asked for")
    low, high = _window(window_us)
    found, complete, begins = [], True, 0.0
    for number, launch in enumerate(run.launches):
        part = _part(number, launch, begins)
        complete = complete and part is not None and part.timeline.complete
        if part is not None:
            found.append(_inside(part, low, high))
        begins += launch.time_us
    recorded = sum(len(p.rows) for p in found)
    _check(run, recorded, window_us)
    kept = _first(found, limit)
    return Selection(kept, min(recorded, limit), recorded, complete)


def _window(window_us: tuple[float, float] | None) -> tuple[float, float]:
    if window_us is None:
        return 0.0, math.inf
    low, high = window_us
    if not 0 <= low < high:
        raise UsageError(
            f"the window is {low:g} to {high:g} us; it must begin at 0 or later and end after that"
        )
    return low, high


def _check(run: Run, recorded: int, window_us: tuple[float, float] | None) -> None:
    if not any(x.timeline is not None for x in run.launches):
        raise UsageError(
            f"{run.name} has no timeline: it was run for values only or with timeline=0; run it again with time and the "
            "device option timeline, as sim.device(..., timeline=20000)"
        )
    if not recorded:
        low, high = window_us or (0.0, math.inf)
        raise UsageError(
            f"no instruction of {run.name} is recorded between {low:g} and {high:g} us; the run takes {run.time_us:g} us, "
            "and its timeline keeps the first instructions only (device option timeline)"
        )


def _part(number: int, launch: Launch, begins: float) -> Part | None:
    t = launch.timeline
    if t is None or not len(t.start):
        return None
    per_cycle = launch.us_per_cycle if launch.cycles > 0 else math.nan
    times = np.stack([t.start, t.end, t.done]).astype(np.float64)
    if not (math.isfinite(per_cycle) and per_cycle > 0 and np.isfinite(times).all()):
        raise UsageError(f"launch {number}: its times are no numbers, this record is damaged")
    zero = begins + launch.overhead_us
    start, end, done = zero + times * per_cycle
    order = np.argsort(start, kind="stable")
    return Part(number, launch, t, order, start[order], end[order], done[order], zero, per_cycle)


def _inside(part: Part, low: float, high: float) -> Part:
    return _keep(part, np.flatnonzero((part.end >= low) & (part.start < high)))


def _first(parts: list[Part], limit: int) -> tuple[Part, ...]:
    kept = []
    for part in parts:
        taken = min(len(part.rows), limit)
        limit -= taken
        if taken:
            kept.append(_keep(part, np.arange(taken)))
    return tuple(kept)


def _keep(part: Part, places: np.ndarray) -> Part:
    cut = {n: getattr(part, n)[places] for n in ("rows", "start", "end", "done")}
    return replace(part, **cut)

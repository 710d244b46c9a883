"""What views show of a timeline: the part that tells everything, and its instructions in lanes, one a pipe and core.

Beyond `Timeline.until` some instructions are missing, and no view shows that part; of other cores none may be there.

part = told_part(launch.timeline)
print(told_text(launch))  # "Shown: 9 of 40 cores (the slowest is core 3), from start to end; ..." or ""
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ...simulator.errors import UsageError
from ...simulator.record.run import Launch, Timeline
from . import facts, texts

NOTHING = "there is no cycle of which every instruction is kept (device option timeline)"
TICKS = 2**30  # at most, from the first cycle to the last
FINEST = 16  # ticks in a cycle at most
MOST_LANES = 4096
MOST_CYCLES = 2.0**50


def told_until(t: Timeline) -> float | None:
    """The cycle up to which every instruction is there; None where all of them are, or the record does not know."""
    return None if t.complete or not t.until > 0 else t.until


def told_part(t: Timeline) -> Timeline:
    """The instructions that start before that cycle; the same timeline where it is whole."""
    until = told_until(t)
    if until is None or not len(t.start) or float(t.start.max()) < until:
        return t
    kept = np.flatnonzero(t.start < until)
    arrays = {f.name: x for f in fields(t) if isinstance(x := getattr(t, f.name), np.ndarray)}
    cut: dict[str, Any] = {n: x[kept] for n, x in arrays.items()}
    if t.waited is not None:
        cut["waited"] = renumbered(t.waited[kept], kept, len(t.start))
    return replace(t, **cut)


def renumbered(waited: np.ndarray, kept: np.ndarray, count: int) -> np.ndarray:
    """Places among `kept`, in its order, of what has places among `count`; -1 for what is not kept."""
    place = np.full(count, -1, np.int32)
    place[kept] = np.arange(len(kept), dtype=np.int32)
    return np.where(waited >= 0, place[np.maximum(waited, 0)], -1).astype(np.int32)


def told_text(launch: Launch) -> str:
    """How much of the launch a timeline of it shows; empty where that is all of it."""
    t = launch.timeline
    if t is None or t.complete:
        return ""
    until = told_until(t)
    if until is None:
        return "The timeline is cut, and the record does not say where: instructions may be missing at any cycle."
    shown = int(np.count_nonzero(t.start < until))
    whose, when = _cores_text(launch, t), _cycles_text(launch, until)
    return f"Shown: {f'{whose}, {when}' if whose else when}; {shown:,} records of instructions."


def slowest_core(launch: Launch) -> int | None:
    """The core that was done last; None where the record does not tell."""
    cycles = launch.core_cycles
    return cycles.index(max(cycles)) if cycles else None


def core_text(launch: Launch, core: int) -> str:
    """ "core 3, the slowest of 40"; "core 3" where it is not that, or the only one."""
    slowest = core == slowest_core(launch) and launch.cores_used > 1
    return f"core {core}, the slowest of {launch.cores_used}" if slowest else f"core {core}"


def _cores_text(launch: Launch, t: Timeline) -> str:
    """ "9 of 40 cores (the slowest is core 3)"; "" where they are all there."""
    cores = np.unique(t.core)
    if len(cores) >= launch.cores_used:
        return ""
    if len(cores) == 1:
        return core_text(launch, int(cores[0]))
    slowest = f" (the slowest is core {slowest_core(launch)})" if slowest_core(launch) in cores else ""
    return f"{len(cores)} of {launch.cores_used} cores{slowest}"


def _cycles_text(launch: Launch, until: float) -> str:
    """ "from start to end", or how far the timeline goes."""
    if until >= launch.cycles:
        return "from start to end"
    part = texts.percent(facts.share(until, launch.cycles))
    return f"the first {texts.count(until)} of {texts.count(launch.cycles)} cycles ({part})"


@dataclass(frozen=True)
class Lanes:
    """Instructions in the order of their lanes. start, end: in ticks; first: where each lane begins, and the end of all."""

    order: np.ndarray
    start: np.ndarray
    end: np.ndarray
    first: np.ndarray
    keys: list[tuple[int, int]]  # core and pipe of each lane
    span: int
    cycles_per_tick: float


def sort_lanes(t: Timeline) -> Lanes:
    """Lanes in the order of cores and pipes; in each, instructions in the order of time and never two at once.

    The axis ends with the last instruction, of a timeline that was cut where it stops telling everything (`told_part`).
    """
    start, end = (np.clip(np.nan_to_num(x, posinf=0.0), 0.0, MOST_CYCLES) for x in (t.start, t.end))
    core, pipe = t.core.astype(np.int64), t.pipe.astype(np.int64)
    order = np.lexsort((start, pipe, core))
    core, pipe, start, end = core[order], pipe[order], start[order], end[order]
    breaks = np.flatnonzero((np.diff(core) != 0) | (np.diff(pipe) != 0)) + 1
    first = np.concatenate([[0], breaks, [len(core)]]) if len(core) else np.zeros(1, np.int64)
    if len(first) - 1 > MOST_LANES:
        raise UsageError(
            f"its timeline names {len(first) - 1} pipes of cores, a page shows {MOST_LANES} at most"
        )
    until = told_until(t)
    cycles = float(end.max(initial=1.0)) or 1.0
    shown = cycles if until is None else min(cycles, until)
    per_cycle = min(float(FINEST), 2.0 ** math.floor(math.log2(TICKS / cycles)))
    begin = np.rint(start * per_cycle).astype(np.int64)
    finish = np.maximum(np.rint(end * per_cycle).astype(np.int64), begin)
    _cut_overlaps(begin, finish, first)
    keys = [(int(core[k]), int(pipe[k])) for k in first[:-1]]
    return Lanes(order, begin, finish, first, keys, max(1, round(shown * per_cycle)), 1.0 / per_cycle)


def _cut_overlaps(begin: np.ndarray, finish: np.ndarray, first: np.ndarray) -> None:
    """A pipe does one thing at a time: what rounding (or a strange record) lets overlap ends where the next begins."""
    last = np.zeros(len(begin), bool)
    last[first[1:] - 1] = True
    following = np.append(begin[1:], 0)
    np.minimum(finish, following, out=finish, where=~last)

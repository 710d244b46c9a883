"""The part of a timeline that tells everything: beyond `Timeline.until` some instructions are missing, and no view shows it.

part = told_part(launch.timeline)
print(told_words(launch))  # "the first 14,386 of 68,432 cycles, 21 %, ..." or ""
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from ascendtile.reports.facts import facts, words
from ascendtile.simulator.record.run import Launch, Timeline

NOTHING = "there is no cycle of which every instruction is kept (device option timeline)"


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


def told_words(launch: Launch) -> str:
    """How much of the launch a timeline of it shows; empty where that is all of it."""
    t = launch.timeline
    if t is None or t.complete:
        return ""
    until = told_until(t)
    if until is None:
        return "The timeline is cut, and the record does not say where: instructions may be missing at any cycle."
    shown = int(np.count_nonzero(t.start < until))
    part = words.percent(facts.share(until, launch.cycles))
    return (
        f"Shown are the first {words.count(until)} of {words.count(launch.cycles)} cycles ({part}), {shown:,} records of "
        f"instructions: the run was told to keep {len(t.start):,}, and from there on some are missing."
    )

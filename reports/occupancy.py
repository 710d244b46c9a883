"""How full a buffer is over time: the steps of the program that the ledger holds, at the cycles when one core came there."""

from __future__ import annotations

import numpy as np

from ascendtile.simulator.run import Buffer, Launch

MOST_POINTS = 4000


def over_time(launch: Launch, buffer: Buffer) -> tuple[list[tuple[float, int]], str]:
    """([(cycle, bytes alive from then on)], what the axis is). Without a timeline cycles are steps of the program.

    An instruction has the bytes of its source line; of several steps of a line it is the fullest. Core and program are the
    first that the timeline has.
    """
    level: dict[int, int] = {}
    for line, size in buffer.steps:
        level[line] = max(size, level.get(line, 0))
    found = _at_cycles(launch, level)
    if not found:
        return _merged([(float(k), size) for k, (_, size) in enumerate(buffer.steps)]), "step of the program"
    return _merged(found), "cycle of the first program"


def _at_cycles(launch: Launch, level: dict[int, int]) -> list[tuple[float, int]]:
    t = launch.timeline
    if t is None or not len(t.start) or not level:
        return []
    mine = np.flatnonzero((t.core == t.core[0]) & (t.program == t.program[0]))
    mine = mine[np.argsort(t.start[mine], kind="stable")][: MOST_POINTS * 8]
    lines = [x.line for x in launch.lines]
    places = [(float(t.start[i]), int(t.line[i])) for i in mine]
    return [(c, level[lines[k]]) for c, k in places if 0 <= k < len(lines) and lines[k] in level]


def _merged(points: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Without points that change nothing, and not more than a page can show."""
    kept = [p for k, p in enumerate(points) if k in (0, len(points) - 1) or p[1] != points[k - 1][1]]
    return kept[:MOST_POINTS]

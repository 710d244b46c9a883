"""What slows a kernel, line by line: work on the scalar unit, discrete accesses, added casts and copies, dearest first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, NamedTuple

from ....simulator.messages import Message
from ....simulator.record.run import Run
from ....simulator.record.slowing import SORTS, Slowing
from .. import facts, texts

TITLE = "what slows this kernel"
LEAD = "each line with its whole time"


class SlowLine(NamedTuple):
    """us: time of the line in all launches; None where lines were not charged. share: of the run's time.

    found: what the compiler makes of it, the worst sort first. cures: what to write instead, each once.
    """

    file: str
    line: int
    us: float | None
    share: float
    found: tuple[Slowing, ...]

    @property
    def cures(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(x.cure for x in self.found))

    @property
    def place(self) -> str:
        return texts.cut(texts.place(self.file, self.line), 44)

    @property
    def cost(self) -> str:
        """12.3 us (34 %)"""
        return "" if self.us is None else f"{texts.micros(self.us)} us ({texts.percent(self.share)})"


def slow_lines(run: Run) -> list[SlowLine]:
    """Of all launches, the dearest line first."""
    lines: dict[tuple[str, int], dict[Slowing, None]] = {}
    for x in _found(run):
        lines.setdefault((x.file, x.line), {})[x] = None
    times = _line_times(run)
    rows = [_row(place, found, times, run) for place, found in lines.items()]
    return sorted(rows, key=lambda row: -(row.us or 0.0))


def _row(
    place: tuple[str, int], found: Iterable[Slowing], times: dict[tuple[str, int], float], run: Run
) -> SlowLine:
    us = times.get(place, 0.0) if times else None
    known = {sort: k for k, sort in enumerate(SORTS)}
    ordered = sorted(found, key=lambda x: known.get(x.sort, len(SORTS)))
    return SlowLine(*place, us, facts.share(us or 0.0, run.time_us), tuple(ordered))


def _found(run: Run) -> list[Slowing]:
    return [x for launch in run.launches for x in launch.slowing]


def _line_times(run: Run) -> dict[tuple[str, int], float]:
    out: dict[tuple[str, int], float] = {}
    for launch in run.launches:
        for cost in launch.lines:
            key = cost.file, cost.line
            out[key] = out.get(key, 0.0) + cost.cycles * launch.us_per_cycle
    return out


def other_messages(run: Run) -> list[Message]:
    """The warnings that are not in the list of what slows the kernel already."""
    listed = {f"{x.file}:{x.line}: {x.what}" for x in _found(run)}
    return [m for m in run.warnings if str(m) not in listed]


def slowing_json(run: Run) -> list[dict[str, Any]]:
    """One object for each finding, in the order of `slow_lines`; line_time_us and share are of the whole line."""
    return [
        {**asdict(x), "line_time_us": row.us, "share": row.share}
        for row in slow_lines(run)
        for x in row.found
    ]

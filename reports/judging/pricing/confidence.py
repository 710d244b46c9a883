"""How far a time can be trusted: by the interval that nine of ten measured times lie in, and by what nobody measured.

high       the interval's end is at most `HIGH` times its start
medium     at most `MEDIUM` times
low        wider; or few kernels were measured on such cores; or much of the time passes where few measurements tell the
           cost: element by element on the scalar unit, in discrete accesses, by assumed figures
defer      there is no interval: a machine or a rule was changed for a what-if, or there is no time

The rule is held against the published measurements of `kernels/validation`: errors of rows that are "high" are smaller
than those of "medium", and these than those of "low" (a test says so).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....simulator.timing.results.error_model import ENOUGH_ROWS, NOT_DOCUMENTED
from ...facts import texts
from ..answer_log import LaunchLog

DEFER = "defer"
HIGH, MEDIUM = 1.8, 2.5  # end of the interval over its start
UNSURE_SHARE = 0.3  # of the time
UNMEASURED = ("scalar", "discrete")  # sorts of what slows a line
Found = tuple[str, str]  # level, and why in a clause


def confidence(logs: Sequence[LaunchLog]) -> Found:
    """ "high", "medium", "low" or "defer", and the reason, of the launches of one call."""
    total = sum(x.time_us for x in logs)
    if not total:
        return DEFER, "there is no time"
    if any(x.low_us is None or x.high_us is None for x in logs):
        return (
            DEFER,
            "no measured kernel tells how far the time is off: a figure or a rule was changed for a what-if",
        )
    low, high = (sum(getattr(x, end) or 0.0 for x in logs) for end in ("low_us", "high_us"))
    rows = min(int(_number(x.run.get("measured_rows"))) for x in logs)
    unsure = [(name, share) for name, share in _shares(logs, total).items() if share >= UNSURE_SHARE]
    return by_figures(high / low if low else float("inf"), rows, unsure)


def by_figures(width: float, rows: int, unsure: Sequence[tuple[str, float]] = ()) -> Found:
    """width: end of the interval over its start; rows: kernels measured on such cores; unsure: what, with its share."""
    if rows < ENOUGH_ROWS:
        return "low", f"{rows} kernels were measured on cores like these"
    if unsure:
        name, share = max(unsure, key=lambda item: item[1])
        return "low", f"{texts.percent(share)} of the time is {name}"
    told = f"nine of ten times of {rows} measured kernels lie in an interval whose end is {width:.2g} times its start"
    return ("high" if width <= HIGH else "medium" if width <= MEDIUM else "low"), told


def _shares(logs: Sequence[LaunchLog], total: float) -> dict[str, float]:
    """What no measurement tells -> its share of the time."""
    slow = assumed = 0.0
    for x in logs:
        lines = {
            _line(s): _number(s.get("line_time_us")) for s in _records(x.run.get("slowing")) if _unsure(s)
        }
        slow += x.count * sum(lines.values())
        grades = x.run.get("grades_us")
        whole = _number(x.run.get("time_us")) or 1.0
        taken = (
            sum(_number(us) for g, us in grades.items() if g in NOT_DOCUMENTED)
            if isinstance(grades, dict)
            else 0.0
        )
        assumed += x.time_us * taken / whole
    return {
        "spent in discrete accesses and on the scalar unit, whose cost few measurements tell": min(
            1.0, slow / total
        ),
        "by figures that are assumed or come from third parties": min(1.0, assumed / total),
    }


def _records(found: Any) -> list[Mapping[str, Any]]:
    return [x for x in found if isinstance(x, Mapping)] if isinstance(found, list) else []


def _unsure(slowing: Mapping[str, Any]) -> bool:
    return slowing.get("sort") in UNMEASURED


def _line(slowing: Mapping[str, Any]) -> tuple[str, str]:
    return str(slowing.get("file")), str(slowing.get("line"))


def _number(x: object) -> float:
    """Of a record that another process wrote; 0 for what is none."""
    return float(x) if isinstance(x, int | float) else 0.0

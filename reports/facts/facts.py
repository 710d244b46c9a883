"""What all views of one run say: read from the record, never changed; absent facts are None or empty."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...simulator.record.run import LineCost, Pipe, Run
from . import texts

SMALLEST_SHARE = 0.005  # of the cycles; waits below it are not named


@dataclass(frozen=True)
class Bound:
    """The limit that binds: no schedule is faster than `time_us`; `fraction` of the run's time is that."""

    name: str
    time_us: float
    fraction: float


def timed(run: Run) -> bool:
    """Whether the run has times; without, only values were asked for."""
    return bool(run.launches)


def binding(run: Run) -> Bound | None:
    """The largest of the lower bounds."""
    if not run.bounds:
        return None
    name, time_us = run.bound
    return Bound(name, time_us, share(time_us, run.time_us))


def allowed(bound: Bound) -> str:
    """HBM bandwidth allows 28.8 us, 74 % of the run's time"""
    name = texts.bound_meaning(bound.name)
    share = f"{texts.percent(bound.fraction)} of the run's time"
    return f"{name[:1].upper()}{name[1:]} allows {texts.micros(bound.time_us)} us, {share}"


def time_text(run: Run, clock: str = "") -> str:
    """37.1 us: 62,452 cycles + 2.40 us launch overhead. clock: what is said after the cycles."""
    overhead = texts.micros(sum(x.overhead_us for x in run.launches))
    return f"{texts.micros(run.time_us)} us: {texts.count(run.cycles)} cycles{clock} + {overhead} us launch overhead"


def share(part: float, whole: float) -> float:
    """part / whole, 0 where there is no whole."""
    return part / whole if whole else 0.0


def dear_lines(run: Run) -> tuple[LineCost, ...]:
    """Source lines, dearest first; a line that several launches run is one entry."""
    merged: dict[tuple[str, int], LineCost] = {}
    for cost in run.lines:
        key = cost.file, cost.line
        merged[key] = _together(merged[key], cost) if key in merged else cost
    return tuple(sorted(merged.values(), key=lambda cost: -cost.cycles))


def _together(a: LineCost, b: LineCost) -> LineCost:
    busy = {n: a.busy.get(n, 0.0) + b.busy.get(n, 0.0) for n in {**a.busy, **b.busy}}
    return replace(a, cycles=a.cycles + b.cycles, busy=busy)


def main_stall(pipe: Pipe) -> tuple[str, float] | None:
    """What the pipe waits for most, and the cycles; None if it never waits."""
    stalls = {reason: cycles for reason, cycles in pipe.waits.items() if cycles > 0}
    if not stalls:
        return None
    reason = max(stalls, key=lambda r: stalls[r])
    return reason, stalls[reason]


def main_stall_text(pipe: Pipe, cycles: float) -> str:
    """data (31 %), of the run's `cycles`; empty if the pipe hardly ever waits"""
    found = main_stall(pipe)
    part = share(found[1], cycles) if found else 0.0
    if found is None or part < SMALLEST_SHARE:
        return ""
    return f"{texts.clean(texts.STALLS.get(found[0], found[0]), 40)} ({texts.percent(part)})"


def figures(run: Run) -> dict[str, dict[str, Any]]:
    """The figures of the product that the record holds, which may be anybody's."""
    found = run.product.get("figures")
    return {k: f for k, f in found.items() if isinstance(f, dict)} if isinstance(found, dict) else {}


def product_figure(run: Run, key: str) -> Any:
    """The value of a figure of the product, None if the record has none of that name."""
    return figures(run).get(key, {}).get("value")


def product_name(run: Run) -> str:
    """ascend910b3"""
    return str(run.product.get("name") or "unknown product")


def overrides(run: Run) -> dict[str, Any]:
    """The figures that were changed for this run: key -> value."""
    return {k: f.get("value") for k, f in figures(run).items() if f.get("overridden")}


MOST_SHARES = 8  # lines of an output that are shown
LEAST_SHARE = 0.001


def error_reference(run: Run) -> str:
    """What the errors of a run are against."""
    return "reference" if "reference" in str(run.options.get("errors", "")) else "float64"


def error_shares(run: Run) -> list[tuple[str, str, float]]:
    """Output, place ("file.py:12") and share of its error: the largest of each output, and the rest together."""
    out = []
    for name, shares in run.error_lines.items():
        order = sorted(shares.items(), key=lambda x: -abs(x[1]))
        shown = [(p, x) for p, x in order[:MOST_SHARES] if abs(x) >= LEAST_SHARE]
        out += [(name, place.rpartition("/")[2], x) for place, x in shown]
        if len(order) > len(shown):
            out.append(
                (name, f"{len(order) - len(shown)} more lines", sum(x for _, x in order[len(shown) :]))
            )
    return out

"""Whether the figures of a record can be those of a run: a file may satisfy every type and still say what nothing does.

    check_figures(run)  # UsageError: launches.0.cycles is -5.0; it must be 0 or more and below 1e30

Checked is what no kernel on any product gives: figures that are negative or no number, times that run backwards or beyond
the launch, counts beyond what they count, cores beyond the product's, lines of another file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from ..errors import UsageError
from ..precision.metrics import ErrorReport, histogram_labels
from .files import picked
from .run import Buffer, Launch, Pipe, Run, Timeline

ROUNDING = 1e-6  # of a launch's cycles: sums of many figures
FREE = ("constants", "timeline")  # fields of a launch without figures of their own, or checked elsewhere
MOST = 1e30  # of a figure: pages add and multiply a few of them
POSSIBLE = "it must be 0 or more and below 1e30"


def check_figures(run: Run) -> None:
    """`UsageError` names the first field that cannot be true."""
    for k, launch in enumerate(run.launches):
        _launch(launch, f"launches.{k}", run)
    for name, report in run.errors.items():
        _errors(report, f"errors.{name[:40]}")
    for name, value in picked(run, "changes values_seconds time_seconds").items():
        for where, x in _figures(value, name):
            _expect(0 <= x < MOST, where, x, POSSIBLE)


def _expect(true: bool, where: str, x: Any, rule: str) -> None:
    if not true:
        raise UsageError(f"is damaged: {where} is {x}; {rule}")


def _figures(value: Any, where: str) -> Iterator[tuple[str, float]]:
    """Every number inside, with the path of its field."""
    if isinstance(value, bool | str) or value is None:
        return
    if isinstance(value, int | float):
        yield where, value
    elif isinstance(value, tuple):
        for k, x in enumerate(value):
            yield from _figures(x, f"{where}.{k}")
    elif isinstance(value, dict):
        for key, x in value.items():
            yield from _figures(x, f"{where}.{key[:40]}")
    elif is_dataclass(value):
        for f in fields(value):
            yield from _figures(getattr(value, f.name), f"{where}.{f.name}")


def _launch(launch: Launch, where: str, run: Run) -> None:
    # What is left of a difference may be less than 0 by a rounding.
    least = -ROUNDING * launch.cycles if 0 < launch.cycles < MOST else 0.0
    for f in fields(launch):
        if f.name not in FREE:
            for name, x in _figures(getattr(launch, f.name), f"{where}.{f.name}"):
                _expect(least <= x < MOST, name, x, POSSIBLE)
    whole = f"the whole launch takes {launch.time_us} us"
    most_us = launch.time_us * (1 + ROUNDING)
    _expect(launch.overhead_us <= most_us, f"{where}.overhead_us", launch.overhead_us, whole)
    if launch.measured_rows is not None and launch.low_us is not None and launch.high_us is not None:
        _expect(launch.low_us <= most_us, f"{where}.low_us", launch.low_us, whole)
        _expect(launch.high_us * (1 + ROUNDING) >= launch.time_us, f"{where}.high_us", launch.high_us, whole)
    most = launch.cycles * launch.cores * max(1, len(launch.pipes)) + 1
    rule = f"{len(launch.pipes)} pipes of {launch.cores} cores take no more than {most:.4g} in that time"
    _expect(launch.instructions <= most, f"{where}.instructions", launch.instructions, rule)
    _cores(launch, where, run)
    spent = sum(x.cycles for x in launch.lines) + launch.other_cycles
    same = abs(spent - launch.cycles) <= ROUNDING * max(1.0, launch.cycles)
    rule = f"they must add up to the launch's {launch.cycles} cycles"
    _expect(same, f"{where}.lines and other_cycles together", spent, rule)
    for n, pipe in launch.pipes.items():
        _pipe(pipe, launch, f"{where}.pipes.{n[:40]}")
    for n, b in launch.buffers.items():
        _buffer(b, launch.cycles, f"{where}.buffers.{n[:40]}")
    if launch.timeline is not None:
        _timeline(launch.timeline, launch, f"{where}.timeline")


def _cores(launch: Launch, where: str, run: Run) -> None:
    most = _cores_of(run.product)
    if most is not None:
        _expect(launch.cores <= most, f"{where}.cores", launch.cores, f"the run's product has {most} at most")
    used = f"{where}.cores_used"
    _expect(launch.cores_used <= launch.cores, used, launch.cores_used, f"there are {launch.cores} cores")
    programs = launch.programs
    _expect(launch.cores_used <= programs, used, launch.cores_used, f"there are {programs} programs")
    _each_core(launch.core_cycles, launch, f"{where}.core_cycles")
    for n, each in launch.core_bytes.items():
        _each_core(each, launch, f"{where}.core_bytes.{n[:40]}")
    _within(max(launch.core_cycles, default=0.0), launch.cycles, f"{where}.core_cycles at most")


def _each_core(each: tuple[float, ...], launch: Launch, where: str) -> None:
    """A figure for each core, or none."""
    rule = f"there are {launch.cores} cores"
    _expect(len(each) in (0, launch.cores), f"the length of {where}", len(each), rule)


def _cores_of(product: dict[str, Any]) -> int | None:
    """The cores of the product that a record holds; None where it does not say."""
    figures = product.get("figures")
    found = [figures.get(f"cores.{n}_cores") for n in ("cube", "vector")] if isinstance(figures, dict) else []
    counts = [f.get("value") for f in found if isinstance(f, dict)]
    whole = [x for x in counts if isinstance(x, int) and not isinstance(x, bool)]
    return max(whole, default=None)


def _within(cycles: float, whole: float, where: str) -> None:
    rule = f"the launch takes {whole} cycles in all"
    _expect(cycles <= whole * (1 + ROUNDING) + ROUNDING, where, cycles, rule)


def _pipe(pipe: Pipe, launch: Launch, where: str) -> None:
    _within(pipe.busy_cycles, launch.cycles, f"{where}.busy_cycles")
    _expect(pipe.share <= 1 + ROUNDING, f"{where}.share", pipe.share, "no more than all of the time can be")
    apart = {**pipe.core_conflicts, "core_busy": pipe.core_busy, "core_waits": pipe.core_waits}
    for name, each in apart.items():
        _each_core(each, launch, f"{where}.{name[:40]}")
        _within(max(each, default=0.0), launch.cycles, f"{where}.{name[:40]} at most")


def _buffer(b: Buffer, cycles: float, where: str) -> None:
    rule = f"the buffer has {b.capacity_bytes} bytes, and what does not fit does not run"
    for name, size in picked(b, "peak_bytes placed_bytes").items():
        _expect(size <= b.capacity_bytes, f"{where}.{name}", size, rule)
    _within(max((c for c, _ in b.held), default=0.0), cycles, f"{where}.held at most, the cycle of which,")


def _timeline(t: Timeline, launch: Launch, where: str) -> None:
    """Arrays of one length, which `record/loading.py` has looked at."""
    for name, values in picked(t, "start end done gap bandwidth bytes").items():
        if values is not None and len(values):
            bad = ~((values >= 0) & (values < MOST))
            _expect(not bad.any(), f"{where}.{name}", _first(values, bad), POSSIBLE)
    for name in ("end", "done"):
        early = getattr(t, name) < t.start
        if early.any():
            begun = f"that instruction starts at cycle {_first(t.start, early)}"
            raise UsageError(f"is damaged: {where}.{name} is {_first(getattr(t, name), early)}; {begun}")
    _expect(0 <= t.until < MOST, f"{where}.until", t.until, POSSIBLE)
    _within(float(t.end.max(initial=0.0)), launch.cycles, f"{where}.end at most")
    limits = {
        **{"core": (0, launch.cores), "pipe": (0, len(t.pipes)), "program": (0, launch.programs)},
        **{"line": (-1, len(launch.lines)), "record": (0, 2**62), "reason": (-1, len(t.reasons))},
        **{"waited": (-1, len(t.pipe)), "name": (0, len(t.names))},
    }
    for name, (low, count) in limits.items():
        values = getattr(t, name)
        if values is None:  # of an earlier version
            continue
        bad = (values < low) | (values >= count)
        _expect(not bad.any(), f"{where}.{name}", _first(values, bad), f"it must be {low} to {count - 1}")


def _first(values: np.ndarray, chosen: np.ndarray) -> Any:
    return values[chosen][0].item() if chosen.any() else None


def _errors(report: ErrorReport, where: str) -> None:
    """Sizes may be NaN or infinite; counts are of elements."""
    count = math.prod(report.shape)
    counts = "compared exact overflow nan underflow subnormal nan_mismatch inf_mismatch small_errors"
    for name, x in picked(report, counts).items():
        _expect(0 <= x <= count, f"{where}.{name}", x, f"there are {count} elements")
    bins, labels = report.ulp_histogram, len(histogram_labels())
    _expect(len(bins) == labels, f"the length of {where}.ulp_histogram", len(bins), f"it has {labels} bins")
    _expect(min(bins) >= 0, f"{where}.ulp_histogram", min(bins), "counts are 0 or more")
    _expect(sum(bins) <= count, f"the sum of {where}.ulp_histogram", sum(bins), f"there are {count} elements")

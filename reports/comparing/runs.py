"""Two runs side by side: which pipe, line and wait won or lost the time. All figures are in us: clocks may differ."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.run import Launch, Run

OTHER = "dispatch, idle cores, launches"  # what belongs to no source line


@dataclass(frozen=True)
class Pair:
    """One figure of both runs; None where a run has no such thing."""

    name: str
    first: float | None
    second: float | None

    @property
    def change(self) -> float:
        """second - first; what is not there counts as 0."""
        return (self.second or 0.0) - (self.first or 0.0)


@dataclass(frozen=True)
class RunDifference:
    """All in us but `buffers`, which is in bytes.

    time: the whole run. lines: each source line's part of the time, what moved most first; with `other` they add up to
    `time`. busy: pipe by pipe. waits: "AIV.V waits for data". bounds: lower bounds. traffic: bytes from HBM, L2.
    settings: choices that differ, as words (name, first, second).
    """

    first: Run
    second: Run
    time: Pair
    lines: tuple[Pair, ...]
    other: Pair
    busy: tuple[Pair, ...]
    waits: tuple[Pair, ...]
    bounds: tuple[Pair, ...]
    buffers: tuple[Pair, ...]
    traffic: tuple[Pair, ...]
    settings: tuple[tuple[str, str, str], ...]


def compare_runs(first: Run, second: Run) -> RunDifference:
    """What changed from `first` to `second`; `UsageError` if one of them has no times."""
    for run in (first, second):
        if not run.launches:
            raise UsageError(f"{run.name} was run for values only, it has no times to compare")
    lines = _lines(first), _lines(second)
    rest = [run.time_us - sum(found.values()) for run, found in zip((first, second), lines, strict=True)]
    peaks = [{n: float(b.peak_bytes) for n, b in run.buffers.items()} for run in (first, second)]
    return RunDifference(
        first,
        second,
        Pair("time", first.time_us, second.time_us),
        _pairs(*lines, by_change=True),
        Pair(OTHER, rest[0], rest[1]),
        _pairs(_busy(first), _busy(second)),
        _pairs(_waits(first), _waits(second), by_change=True),
        _pairs(first.bounds, second.bounds),
        _pairs(peaks[0], peaks[1]),
        _pairs(_traffic(first), _traffic(second)),
        _settings(first, second),
    )


def _pairs(a: dict[str, float], b: dict[str, float], by_change: bool = False) -> tuple[Pair, ...]:
    found = [Pair(n, a.get(n), b.get(n)) for n in dict.fromkeys((*a, *b))]
    return tuple(sorted(found, key=lambda p: -abs(p.change))) if by_change else tuple(found)


def _us(launch: Launch, cycles: float) -> float:
    return cycles * (launch.time_us - launch.overhead_us) / launch.cycles if launch.cycles else 0.0


def _lines(run: Run) -> dict[str, float]:
    """Line -> us. A line is known by its file's name, its number and its text, wherever the file lies."""
    out: dict[str, float] = {}
    for launch in run.launches:
        for cost in launch.lines:
            name = f"{PurePath(cost.file).name}:{cost.line}  {cost.source.strip()}"
            out[name] = out.get(name, 0.0) + _us(launch, cost.cycles)
    return out


def _busy(run: Run) -> dict[str, float]:
    out: dict[str, float] = {}
    for launch in run.launches:
        for name, pipe in launch.pipes.items():
            out[name] = out.get(name, 0.0) + _us(launch, pipe.busy_cycles)
    return out


def _waits(run: Run) -> dict[str, float]:
    out: dict[str, float] = {}
    for launch in run.launches:
        for name, pipe in launch.pipes.items():
            for reason, cycles in pipe.stalls.items():
                key = f"{name} waits for {reason}"
                out[key] = out.get(key, 0.0) + _us(launch, cycles)
    return out


def _traffic(run: Run) -> dict[str, float]:
    out: dict[str, float] = {}
    for launch in run.launches:
        for name, amount in launch.resources.items():
            out[name] = out.get(name, 0.0) + amount
    return out


def _settings(first: Run, second: Run) -> tuple[tuple[str, str, str], ...]:
    a, b = _said(first), _said(second)
    return tuple((n, a.get(n, "-"), b.get(n, "-")) for n in dict.fromkeys((*a, *b)) if a.get(n) != b.get(n))


def _said(run: Run) -> dict[str, str]:
    base = {
        "product": run.product.get("name"),
        "dtype": run.dtype,
        "case": run.case,
        "cube": run.cube_math_type,
    }
    said = {**base, "operator": run.op or run.name, **run.inputs, **run.options, **run.tiling}
    return {n: str(x) for n, x in said.items()}

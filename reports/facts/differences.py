"""Two runs side by side: which pipe, line and wait won or lost the time. All figures are in us: clocks may differ."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Self

from ...simulator.errors import UsageError
from ...simulator.record.files import picked
from ...simulator.record.lazy_views import ShownRecord, write
from ...simulator.record.run import SHARED, Launch, Run, add_up
from . import facts, texts
from .authors import compiler

BITS = "effective bits"  # of which more is better
LEAST_US = 1e-9  # shorter waits are rounding
OTHER = "dispatch, idle cores, launches"  # what belongs to no source line


@dataclass(frozen=True)
class FigurePair:
    """One figure of both runs; None where a run has no such thing."""

    name: str
    first: float | None
    second: float | None

    @property
    def change(self) -> float:
        """second - first; what is not there counts as 0."""
        return (self.second or 0.0) - (self.first or 0.0)


@dataclass(frozen=True)
class RunDifference(ShownRecord):
    """The difference of two runs: `print(d)`, `d.html(path)`, `d.csv(path)`; a notebook shows it.

    All in us but `buffers` and `traffic`, which are in bytes, and `errors`.

    time: the whole run; of None where a run has values only. lines: each source line's part of the time, what moved most
    first; with `other` they add up to `time`. busy: pipe by pipe. waits: "AIV.V waits for data". bounds: lower bounds.
    traffic: bytes from HBM, L2. errors: the largest in ulp, and the effective bits, of each output. settings: choices that
    differ, as texts (name, first, second).
    """

    first: Run
    second: Run
    time: FigurePair
    lines: tuple[FigurePair, ...]
    other: FigurePair
    busy: tuple[FigurePair, ...]
    waits: tuple[FigurePair, ...]
    bounds: tuple[FigurePair, ...]
    buffers: tuple[FigurePair, ...]
    traffic: tuple[FigurePair, ...]
    errors: tuple[FigurePair, ...]
    settings: tuple[tuple[str, str, str], ...]

    def csv(self, path: str | Path) -> None:
        """Write every figure of both runs to `path` as one table."""
        write("csv", self, path)

    @property
    def every_line(self) -> tuple[FigurePair, ...]:
        """`lines` and `other`; none of runs without times."""
        return (*self.lines, *(() if self.other.first is self.other.second is None else (self.other,)))

    def __repr__(self) -> str:
        """One line; `print(...)` shows the whole."""
        a, b = ("values only" if x is None else f"{x:.4g} us" for x in (self.time.first, self.time.second))
        return f"<RunDifference A {a}, B {b}>"

    @classmethod
    def of(cls, first: Run, second: Run) -> Self:
        """What changed from `first` to `second`; `UsageError` if there is nothing that both of them have."""
        timed = facts.timed(first) and facts.timed(second)
        if not timed and not (first.errors and second.errors):
            values = first if not facts.timed(first) else second
            name = texts.clean(values.name, 60)
            raise UsageError(f"{name} was run for values only, it has no times to compare")
        lines = _lines(first, second)
        sums = sum(p.first or 0.0 for p in lines), sum(p.second or 0.0 for p in lines)
        whole = [run.time_us if facts.timed(run) else None for run in (first, second)]
        peaks = [{n: float(b.peak_bytes) for n, b in run.buffers.items()} for run in (first, second)]
        return cls(
            first,
            second,
            FigurePair("time", whole[0], whole[1]),
            lines,
            FigurePair(OTHER, *(None if us is None else us - x for us, x in zip(whole, sums, strict=True))),
            _pairs(_busy(first), _busy(second)),
            _pairs(_waits(first), _waits(second), by_change=True),
            _pairs(first.bounds, second.bounds),
            _pairs(peaks[0], peaks[1]),
            _pairs(_traffic(first), _traffic(second)),
            _pairs(_errors(first), _errors(second)),
            _settings(first, second),
        )


def _pairs(a: dict[str, float], b: dict[str, float], by_change: bool = False) -> tuple[FigurePair, ...]:
    found = [FigurePair(n, a.get(n), b.get(n)) for n in dict.fromkeys((*a, *b))]
    return tuple(sorted(found, key=lambda p: -abs(p.change))) if by_change else tuple(found)


def _us(launch: Launch, cycles: float) -> float:
    return cycles * launch.working_us / launch.cycles if launch.cycles else 0.0


def _lines(first: Run, second: Run) -> tuple[FigurePair, ...]:
    """A line is known by its file's name and its text, so that it may have moved; it is shown where it was first."""
    sums: dict[tuple[str, str], list[float | None]] = {}
    names: dict[tuple[str, str], str] = {}
    for k, run in enumerate((first, second)):
        for launch in run.launches:
            for cost in launch.lines:
                key = PurePath(cost.file).name, cost.source.strip()
                names.setdefault(key, f"{key[0]}:{cost.line}  {key[1]}")
                pair = sums.setdefault(key, [None, None])
                pair[k] = (pair[k] or 0.0) + _us(launch, cost.cycles)
    found = [FigurePair(names[key], a, b) for key, (a, b) in sums.items()]
    return tuple(sorted(found, key=lambda p: -abs(p.change)))


def _busy(run: Run) -> dict[str, float]:
    return add_up({n: _us(x, p.busy_cycles) for n, p in x.pipes.items()} for x in run.launches)


def _waits(run: Run) -> dict[str, float]:
    found = add_up(
        {_why(n, r): _us(x, cycles) for n, p in x.pipes.items() for r, cycles in p.stalls.items()}
        for x in run.launches
    )
    return {n: us for n, us in found.items() if us > LEAST_US}


def _why(pipe: str, reason: str) -> str:
    what = texts.STALLS.get(reason, reason)
    return f"{pipe} busy longer: {what}" if reason == SHARED else f"{pipe} waits for {what}"


def _traffic(run: Run) -> dict[str, float]:
    return add_up(x.resources for x in run.launches)


def _errors(run: Run) -> dict[str, float]:
    shown = {"largest error, ulp": "max_ulp", BITS: "effective_bits"}
    return {f"{n}: {what}": getattr(e, field) for n, e in run.errors.items() for what, field in shown.items()}


def _settings(first: Run, second: Run) -> tuple[tuple[str, str, str], ...]:
    a, b = said(first), said(second)
    return tuple((n, a.get(n, "-"), b.get(n, "-")) for n in dict.fromkeys((*a, *b)) if a.get(n) != b.get(n))


def said(run: Run) -> dict[str, str]:
    """Every choice that views of differences name, and the arguments, as texts."""
    made = compiler(run) or "-"
    base = {"product": run.product.get("name"), **picked(run, "dtype case"), "cube": run.cube_math_type}
    figures = {f"figure {n}": x for n, x in facts.overrides(run).items()}
    options = {f"option {n}": x for n, x in run.options.items() if n != "compiler"}
    tiling = {f"tiling {n}": x for n, x in run.tiling.items()}
    found = {
        "compiler": made,
        **base,
        "operator": run.op or run.name,
        **run.inputs,
        **tiling,
        **options,
        **figures,
    }
    return {n: str(x) for n, x in found.items()}

"""What an exploration found: the best tiling with its proof, the best few, the front, and how large the space was."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...simulator.record.codec import Encoder
from ...simulator.record.files import picked
from ...simulator.record.frames import data_frame
from ...simulator.record.lazy_views import ShownRecord
from ..evaluate import UNITS, Evaluation
from ..space.space import Point
from .pareto import TIE, pareto, tied

TOP = 10
OBJECTIVES = ("time", "error", "ub")
FIGURES = ("time_us", "bound", "bound_us", "ub_peak_bytes", "error")


@dataclass(frozen=True)
class Found:
    """One evaluated point."""

    point: Point
    evaluation: Evaluation

    @property
    def tiling(self) -> dict[str, Any]:
        """The point, and every other knob as really used."""
        return {**self.point, **self.evaluation.tiling}

    @property
    def time_us(self) -> float:
        return float("inf") if self.evaluation.time_us is None else self.evaluation.time_us

    def figures(self) -> dict[str, Any]:
        """What came out of it, by the names of FIGURES."""
        return {n: getattr(self.evaluation, n) for n in FIGURES}

    def to_dict(self) -> dict[str, Any]:
        more = picked(self.evaluation, "bound_us pipe waits")
        return {**self.documented(), "point": dict(self.point), **more}

    def listed(self) -> dict[str, Any]:
        """As in the lists of the JSON of `ascendtile explore --json`: the point is what `space=` and `tiling=` take."""
        return {"point": dict(self.point), **self.documented()}

    def documented(self) -> dict[str, Any]:
        """As the best one in the JSON of `ascendtile explore --json`."""
        figures = picked(self.evaluation, "time_us bound errors ub_peak_bytes")
        errors = Encoder({}).encode(figures["errors"], dict[str, float] | None)  # JSON has no infinity
        return {"tiling": self.tiling, **figures, "errors": errors}


@dataclass(frozen=True)
class Exploration(ShownRecord):
    """The outcome of one sweep.

    objective: "time", "error" or "ub". size, legal: points of the space, with the operator's own choice if that is beside
    the axes, and those that no rule refuses and that fit, as far as the search came to them: each is placed before it is
    timed; of a sampled one those that were drawn. refused: rule -> points, among them those that do not fit in a buffer.
    bounded: points whose bound was computed. found: every evaluated point, in the order of evaluation: what the operator
    chooses by itself is the first. failed: message -> points that were tried and could not be run.
    reused: evaluations that a store had already. optimal: whether `best` is proved to be the
    best of the space; `proof` says why, or why not. interrupted: whether it was stopped from outside. sampler: how points
    were chosen. counted: how many were evaluated, where `found` has the best of them alone, as the list that `ascendtile
    explore --json` prints; None where `found` has all. compiler: who makes the code, as in `Launch`; empty in older stores.
    """

    op: str
    product: str
    case: str | None
    objective: str
    size: int
    legal: int
    refused: dict[str, int]
    bounded: int
    found: tuple[Found, ...]
    failed: dict[str, int]
    reused: int
    seconds: float
    optimal: bool
    proof: str
    axes: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    interrupted: bool = False
    sampler: str = "exact"
    notes: tuple[str, ...] = ()
    counted: int | None = None
    compiler: str = ""

    @property
    def evaluated(self) -> int:
        """Points with a result, from this sweep or from the store."""
        return len(self.found) if self.counted is None else self.counted

    @property
    def whole(self) -> bool:
        """Whether `found` has every evaluated point."""
        return self.evaluated == len(self.found)

    @property
    def ranked(self) -> tuple[Found, ...]:
        """Evaluated points, best first; equals in the order of the space. Errors within 1 % of each other are equal."""
        return ranking(self.found, self.objective)

    @property
    def best(self) -> Found | None:
        ranked = self.ranked
        return ranked[0] if ranked else None

    def records(self) -> list[dict[str, Any]]:
        """A line for each evaluated point, best first: every axis and the figures of FIGURES."""
        return [{**{n: x.point[n] for n in self.axes}, **x.figures()} for x in self.ranked]

    def to_dataframe(self) -> Any:
        """`records` as a pandas DataFrame; needs the extra `tables`."""
        return data_frame(self.records())

    @property
    def pareto(self) -> tuple[Found, ...]:
        """Points that none beats in time, error and UB peak together (error only where it was computed)."""
        ok = list(self.ranked)
        if not ok:
            return ()
        table = np.array([_costs(x.evaluation) for x in ok])
        table[:, 1] = tied(table[:, 1])
        return tuple(ok[k] for k in pareto(table))

    def sensitivity(self) -> dict[str, float]:
        """Knob -> what its worst value costs at least in the objective, as a part of its best; the most important first.

        Compared are points that differ in that knob alone: those beside the best point, else the first in rank that have
        such a neighbour. A knob of which no two such points were evaluated is left out: nothing is known of it. Nor is it
        of any knob where `found` has the best points alone, or where the best value has no error at all.
        """
        out = {}
        for name in self.axes if self.whole else ():
            costs = self._alone(name)
            if costs and min(costs) == max(costs):
                out[name] = 0.0
            elif costs and min(costs) > 0 and max(costs) < float("inf"):
                out[name] = max(costs) / min(costs) - 1.0
        return dict(sorted(out.items(), key=lambda item: -item[1]))

    def _alone(self, name: str) -> list[float]:
        """What the objective makes small, of evaluated points that differ in one knob alone."""
        alike: dict[str, list[float]] = {}
        for x in self.ranked:
            rest = repr([(n, v) for n, v in x.point.items() if n != name])
            alike.setdefault(rest, []).append(cost(x.evaluation, self.objective))
        return next((costs for costs in alike.values() if len(costs) > 1), [])

    def to_dict(self, top: int = TOP) -> dict[str, Any]:
        """The JSON of `ascendtile explore --export json`: all of it, and the best `top` points."""
        return {
            **self._figures(),
            "best": None if self.best is None else self.best.to_dict(),
            "top": [x.to_dict() for x in self.ranked[:top]],
            "pareto": [x.to_dict() for x in self.pareto],
            "failures": dict(self.failed),
            "reused": self.reused,
            "sensitivity": self.sensitivity(),
            "sampler": self.sampler,
            "axes": {n: list(values) for n, values in self.axes.items()},
            "notes": list(self.notes),
        }

    def documented(self, top: int = TOP) -> dict[str, Any]:
        """The JSON of `ascendtile explore --json`: these keys and no others, which programs may rely on."""
        return {
            **self._figures(),
            "best": None if self.best is None else self.best.documented(),
            "top": [x.listed() for x in self.ranked[:top]],
            "pareto": [x.listed() for x in self.pareto],
        }

    def _figures(self) -> dict[str, Any]:
        return {
            **picked(self, "op product compiler case objective"),
            "space": picked(self, "size legal refused"),
            **picked(self, "bounded evaluated"),
            "failed": sum(self.failed.values()),
            **picked(self, "seconds optimal proof"),
        }

    def __repr__(self) -> str:
        """One line; `print(exploration)` shows the whole."""
        best = "no tiling" if self.best is None else f"best {self.best.time_us:.4g} us"
        return f"<Exploration {self.op}{f' {self.case}' if self.case else ''} on {self.product}: {best}>"


def axes_of(found: Iterable[Found], known: Mapping[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """Knob -> values: those known, and what points have beyond them. Numbers that are in order stay so."""
    out = {n: list(values) for n, values in known.items()}
    for x in found:
        for n, value in x.point.items():
            values = out.setdefault(n, [])
            if value not in values:
                _insert(values, value)
    return {n: tuple(values) for n, values in out.items()}


def _insert(values: list[Any], value: Any) -> None:
    """Put a value among the others: in its place where all are rising numbers, else at the end."""
    numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (*values, value))
    if numbers and values == sorted(values):
        bisect.insort(values, value)
    else:
        values.append(value)


def cost(e: Evaluation, objective: str) -> float:
    """What an objective makes small; infinity where there is no such figure."""
    value = {"time": e.time_us, "error": e.error, "ub": e.ub_peak_bytes}[objective]
    return float("inf") if value is None else float(value)


def ranking(found: Iterable[Found], objective: str) -> tuple[Found, ...]:
    """Points with a time, best first; of equals, and of errors that are `tied`, the faster one."""
    ok = [x for x in found if x.evaluation.time_us is not None]
    costs = np.array([cost(x.evaluation, objective) for x in ok])
    keys = (tied(costs) if objective == "error" else costs).tolist()
    order = sorted(range(len(ok)), key=lambda k: (keys[k], ok[k].time_us))
    return tuple(ok[k] for k in order)


def best_words(found: Iterable[Found], objective: str) -> str:
    """ "best 12.5 us"; of errors also how it was chosen among the tied ones."""
    first = ranking(found, objective)[0]
    words = f"best {cost(first.evaluation, objective):,.6g}{UNITS[objective]}"
    among = f", the fastest of those within {TIE:.0%} of the smallest error"
    return words + (among if objective == "error" else "")


def _costs(e: Evaluation) -> Sequence[float]:
    return [cost(e, "time"), 0.0 if e.error is None else e.error, cost(e, "ub")]

"""Many shapes at once: a tiling for each, the best single one for all of them, and what it loses."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, log
from typing import Any

from ..kernels.operator.operator import Operator
from ..kernels.operator.registry import get_operator
from ..simulator.errors import UsageError
from ..simulator.record.files import picked
from ..simulator.record.lazy_views import PrintedRecord
from .explore import explore
from .results.exploration import Exploration
from .space.space import Point

CONTENDERS = 64  # best tilings of every shape that are tried on all of them
ALL = "all"


@dataclass(frozen=True)
class Shapes(PrintedRecord):
    """The outcome for several cases of one operator.

    explorations: case -> its sweep. single: the tiling with the least mean loss on all cases, among the best ones of every
    case (no proof; None if none of them runs everywhere). losses: case -> its time with
    `single` over that case's best time, minus 1. tried: how many tilings `single` was chosen from.
    """

    op: str
    product: str
    sizes: dict[str, dict[str, Any]]
    explorations: dict[str, Exploration]
    single: Point | None
    losses: dict[str, float]
    tried: int = 0

    @property
    def mean_loss(self) -> float | None:
        """Geometric mean over the cases."""
        if not self.losses:
            return None
        return exp(sum(log(1.0 + x) for x in self.losses.values()) / len(self.losses)) - 1.0

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `ascendtile explore OP --cases all --json`."""
        cases = {
            n: {**e.documented(), "sizes": self.sizes[n], "loss": self.losses.get(n)}
            for n, e in self.explorations.items()
        }
        return {**picked(self, "op product"), "cases": cases, **picked(self, "single tried mean_loss")}

    def to_python(self) -> str:
        """A dict to paste into a program: sizes -> tiling."""
        names = list(dict.fromkeys(n for sizes in self.sizes.values() for n in sizes))
        head = f"# best tilings of {self.op} on {self.product}: sizes ({', '.join(names)}) -> knobs"
        rows = [head, "TILINGS = {"]
        for n, e in self.explorations.items():
            if e.best is not None:
                rows.append(
                    f"    {tuple(self.sizes[n].get(x) for x in names)!r}: {e.best.point!r},  # {n}, {e.best.time_us:.4g} us"
                )
        return "\n".join([*rows, "}"]) + "\n"


def explore_shapes(what: str | Operator, cases: str | Iterable[str] = ALL, **options: Any) -> Shapes:
    """Explore several cases of an operator ("all" of them, or names) and look for one tiling for all.

    options: of `explore`. Its `report` is called for one case after the other.
    """
    op = get_operator(what)
    names = list(op.cases) if cases == ALL else [cases] if isinstance(cases, str) else list(cases)
    if not names:
        raise UsageError(f"{op.name}: no case to explore; it has {', '.join(op.cases)}")
    sizes = {n: dict(op.case(n).sizes) for n in names}
    explorations = {n: explore(op, case=n, **options) for n in names}
    single, losses, tried = _single(op, explorations, options)
    product = next(iter(explorations.values())).product
    return Shapes(op.name, product, sizes, explorations, single, losses, tried)


def _single(
    op: Operator, explorations: Mapping[str, Exploration], options: Mapping[str, Any]
) -> tuple[Point | None, dict[str, float], int]:
    """The contender with the least mean loss. Where a case did not try it, it is timed there now."""
    contenders: dict[str, Point] = {}
    for e in explorations.values():
        for found in e.ranked[:CONTENDERS]:
            contenders.setdefault(json.dumps(found.point, default=str), found.point)
    best: tuple[float, Point | None, dict[str, float]] = (float("inf"), None, {})
    for point in contenders.values():
        if _known(point, explorations) >= best[0]:  # what other cases lose with it comes on top
            continue
        losses = _losses(op, point, explorations, options)
        if losses is not None:
            total = sum(log(1.0 + x) for x in losses.values())
            best = min(best, (total, point, losses), key=lambda x: x[0])
    return best[1], best[2], len(contenders)


def _known(point: Point, explorations: Mapping[str, Exploration]) -> float:
    """Sum of the logarithms of what a tiling loses in the cases that tried it."""
    tried = ((e.best, x) for e in explorations.values() for x in e.ranked if x.point == point)
    return sum(log(x.time_us / best.time_us) for best, x in tried if best is not None)


def _losses(
    op: Operator, point: Point, explorations: Mapping[str, Exploration], options: Mapping[str, Any]
) -> dict[str, float] | None:
    """Case -> loss of a tiling; None if it does not run everywhere."""
    out = {}
    for name, e in explorations.items():
        if e.best is None:
            continue
        time_us = next((x.time_us for x in e.found if x.point == point), None)
        if time_us is None:
            time_us = _time_of(op, name, point, options)
        if time_us is None:
            return None
        out[name] = time_us / e.best.time_us - 1.0
    return out


def _time_of(op: Operator, case: str, point: Point, options: Mapping[str, Any]) -> float | None:
    fixed = {**options, "space": point, "budget": None, "seconds": None, "workers": 1}
    fixed.pop("report", None)
    try:
        best = explore(op, case=case, **fixed).best
    except UsageError:  # a rule of this case refuses it
        return None
    return None if best is None else best.time_us

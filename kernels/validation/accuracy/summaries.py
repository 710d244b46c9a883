"""Results in groups: each group of the tables, kernels that nothing was fitted on by family of products, whole tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....simulator.products import load_product
from ..registry import TIME, Prediction
from ..table import Row
from .statistics import Interval, Summary, inside, summarise

FITTED, NOT_FITTED = "fitted", "not fitted"
# All kernels that nothing was fitted on, by the architecture of the core (`product.npu_arch`).
HELD_OUT = "held out"
FAMILIES = {2201: "A2 and A3", 1001: "910A", 2002: "310P", 3002: "310B"}


@dataclass(frozen=True)
class Result:
    """A row and what was predicted; failure: why nothing was (of an excluded row, the reason that its table gives)."""

    row: Row
    prediction: Prediction | None
    failure: str | None = None

    @property
    def predicted(self) -> float | None:
        return None if self.prediction is None else self.prediction.value

    @property
    def roofline(self) -> float | None:
        return None if self.prediction is None else self.prediction.roofline

    @property
    def interval(self) -> Interval | None:
        """Holds nine of ten measured times; None for what is no time of a kernel."""
        return None if self.prediction is None else self.prediction.interval

    @property
    def inside(self) -> bool | None:
        """Whether the measured time is in the interval."""
        measured, interval = self.row.measured, self.interval
        return None if measured is None or interval is None else inside(measured, interval)

    @property
    def error(self) -> float | None:
        """(predicted - measured) / measured."""
        return self._off(self.predicted)

    @property
    def roofline_error(self) -> float | None:
        return self._off(self.roofline)

    def _off(self, value: float | None) -> float | None:
        measured = self.row.measured
        return None if value is None or measured is None else (value - measured) / measured

    @property
    def judged(self) -> bool:
        """Whether the row counts in statistics."""
        return self.error is not None and not self.row.excluded


@dataclass(frozen=True)
class Group:
    """Rows that are judged together. right: for a ranking case, whether the order came out."""

    name: str
    summary: Summary
    right: bool | None = None


def summaries(results: Sequence[Result]) -> list[Group]:
    """Each group with its fitted and not fitted rows apart; kernels that nothing was fitted on, by family; tables."""
    out = []
    judged = [r for r in results if r.judged]
    for name in dict.fromkeys(r.row.group for r in judged):
        out += _with_parts(name, [r for r in judged if r.row.group == name])
    out += held_out(judged)
    for name in dict.fromkeys(r.row.table for r in judged):
        out += _with_parts(f"all of {name}", [r for r in judged if r.row.table == name])
    return out


def held_out(judged: Sequence[Result]) -> list[Group]:
    """Kernels that nothing was fitted on: those of each family of products, then all of them."""
    kernels = [r for r in judged if r.row.unit == TIME and not r.row.fitted]
    by_family: dict[str, list[Result]] = {}
    for r in kernels:
        by_family.setdefault(family_of(r.row), []).append(r)
    groups = {f"{HELD_OUT}: {name}": part for name, part in by_family.items()}
    groups |= {f"{HELD_OUT}: all": kernels} if kernels else {}
    return [Group(name, summary_of(part)) for name, part in groups.items()]


def family_of(row: Row) -> str:
    """The family of a row's product."""
    product = load_product(row.product)
    return FAMILIES.get(product.integer("product.npu_arch"), product.text("product.family"))


def _with_parts(name: str, results: list[Result]) -> list[Group]:
    parts = {
        f"{name}: {FITTED}": [r for r in results if r.row.fitted],
        f"{name}: {NOT_FITTED}": [r for r in results if not r.row.fitted],
    }
    return [Group(n, summary_of(part)) for n, part in ({name: results} | parts).items() if part]


def summary_of(results: Sequence[Result]) -> Summary:
    """Statistics of rows that are judged."""
    measured = [r.row.measured for r in results if r.row.measured is not None]
    predicted = [r.predicted for r in results if r.predicted is not None]
    return summarise(
        measured,
        predicted,
        [r.roofline for r in results],
        [r.row.unit for r in results],
        [r.interval for r in results],
    )

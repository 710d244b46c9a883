"""A run beside a measured PipeUtilization.csv: pipe by pipe, in the terminal and as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ...simulator.errors import UsageError
from ...simulator.precision.metrics import json_value
from ...simulator.record.files import picked
from ...simulator.record.run import Launch, Run
from ..facts import facts, texts
from ..facts.texts import clean
from ..terminal.sections import title_line
from ..terminal.tables import add_row, fact, make_table
from ..vendor.reading import Measured
from ..vendor.units import units

MOST_NAMED = 8  # launches in a message


@dataclass(frozen=True)
class ProfileRow:
    """unit: "us" or "share" (of the core's cycles). error: (predicted - measured) / measured, None where measured is 0."""

    name: str
    unit: str
    measured: float
    predicted: float

    @property
    def error(self) -> float | None:
        return (self.predicted - self.measured) / self.measured if self.measured else None


@dataclass(frozen=True)
class ProfileComparison:
    """rows: times of cores first, then pipes. launch: which one of the run. missing: columns without a pipe in the run."""

    run: Run
    launch: Launch
    measured: Measured
    rows: tuple[ProfileRow, ...]
    missing: tuple[str, ...]


def compare_profile(run: Run, measured: Measured, launch: int | None = None) -> ProfileComparison:
    """Means over the cores that worked, on both sides.

    Args:
        launch: number of the run's launch that was profiled; not needed where there is one.

    Raises:
        UsageError: the run has several launches and none is named, or no such one, or its record does not tell cores apart.
    """
    chosen = _chosen(run, launch)
    found = units(chosen)
    rows, missing = [], []
    for side, (mean, longest) in measured.us.items():
        mine = [u.us for u in found if u.side == side]
        if not mine:
            missing.append(f"{side}_time(us)")
            continue
        rows.append(ProfileRow(f"{side} time, mean of cores", "us", mean, sum(mine) / len(mine)))
        rows.append(ProfileRow(f"{side} time, longest core", "us", longest, max(mine)))
    for (side, pipe), share in measured.ratios.items():
        shares = [u.busy[pipe] for u in found if u.side == side and pipe in u.busy]
        if shares:
            rows.append(ProfileRow(f"{side} {pipe}", "share", share, sum(shares) / len(shares)))
        elif share:
            missing.append(f"{side}_{pipe}_ratio")
    if not rows:
        raise UsageError(
            f"the profile and the run of {clean(chosen.kernel, 60)} have nothing in common: the profile has times of "
            f"{', '.join(measured.us)} cores, the run of {', '.join(sorted({u.side for u in found}))}"
        )
    return ProfileComparison(run, chosen, measured, tuple(rows), tuple(missing))


def _chosen(run: Run, number: int | None) -> Launch:
    if not run.launches:
        raise UsageError(f"{clean(run.name, 60)} was run for values only, it has no times to compare")
    if number is None and len(run.launches) > 1:
        names = ", ".join(f"{k} {clean(x.kernel, 40)}" for k, x in enumerate(run.launches[:MOST_NAMED]))
        more = f" and {len(run.launches) - MOST_NAMED} more" if len(run.launches) > MOST_NAMED else ""
        raise UsageError(
            f"{clean(run.name, 60)} has {len(run.launches)} launches ({names}{more}); say with --launch which was profiled"
        )
    number = number or 0
    if not 0 <= number < len(run.launches):
        raise UsageError(
            f"{clean(run.name, 60)} has launches 0 to {len(run.launches) - 1}, there is no {number}"
        )
    return run.launches[number]


def profile_page(c: ProfileComparison) -> RenderableType:
    """Measured beside predicted, pipe by pipe."""
    table = make_table(("", 30), (">measured", 12), (">predicted", 12), (">error", 10))
    for row in c.rows:
        shown = texts.micros if row.unit == "us" else texts.percent
        error = "-" if row.error is None else texts.signed_percent(row.error)
        add_row(table, row.name, shown(row.measured), shown(row.predicted), error)
    missing = f"the run has no such pipe: {', '.join(c.missing)}"
    return Group(
        title_line(c.run),
        fact("device", facts.product_name(c.run)),
        fact("kernel", f"{clean(c.launch.kernel, 60)}; profile of {c.measured.rows} rows"),
        Text(),
        table,
        Text(
            "\ntimes in us, pipes as shares of their core's cycles; error: (predicted - measured) / measured",
            style="dim",
        ),
        *([fact("missing", missing)] if c.missing else []),
    )


def profile_json(c: ProfileComparison) -> dict[str, Any]:
    """{"op", "product", "kernel", "rows": [{"name", "unit", "measured", "predicted", "error"}], "missing": [...]}"""
    rows = [picked(r, "name unit measured predicted error") for r in c.rows]
    about = {"op": c.run.op or c.run.name, "product": facts.product_name(c.run), "kernel": c.launch.kernel}
    plain: dict[str, Any] = json_value({**about, "rows": rows, "missing": list(c.missing)})
    return plain

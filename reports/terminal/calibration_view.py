"""Views of a calibration: figures before and after, errors of rows that were left out; and of sources left out once each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Group as Parts
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ...kernels.validation import Summary
from ...kernels.validation.calibration import Calibration, CrossValidation, Errors, FittedFigure
from ...simulator.precision.metrics import json_value
from ...simulator.record.files import picked
from ..facts.texts import clean, percent, signed_percent
from .tables import add_row, fact, folding, make_table

MOST_REASONS = 12
MOST_NAMES = 3
FIGURES_LEGEND = (
    "rows: whose time depends on the figure; +-: standard deviation of the new value; told: what of that knowledge the rows "
    "brought, the rest is the product's; *: outside of what others published"
)
ERRORS_LEGEND = (
    "absolute errors against the profile, simulated before and after; bias: the median with its sign"
)
CROSS_LEGEND = (
    "fitted: with the product's figures; left out: with figures fitted on the other sources, from the middle of published "
    "ranges; absolute errors, rank: Spearman's correlation"
)

# ---- calibration ----


def calibration_json(c: Calibration) -> dict[str, Any]:
    """Figures, errors, what was left out, and the text of the product file."""
    sides = {n: asdict(getattr(c, n)) for n in ("before", "after", "fitted_before", "fitted_after")}
    data: dict[str, Any] = {
        **picked(c, "path launches capped condition better"),
        "product": c.product.name,
        "figures": [{**asdict(f), "outside": f.outside} for f in c.figures],
        "alone": dict(c.alone),
        "together": list(c.together),
        "errors": sides,
        "left_out": [asdict(x) for x in c.left_out],
        "far_off": list(c.far_off),
        "toml": c.toml(),
    }
    found: dict[str, Any] = json_value(data)
    return found


def calibration_page(c: Calibration) -> RenderableType:
    """What was read, errors before and after, figures, and what is not in the fit."""
    rows = c.fitted_before.rows + c.before.rows
    used = f"{rows} kernels from {c.launches:,} launches: {c.fitted_before.rows} fitted, {c.before.rows} left out"
    capped = [fact("", f"{c.capped} more take less time in all and are not used (--most-rows)")]
    return Parts(
        Text(clean(f"{Path(c.path).name} on {c.product.name}", 80), style="bold"),
        fact("used", used),
        *(capped if c.capped else []),
        Text(),
        _errors(c),
        Text(f"\n{ERRORS_LEGEND}\n", style="dim"),
        _figures(c.figures),
        Text(f"\n{FIGURES_LEGEND}\n", style="dim"),
        *_remarks(c),
    )


def _errors(c: Calibration) -> Table:
    table = make_table(("errors", 22), (">kernels", 8), (">median", 9), (">90 %", 9), (">bias", 9))
    parts = (("left out", c.before, c.after), ("fitted", c.fitted_before, c.fitted_after))
    for name, before, after in parts:
        for when, e in (("before", before), ("after", after)):
            if e.rows:
                add_row(table, f"{name}, {when}", str(e.rows), *_shares(e))
    return table


def _shares(e: Errors) -> tuple[str, str, str]:
    bias = "-" if e.bias is None else signed_percent(e.bias)
    return _share(e.median), _share(e.p90), bias


def _share(x: float | None) -> str:
    return "-" if x is None else f"{100 * x:.1f} %"


def _figures(figures: Iterable[FittedFigure]) -> Table:
    numbers = ((">before", 8), (">after", 9), (">+-", 6), (">rows", 5), (">told", 6))
    table = folding(("figure", 41), *numbers)
    for f in figures:
        name = f"{f.key}, {f.unit}{' *' if f.outside else ''}"
        cells = (f"{f.old:.4g}", f"{f.new:.4g}", percent(f.deviation), str(f.rows), percent(f.told))
        table.add_row(*map(Text, (clean(name), *cells)))
    return table


def _remarks(c: Calibration) -> Iterable[RenderableType]:
    if not c.better:
        whose = "rows that were left out" if c.before.rows else "the rows"
        yield fact("note", f"{whose} are not predicted better: keep the product's own figures")
    for why in dict.fromkeys(why for _, why in c.alone):
        yield fact("alone", f"{', '.join(key for key, x in c.alone if x == why)}: {why}")
    if c.together:
        names = ", ".join(c.together)
        yield fact("joint", f"the rows tell these only together, their ranges decide the shares: {names}")
    else:
        yield fact("apart", f"the rows tell the figures apart (condition {c.condition:.3g})")
    if c.far_off:
        yield fact("far off", f"{_some(c.far_off)}: wrong by more than a factor of 5 before, counted little")
    for x in c.left_out[:MOST_REASONS]:
        time = f", {x.total_us:,.0f} us in all" if x.total_us else ""
        many = "launch" if x.launches == 1 else "launches"
        yield fact("unused", f"{clean(x.type, 40)}, {x.launches:,} {many}{time}: {clean(x.reason, 200)}")
    if len(c.left_out) > MOST_REASONS:
        yield fact("", f"and {len(c.left_out) - MOST_REASONS} more; --json has all")


def _some(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - MOST_NAMES} more" if len(every) > MOST_NAMES else ""
    return f"{', '.join(clean(n, 40) for n in islice(every, MOST_NAMES))}{more}"


# ---- each source left out once ----


def cross_json(c: CrossValidation) -> dict[str, Any]:
    """{"groups": {name: {"fitted", "left_out"}}, "folds": [...], "rows": [...], "untold": [...], "failed": {id: why}}"""
    groups = {n: {"fitted": asdict(a), "left_out": asdict(b)} for n, (a, b) in c.groups.items()}
    rows = [
        {**picked(r.row, "id op group fitted measured"), "source": r.source, "predicted": r.fitted,
         "left_out": r.crossed}
        for r in c.rows
    ]  # fmt: skip
    data = {"groups": groups, "folds": [asdict(f) for f in c.folds], "rows": rows}
    found: dict[str, Any] = json_value({**data, "untold": list(c.untold), "failed": c.failed})
    return found


def cross_page(c: CrossValidation) -> RenderableType:
    """Errors by group and by source, fitted and left out side by side, and how far each figure moves from fold to fold."""
    failed = [fact("failed", f"{name}: {clean(why, 200)}") for name, why in c.failed.items()]
    return Parts(
        _cross_groups(c),
        Text(f"\n{CROSS_LEGEND}\n", style="dim"),
        _cross_sources(c),
        Text(),
        _cross_figures(c),
        Text(
            "\n1 is the product's value; *: no range is published, so the fit begins at that value\n",
            style="dim",
        ),
        *failed,
    )


def _cross_groups(c: CrossValidation) -> Table:
    errors = ((">fitted", 7), (">90 %", 6), (">rank", 6), (">left out", 8), (">90 %", 6), (">rank", 6))
    table = folding(("group", 30), (">rows", 4), *errors)
    for name, (fitted, crossed) in c.groups.items():
        table.add_row(*map(Text, (clean(name), str(fitted.rows), *_summary(fitted), *_summary(crossed))))
    return table


def _summary(s: Summary) -> tuple[str, str, str]:
    rank = "-" if s.spearman is None else f"{s.spearman:.3f}"
    return _plain(s.median_abs_error), _plain(s.p90_abs_error), rank


def _plain(x: float | None) -> str:
    return "-" if x is None else f"{100 * x:.1f}"


def _cross_sources(c: CrossValidation) -> Table:
    table = make_table(("source", 42), (">rows", 5), (">fitted", 8), (">left out", 9))
    for f in c.folds:
        add_row(table, clean(f.source, 42), str(f.rows), _plain(f.fitted), _plain(f.crossed))
    return table


def _cross_figures(c: CrossValidation) -> Table:
    table = make_table(("figure, slowness over folds", 46), (">least", 7), (">most", 7))
    for key in c.folds[0].slowness:
        found = [f.slowness[key] for f in c.folds]
        add_row(table, f"{key}{' *' if key in c.untold else ''}", f"{min(found):.3g}", f"{max(found):.3g}")
    return table

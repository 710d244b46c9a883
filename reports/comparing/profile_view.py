"""A run beside what a profiler measured, as a page of the terminal and as plain data."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ...simulator.precision.metrics import json_value
from ...simulator.record.picking import picked
from ..facts import facts, texts
from ..facts.texts import clean
from ..terminal.sections import add_row, fact, make_table, title_line
from .profile import ProfileComparison


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

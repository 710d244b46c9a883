"""What changed as a page of the terminal and as JSON."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ....simulator.precision.metrics import json_value
from ...facts import texts
from ...terminal.difference_view import difference_json, difference_page
from ...terminal.sections import Block
from ...terminal.tables import add_row, fact, folding, item
from ..baseline.entry import BaselineEntry
from .changes import SAME, BaselineChanges, KernelChange

MOST_SHOWN = 40
MOST_PAGES = 3  # differences that are shown whole


def changes_page(found: BaselineChanges) -> RenderableType:
    """The sum, a table of what changed, and the regressions line by line."""
    shown = [c for c in found.changes if c.kind != SAME or c.is_regression(found.above)]
    return Group(
        Text(found.summary, style="bold"),
        fact("before", found.before),
        fact("after", found.after),
        *_table(shown),
        *(row for c in found.regressions[:MOST_PAGES] for row in _regression(c)),
        *_more(len(found.regressions) - MOST_PAGES, "regressions, see --json"),
    )


def _table(shown: list[KernelChange]) -> Block:
    if not shown:
        return []
    columns = (">cycles before", 13), (">after", 10), (">change", 12), (">UB KiB", 14)
    table = folding(("test and kernel", 27), *columns)  # ids of tests are long, and the kernel comes behind
    for c in shown[:MOST_SHOWN]:
        name = f"{c.test.rpartition('::')[2]} {c.key}"
        add_row(table, name, *(cycles_text(e) for e in (c.before, c.after)), change_text(c), _ub(c))
    return [Text(), table, *_more(len(shown) - MOST_SHOWN, "kernels")]


def _more(hidden: int, what: str) -> Block:
    return [Text(f"  and {hidden} more {what}", style="dim")] if hidden > 0 else []


def _regression(c: KernelChange) -> Block:
    faults = [item(f"new fault: {text}", "bold") for text in c.new_faults]
    difference = c.difference
    page = [difference_page(difference)] if difference is not None and c.part else []
    return [Text(), Text(texts.clean(f"{c.key} in {c.test}", 2 * 80), style="bold"), *faults, *page]


def cycles_text(entry: BaselineEntry | None) -> str:
    return "-" if entry is None else texts.count(entry.cycles)


def change_text(c: KernelChange) -> str:
    """+12 %, -3 %, with more digits where that would be 0 %; without times to compare, "new", "gone", "other device"."""
    if c.part is None:
        return c.kind
    shown = texts.signed_percent(c.part)
    return f"{100 * c.part:+.2g} %" if shown == "0 %" and c.part else shown


def _ub(c: KernelChange) -> str:
    before, after = (None if e is None else e.ub_bytes for e in (c.before, c.after))
    shown = ["-" if x is None else texts.kib(x) for x in (before, after)]
    return shown[0] if before == after else " > ".join(shown)


def changes_json(found: BaselineChanges) -> dict[str, Any]:
    """{"before", "after", "fail_above_percent", "regressions": 1, "kernels": [{"test", "kernel", "kind", ...}]}"""
    plain: dict[str, Any] = json_value(
        {
            "before": found.before,
            "after": found.after,
            "fail_above_percent": 100 * found.above,
            "regressions": len(found.regressions),
            "summary": found.summary,
            "kernels": [_kernel(c, found.above) for c in found.changes],
        }
    )
    return plain


def _kernel(c: KernelChange, above: float) -> dict[str, Any]:
    regression = c.is_regression(above)
    difference = c.difference if regression else None
    return {
        "test": c.test,
        "kernel": c.key,
        "kind": c.kind,
        "regression": regression,
        "change_percent": None if c.part is None else 100 * c.part,
        "before": _figures(c.before),
        "after": _figures(c.after),
        "new_faults": list(c.new_faults),
        "cause": c.cause,
        "difference": None if difference is None else difference_json(difference),
    }


def _figures(entry: BaselineEntry | None) -> dict[str, Any] | None:
    if entry is None:
        return None
    made = {"product": entry.product, "compiler": entry.compiler, "ascendtile": entry.ascendtile}
    sizes = {n: peak for n, (peak, _) in entry.buffers.items()}
    times = {"cycles": entry.cycles, "time_us": entry.time_us, "launches": entry.launches}
    return {**made, **times, "buffers_bytes": sizes, "faults": list(entry.faults)}

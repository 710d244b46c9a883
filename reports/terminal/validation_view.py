"""Views of a validation: the errors of each group, then rows beside measurements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from rich.console import Group as Parts
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ...kernels.validation import Group, Result, Validation, order_in_words
from ...kernels.validation.accuracy.summaries import FITTED, NOT_FITTED
from ...simulator.precision.metrics import json_value
from ...simulator.record.files import picked
from ..facts.texts import clean
from .tables import folding

GROUPS_LEGEND = (
    "absolute errors of rows held out (of all, where none is), half and nine of ten of which are smaller; rank: Spearman's "
    "correlation; inside: rows whose measured time lies in the interval that should hold 90 %; width: the upper end of the "
    "middle one over its lower end; peaks: median error of peak rates alone"
)
ROWS_LEGEND = (
    "Rows: interval: what nine of ten measured times should lie between; error: (predicted - measured) / measured; bound: "
    "the roofline of peak rates only; *: a figure of ours was fitted on this row, all others are held out; numbers: what is "
    "not modelled, or how the row was simulated, below its table"
)

PARTS = (f": {FITTED}", f": {NOT_FITTED}")  # what the names of a group's parts end in

# ---- plain data ----


def validation_json(found: Validation) -> dict[str, Any]:
    """Groups by name, lists of variants, then rows; errors are fractions, what could not be told is null."""
    groups = {g.name: asdict(g.summary) for g in found.groups}
    orders = [{**asdict(v), "right": v.right} for v in found.orders]
    rows = [_row_json(r) for r in found.results]
    data: dict[str, Any] = json_value({"groups": groups, "orders": orders, "rows": rows})
    return data


def _row_json(result: Result) -> dict[str, Any]:
    row = result.row
    found = {**picked(row, "id product op group fitted measured"), "predicted": result.predicted}
    notes = "; ".join(_notes(result))
    low, high = result.interval or (None, None)
    between = {"low": low, "high": high, "inside": result.inside}
    return {**found, "unit": row.unit, **picked(result, "error judged"), **between, "note": notes}


def _notes(result: Result) -> Iterator[str]:
    row = result.row
    if result.failure:
        yield f"not simulated: {result.failure}"
    elif row.excluded:
        yield f"excluded: {row.excluded}"
    yield from (row.note,) if row.note else ()
    yield from (result.prediction.note,) if result.prediction and result.prediction.note else ()


def remarks(found: Validation) -> Iterator[str]:
    """Rows that are not judged, and why; orders that came out wrong."""
    excluded = [(r.row.id, r.row.excluded) for r in found.excluded if r.failure is None]
    yield from _by_reason("excluded", excluded)
    yield from _by_reason("not simulated", [(r.row.id, r.failure or "") for r in found.not_simulated])
    for g in found.groups:
        if g.right is not None:
            yield f"{clean(g.name, 60)}: {'in the right order' if g.right else 'WRONG ORDER'}"
    if found.orders:
        yield f"order of variants of one kernel: {order_in_words(found.orders)}"
    for v in found.orders:
        if not v.right:
            what = f"{clean(v.picked, 200)} in place of {clean(v.best, 200)}"
            yield f"{clean(v.name, 200)}: WRONG PICK, {v.loss:.2f}x the time of the best: {what}"


def _by_reason(name: str, rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for which, reason in rows:
        reasons.setdefault(clean(reason, 300), []).append(clean(which, 60))
    for reason, ids in reasons.items():
        yield f"{name}: {len(ids)} row{'s' * (len(ids) != 1)} ({_some(ids)}): {reason}"


def _some(ids: list[str]) -> str:
    return ", ".join(ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")


# ---- page ----


def page(found: Validation) -> RenderableType:
    """The groups and what was not judged, then rows by group and unit."""
    parts: list[RenderableType] = [Text("no row is judged")]
    if found.groups:
        parts = [_groups(found.groups), Text(f"\n{GROUPS_LEGEND}", style="dim")]
    parts += [*(Text(f"\n{text}") for text in remarks(found)), Text(f"\n{ROWS_LEGEND}", style="dim")]
    shown = [r for r in found.results if r.prediction is not None or not r.row.excluded]
    for group, unit in dict.fromkeys((r.row.group, r.row.unit) for r in shown):
        rows = [r for r in shown if (r.row.group, r.row.unit) == (group, unit)]
        notes = _numbered(rows)
        parts += [Text(f"\n{clean(group, 60)}, {unit}", style="bold"), _rows(rows, notes)]
        parts += [Text(f"{k} {clean(note, 400)}", style="dim") for note, k in notes.items()]
    return Parts(*parts)


def _numbered(results: Iterable[Result]) -> dict[str, int]:
    """The different notes of a table of rows, numbered from 1."""
    found = dict.fromkeys(note for r in results for note in _told(r))
    return {note: k + 1 for k, note in enumerate(found)}


def _told(result: Result) -> tuple[str, ...]:
    """What the table says of a row, and how it was predicted."""
    prediction = result.prediction.note if result.prediction else ""
    return tuple(note for note in (result.row.note, prediction) if note)


def _rows(results: Iterable[Result], notes: dict[str, int]) -> Table:
    """With the interval of each where one has it: rows that are no times of kernels have none."""
    results = list(results)
    between = [">interval"] * any(r.interval for r in results)
    names = ("id", ">measured", ">predicted", *between, ">error", ">bound", ">its error", "notes")
    table = folding(
        *((name, None) for name in names)
    )  # as wide as they are: ids, the longest, fold last of all
    for r in results:
        row = r.row
        name = f"{clean(row.id)}{' *' if row.fitted else ''}{' (excluded)' if row.excluded else ''}"
        ends = [_between(r.interval)] * len(between)
        cells = (_number(row.measured), _number(r.predicted), *ends, _signed(r.error))
        numbers = " ".join(str(notes[note]) for note in _told(r))
        bound = (_number(r.roofline), _signed(r.roofline_error))
        table.add_row(*(Text(c) for c in (name, *cells, *bound, numbers)))
    return table


def _groups(groups: Iterable[Group]) -> Table:
    errors = ((">median", 6), (">90 %", 6), (">rank", 6), (">inside", 6), (">width", 5), (">peaks", 6))
    table = folding(("group", 24), (">rows", 4), (">held out", 4), *errors)
    known = {g.name: g for g in groups}
    for name, g in known.items():
        if not name.endswith(PARTS):
            table.add_row(*map(Text, (clean(name), *_cells(g, known))))
    return table


def _cells(group: Group, known: Mapping[str, Group]) -> tuple[str, ...]:
    """Figures of the rows that are held out, where a group has some."""
    whole, (fitted, held) = group.summary, [known.get(f"{group.name}{part}") for part in PARTS]
    s = whole if held is None else held.summary
    count = "-" if group.right is not None else 0 if held is None and fitted is not None else s.rows
    rank = "-" if s.spearman is None else f"{s.spearman:.3f}"
    width = "-" if s.interval_width is None else f"{s.interval_width:.2f}"
    errors = _share(s.median_abs_error), _share(s.p90_abs_error), rank, _whole(s.interval_coverage)
    return (str(whole.rows), str(count), *errors, width, _whole(s.roofline_median_abs_error))


def _whole(x: float | None) -> str:
    return "-" if x is None else f"{100 * x:.0f} %" if x < 100 else f"{100 * x:.0e}%"


def _number(x: float | None) -> str:
    return "-" if x is None else f"{x:,.0f}" if 1000 <= x < 1e8 else f"{x:.3g}"


def _between(ends: tuple[float, float] | None) -> str:
    return "-" if ends is None else f"{_number(ends[0])}..{_number(ends[1])}"


def _signed(x: float | None) -> str:
    return "-" if x is None else f"{100 * x:+.0f} %" if abs(x) < 100 else f"{100 * x:+.0e} %"


def _share(x: float | None) -> str:
    return _whole(x) if x is None or x >= 10 else f"{100 * x:.1f} %"

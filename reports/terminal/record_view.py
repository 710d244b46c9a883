"""The page of a run, and what `reading.read_record` gave as a page of the terminal or as plain data.

The page of one run is read from top to bottom in half a minute; `gallery/rms_norm_grad.svg` shows one. Each limit under
`limiter` was found by timing the run without it, each change under `try` by timing the run with it. A pipe that is busy
most of the time is the one to relieve; `of which` is the part of its busy time that sharing bandwidth added. A page is at
most 80 columns wide. `sections.py` makes its parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ...simulator.errors import UsageError
from ...simulator.precision.metrics import json_value
from ...simulator.record.run import Run
from ...simulator.spread import Spread
from ..facts.texts import count, figure
from . import advice_view, sections
from .tables import add_row, make_table

SHOWN = 5  # tilings of an exploration


def page(records: Sequence[Any], files: Sequence[str]) -> RenderableType:
    """The page of one record, or the comparison of two runs. `UsageError` says what cannot be shown."""
    first = records[0]
    if len(records) == 2:
        from .difference_view import difference_page

        return difference_page(_compared(records))
    if isinstance(first, Run):
        return run_report(first, files[0])
    return (_of_many if isinstance(first, tuple) else _of_study)(first, files[0])


def plain(records: Sequence[Any], files: Sequence[str]) -> dict[str, Any]:
    """The same as JSON data."""
    first = records[0]
    if len(records) == 2:
        from .difference_view import difference_json

        return difference_json(_compared(records))
    if isinstance(first, Run):
        from ..facts.json_view import run_json

        return run_json(first, files[0])
    if isinstance(first, tuple):
        return {"explorations": [e.to_dict() for e in first]}
    _of_study(first, files[0])  # whatever is in there is a study
    return dict(first)


def _compared(records: Sequence[Any]) -> Any:
    from ..facts.differences import RunDifference

    if not all(isinstance(r, Run) for r in records):
        raise UsageError("only two runs can be compared")
    return RunDifference.of(*records)


def _of_many(found: tuple[Any, ...], file: str) -> RenderableType:
    from .explore_view import exploration_page

    if not found:
        raise UsageError(f"{file}: this store has no results yet")
    pages = [exploration_page(e, SHOWN) for e in found]
    return Group(pages[0], *(part for page in pages[1:] for part in ("", page)))


def _of_study(given: Mapping[str, Any], file: str) -> RenderableType:
    from ..facts.study.json_form import read_study
    from .precision_view import study_page, sweep_page

    try:
        study = read_study(given)
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from None
    return study_page(study.first) if study.parameter is None else sweep_page(study.parameter, study.points)


def run_report(run: Run, record: str | None = None) -> RenderableType:
    """The page. record: the file that holds the run, if it is saved."""
    parts = (
        sections.heading(run),
        sections.time(run),
        advice_view.advice(run),
        advice_view.slowing(run),
        sections.launches(run),
        sections.bounds(run),
        sections.pipes(run),
        sections.buffers(run),
        sections.errors(run),
        sections.numerics(run),
        sections.lines(run),
        sections.remarks(run),
        [Text()],
        sections.opening(record),
    )
    return Group(*(block for part in parts for block in part))


def spread_json(spread: Mapping[str, Spread]) -> dict[str, Any]:
    """`atomic_spread`, if it was asked for: output -> figures."""
    return {"atomic_spread": json_value({n: asdict(s) for n, s in spread.items()})} if spread else {}


def spread_table(spread: Mapping[str, Spread]) -> RenderableType:
    """One line for each output."""
    seeds = next(iter(spread.values())).seeds
    title = (f"order of atomics, {seeds} seeds", 26)
    table = make_table(title, *((f">{n} ulp", 9) for n in ("min", "max", "std")), (">differ", 18))
    for name, s in spread.items():
        differ = f"{count(s.differing)} of {count(s.elements)}"
        add_row(table, name, *(figure(x) for x in (s.min_ulp, s.max_ulp, s.std_ulp)), differ)
    note = "Deviations from the result in ascending order of the programs; the device defines none."
    return Group(Text(), table, Text(note, style="dim"))

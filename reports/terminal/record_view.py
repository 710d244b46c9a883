"""What `reading.read_record` gave, as a page of the terminal or as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType

from ...simulator.errors import UsageError
from ...simulator.record.run import Run

SHOWN = 5  # tilings of an exploration


def page(records: Sequence[Any], files: Sequence[str]) -> RenderableType:
    """The page of one record, or the comparison of two runs. `UsageError` says what cannot be shown."""
    first = records[0]
    if len(records) == 2:
        from .difference_view import difference_page

        return difference_page(_compared(records))
    if isinstance(first, Run):
        from .page import run_report

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
    from ..facts.study_reading import read_study
    from .precision_view import study_page, sweep_page

    try:
        study = read_study(given)
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from None
    return study_page(study.first) if study.parameter is None else sweep_page(study.parameter, study.points)

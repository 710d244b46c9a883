"""Which page shows what, and the page as a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...simulator.errors import UsageError
from ...simulator.record.files import check_target, write_whole
from ...simulator.record.run import Run
from .writing import Page, page_text


def page_of(shown: Any, other: Any = None) -> Page:
    """The page of a Run, of an Exploration, of a precision Study (or the JSON of one), of two runs or their difference."""
    from ...kernels.study.results import Study
    from ...tiling.results.exploration import Exploration
    from ..facts.differences import RunDifference
    from .comparison_page import comparison_page
    from .exploration_page import exploration_page
    from .run_page import run_page
    from .study_page import study_page

    if isinstance(shown, RunDifference):
        return comparison_page(shown.first, shown.second)
    if other is not None:
        if not (isinstance(shown, Run) and isinstance(other, Run)):
            raise UsageError("only two runs can be compared")
        return comparison_page(shown, other)
    if isinstance(shown, Run):
        return run_page(shown)
    if isinstance(shown, Exploration):
        return exploration_page([shown])
    if isinstance(shown, tuple) and shown and all(isinstance(x, Exploration) for x in shown):
        return exploration_page(shown)
    if isinstance(shown, Study | Mapping):
        return study_page(shown)
    raise UsageError(f"no page shows a {type(shown).__name__}")


def write_page(shown: Any, path: str | Path, other: Any = None) -> None:
    """Write the page to `path`: whole, or not at all. `UsageError` if it cannot be written."""
    check_target(path)
    write_whole(path, page_text(page_of(shown, other)).encode("utf-8", "backslashreplace"))

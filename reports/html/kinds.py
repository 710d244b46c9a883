"""Which page shows what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ascendtile.reports.html.writing import Page
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.record.run import Run


def make_page(shown: Any, other: Any = None) -> Page:
    """See `writing.page_of`."""
    from ascendtile.kernels.study.bench import Study
    from ascendtile.reports.comparing.runs import RunDifference
    from ascendtile.reports.html.comparison_page import comparison_page
    from ascendtile.reports.html.exploration_page import exploration_page
    from ascendtile.reports.html.run_page import run_page
    from ascendtile.reports.html.study_page import study_page
    from ascendtile.reports.terminal.precision_view import study_json
    from ascendtile.tiling.results.exploration import Exploration

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
    if isinstance(shown, Study):
        return study_page(study_json(shown))
    if isinstance(shown, Mapping):
        return study_page(shown)
    raise UsageError(f"no page shows a {type(shown).__name__}")

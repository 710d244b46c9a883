"""Two runs side by side, with the ways to show them."""

from __future__ import annotations

from pathlib import Path

from ...simulator.record.run import Run
from ..facts.differences import RunDifference
from .table import write_table


class ShownDifference(RunDifference):
    """The difference of two runs: `print(d)`, `d.html(path)`, `d.csv(path)`; a notebook shows it."""

    def html(self, path: str | Path) -> None:
        """Write the page of both runs to `path`: one HTML file that opens offline."""
        from ..html import write_page

        write_page(self, path)

    def csv(self, path: str | Path) -> None:
        """Write every figure of both runs to `path` as one table."""
        write_table(self, path)

    def _repr_html_(self) -> str:
        from ..html.notebook import excerpt

        return excerpt(self)

    def __str__(self) -> str:
        from ..terminal.difference_view import difference_page
        from ..terminal.explore_view import as_text

        return as_text(difference_page(self))


def compare_runs(first: Run, second: Run) -> ShownDifference:
    """What changed from `first` to `second`; `UsageError` if there is nothing that both of them have."""
    return ShownDifference.of(first, second)

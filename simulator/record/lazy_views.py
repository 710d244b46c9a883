"""How a record shows itself. The only place where `simulator` names what stands above it, and only when asked to show.

Imports point down (reports -> tiling -> kernels -> simulator); `print(run)` needs a report, so it is found by name, when a
record is printed and not before.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

REPORTS = "ascendtile.reports"
# Class of a record -> module of reports/terminal and the function that makes its page.
PAGES = {
    "Run": ("record_view", "run_report"),
    "Exploration": ("explore_view", "exploration_page"),
    "Shapes": ("explore_tables", "shapes_page"),
    "Variants": ("explore_tables", "variants_page"),
    "Difference": ("explore_tables", "difference_page"),
    "RunDifference": ("difference_view", "difference_page"),
    "ChainRun": ("chains.page", "run_page"),
    "ChainSearch": ("chains.page", "search_page"),
}
WRITERS = {
    "html": ("html", "write_page"),
    "trace": ("traces.writing", "write_trace"),
    "csv": ("comparing.table", "write_table"),
}


class PrintedRecord:
    """`print(record)` shows its page, at most 80 columns wide."""

    def __str__(self) -> str:
        module, name = PAGES[type(self).__name__]
        page = getattr(import_module(f"{REPORTS}.terminal.{module}"), name)
        return str(import_module(f"{REPORTS}.terminal.console").as_text(page(self)))


class ShownRecord(PrintedRecord):
    """A record that is also a page of HTML, and that a notebook shows."""

    def html(self, path: str | Path) -> None:
        """Write the page to `path`: one HTML file that opens offline. What is there is replaced once it is whole."""
        write("html", self, path)

    def _repr_html_(self) -> str:
        return show("notebook", self)


def show(kind: str, record: Any) -> str:
    """The view of a record in a notebook, which is the one kind that there is."""
    return str(import_module(f"{REPORTS}.html.{kind}").excerpt(record))


def write(kind: str, record: Any, path: Any, *choice: Any, **more: Any) -> None:
    """Write that kind of view of a record to a file."""
    module, name = WRITERS[kind]
    getattr(import_module(f"{REPORTS}.{module}"), name)(record, path, *choice, **more)

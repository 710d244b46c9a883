"""How a record shows itself. The only place where `simulator` names what stands above it, and only when asked to show.

Imports point down (reports -> tiling -> kernels -> simulator); `print(run)` needs a report, so it is found by name, when a
record is printed and not before.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

VIEWS = {
    "notebook": ("ascendtile.reports.html.notebook", "excerpt"),
    "text": ("ascendtile.reports.terminal.page", "run_text"),
    "exploration": ("ascendtile.reports.terminal.explore_view", "exploration_text"),
    "shapes": ("ascendtile.reports.terminal.explore_tables", "shapes_text"),
    "variants": ("ascendtile.reports.terminal.explore_tables", "variants_text"),
    "difference": ("ascendtile.reports.terminal.explore_tables", "difference_text"),
}
WRITERS = {
    "html": ("ascendtile.reports.html", "write_page"),
    "trace": ("ascendtile.reports.traces.writing", "write_trace"),
}


def show(kind: str, record: Any) -> str:
    """The view of that kind of a record."""
    module, name = VIEWS[kind]
    return str(getattr(import_module(module), name)(record))


def write(kind: str, record: Any, path: Any, *choice: Any, **more: Any) -> None:
    """Write that kind of view of a record to a file."""
    module, name = WRITERS[kind]
    getattr(import_module(module), name)(record, path, *choice, **more)

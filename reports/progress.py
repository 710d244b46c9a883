"""How far a run has come, on standard error, while it runs; nothing where standard error is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]


@contextmanager
def shown(text: str) -> Iterator[Progress | None]:
    """A bar with `text` that goes away at the end; gives the function to be told (done, total)."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    from ascendtile.reports.console import make_console
    from ascendtile.reports.words import clean

    columns = (SpinnerColumn("line"), TextColumn("{task.description}", markup=False), BarColumn(24))
    with Bar(*columns, TimeElapsedColumn(), console=make_console(sys.stderr), transient=True) as bar:
        task = bar.add_task(clean(text, 44), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)

"""How far a sweep is, on standard error: points done, rate, best so far, time left.

A bar on a terminal. Elsewhere a line now and then, the first after 10 s, each next one after twice as long.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..facts.texts import clean
from ..terminal.console import make_console, note

Report = Callable[[int, int, float], None]
FIRST_LINE = 10.0
UNITS = {"time": " us", "error": "", "ub": " bytes of UB"}


def state(done: int, left: int, best: float, seconds: float, objective: str) -> str:
    """ "120 points, 14.2/s, best 18.6 us, at most 310 left (22 s)"."""
    rate = done / seconds if seconds > 0 else 0.0
    shown = "none yet" if best == float("inf") else f"{best:,.4g}{UNITS[objective]}"
    rest = f", at most {left:,} left ({left / rate:,.0f} s)" if rate and left > 0 else ""
    return f"{done:,} points, {rate:,.3g}/s, best {shown}{rest}"


@contextmanager
def exploring(title: str, objective: str) -> Iterator[Report]:
    """What `explore` is to report to while it runs."""
    begin = time.monotonic()
    if not sys.stderr.isatty():
        lines = _Lines(title, objective, begin)
        yield lines.report
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    columns = (SpinnerColumn("line"), BarColumn(16), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=make_console(sys.stderr), transient=True, auto_refresh=False) as bar:
        task = bar.add_task(clean(title, 40), total=None)

        def report(done: int, left: int, best: float) -> None:
            text = state(done, left, best, time.monotonic() - begin, objective)
            bar.update(task, completed=done, total=done + max(left, 0), description=text)
            bar.refresh()

        yield report


class _Lines:
    """A line now and then."""

    def __init__(self, title: str, objective: str, begin: float) -> None:
        self.title, self.objective, self.begin = title, objective, begin
        self.wait = FIRST_LINE

    def report(self, done: int, left: int, best: float) -> None:
        seconds = time.monotonic() - self.begin
        if seconds >= self.wait:
            note(f"{clean(self.title, 40)}: {state(done, left, best, seconds, self.objective)}")
            self.wait *= 2

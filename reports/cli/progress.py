"""How far a run or a sweep has come, on standard error, while it runs.

A bar for one operator (`shown`), nothing where standard error is no terminal. A bar for a sweep (`exploring`), and for the
launches of a script (`of_launches`) a line that comes and goes; both have a line now and then where standard error is no
terminal: the first after 10 s, each next one after twice as long. Standard output is never written to.
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from ...simulator import progress as at_work
from ..facts.texts import clean

Told = Callable[[int, int], None]
Report = Callable[[int, int, float], None]

LOOK_SECONDS = 0.5
FIRST_ON_TERMINAL, FIRST_LINE = 2.0, 10.0  # seconds of work before anything is said
LONGEST = 120.0  # between two lines
UNITS = {"time": " us", "error": "", "ub": " bytes of UB"}


@contextmanager
def _bar(text: str, width: int, timed: bool) -> Iterator[Callable[..., None] | None]:
    """A bar that goes away at the end; gives the function that updates it, None where standard error is no terminal.

    timed: the seconds behind it, and drawn anew as they go by.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from ..terminal.console import make_console

    said, drawn = TextColumn("{task.description}", markup=False), BarColumn(width)
    columns = (SpinnerColumn("line"), *((said, drawn, TimeElapsedColumn()) if timed else (drawn, said)))
    console = make_console(sys.stderr)
    with Progress(*columns, console=console, transient=True, auto_refresh=timed) as bar:
        yield functools.partial(bar.update, bar.add_task(text, total=None))


@contextmanager
def shown(text: str) -> Iterator[Told | None]:
    """A bar with `text`; gives the function to be told (done, total)."""
    with _bar(clean(text, 44), 24, timed=True) as update:
        yield update and (lambda done, total: update(completed=done, total=total))


def sweep_line(done: int, left: int, best: float, seconds: float, objective: str) -> str:
    """ "120 points, 14.2/s, best 18.6 us, at most 310 left (22 s)"."""
    rate = done / seconds if seconds > 0 else 0.0
    shown = "none yet" if best == float("inf") else f"{best:,.4g}{UNITS[objective]}"
    rest = f", at most {left:,} left ({left / rate:,.0f} s)" if rate and left > 0 else ""
    return f"{done:,} points, {rate:,.3g}/s, best {shown}{rest}"


@contextmanager
def exploring(title: str, objective: str) -> Iterator[Report]:
    """What `explore` is to report to while it runs: points done, points left, best so far."""
    begin, wait, title = time.monotonic(), FIRST_LINE, clean(title, 40)

    def report(done: int, left: int, best: float) -> None:
        nonlocal wait
        seconds = time.monotonic() - begin
        text = sweep_line(done, left, best, seconds, objective)
        if update is not None:
            update(completed=done, total=done + max(left, 0), description=text, refresh=True)
        elif seconds >= wait:
            sys.stderr.write(f"{title}: {text}\n")
            wait *= 2

    with _bar(title, 16, timed=False) as update:
        yield report


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """SIGTERM, and SIGHUP of a terminal that is closed, stop as Ctrl-C does: what is done is kept, what was started ends.

    One that is ignored (`nohup`) stays so.
    """

    def stop(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    heard = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
    before = [(n, signal.signal(n, stop)) for n in heard]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def state_line(work: at_work.Work, candidate: tuple[int, int] | None, seconds: float) -> str:
    """One line: how long the script has run, which launch it is at, and how far that has come."""
    parts = [f"{seconds:.0f} s", f"launch {work.number:,} {clean(work.kernel, 32)}"]
    if candidate:
        parts.append(f"config {candidate[0]} of {candidate[1]}")
    if work.done:
        parts.append(f"{work.done:,} of {work.programs:,} programs done")
    if work.iterations:
        parts.append(f"{work.iterations:,} loop iterations")
    return ", ".join(parts)


class Reporter:
    """Looks at what the process is busy with and says it on `out`."""

    def __init__(self, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self.out = out
        self.terminal = out.isatty()
        self.clock = clock
        self.begun = clock()
        self.next = self.begun + (FIRST_ON_TERMINAL if self.terminal else FIRST_LINE)
        self.wait = FIRST_LINE
        self.visible = False
        self.lock = threading.Lock()

    def look(self) -> None:
        """Say something if it is time to."""
        now = self.clock()
        work, candidate = at_work.now()
        if work is None or now < self.next:
            return
        text = state_line(work, candidate, now - self.begun)
        with self.lock:
            if self.terminal and at_work.now()[0] is work:
                width = shutil.get_terminal_size().columns
                self._write(f"\r\x1b[K{text[: width - 1]}")
                self.visible = True
            elif not self.terminal:
                self._write(f"ascendtile: {text}\n")
                self.next, self.wait = now + self.wait, min(2 * self.wait, LONGEST)

    def clear(self) -> None:
        """Take the line away before the script writes; it comes back if the work goes on for long."""
        if self.visible:
            with self.lock:
                self._write("\r\x1b[K")
                self.visible = False
                self.next = self.clock() + FIRST_ON_TERMINAL / 4

    def _write(self, text: str) -> None:
        try:
            self.out.write(text)
            self.out.flush()
        except (OSError, ValueError):  # closed: nobody wants to know
            return


class Thread:
    """Lets a reporter look twice a second. It stands still while the process forks: a child must inherit no lock of it."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.over = threading.Event()
        self.thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, or go on."""
        self.over.clear()
        self.thread = threading.Thread(target=self._looks, name="ascendtile progress", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        """Stand still."""
        self.over.set()
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join()
        self.thread = None

    def _looks(self) -> None:
        while not self.over.wait(LOOK_SECONDS):
            self.reporter.look()


_running: list[Thread] = []
_at_fork: list[None] = []


def _watch_forks() -> None:
    """Once in a process: hooks of forks cannot be taken back."""
    if not _at_fork and hasattr(os, "register_at_fork"):
        _at_fork.append(None)
        os.register_at_fork(before=_stop_all, after_in_parent=_start_all, after_in_child=_running.clear)


def _stop_all() -> None:
    for thread in _running:
        thread.stop()


def _start_all() -> None:
    for thread in _running:
        thread.start()


@contextmanager
def of_launches() -> Iterator[None]:
    """Show what the launches inside of the block are at."""
    reporter = Reporter(sys.stderr)
    thread = Thread(reporter)
    _watch_forks()
    _running.append(thread)
    at_work.listeners.append(reporter.clear)
    thread.start()
    try:
        yield
    finally:
        at_work.listeners.remove(reporter.clear)
        if thread in _running:  # not so in a forked process
            _running.remove(thread)
            thread.stop()
        reporter.clear()

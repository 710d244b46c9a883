"""Who is told of launches: a script's summary, a benchmark that adds up simulated time, an event on a stream.

A launch that only tries something out (a tuner's candidate) is made inside `quietly()` and not told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .call import Call
    from .record.run import Launch, Run

# Of the process, not of a context: autograd and a script's own threads launch kernels, too.
_watchers: list[Callable[[Run], None]] = []
_timers: list[Callable[[Launch], None]] = []
_callers: list[Callable[[Call], None]] = []
_quiet: list[None] = []


@contextmanager
def watch(tell: Callable[[Run], None]) -> Iterator[None]:
    """Call `tell(run)` after every launch inside of the block."""
    _watchers.append(tell)
    try:
        yield
    finally:
        _watchers.remove(tell)


@contextmanager
def watch_times(tell: Callable[[Launch], None]) -> Iterator[None]:
    """Call `tell(launch)` whenever the time of a launch is made inside of the block, also quietly."""
    _timers.append(tell)
    try:
        yield
    finally:
        _timers.remove(tell)


@contextmanager
def watch_calls(tell: Callable[[Call], None]) -> Iterator[None]:
    """Call `tell(call)` before every launch inside of the block; the call can be made again with other arguments."""
    _callers.append(tell)
    try:
        yield
    finally:
        _callers.remove(tell)


@contextmanager
def quietly() -> Iterator[None]:
    """Launches inside the block are not reported."""
    _quiet.append(None)
    try:
        yield
    finally:
        _quiet.pop()


def is_quiet() -> bool:
    """Whether launches are not reported."""
    return bool(_quiet)


def calls_are_watched() -> bool:
    """Whether somebody is told of launches before they are made."""
    return bool(_callers) and not _quiet


def announce_call(call: Call) -> None:
    """Tell who asked for launches before they are made."""
    for tell in tuple(_callers) if not _quiet else ():
        tell(call)


def announce_time(launch: Launch) -> None:
    """Tell who asked for times."""
    for tell in tuple(_timers):
        tell(launch)


def announce(run: Run) -> None:
    """Tell the watchers of a launch that is done."""
    if not is_quiet():
        for tell in tuple(_watchers):
            tell(run)

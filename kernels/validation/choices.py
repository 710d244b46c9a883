"""Which of several tilings a row was predicted with, kept while its figures are varied.

Where nobody published a tiling a predictor times a few and takes the fastest. How the time of the fastest depends on a
figure is how the time of that one does, so the others need not be timed again for a small change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

Choice = TypeVar("Choice")
_chosen: ContextVar[dict[tuple[str, str], Any] | None] = ContextVar("ascendtile_choices", default=None)


@contextmanager
def keeping() -> Iterator[None]:
    """Inside, a row that was predicted once is predicted with the same choice again."""
    token = _chosen.set({})
    try:
        yield
    finally:
        _chosen.reset(token)


def kept(row: str, choices: Sequence[Choice]) -> Sequence[Choice]:
    """The choices that are to be timed for the row of that id."""
    known = _chosen.get() or {}
    found = known.get((row, repr(choices)))
    return choices if found is None else [found]


def keep(row: str, choices: Sequence[Choice], choice: Choice) -> None:
    """What came out fastest of these choices."""
    known = _chosen.get()
    if known is not None:
        known[row, repr(choices)] = choice

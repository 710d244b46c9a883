"""What is to be said of a row beside its prediction: keys that nothing read, words that were taken for others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass
class Heard:
    """given: keys of a tiling, with their values; read: those that a predictor asked for; remarks: in their order, once."""

    given: dict[str, str] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)
    remarks: dict[str, None] = field(default_factory=dict)

    def texts(self) -> Iterator[str]:
        """For the note of a row. Keys that are not known stay accepted, as tables of other versions have them."""
        unread = [f"{key}={value}" for key, value in self.given.items() if key not in self.read]
        if unread:
            yield f"not used for this row: {' '.join(unread)}"
        yield from self.remarks


_heard: ContextVar[Heard | None] = ContextVar("ascendtile_heard", default=None)


@contextmanager
def listening() -> Iterator[Heard]:
    """Inside, what is given, read and remarked of a row is kept."""
    heard = Heard()
    token = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(token)


def give(keys: Iterable[tuple[str, str]]) -> None:
    """These are in the tiling of the row."""
    if (heard := _heard.get()) is not None:
        heard.given.update(keys)


def read(key: str) -> None:
    """A predictor asked for this key."""
    if (heard := _heard.get()) is not None:
        heard.read.add(key)


def remark(text: str) -> None:
    """Say this in the row's note."""
    if (heard := _heard.get()) is not None:
        heard.remarks[text] = None

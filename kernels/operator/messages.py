"""Parts of messages: what was probably meant, and lists."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def near(name: object, known: Iterable[str]) -> str:
    """ "; did you mean ...?" for a name that is not among `known`, or all of them where nothing is near."""
    names = list(known)
    text = str(name)
    starts = [n for n in names if text and n.startswith(text)]
    close = starts or get_close_matches(text.lower(), names, n=3, cutoff=0.5)
    return f"; did you mean {listed(close, 'or')}?" if close else f"; known are {listed(names)}"


def listed(names: Iterable[object], last: str = "and") -> str:
    """ "a, b and c"."""
    items = [str(n) for n in names]
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}" if items else "none"

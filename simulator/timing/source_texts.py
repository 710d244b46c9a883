"""The text of the functions that a launch spent its time in, for reports that show cycles beside it."""

from __future__ import annotations

import inspect
import linecache
import re
from collections.abc import Iterable
from functools import lru_cache
from tokenize import TokenError

from ..frontend.source import Source
from ..run import LineCost, SourceText

LONGEST_LINE = 400
MOST_LINES = 3000  # of all functions of a launch
HEAD = re.compile(r"[ \t]*(async[ \t]+)?def\b")


def source_texts(kernel: Source, lines: Iterable[LineCost]) -> tuple[SourceText, ...]:
    """The kernel, then helpers in the order of their cost; what would be more than 3000 lines is left out."""
    found = [SourceText(kernel.file, kernel.first_line, _text(kernel.lines))]
    left = MOST_LINES - len(kernel.lines)
    for cost in lines:
        if any(_holds(x, cost) for x in found):
            continue
        block = _function_at(cost.file, cost.line)
        left -= 0 if block is None else block.text.count("\n") + 1
        if block is not None and left >= 0:
            found.append(block)
    return tuple(found)


def _holds(text: SourceText, cost: LineCost) -> bool:
    last = text.first_line + text.text.count("\n")
    return text.file == cost.file and text.first_line <= cost.line <= last


def _text(lines: Iterable[str]) -> str:
    return "\n".join(line.rstrip("\r\n")[:LONGEST_LINE] for line in lines)


def _function_at(file: str, line: int) -> SourceText | None:
    """The function around a line: from the nearest `def` above that reaches it, decorators left out."""
    return _found(file, line, tuple(linecache.getlines(file)))


@lru_cache(maxsize=256)
def _found(file: str, line: int, lines: tuple[str, ...]) -> SourceText | None:
    for first in range(min(line, len(lines)) - 1, -1, -1):
        if HEAD.match(lines[first]):
            try:
                block = inspect.getblock(list(lines[first:]))
            except (SyntaxError, TokenError):
                return None
            if first + len(block) >= line:
                return SourceText(file, first + 1, _text(block))
    return None

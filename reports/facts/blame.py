"""Blame by source line: each line's share of the error of an output, beside the text that the record holds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ...simulator.record.run import Run, SourceText
from . import texts

MOST_LINES = 400  # of the functions of an output


@dataclass(frozen=True)
class BlamedLine:
    """One line of a function. share: None for a line that rounds nothing."""

    number: int
    code: str
    share: float | None = None


@dataclass(frozen=True)
class BlamedFunction:
    """A function with a line that rounds. file: the name without folders."""

    file: str
    lines: tuple[BlamedLine, ...]


@dataclass(frozen=True)
class Blame:
    """What makes up the error of an output: shares that add up to one; a negative one undoes some of the others.

    functions: those whose text is known, in the order of the launches. rest: (place, share) of all other lines, and of what
    earlier launches left.
    """

    output: str
    functions: tuple[BlamedFunction, ...]
    rest: tuple[tuple[str, float], ...]

    @property
    def largest(self) -> float:
        """The largest share without its sign: what bars are drawn against."""
        inside = (x.share or 0.0 for f in self.functions for x in f.lines)
        return max(map(abs, (*inside, *(share for _, share in self.rest))), default=0.0)


def blames(run: Run) -> list[Blame]:
    """Of each output whose error is known by lines; the texts of the record may be anybody's and are not cleaned here."""
    sources = dict.fromkeys(t for x in run.launches for t in x.sources)
    return [_blame(name, shares, sources) for name, shares in run.error_lines.items()]


def _blame(output: str, shares: dict[str, float], sources: Iterable[SourceText]) -> Blame:
    left = {n: x for n, x in shares.items() if math.isfinite(x)}  # a record may be anybody's
    functions, room = [], MOST_LINES
    for text in sources:
        lines = tuple(
            BlamedLine(number, code, left.pop(f"{text.file}:{number}", None))
            for number, code in enumerate(text.text.split("\n"), text.first_line)
        )
        if any(x.share is not None for x in lines):
            functions.append(BlamedFunction(text.file.rpartition("/")[2], lines[: max(0, room)]))
            room -= len(lines)
    return Blame(output, tuple(functions), tuple((n.rpartition("/")[2], x) for n, x in left.items()))


def source_of(run: Run) -> dict[str, str]:
    """ "file.py:12" -> what stands there, of the functions that the record holds."""
    return {
        texts.place(t.file, number): code.strip()
        for x in run.launches
        for t in x.sources
        for number, code in enumerate(t.text.split("\n"), t.first_line)
    }

"""Blame beside the source: every line of the functions that the record holds, with its share of the error of an output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from ...simulator.record.run import Run
from ..facts import facts, texts
from ..facts.blame import Blame, BlamedFunction, blames
from .source_lines import highlighted
from .writing import render

MOST_OUTPUTS = 12


@dataclass(frozen=True)
class BlameRow:
    """One line of a table. left, width: of its bar, in percent of the column, whose middle is no share."""

    number: int
    code: Markup
    share: float | None
    left: float = 50.0
    width: float = 0.0


def blame_tables(run: Run) -> Markup:
    """The first output, and the others to open; empty where no error is known by lines."""
    parts = []
    for k, found in enumerate(blames(run)[:MOST_OUTPUTS]):
        name = texts.clean(found.output, 40)
        wrap = "<details><summary>{name}</summary>{body}</details>" if k else "<h3>{name}</h3>{body}"
        parts.append(Markup(wrap).format(name=name, body=_tables(found)))
    return Markup("").join(parts)


def _tables(found: Blame) -> Markup:
    functions = [(texts.clean(f.file, 80), list(_rows(f, found.largest))) for f in found.functions]
    rest = [(texts.clean(place, 80), share, *_bar(share, found.largest)) for place, share in found.rest]
    return render("blame.html", functions=functions, rest=rest)


def _rows(function: BlamedFunction, largest: float) -> Iterator[BlameRow]:
    codes = highlighted("\n".join(x.code for x in function.lines))
    for line, code in zip(function.lines, codes, strict=True):
        if line.share is None:
            yield BlameRow(line.number, code, None)
        else:
            yield BlameRow(line.number, code, line.share, *_bar(line.share, largest))


def _bar(share: float, largest: float) -> tuple[float, float]:
    """Where the bar of a share begins and how wide it is: to the right of the middle, a negative one to its left."""
    width = 50.0 * max(0.0, min(1.0, facts.share(abs(share), largest)))
    return (50.0 - width if share < 0 else 50.0), width

"""What to change in a kernel: knobs that were tried, and lines of which the compiler makes slow code."""

from __future__ import annotations

from rich.text import Text

from ...simulator.record.run import Run
from ..facts.advice import tried
from ..facts.advice.slowing import LEAD, TITLE, SlowLine, slow_lines
from .sections import Block, more
from .tables import fact, item

MOST_LINES = 4
MOST_OF_A_LINE = 3


def advice(run: Run) -> Block:
    """The changes of one knob that help most, what else was timed, and what was not, with the reason."""
    told = {"try": tried.advice(run), "timed": tried.tried(run), "untried": "; ".join(tried.untried(run))}
    return [fact(name, text) for name, text in told.items() if text] if told["try"] else []


def slowing(run: Run, title: str = TITLE, most: int = MOST_LINES) -> Block:
    """Of each line its time, what the compiler makes of it, and what to write instead."""
    found = slow_lines(run)
    if not found:
        return []
    shown = [part for row in found[:most] for part in _slow_line(row)]
    head = Text.assemble((title, "bold yellow"), (f"  {LEAD}", "dim"))
    rest = len(found) - most
    return [Text(), head, *shown, *more(rest, f"such line{'s' * (rest > 1)}")]


def _slow_line(row: SlowLine) -> Block:
    first = row.found[:MOST_OF_A_LINE]
    return [
        Text.assemble((row.place, "bold"), f"  {row.cost}"),
        *(item(x.what, "") for x in first),
        *more(len(row.found) - len(first), "of this line"),
        *(item(f"instead: {cure}", "green") for cure in dict.fromkeys(x.cure for x in first)),
    ]

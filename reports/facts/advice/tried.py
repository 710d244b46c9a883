"""What was timed with one knob changed, what helped, and why other values were not timed."""

from __future__ import annotations

from typing import NamedTuple

from ....simulator.record.run import Run
from ....simulator.trials.search import VALUES
from .. import facts, texts

MENTIONED_SHARE = 0.01
MOST_KNOBS = 3  # that help
MOST_LETTERS = 60  # of a change


class TriedChange(NamedTuple):
    """knob: its name. text: "ROWS 1 -> 16". value: what it was changed to. saved: part of the run's time."""

    knob: str
    text: str
    value: str
    saved: float


def changes(run: Run) -> list[TriedChange]:
    """All that were timed and make a difference, best first."""
    return [_change(text, 1 - facts.share(us, run.time_us)) for text, us in run.changes.items()]


def _change(text: str, saved: float) -> TriedChange:
    before, _, after = text.partition(" -> ")
    return TriedChange(before.partition(" ")[0], text, after.partition(", grid ")[0], saved)


def helpful(run: Run) -> list[TriedChange]:
    """The best change of each knob that makes the run faster, best first."""
    best: dict[str, TriedChange] = {}
    for change in changes(run):
        if change.saved >= MENTIONED_SHARE:
            best.setdefault(change.knob, change)
    return list(best.values())


def advice(run: Run) -> str:
    """ROWS 1 -> 16: 71 % less time; multibuffer 2 -> 1: 2 % less time. Empty where nothing was tried."""
    if not run.lifted and not run.changes:
        return ""
    found = helpful(run)[:MOST_KNOBS]
    named = [f"{texts.clean(c.text, MOST_LETTERS)}: {texts.percent(c.saved)} less time" for c in found]
    if named and VALUES in run.untried:
        named[-1] += " (values not compared)"
    return "; ".join(named) or "no change of one knob that was timed is faster"


def tried(run: Run) -> str:
    """multibuffer 1, 4; ROWS 2, 4, 8. Empty where nothing that was tried changes the time."""
    values: dict[str, list[str]] = {}
    for change in changes(run):
        values.setdefault(change.knob, []).append(change.value)
    return "; ".join(f"{texts.clean(n, 30)} {', '.join(_sorted(x))}" for n, x in values.items())


def _sorted(values: list[str]) -> list[str]:
    whole = all(x.isdecimal() for x in values)
    return sorted(values, key=int) if whole else values


def untried(run: Run) -> list[str]:
    """ "COLS (a length of x, so another one is another problem)", knobs of one reason together."""
    knobs: dict[str, list[str]] = {}
    for knob, reason in run.untried.items():
        knobs.setdefault(reason, []).append(texts.clean(knob, 30))
    return [f"{', '.join(names)} ({texts.clean(reason, 200)})" for reason, names in knobs.items()]

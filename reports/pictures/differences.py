"""What won or lost the time between two runs: lines, pipes and waits, what changed most first."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...simulator.errors import UsageError
from ...simulator.record.run import Run
from ..facts import facts, texts
from ..facts.differences import OTHER, FigurePair, RunDifference
from .style import COLOURS, new_figure, styled

MOST = 8  # bars of a panel
MENTIONED = 0.002  # of the longer run's time: what moved less has no bar
MORE, LESS = COLOURS[3], COLOURS[2]


def difference(first: Run, second: Run) -> Figure:
    """Bars of B - A in us: to the right what B takes longer for, to the left what it saves."""
    d = RunDifference.of(first, second)
    if d.time.first is None or d.time.second is None:
        raise UsageError("one of the two runs has values only: there are no times to draw")
    least = MENTIONED * max(d.time.first, d.time.second)
    groups = (
        ("time by source line", (*d.lines, d.other)),
        ("pipes, busy", d.busy),
        ("waits, all pipes", d.waits),
    )
    panels = [(title, _moved(pairs, least)) for title, pairs in groups]
    panels = [(title, pairs) for title, pairs in panels if pairs] or [("time", [d.time])]
    with styled():
        heights = [0.9 + len(pairs) for _, pairs in panels]
        figure, axes = new_figure(9.0, 0.8 + 0.3 * sum(heights), rows=len(panels), heights=heights)
        for one, (title, pairs) in zip(axes, panels, strict=True):
            _bars(one, title, pairs)
        changes = [p.change for _, pairs in panels for p in pairs]
        low, high = min(0.0, *changes), max(0.0, *changes)
        room = 0.12 * (high - low or 1.0)  # for the figures at the ends of the bars
        for one in axes:
            one.set_xlim(low - room * (low < 0), high + room)
        axes[-1].set_xlabel("us more or less in B than in A")
        figure.suptitle(_verdict(d), x=0.01, ha="left", fontsize=11)
    return figure


def _moved(pairs: tuple[FigurePair, ...], least: float) -> list[FigurePair]:
    ranked = sorted(pairs, key=lambda p: -abs(p.change))
    return [p for p in ranked if abs(p.change) >= least and p.change][:MOST]


def _bars(axes: Axes, title: str, pairs: list[FigurePair]) -> None:
    changes = [p.change for p in pairs]
    axes.barh(range(len(pairs)), changes, height=0.66, color=[MORE if x > 0 else LESS for x in changes])
    for k, x in enumerate(changes):
        place: Any = {"xytext": (4, 0), "ha": "left"} if x >= 0 else {"xytext": (-4, 0), "ha": "right"}
        text = texts.signed_micros(x)
        axes.annotate(text, (x, k), textcoords="offset points", va="center", fontsize=8.5, **place)
    axes.set_yticks(range(len(pairs)), [_label(p.name) for p in pairs], fontsize=8.5)
    axes.axvline(0.0, color="#5b636d", linewidth=0.9)
    axes.set_ylim(len(pairs) - 0.4, -0.6)
    axes.set_title(title)
    axes.grid(axis="y", visible=False)


def _label(name: str) -> str:
    return name if name == OTHER else texts.clean(name, 56)


def _verdict(d: RunDifference) -> str:
    """A: 40.1 us on ascend910b3; B: 38.0 us, 2.1 us less."""
    a, b = (texts.clean(facts.product_name(r), 30) for r in (d.first, d.second))
    more = d.time.change
    verdict = f"{texts.micros(abs(more))} us {'more' if more > 0 else 'less'}" if more else "as long as A"
    first, second = (texts.micros(us or 0.0) for us in (d.time.first, d.time.second))
    return f"A takes {first} us on {a}; B {second} us on {b}, {verdict}"

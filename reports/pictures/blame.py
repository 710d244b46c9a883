"""A picture of blame: the source with a bar for each line's share of the error of an output."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from ...simulator.errors import UsageError
from ...simulator.record.run import Run
from ..facts import texts
from ..facts.blame import Blame, blames
from .style import COLOURS, new_figure, styled

MOST_LINES = 60  # of the source; of more, those that round
MOST_LETTERS = 96  # of a line
LETTER, BARS = 0.064, 3.2  # inches: a letter of a line, and the panel of the bars
Row = tuple[str, str, float | None]  # number, text, share


def error_blame(run: Run, output: str | None = None) -> Figure:
    """Each line's share of the error of an output (the first one, where none is named), beside the source."""
    found = _chosen(run, output)
    rows = _rows(found)
    with styled():
        wide = 0.6 + LETTER * max((len(code) for _, code, _ in rows), default=0)
        size = (wide + BARS, 1.2 + 0.2 * len(rows))
        figure, (source, bars) = new_figure(*size, columns=2, widths=(wide, BARS))
        _write(source, rows, wide)
        _draw(bars, [share for *_, share in rows], found.largest)
        source.set_title(f"{texts.clean(found.output, 40)}: which lines' roundings make up its error")
    return figure


def _chosen(run: Run, output: str | None) -> Blame:
    every = {x.output: x for x in blames(run)}
    if not every:
        raise UsageError(
            "this run does not hold which lines its errors come from: ask for --error-lines (errors='lines')"
        )
    if output is not None and output not in every:
        raise UsageError(f"no output {texts.clean(output, 40)!r} here; there are {', '.join(every)}")
    return every[output] if output is not None else next(iter(every.values()))


def _rows(found: Blame) -> list[Row]:
    """The lines of the functions, then what rounds elsewhere; of a long source the lines that round."""
    lines = [x for f in found.functions for x in f.lines]
    if len(lines) + len(found.rest) > MOST_LINES:
        lines = [x for x in lines if x.share is not None]
    rows: list[Row] = [(str(x.number), x.code, x.share) for x in lines]
    rows += [("", place, share) for place, share in found.rest]
    return [(n, texts.clean(code.expandtabs(4), MOST_LETTERS), share) for n, code, share in rows[:MOST_LINES]]


def _write(axes: Any, rows: list[Row], wide: float) -> None:
    """The text of the source on an axis of inches, letters of one width, dark where a line rounds."""
    axes.set(xlim=(0, wide), ylim=(len(rows) - 0.5, -0.5))
    axes.axis("off")
    for k, (number, code, share) in enumerate(rows):
        how = {"va": "center", "fontsize": 7.5, "fontfamily": "DejaVu Sans Mono"}
        axes.text(0.3, k, number, ha="right", color=COLOURS[7], **how)
        axes.text(0.42, k, code, color=COLOURS[7] if share is None else "black", **how)


def _draw(axes: Any, shares: list[float | None], largest: float) -> None:
    """A bar to the right for a share, to the left for one that undoes others."""
    lowest = min((x for x in shares if x is not None), default=0.0)
    reach = largest or 1.0
    axes.set(ylim=(len(shares) - 0.5, -0.5), xlim=(-1.3 * reach if lowest < 0 else 0.0, 1.3 * reach))
    for k, share in enumerate(shares):
        if share is not None:
            axes.barh(k, share, height=0.75, color=COLOURS[2 if share < 0 else 3])
            side = "right" if share < 0 else "left"
            axes.annotate(f" {texts.percent(share)} ", (share, k), va="center", ha=side, fontsize=7.5)
    axes.axvline(0, color="#5b636d", linewidth=0.8)
    axes.set_yticks([])
    axes.xaxis.set_major_formatter(lambda x, _: texts.percent(x))
    axes.set_xlabel("share of the error")

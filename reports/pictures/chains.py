"""A picture of a chain of operators: which steps make its error, and which take its time."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from ...kernels.chains.blame import ARITHMETIC, STORAGE
from ...kernels.chains.results import ChainRun
from ...simulator.errors import UsageError
from ..facts import texts
from .style import COLOURS, new_figure, styled

GIVEN = "inputs"  # the row of what is given, which no step makes
LEAST = 0.005  # of a share that is written beside its bar
KINDS = {STORAGE: ("storing what it makes", 0), ARITHMETIC: ("its own roundings", 3)}


def chain_blame(run: ChainRun, output: str | None = None) -> Figure:
    """Shares of the error of an output (the first one, where none is named) by step, beside the time of each with casts."""
    name = _output(run, output)
    rows = [GIVEN, *(s.name for s in run.steps)]
    with styled():
        figure, (error, time) = new_figure(10.0, 1.7 + 0.3 * len(rows), columns=2, widths=(1.6, 1.0))
        _shares(error, run, name, rows)
        _times(time, run, len(rows))
        labels = [texts.clean(x, 40) for x in (GIVEN, *(f"{s.name}: {s.op}" for s in run.steps))]
        error.set_yticks(range(len(rows)), labels, fontsize=8.5)
        error.set_title(f"{texts.clean(run.chain, 40)}: error of {texts.clean(name, 40)} by step")
        shown = zip(error.get_legend_handles_labels(), time.get_legend_handles_labels(), strict=True)
        figure.legend(*(a + b for a, b in shown), loc="outside lower center", ncols=4)
    return figure


def _output(run: ChainRun, output: str | None) -> str:
    held = list(run.blame.shares) if run.blame else []
    if not held:
        raise UsageError(
            f"this run of {texts.clean(run.chain, 40)} has no blame: it has no values, or blame=False"
        )
    if output is not None and output not in held:
        raise UsageError(f"no output {texts.clean(output, 40)!r} here; there are {', '.join(held)}")
    return output if output is not None else held[0]


def _shares(axes: Any, run: ChainRun, name: str, rows: list[str]) -> None:
    """Bars to the right for shares, to the left for those that undo others; of each step its two kinds side by side."""
    assert run.blame is not None
    for k, (kind, (words, colour)) in enumerate(KINDS.items()):
        held = dict.fromkeys(rows, 0.0)
        for source in run.blame.sources:
            if source.kind == kind:
                held[source.step or GIVEN] += run.blame.shares[name][source.key]
        at = [j + 0.19 * (2 * k - 1) for j in range(len(rows))]
        axes.barh(at, list(held.values()), height=0.36, color=COLOURS[colour], label=words)
        for y, share in zip(at, held.values(), strict=True):
            if abs(share) >= LEAST:
                side = "right" if share < 0 else "left"
                axes.annotate(f" {texts.percent(share)} ", (share, y), va="center", ha=side, fontsize=7)
    axes.axvline(0, color="#5b636d", linewidth=0.8)
    axes.margins(x=0.16)
    axes.set(xlabel="share of the error", ylim=(len(rows) - 0.5, -0.5))
    axes.xaxis.set_major_formatter(lambda x, _: texts.percent(x))


def _times(axes: Any, run: ChainRun, rows: int) -> None:
    """The operator, and behind it the casts; nothing where the run has no times."""
    own = [0.0, *(s.time_us or 0.0 for s in run.steps)]
    casts = [0.0, *(s.casts_us for s in run.steps)]
    axes.barh(range(rows), own, height=0.6, color=COLOURS[2], label="operators")
    if any(casts):
        axes.barh(range(rows), casts, left=own, height=0.6, color=COLOURS[1], label="casts")
    for k, (a, b) in enumerate(zip(own, casts, strict=True)):
        if a + b:
            told = f" {texts.micros(a + b)}{f' ({texts.micros(b)} casts)' if b else ''}"
            axes.annotate(told, (a + b, k), va="center", fontsize=7)
    axes.set_yticks([])
    axes.set(
        xlabel="us",
        ylim=(rows - 0.5, -0.5),
        xlim=(0, 1.45 * max(map(sum, zip(own, casts, strict=True))) or 1.0),
    )

"""Measured against predicted, one panel for each unit, one colour and mark for each group.

Colours are Okabe and Ito's, which people with any colour vision tell apart; marks differ too. Rows that figures were fitted
on are hollow. The lines are equality and 25 % to either side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascendtile.kernels.validation import Result, Validation
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.files import naming

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#F0E442")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")
BAND = 0.25


def save_plot(found: Validation, path: str) -> None:
    """Write the picture; its format is the file's ending. Raises UsageError if there is nothing to show."""
    results = [r for r in found.results if r.judged]
    if not results:
        raise UsageError("--plot: no row has both a measured and a predicted figure")
    with naming(path, "write"):
        # No date in the file: the same rows give the same picture.
        date: dict[str, Any] = {"Date": None} if path.lower().endswith(".svg") else {}
        _figure(results).savefig(path, dpi=150, metadata=date)


def _figure(results: list[Result]) -> Figure:
    from matplotlib.figure import Figure

    units = list(dict.fromkeys(r.row.unit for r in results))
    style = _styles(results)
    figure = Figure(figsize=(5.2 * len(units), 5.6), layout="constrained")
    panels = figure.subplots(1, len(units), squeeze=False)[0]
    for axes, unit in zip(panels, units, strict=True):
        _panel(axes, [r for r in results if r.row.unit == unit], unit, style)
    return figure


def _styles(results: list[Result]) -> dict[str, tuple[str, str]]:
    names = dict.fromkeys(r.row.group for r in results)
    return {n: (COLOURS[k % len(COLOURS)], MARKS[k % len(MARKS)]) for k, n in enumerate(names)}


def _panel(axes: Axes, results: list[Result], unit: str, style: dict[str, tuple[str, str]]) -> None:
    for group in dict.fromkeys(r.row.group for r in results):
        colour, mark = style[group]
        for fitted in (False, True):
            chosen = [r for r in results if r.row.group == group and r.row.fitted is fitted]
            label = f"{group} ({len(chosen)}{', fitted' if fitted else ''})"
            if chosen:
                axes.plot(
                    [r.row.measured for r in chosen],  # type: ignore[arg-type]
                    [r.predicted for r in chosen],  # type: ignore[arg-type]
                    linestyle="none", marker=mark, markersize=5, color=colour, label=label,
                    markerfacecolor="none" if fitted else colour,
                )  # fmt: skip
    _frame(axes, results, unit)


def _frame(axes: Axes, results: list[Result], unit: str) -> None:
    values = [x for r in results for x in (r.row.measured, r.predicted) if x is not None]
    ends = [min(values) / 1.5, max(values) * 1.5]
    axes.plot(ends, ends, color="0.3", linewidth=1)
    for factor in (1 - BAND, 1 + BAND):
        axes.plot(ends, [factor * e for e in ends], color="0.6", linewidth=0.8, linestyle="--")
    axes.set(
        xscale="log", yscale="log", xlim=ends, ylim=ends, xlabel=f"measured, {unit}",
        ylabel=f"predicted, {unit}", aspect="equal",
    )  # fmt: skip
    axes.legend(fontsize=6, loc="upper left")

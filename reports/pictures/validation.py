"""Measured against predicted, one panel for each unit, one colour and mark for each group.

Colours are Okabe and Ito's (grey in place of yellow, which is faint on white), which people with any colour vision tell
apart; marks differ too. Rows that figures were fitted on are hollow, rooflines are small grey points. The lines are equality
and 25 % to either side; upright ones reach from end to end of an interval.
"""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...kernels.validation import Result, Validation
from ...simulator.errors import UsageError
from ...simulator.record.files import naming
from ...simulator.record.run import INTERVAL_PERCENT

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#999999")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")
BAND = 0.25
WIDE, HIGH, ENTRY = 5.4, 5.4, 0.19  # inches: of a panel, and of a line of its legend
LONG = 10  # lines of a legend of one column


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
    units = list(dict.fromkeys(r.row.unit for r in results))
    style = _styles(results)
    lines = max(len(_parts([r for r in results if r.row.unit == unit])) + 2 for unit in units)
    lines = min(lines, -(-lines // 2)) if lines > LONG else lines
    figure = Figure(figsize=(WIDE * len(units), HIGH + ENTRY * lines), layout="constrained")
    panels = figure.subplots(1, len(units), squeeze=False)[0]
    for axes, unit in zip(panels, units, strict=True):
        _panel(axes, [r for r in results if r.row.unit == unit], unit, style)
    return figure


def _parts(results: list[Result]) -> dict[tuple[str, bool], list[Result]]:
    """Rows of a group, held out and fitted apart."""
    out: dict[tuple[str, bool], list[Result]] = {}
    for group in dict.fromkeys(r.row.group for r in results):
        for fitted in (False, True):
            chosen = [r for r in results if r.row.group == group and r.row.fitted is fitted]
            if chosen:
                out[group, fitted] = chosen
    return out


def _styles(results: list[Result]) -> dict[str, tuple[str, str]]:
    names = dict.fromkeys(r.row.group for r in results)
    return {n: (COLOURS[k % len(COLOURS)], MARKS[k % len(MARKS)]) for k, n in enumerate(names)}


def _panel(axes: Axes, results: list[Result], unit: str, style: dict[str, tuple[str, str]]) -> None:
    bounds = [(r.row.measured, r.roofline) for r in results if r.roofline]
    if bounds:
        axes.plot(*zip(*bounds, strict=True), ".", color="0.75", markersize=3, label="roofline", zorder=1)
    between = [r for r in results if r.interval]
    if between:
        ends = zip(*(r.interval for r in between if r.interval), strict=True)
        label = f"{INTERVAL_PERCENT} % of measured times should be in"
        axes.vlines(
            [r.row.measured for r in between],  # type: ignore[arg-type]
            *ends,
            color="0.85",
            linewidth=1,
            zorder=0,
            label=label,
        )
    for (group, fitted), chosen in _parts(results).items():
        colour, mark = style[group]
        axes.plot(
            [r.row.measured for r in chosen],  # type: ignore[arg-type]
            [r.predicted for r in chosen],  # type: ignore[arg-type]
            linestyle="none", marker=mark, markersize=5, color=colour, markeredgewidth=0.8,
            label=f"{group} ({len(chosen)}{', fitted' if fitted else ''})",
            markerfacecolor="none" if fitted else colour,
        )  # fmt: skip
    _frame(axes, results, unit)


def _frame(axes: Axes, results: list[Result], unit: str) -> None:
    values = [x for r in results for x in (r.row.measured, r.predicted, r.roofline) if x]
    ends = [min(values) / 1.5, max(values) * 1.5]
    axes.plot(ends, ends, color="0.3", linewidth=1)
    for factor, label in ((1 - BAND, f"{100 * BAND:g} % off"), (1 + BAND, None)):
        axes.plot(ends, [factor * e for e in ends], color="0.6", linewidth=0.8, linestyle="--", label=label)
    axes.set(
        xscale="log", yscale="log", xlim=ends, ylim=ends, xlabel=f"measured, {unit}",
        ylabel=f"predicted, {unit}", aspect="equal",
    )  # fmt: skip
    axes.set_anchor("N")
    columns = 2 if len(axes.get_legend_handles_labels()[0]) > LONG else 1
    axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.11), ncols=columns, frameon=False)

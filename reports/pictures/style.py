"""One style for all pictures: Okabe and Ito's colours, which any colour vision tells apart, and marks that differ."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation

from ...simulator.errors import UsageError
from ...simulator.record.files import check_target, write_whole
from ..facts.charts import Scale, short

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8C7A00", "#6B7280")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
PIPES = {"V": 0, "MTE2": 1, "MTE3": 2, "M": 3, "MTE1": 4, "FIXP": 5, "S": 7}
ENDINGS = ("png", "svg", "pdf")
DPI = 160
SETTINGS: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: neither the machine nor the user's settings decide
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#5b636d",
    "axes.labelcolor": "#3a4149",
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.grid": True,
    "grid.color": "#e4e4df",
    "axes.axisbelow": True,
    "xtick.color": "#5b636d",
    "ytick.color": "#5b636d",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "legend.title_fontsize": 8.5,
    "svg.hashsalt": "ascendtile",  # the same figure gives the same file
    "svg.fonttype": "path",
    "text.parse_math": False,  # a name of a record is a name, whatever signs it has
}


@contextmanager
def styled() -> Iterator[None]:
    """Figures that are made inside have the style; the caller's own settings are left alone."""
    log, once = logging.getLogger("matplotlib.font_manager"), _Once()
    log.addFilter(once)
    try:
        with mpl.rc_context(SETTINGS):
            yield
    finally:
        log.removeFilter(once)


class _Once(logging.Filter):
    """A font that is missing is told once, not for every letter."""

    def __init__(self) -> None:
        super().__init__()
        self.told: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        new = text not in self.told
        self.told.add(text)
        return new


def new_figure(
    width: float,
    height: float,
    columns: int = 1,
    rows: int = 1,
    heights: Sequence[float] | None = None,
    widths: Sequence[float] | None = None,
) -> tuple[Figure, list[Axes]]:
    """A figure of inches with a grid of axes, of these relative heights and widths; it belongs to no window."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, height_ratios=heights, width_ratios=widths)
    return figure, list(axes.reshape(-1))


def below(figure: Figure, axes: Axes, columns: int = 4) -> None:
    """The legend of these axes under all of the figure, where it covers nothing."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=columns)


def beneath(axes: Axes, columns: int, **how: Any) -> None:
    """The legend of axes that have one of their own, under them: so many inches, however high they are."""
    figure: Any = axes.get_figure()
    under = axes.transAxes + ScaledTranslation(0.0, -0.45, figure.dpi_scale_trans)
    where: Any = {"loc": "upper left", "bbox_to_anchor": (0.0, 0.0), "bbox_transform": under}
    axes.legend(**where, ncols=columns, alignment="left", **how)


def plain_figures(axis: Any, unit: float = 1.0) -> None:
    """Figures of a logarithmic axis, times `unit`, as the pages write them, and none between the decades."""
    low, high = sorted(axis.get_view_interval())
    axis.set_major_locator(FixedLocator(Scale(max(low, 1e-300), high, 0.0, 1.0, log=True).ticks()))
    axis.set_major_formatter(FuncFormatter(lambda x, _: short(x * unit)))
    axis.set_minor_locator(NullLocator())


def save(figure: Figure, path: str | Path) -> None:
    """Write it as what the name ends in: .png, .svg or .pdf; whole, or not at all. No date: equal figures, equal files."""
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in ENDINGS:
        raise UsageError(f"{path}: a picture is written as .png, .svg or .pdf")
    check_target(path)
    write_whole(path, drawn(figure, ending))


def drawn(figure: Figure, ending: str) -> bytes:
    """The bytes of its file."""
    undated: dict[str, Any] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[ending]
    out = io.BytesIO()
    with styled():
        figure.savefig(out, format=ending, dpi=DPI, metadata=undated)
    return out.getvalue()

"""The legend of a chart of lines, which tell themselves apart by colour and mark."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from ..svg import mark
from ..writing import render


def with_legend(chart: Markup, names: Sequence[tuple[str, int]], note: str) -> Markup:
    """A chart with the names of its lines and their numbers. Lines of one colour differ in their marks, which then stand
    beside the names."""
    marks = [mark(k, 0.0, 0.0, class_=f"f{k % 7}") for _, k in names]
    colours = [(name, k % 7) for name, k in names]
    repeated = len({k for _, k in colours}) < len(colours)
    return render("legend.html", chart=chart, names=colours, marks=marks if repeated else (), note=note)

"""A picture of a precision study: bits against time, a labelled point for each computation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from ...kernels.study.results import Study
from ...simulator.errors import UsageError
from ..facts import texts
from ..facts.charts import spread
from ..facts.study.json_form import output_of, read_study
from ..facts.study.labels import LabelBox, labels
from ..facts.study.points import StudyPoint, families, front, study_points
from .style import COLOURS, below, new_figure, plain_figures, styled

SIZE = 7.5  # of letters, points
REACH = 4.0  # pixels of half a mark, at 100 an inch


def precision_front(given: Study | Mapping[str, Any], output: str | None = None) -> Figure:
    """Effective bits against time, with a line through what nothing else beats. given: a Study, or the JSON of one."""
    study = read_study(given)
    name = output_of(study, output)
    points = study_points(study.first.rows, name)
    if not points:
        raise UsageError("this study has no row with a time and an error to show")
    with styled():
        figure, (axes,) = new_figure(8.4, 4.2 + 0.07 * len(points))
        axes.set(xscale="log", xlabel="us", ylabel="effective bits, exact inputs")
        axes.set_xlim(*spread([p.time_us for p in points], log=True, room=0.25))
        axes.set_ylim(*spread([p.bits for p in points], room=0.1))
        plain_figures(axes.xaxis)
        _points(axes, points)
        title = f"{study.first.op}{f' {study.case}' if study.case else ''}"
        axes.set_title(f"{texts.clean(title, 80)}: bits and time of {texts.clean(name, 40)}")
        below(figure, axes, 6)
        _labels(figure, axes, points)
    return figure


def _points(axes: Any, points: Sequence[StudyPoint]) -> None:
    best = front(points)
    axes.plot([p.time_us for p in best], [p.bits for p in best], color=COLOURS[7], linewidth=1.2, zorder=1.5)
    for family, k in families(points).items():
        mine = [p for p in points if p.family == family]
        at = [p.time_us for p in mine], [p.bits for p in mine]
        axes.plot(*at, linestyle="", marker="o", markersize=6, color=COLOURS[k], label=family)


def _labels(figure: Figure, axes: Any, points: Sequence[StudyPoint]) -> None:
    """Names where there is room for them, once the figure knows where its axes are."""
    figure.draw_without_rendering()
    ends, letter = axes.get_window_extent(), SIZE / 72 * figure.dpi
    at = [_pixels(axes, p) for p in points]
    best = [_pixels(axes, p) for p in front(points)]
    sizes = [(0.66 * letter * len(p.label), 1.3 * letter) for p in points]
    for p, where, box in zip(
        points,
        at,
        labels(at, sizes, LabelBox(ends.x0, ends.y0, ends.width, ends.height), REACH, best),
        strict=True,
    ):
        if box is not None:
            _label(axes, p, where, box)


def _pixels(axes: Any, p: StudyPoint) -> tuple[float, float]:
    x, y = axes.transData.transform((p.time_us, p.bits))
    return float(x), float(y)


def _label(axes: Any, p: StudyPoint, at: tuple[float, float], box: LabelBox) -> None:
    place = axes.transData.inverted().transform(box.middle)
    axes.annotate(p.label, place, fontsize=SIZE, ha="center", va="center", annotation_clip=False)
    end = box.leader(*at)
    if end is not None:
        corners = zip((p.time_us, p.bits), axes.transData.inverted().transform(end), strict=True)
        axes.plot(*map(list, corners), color=COLOURS[p.colour], linewidth=0.6, alpha=0.6, zorder=1.2)

"""What a notebook shows of a record: key figures, sentences and one picture. Styles are in place: any page may hold it."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ...simulator.errors import UsageError
from .pages import page_of
from .writing import render

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 620  # of a picture at most
PIXELS = 88  # of an inch: its letters are about as large as those around it


def excerpt(shown: Any) -> str:
    """HTML of a Run, an Exploration, a Study or the difference of two runs; `shown.html(path)` has the whole."""
    page = page_of(shown)
    return str(render("notebook.html", page=page, picture=_picture(shown)))


def _picture(shown: Any) -> Markup:
    """The first picture that the record has the figures for, as data of the page itself."""
    from ..pictures.style import drawn

    for title, draw, record in _candidates(shown):
        try:
            figure: Figure = draw(record)
        except UsageError:
            continue
        data = base64.b64encode(drawn(figure, "png")).decode("ascii")
        width = min(WIDTH, round(PIXELS * figure.get_size_inches()[0]))
        return Markup(
            '<img alt="{}" style="max-width:100%;width:{}px" src="data:image/png;base64,{}">'
        ).format(title, width, data)
    return Markup("")


def _candidates(shown: Any) -> list[tuple[str, Any, Any]]:
    """(a title, the function that draws it, what it is drawn from), the preferred one first."""
    from ...simulator.record.run import Run
    from ...tiling.results.exploration import Exploration
    from .. import pictures
    from ..facts.differences import RunDifference

    if isinstance(shown, Run):
        return [
            ("Timeline of the pipes of one core", pictures.timeline, shown),
            ("Histogram of the errors in ulp", pictures.error_histogram, shown),
        ]
    if isinstance(shown, RunDifference):
        return [("What won or lost the time", lambda d: pictures.difference(d.first, d.second), shown)]
    if isinstance(shown, Exploration):
        return [
            ("Best time by two knobs", pictures.heat_map, shown),
            ("Time and error of the front", pictures.pareto, shown),
        ]
    return [("Effective bits and time of each mode", pictures.precision_bars, shown)]

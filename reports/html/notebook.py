"""What a notebook shows of a record: key figures, sentences and one picture. Styles are in place: any page may hold it."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ascendtile.reports.html.writing import page_of, render
from ascendtile.simulator.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 620  # of a picture at most
PIXELS = 88  # of an inch: its letters are about as large as those around it


def excerpt(shown: Any) -> str:
    """HTML of a Run, an Exploration or a Study; `shown.html(path)` has the whole."""
    page = page_of(shown)
    return str(render("notebook.html", page=page, picture=_picture(shown)))


def _picture(shown: Any) -> Markup:
    """The first picture that the record has the figures for, as data of the page itself."""
    from ascendtile.reports.pictures.style import drawn

    for draw in _candidates(shown):
        try:
            figure: Figure = draw()
        except UsageError:
            continue
        data = base64.b64encode(drawn(figure, "png")).decode("ascii")
        width = min(WIDTH, round(PIXELS * figure.get_size_inches()[0]))
        return Markup(
            '<img alt="{}" style="max-width:100%;width:{}px" src="data:image/png;base64,{}">'
        ).format(draw.__name__, width, data)
    return Markup("")


def _candidates(shown: Any) -> list[Any]:
    from ascendtile.reports import pictures
    from ascendtile.reports.precision_view import study_json
    from ascendtile.simulator.run import Run
    from ascendtile.tiling.exploration import Exploration

    def named(draw: Any, record: Any) -> Any:
        def call() -> Any:
            return draw(record)

        call.__name__ = draw.__name__
        return call

    if isinstance(shown, Run):
        return [named(d, shown) for d in (pictures.timeline, pictures.error_histogram)]
    if isinstance(shown, Exploration):
        return [named(d, shown) for d in (pictures.heat_map, pictures.pareto)]
    return [named(pictures.precision_bars, study_json(shown))]

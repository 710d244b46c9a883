"""Pictures of runs, explorations and precision studies: functions that return matplotlib Figures, in one style.

    from ascendtile.reports.pictures import roofline, save
    save(roofline(run), "roofline.svg")

`PICTURES` has them by name and kind of record, `PAIRS` those of two runs; `ascendtile report FILE --picture NAME -o
FILE.svg` draws one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ascendtile.reports.pictures.differences import difference
from ascendtile.reports.pictures.errors import error_histogram, error_magnitude
from ascendtile.reports.pictures.explorations import heat_map, pareto
from ascendtile.reports.pictures.occupancy import occupancy
from ascendtile.reports.pictures.precision import precision_bars, precision_sweep
from ascendtile.reports.pictures.rooflines import roofline
from ascendtile.reports.pictures.style import save
from ascendtile.reports.pictures.timelines import timeline

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ascendtile.simulator.record.run import Run

PICTURES: dict[str, dict[str, Callable[[Any], Figure]]] = {
    "run": {
        "roofline": roofline,
        "timeline": timeline,
        "occupancy": occupancy,
        "errors": error_histogram,
        "magnitude": error_magnitude,
    },
    "exploration": {"pareto": pareto, "heatmap": heat_map},
    "study": {"precision": precision_bars, "sweep": precision_sweep},
}
PAIRS: dict[str, Callable[[Run, Run], Figure]] = {"difference": difference}

__all__ = [
    "PAIRS",
    "PICTURES",
    "difference",
    "error_histogram",
    "error_magnitude",
    "heat_map",
    "occupancy",
    "pareto",
    "precision_bars",
    "precision_sweep",
    "roofline",
    "save",
    "timeline",
]


def __dir__() -> list[str]:
    return __all__

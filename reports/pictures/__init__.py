"""Pictures of runs, explorations and precision studies: functions that return matplotlib Figures, in one style.

    from . import roofline, save
    save(roofline(run), "roofline.svg")

`PICTURES` has them by name and kind of record, `PAIRS` those of two runs; `ascendtile report FILE --picture NAME -o
FILE.svg` draws one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure

from ...simulator.record.run import Run
from .blame import error_blame
from .chains import chain_blame
from .differences import difference
from .explorations import heat_map, pareto
from .fronts import precision_front
from .precision import error_histogram, error_magnitude, precision_bars, precision_sweep
from .study_errors import study_lost, study_magnitude
from .style import save
from .timelines import occupancy, roofline, timeline

PICTURES: dict[str, dict[str, Callable[[Any], Figure]]] = {
    "run": {
        "roofline": roofline,
        "timeline": timeline,
        "occupancy": occupancy,
        "errors": error_histogram,
        "magnitude": error_magnitude,
        "blame": error_blame,
    },
    "exploration": {"pareto": pareto, "heatmap": heat_map},
    "study": {
        "precision": precision_bars,
        "front": precision_front,
        "sweep": precision_sweep,
        "magnitude": study_magnitude,
        "lost": study_lost,
    },
}
PAIRS: dict[str, Callable[[Run, Run], Figure]] = {"difference": difference}

__all__ = [
    "PAIRS", "PICTURES", "chain_blame", "difference", "error_blame", "error_histogram", "error_magnitude", "heat_map",
    "occupancy", "pareto", "precision_bars", "precision_front", "precision_sweep", "roofline", "save", "study_lost",
    "study_magnitude", "timeline",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__

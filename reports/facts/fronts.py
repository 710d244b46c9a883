"""What a Pareto front of tilings is drawn against."""

from __future__ import annotations

from collections.abc import Callable

from ...tiling.results.exploration import Exploration, Found

ONLY_TIME = "Here only time differs, so the front is the fastest tiling"


def only_time(e: Exploration) -> bool:
    """Whether all tilings have one UB peak and one error, or none."""
    return len({(x.evaluation.ub_peak_bytes, x.evaluation.error) for x in e.ranked}) < 2


def other_axis(e: Exploration) -> tuple[str, Callable[[Found], float]] | None:
    """What stands beside time: kernels of the Cube alone use no UB. None where nothing else is known."""
    if len({x.evaluation.ub_peak_bytes for x in e.found}) > 1:
        return "KiB of UB at the peak", lambda x: (x.evaluation.ub_peak_bytes or 0) / 1024
    if not any(x.evaluation.bound_us for x in e.found):
        return None
    return "lower bound, us", lambda x: x.evaluation.bound_us or 0.0

"""In words, what measured times of a run lie between, and how well that is known."""

from __future__ import annotations

from ...simulator.record.run import INTERVAL_PERCENT, Run
from ...simulator.timing.results.error_model import ENOUGH_ROWS
from . import facts, texts


def interval_text(run: Run) -> str | None:
    """90 % of measured times lie between 36.1 and 58.0 us, or why no board has it; None where the run does not say."""
    if run.what_ifs:
        return "no board computes this: a what-if, see what-ifs"
    ends = run.interval_us
    if ends is None:
        return _changed(run)
    between = f"between {texts.micros(ends[0])} and {texts.micros(ends[1])} us"
    if run.measured_rows >= ENOUGH_ROWS:
        return f"{INTERVAL_PERCENT} % of measured times lie {between}"
    count = "few" if run.measured_rows else "no"
    return f"{count} measurements of this product: {INTERVAL_PERCENT} % should lie {between}"


def _changed(run: Run) -> str | None:
    """That no board is a machine like this one; None of records that never knew an interval."""
    keys = list(facts.overrides(run))
    if not keys or any(x.measured_rows is None for x in run.launches):
        return None
    key, left = texts.clean(keys[0], 60), len(keys) - 1
    which = f"{key} and {left} more figure{'s' * (left > 1)} were" if left else f"{key} was"
    return f"no board is this machine: {which} changed"

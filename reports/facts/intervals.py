"""In words, what measured times of a run lie between, and how well that is known."""

from __future__ import annotations

from ...simulator.record.run import INTERVAL_PERCENT, Run
from ...simulator.timing.results.error_model import ENOUGH_ROWS
from . import texts


def interval_text(run: Run) -> str | None:
    """90 % of measured times lie between 36.1 and 58.0 us, or that no board has it; None where the run does not say."""
    if any(m.is_what_if for m in run.warnings):
        return "no board computes this: a what-if, see faults"
    ends = run.interval_us
    if ends is None:
        return None
    between = f"between {texts.micros(ends[0])} and {texts.micros(ends[1])} us"
    if run.measured_rows >= ENOUGH_ROWS:
        return f"{INTERVAL_PERCENT} % of measured times lie {between}"
    count = "few" if run.measured_rows else "no"
    return f"{count} measurements of this product: {INTERVAL_PERCENT} % should lie {between}"

"""What a reader must know before trusting error figures: results of zeros, near 1e-7, lost below the type, no numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from ...simulator.precision.metrics import ErrorReport

EPSILON = 1e-7  # of MARE and MERE: |error| / (|result| + 1e-7)
SMALL = 10 * EPSILON  # mean |result| below which they say little


def lost_below(report: ErrorReport) -> int:
    """Elements that became zero, or subnormal in the output's type, though the exact result is not zero."""
    return report.underflow + report.subnormal


def on_results(name: str, report: ErrorReport) -> list[str]:
    """About the exact results of an output, whatever the mode."""
    out = []
    if report.compared and report.max_abs == 0 and math.isnan(report.cosine):
        out.append(f"{name} is all zeros, which every mode has exactly")
    mean = _mean_result(report)
    if mean is not None and mean < SMALL:
        out.append(
            f"mean |result| of {name} is {mean:.2g}: MARE and MERE, which divide by |result| + {EPSILON:g}, say little"
        )
    return out


def on_row(errors: Mapping[str, ErrorReport]) -> list[str]:
    """About one row, by output."""
    out = []
    for name, e in errors.items():
        size = math.prod(e.shape)
        if lost_below(e):
            out.append(
                f"underflow: {lost_below(e):,} of {size:,} elements of {name} became zero or subnormal"
            )
        if e.compared < size:
            out.append(
                f"{size - e.compared:,} of {size:,} elements of {name} are NaN or infinite and not in the errors"
            )
        out += on_results(name, e)
    return out


def on_study(rows: Iterable[Mapping[str, ErrorReport]]) -> list[str]:
    """Notes of a study about its results, each told once by the first row that has it."""
    found: dict[str, list[str]] = {}
    for errors in rows:
        for name, e in errors.items():
            if not found.get(name):
                found[name] = on_results(name, e)
    return [note for notes in found.values() for note in notes]


def _mean_result(report: ErrorReport) -> float | None:
    """Mean |result| of the elements that are compared, which bits and the mean error tell; None without an error."""
    if not report.compared or report.mean_abs == 0 or not math.isfinite(report.effective_bits):
        return None
    return report.mean_abs * math.exp2(report.effective_bits)

"""Bars of a histogram of errors in ulp, with their names."""

from __future__ import annotations

from ...simulator.precision.metrics import ErrorReport, histogram_labels
from .scales import power


def named(label: str) -> str:
    """2^-3..2^-2 as its lower end, with a real exponent."""
    head, caret, exponent = label.partition("..")[0].partition("^")
    return f"{head.removesuffix('2')}{power(int(exponent))}" if caret else head


def populated(e: ErrorReport) -> list[tuple[str, int]]:
    """Bins from the exact one to the last that has elements, without empty ones at both ends."""
    labels = histogram_labels()
    if len(e.ulp_histogram) != len(labels):
        return []
    used = [k for k, n in enumerate(e.ulp_histogram) if n > 0]
    if not used:
        return []
    first = min((k for k in used if k), default=1)
    inner = range(first, max(used) + 1) if max(used) else range(0)
    return [(labels[k], e.ulp_histogram[k]) for k in (0, *inner) if k or e.ulp_histogram[0]]

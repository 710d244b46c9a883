"""A precision study, or all points of a sweep, as one table: every figure as CSV, the chief ones for a paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....kernels.study.results import Study
from ....simulator.record.frames import columns
from ..tables import as_csv, as_latex, as_markdown
from .words import knobs_apart, tiling_text

# Heading in a paper -> column of `Study.records`.
CHIEF = {
    "point": "point",
    "output": "output",
    "mode": "cube_math_type",
    "in": "dtype",
    "as": "compute_dtype",
    "out": "output_dtype",
    "us": "time_us",
    "speed-up": "speedup",
    "bits exact": "effective_bits_exact",
    "bits rounded": "effective_bits_rounded",
    "least bits": "least_bits",
    "most bits": "most_bits",
    "MARE exact": "max_rel_exact",
    "MERE exact": "mean_rel_exact",
    "too large": "overflow_exact",
    "enough": "passed",
    "times too large": "times_too_large",
    "tiling": "tiling",
}


def exported(form: str, studies: Sequence[Study]) -> str:
    """form: csv, latex or markdown. The latter leave out what was refused."""
    records = [r for s in studies for r in s.records()]
    if form == "csv":
        return as_csv(records, columns(records))
    computed = [r for s in studies for r in _with_tilings(s) if not r["status"]]
    held = {n for r in computed for n, x in r.items() if x is not None}
    names = [head for head, n in CHIEF.items() if n in held]
    rows = [{head: r.get(CHIEF[head]) for head in names} for r in computed]
    return (as_latex if form == "latex" else as_markdown)(rows, names)


def _with_tilings(study: Study) -> list[dict[str, Any]]:
    """Its records, where each row has its own tiling with the knobs that differ."""
    records, names = study.records(), [] if study.tiling is not None else knobs_apart(study.rows)[1]
    timed = (r for r in study.rows if names and r.tiling)
    own = {(r.cube_math_type, r.dtype): tiling_text(r.tiling, names) for r in timed}
    return [r | {"tiling": own.get((r["cube_math_type"], r["dtype"]))} for r in records]

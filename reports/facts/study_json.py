"""A precision study or a sweep as plain data: what `ascendtile precision --json` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...kernels.study.bench import ModeRow, Study
from ...simulator.precision.metrics import json_value
from ...simulator.record.picking import picked


def study_json(study: Study) -> dict[str, Any]:
    """One study; figures that are not finite are texts."""
    head = {**picked(study, "op product case data sample"), "numerics": dict(study.numerics)}
    rows = [_row_json(row) for row in study.rows]
    return {**head, "data": dict(study.data), "notes": list(study.notes), "rows": rows}


def sweep_json(parameter: str, studies: Sequence[Study]) -> dict[str, Any]:
    """A study for each point."""
    first = study_json(studies[0])
    points = [{"value": s.value, "case": s.case, "rows": study_json(s)["rows"]} for s in studies]
    head = {key: first[key] for key in ("op", "product", "data", "sample", "numerics", "notes")}
    return {**head, "sweep": {"parameter": parameter, "points": points}}


def _row_json(row: ModeRow) -> dict[str, Any]:
    errors = {n: {g: e.to_dict() for g, e in by.items()} for n, by in row.errors.items()}
    verdicts = {n: {g: [v.to_dict() for v in vs] for g, vs in by.items()} for n, by in row.verdicts.items()}
    types = "cube_math_type dtype compute_dtype output_dtypes status time_us speedup"
    row_json = {**picked(row, types), "errors": errors, "verdicts": verdicts, "reason": row.reason}
    plain: dict[str, Any] = json_value(row_json)
    return plain

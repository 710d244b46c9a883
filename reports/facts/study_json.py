"""A precision study or a sweep as plain data: what `ascendtile precision --json` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...kernels.study.bench import Row, Study
from ...simulator.precision.metrics import json_value


def study_json(study: Study) -> dict[str, Any]:
    """One study; figures that are not finite are words."""
    return {
        "op": study.op,
        "product": study.product,
        "case": study.case,
        "data": dict(study.data),
        "sample": study.sample,
        "numerics": dict(study.numerics),
        "notes": list(study.notes),
        "rows": [_row_json(row) for row in study.rows],
    }


def sweep_json(parameter: str, studies: Sequence[Study]) -> dict[str, Any]:
    """A study for each point."""
    first = study_json(studies[0])
    points = [{"value": s.value, "case": s.case, "rows": study_json(s)["rows"]} for s in studies]
    head = {key: first[key] for key in ("op", "product", "data", "sample", "numerics", "notes")}
    return {**head, "sweep": {"parameter": parameter, "points": points}}


def _row_json(row: Row) -> dict[str, Any]:
    errors = {n: {g: e.to_dict() for g, e in by.items()} for n, by in row.errors.items()}
    verdicts = {n: {g: [v.to_dict() for v in vs] for g, vs in by.items()} for n, by in row.verdicts.items()}
    plain: dict[str, Any] = json_value(
        {
            "cube_math_type": row.cube_math_type,
            "dtype": row.dtype,
            "compute_dtype": row.compute_dtype,
            "output_dtypes": dict(row.output_dtypes),
            "status": row.status,
            "time_us": row.time_us,
            "speedup": row.speedup,
            "errors": errors,
            "verdicts": verdicts,
            "reason": row.reason,
        }
    )
    return plain

"""The JSON of a precision study, checked: it may be anybody's file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NoReturn

from ...simulator.errors import UsageError
from ...simulator.precision.metrics import ErrorReport
from ...simulator.record.codec import Decoder

MOST_ROWS = 2000
MOST_POINTS = 200
EXACT, ROUNDED = "exact_inputs", "rounded_inputs"


@dataclass(frozen=True)
class StudyRow:
    """One mode and data type; see `kernels.study_bench.Row`. verdicts: output -> reference -> rules."""

    cube_math_type: str
    dtype: str
    compute_dtype: str | None
    status: int
    time_us: float | None
    speedup: float | None
    reason: str
    errors: dict[str, dict[str, ErrorReport]]
    verdicts: Any

    @property
    def name(self) -> str:
        """float32 as hf32, USE_HF32"""
        return f"{self.dtype} as {self.compute_dtype or '-'}, {self.cube_math_type}"

    def passed(self, output: str, golden: str) -> list[tuple[str, bool | None, str]]:
        """(rule, whether it is kept, words)."""
        by = self.verdicts.get(output) if isinstance(self.verdicts, dict) else None
        items = by.get(golden) if isinstance(by, dict) else None
        found = [v for v in items if isinstance(v, dict)] if isinstance(items, list) else []
        return [
            (
                str(v.get("rule")),
                v["passed"] if isinstance(v.get("passed"), bool) else None,
                str(v.get("words")),
            )
            for v in found
        ]


@dataclass(frozen=True)
class StudyPoint:
    """One point of a sweep, or the whole of a study (value None)."""

    value: str | None
    rows: tuple[StudyRow, ...]


@dataclass(frozen=True)
class StudyData:
    """A study or a sweep. parameter: None for a study of one point."""

    op: str
    product: str
    case: str | None
    data: Any
    sample: str | None
    numerics: Any
    notes: tuple[str, ...]
    parameter: str | None
    points: tuple[StudyPoint, ...]

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs with errors."""
        return list(dict.fromkeys(n for p in self.points for r in p.rows for n in r.errors))


def read_study(given: Mapping[str, Any]) -> StudyData:
    """Raises `UsageError` that names the field which does not fit."""
    decode = Decoder({}, _no_arrays).decode
    sweep = given.get("sweep")
    parameter = (
        None if sweep is None else decode(_of(sweep, "sweep").get("parameter"), str, "sweep.parameter")
    )
    items = [{"value": None, "rows": given.get("rows")}] if sweep is None else sweep.get("points")
    if not isinstance(items, list) or not 1 <= len(items) <= MOST_POINTS:
        raise UsageError("is no precision study: it has no rows, and no points of a sweep")
    names = {"op": str, "product": str, "case": str | None, "sample": str | None}
    head = {n: decode(given.get(n), kind, n) for n, kind in names.items()}
    notes = decode(given.get("notes", []), tuple[str, ...], "notes")
    points = tuple(_point(p, k) for k, p in enumerate(items))
    return StudyData(
        **head,
        data=given.get("data"),
        numerics=given.get("numerics"),
        notes=notes,
        parameter=parameter,
        points=points,
    )


def _point(given: Any, k: int) -> StudyPoint:
    point = _of(given, f"points.{k}")
    rows = point.get("rows")
    if not isinstance(rows, list) or len(rows) > MOST_ROWS:
        raise UsageError(f"is no precision study: points.{k} has no list of at most {MOST_ROWS} rows")
    value = point.get("value")
    return StudyPoint(
        None if value is None else str(value)[:60], tuple(_row(r, f"rows.{j}") for j, r in enumerate(rows))
    )


def _row(given: Any, where: str) -> StudyRow:
    row = _of(given, where)
    kept = {f.name: row[f.name] for f in fields(StudyRow) if f.name in row}
    found: StudyRow = Decoder({}, _no_arrays).decode(kept, StudyRow, where)
    return found


def _of(given: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(given, dict):
        raise UsageError(f"is no precision study: {where} is no JSON object")
    return given


def _no_arrays(name: str) -> NoReturn:
    raise UsageError("names an array, which studies do not have")

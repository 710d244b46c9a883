"""The JSON of `ascendtile precision --json` as the studies that it came from. It may be anybody's file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NoReturn

from ...kernels.study.bench import GOLDENS, Row, Study
from ...simulator.errors import UsageError
from ...simulator.precision.acceptance import Verdict
from ...simulator.precision.formats import get_format
from ...simulator.precision.metrics import ErrorReport
from ...simulator.record.codec import Decoder
from .study_data import StudyData, read_study
from .words import clean


@dataclass(frozen=True)
class _Row:
    """The fields of `study_bench.Row` with types that say what is inside."""

    cube_math_type: str
    dtype: str
    compute_dtype: str | None
    output_dtypes: dict[str, str]
    status: int
    time_us: float | None
    speedup: float | None
    errors: dict[str, dict[str, ErrorReport]]
    verdicts: dict[str, dict[str, tuple[Verdict, ...]]]
    reason: str


def studies_of_json(given: Mapping[str, Any]) -> tuple[str | None, tuple[Study, ...]]:
    """(what a sweep goes over, a study for each of its points), or (None, the one study).

    Raises `UsageError` that names what does not fit.
    """
    head = read_study(given)
    decode = Decoder({}, _no_arrays).decode
    numerics = _texts(decode(given.get("numerics") or {}, dict[str, str], "numerics"))
    data = decode(given.get("data") or {}, dict[str, Any], "data")
    if data:
        data = {n: clean(str(data.get(n, "unknown")), 40) for n in ("distribution", "seed")}
    points = [given] if head.parameter is None else given["sweep"]["points"]
    found = tuple(_study(head, p, data, numerics, f"points.{k}") for k, p in enumerate(points))
    return (None if head.parameter is None else clean(head.parameter, 12)), found


def _study(head: StudyData, point: Mapping[str, Any], data: Any, numerics: Any, where: str) -> Study:
    case = Decoder({}, _no_arrays).decode(point.get("case", head.case), str | None, f"{where}.case")
    known: dict[str, Any] = {}
    value = point.get("value")
    return Study(
        op=clean(head.op, 38),
        product=clean(head.product, 30),
        case=case,
        rows=tuple(_row(r, f"{where}.rows.{k}", known) for k, r in enumerate(point["rows"])),
        data=data,
        sample=head.sample,
        value=None if value is None else clean(str(value), 12),
        notes=head.notes,
        numerics=numerics,
    )


def _row(given: Mapping[str, Any], where: str, known: dict[str, Any]) -> Row:
    """known: computations so far; modes that compute the same have one `errors`, as in the study itself."""
    kept = {f.name: given[f.name] for f in fields(_Row) if f.name in given}
    row: _Row = Decoder({}, _no_arrays).decode(kept, _Row, where)
    _check(row, where)
    key = json.dumps([row.dtype, row.compute_dtype, given["errors"]], sort_keys=True)
    return Row(
        cube_math_type=clean(row.cube_math_type, 40),
        dtype=row.dtype,
        compute_dtype=None if row.compute_dtype is None else clean(row.compute_dtype, 8),
        output_dtypes={n: clean(x, 8) for n, x in row.output_dtypes.items()},
        status=row.status,
        time_us=row.time_us,
        speedup=row.speedup,
        errors=known.setdefault(key, row.errors),
        verdicts=row.verdicts,
        reason=row.reason,
    )


def _check(row: _Row, where: str) -> None:
    """Each output has all that a page says of one."""
    for kind in row.dtype.split("+"):
        try:
            get_format(kind)
        except UsageError as error:
            raise UsageError(f"{where}.dtype: {error}") from None
    for name, by in row.errors.items():
        judged = row.verdicts.get(name, {})
        missing = [g for g in GOLDENS if g not in by or g not in judged]
        if missing or name not in row.output_dtypes:
            raise UsageError(
                f"{where} lacks {f'errors or verdicts against {missing[0]}' if missing else 'the type'} "
                f"of the output {clean(name, 40)!r}"
            )


def _texts(given: Mapping[str, str]) -> dict[str, str]:
    return {clean(n, 60): clean(x, 200) for n, x in given.items()}


def _no_arrays(name: str) -> NoReturn:
    raise UsageError("names an array, which studies do not have")

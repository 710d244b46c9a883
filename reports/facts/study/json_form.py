"""Precision studies for pages and pictures, from Python or from JSON, anybody's perhaps, and as the JSON that
`ascendtile precision --json` prints.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from ....kernels.study.results import GOLDENS, Answer, ModeRow, Study
from ....simulator.errors import UsageError
from ....simulator.precision.metrics import json_value
from ....simulator.precision.need import Need
from ....simulator.record.codec import decode_plain
from ....simulator.record.files import picked
from .. import texts
from ..texts import clean
from .names import number_format

MOST_ROWS = 2000
MOST_POINTS = 200
LATER = (
    "tiling",
    "kept",
    "seed_bits",
    "operands",
    "octaves",
)  # fields of a row that studies of earlier releases lack


@dataclass(frozen=True)
class StudySweep:
    """A study for each point of a sweep over `parameter`; one study where that is None."""

    parameter: str | None
    points: tuple[Study, ...]

    @property
    def first(self) -> Study:
        """What says of which operator, product and data all of them are."""
        return self.points[0]

    @property
    def case(self) -> str | None:
        """The case of a single study."""
        return self.first.case if self.parameter is None else None

    @property
    def answer(self) -> str:
        """Which row is enough; "" where nothing was asked for."""
        return texts.clean(Answer(self.points).words, 400) if self.first.need else ""

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs with errors."""
        return list(dict.fromkeys(n for p in self.points for r in p.rows for n in r.errors))


def read_study(given: Study | Mapping[str, Any]) -> StudySweep:
    """A Study, or the JSON of one or of a sweep. Raises `UsageError` that names what does not fit."""
    if isinstance(given, Study):
        return StudySweep(None, (given,))
    sweep = given.get("sweep")
    parameter = (
        None if sweep is None else decode_plain(_of(sweep, "sweep").get("parameter"), str, "sweep.parameter")
    )
    points = [{n: given.get(n) for n in ("rows", "tiling")}] if sweep is None else sweep.get("points")
    if not isinstance(points, list) or not 1 <= len(points) <= MOST_POINTS:
        raise UsageError("is no precision study: it has no rows, and no points of a sweep")
    names = {"op": str, "product": str, "case": str | None, "sample": str | None}
    head = {n: decode_plain(given.get(n), kind, n) for n, kind in names.items()}
    data = decode_plain(given.get("data") or {}, dict[str, Any], "data")
    numerics = decode_plain(given.get("numerics") or {}, dict[str, str], "numerics")
    whole = Study(
        **head,
        rows=(),
        data={n: clean(str(data.get(n, "unknown")), 40) for n in ("seed", "distribution")} if data else {},
        notes=decode_plain(given.get("notes", []), tuple[str, ...], "notes"),
        numerics={clean(n, 60): clean(x, 200) for n, x in numerics.items()},
        need=decode_plain(given.get("need"), Need | None, "need"),
        seeds=decode_plain(given.get("seeds", 1), int, "seeds"),
    )
    found = tuple(_point(whole, p, f"points.{k}") for k, p in enumerate(points))
    return StudySweep(None if parameter is None else clean(parameter, 12), found)


def output_of(study: StudySweep, name: str | None) -> str:
    """The output of that name, the first one for None, "" where there is none. Raises `UsageError`."""
    if name is not None and name not in study.outputs:
        raise UsageError(f"no output {clean(name, 40)!r} here; there are {', '.join(study.outputs)}")
    return name if name is not None else next(iter(study.outputs), "")


def _point(whole: Study, given: Any, where: str) -> Study:
    point = _of(given, where)
    rows, value = point.get("rows"), point.get("value")
    if not isinstance(rows, list) or not 1 <= len(rows) <= MOST_ROWS:
        raise UsageError(f"is no precision study: {where} has no list of 1 to {MOST_ROWS} rows")
    known: dict[str, Any] = {}
    return replace(
        whole,
        case=decode_plain(point.get("case", whole.case), str | None, f"{where}.case"),
        rows=tuple(_row(r, f"{where}.rows.{k}", known) for k, r in enumerate(rows)),
        value=None if value is None else clean(str(value), 12),
        tiling=decode_plain(point.get("tiling"), dict[str, Any] | None, f"{where}.tiling"),
    )


def _row(given: Any, where: str, known: dict[str, Any]) -> ModeRow:
    """known: computations so far; modes that compute the same have one `errors`, as in the study itself."""
    lacking = [f.name for f in fields(ModeRow) if f.name not in {**dict.fromkeys(LATER), **_of(given, where)}]
    if lacking:
        raise UsageError(f"{where} lacks field {lacking[0]!r}")
    kept = {f.name: given[f.name] for f in fields(ModeRow) if f.name in given}
    row: ModeRow = decode_plain(kept, ModeRow, where)
    _check(row, where)
    key = json.dumps([row.dtype, row.compute_dtype, given["errors"]], sort_keys=True)
    return replace(
        row,
        cube_math_type=clean(row.cube_math_type, 40),
        dtype=clean(row.dtype, 80),
        compute_dtype=None if row.compute_dtype is None else clean(row.compute_dtype, 60),
        output_dtypes={n: clean(x, 8) for n, x in row.output_dtypes.items()},
        errors=known.setdefault(key, row.errors),
    )


def _check(row: ModeRow, where: str) -> None:
    """Each output has all that a page says of one."""
    for kind in row.dtype.split("+"):
        if (
            not row.what_if and number_format(kind) is None
        ):  # a what-if may be of a format that only its user has
            raise UsageError(f"{where}.dtype: unknown number format {clean(kind, 60)!r}")
    for n, x in (("time_us", row.time_us), ("speedup", row.speedup)):
        if x is not None and not x > 0:
            raise UsageError(f"{where}.{n} is {x:g}, must be above 0")
    for name, by in row.errors.items():
        judged = row.verdicts.get(name, {})
        missing = [g for g in GOLDENS if g not in by or g not in judged]
        if missing or name not in row.output_dtypes:
            raise UsageError(
                f"{where} lacks {f'errors or verdicts against {missing[0]}' if missing else 'the type'} "
                f"of the output {clean(name, 40)!r}"
            )


def _of(given: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(given, dict):
        raise UsageError(f"is no precision study: {where} is no JSON object")
    return given


def study_json(study: Study) -> dict[str, Any]:
    """One study; figures that are not finite are texts."""
    head = {**picked(study, "op product case data sample"), "numerics": dict(study.numerics)}
    rows = [_row_json(row) for row in study.rows]
    shared = study.tiling and dict(study.tiling)
    more = {"notes": list(study.notes), "tiling": shared, "seeds": study.seeds, **_answer_json((study,))}
    return {**head, "data": dict(study.data), **more, "front": _front_json(study), "rows": rows}


def _front_json(study: Study) -> dict[str, list[dict[str, Any]]]:
    """Output -> the rows that no other one beats in time and bits, by name, fastest first."""
    names = dict.fromkeys(n for row in study.rows for n in row.errors)
    return {n: [picked(r, "cube_math_type dtype time_us") for r in study.front(n)] for n in names}


def sweep_json(parameter: str, studies: Sequence[Study]) -> dict[str, Any]:
    """A study for each point."""
    each = [study_json(s) for s in studies]
    points = [
        {**picked(s, "value case"), "tiling": x["tiling"], "rows": x["rows"]}
        for s, x in zip(studies, each, strict=True)
    ]
    head = {n: each[0][n] for n in ("op", "product", "data", "sample", "numerics", "notes", "seeds")}
    return {**head, **_answer_json(studies), "sweep": {"parameter": parameter, "points": points}}


def _answer_json(studies: Sequence[Study]) -> dict[str, Any]:
    """What was asked for, and the rows that are the answer, by name; null without a need."""
    need = studies[0].need
    if need is None:
        return dict.fromkeys(("need", "answer", "cheapest", "nearest"))
    found = Answer(studies)
    rows = {"cheapest": found.cheapest, "nearest": found.nearest}
    names = {n: row and picked(row, "cube_math_type dtype time_us") for n, row in rows.items()}
    return {"need": asdict(need), "answer": found.words, **names}


def _row_json(row: ModeRow) -> dict[str, Any]:
    errors = {n: {g: e.to_dict() for g, e in by.items()} for n, by in row.errors.items()}
    verdicts = {n: {g: [v.to_dict() for v in vs] for g, vs in by.items()} for n, by in row.verdicts.items()}
    types = "cube_math_type dtype compute_dtype output_dtypes status time_us speedup"
    asked = {"kept": {n: asdict(k) for n, k in row.kept.items()}, "seed_bits": dict(row.seed_bits)}
    more: dict[str, Any] = {"operands": {n: asdict(x) for n, x in row.operands.items()}}
    more["octaves"] = {n: [asdict(o) for o in found] for n, found in row.octaves.items()}
    figures = {"errors": errors, "verdicts": verdicts, "reason": row.reason, **more}
    plain: dict[str, Any] = json_value({**picked(row, types), **figures, "tiling": dict(row.tiling), **asked})
    return plain

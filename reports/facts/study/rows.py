"""Rows of a precision study for charts and pictures: one for each computation, with its name, colour and figures."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ....kernels.study.results import ModeRow
from ....simulator.precision.metrics import ErrorReport
from .. import texts
from ..charts import power
from .json_form import StudySweep


def _figures(row: ModeRow, name: str) -> str:
    """All figures of an output's errors: the same text for the same errors."""
    return repr({golden: e.to_dict() for golden, e in row.errors[name].items()})


def distinct(rows: Iterable[ModeRow], name: str) -> list[ModeRow]:
    """One row for each computation: modes that compute the same have the same errors."""
    found: dict[Any, ModeRow] = {}
    for r in rows:
        if name in r.errors:
            found.setdefault((r.dtype, r.compute_dtype, _figures(r, name)), r)
    return list(found.values())


def with_modes(rows: Iterable[ModeRow], name: str) -> list[tuple[ModeRow, list[str]]]:
    """One row for each computation and time, with all modes that it stands for."""
    found: dict[Any, tuple[ModeRow, list[str]]] = {}
    for r in rows:
        if name in r.errors:
            key = (r.dtype, r.compute_dtype, r.time_us, _figures(r, name))
            found.setdefault(key, (r, []))[1].append(r.cube_math_type)
    return list(found.values())


def labelled(rows: Iterable[ModeRow], name: str) -> dict[str, ModeRow]:
    """A short name for each computation: "float16 as fp16"; where two have the same types the mode tells the later one."""
    out: dict[str, ModeRow] = {}
    for r in distinct(rows, name):
        types = texts.clean(r.dtype if r.what_if else f"{r.dtype} as {r.compute_dtype or '-'}", 60)
        out.setdefault(types if types not in out else f"{types}, {texts.clean(r.cube_math_type, 30)}", r)
    return out


def colours(study: StudySweep, name: str) -> dict[str, int]:
    """Computation -> number of its colour, the same in every chart and picture of the output."""
    every = {label for p in study.points for label in labelled(p.rows, name)}
    return {label: k for k, label in enumerate(sorted(every, reverse=True))}


def row_name(r: ModeRow) -> str:
    """float32 as hf32, USE_HF32; e4m3 (what-if)"""
    if r.what_if:
        return texts.clean(r.name, 80)
    return texts.clean(f"{r.dtype} as {r.compute_dtype or '-'}, {r.cube_math_type}", 80)


def lost_percent(e: ErrorReport) -> float:
    elements = math.prod(e.shape) or 1
    return 100.0 * max(0.0, 1.0 - e.compared / elements)


def sweep_label(value: str | None) -> str:
    """2^-24 as it is written."""
    base, caret, exponent = str(value).partition("^")
    if caret and base == "2" and exponent.removeprefix("-").isdecimal() and len(exponent) < 6:
        return power(int(exponent))
    return texts.clean(str(value), 12)


def refusals(rows: Iterable[ModeRow]) -> list[tuple[list[str], str, int, str]]:
    """(data types, modes, status, why) of refusals and warnings: the modes of one reason together, and of a what-if the
    formats."""
    groups: dict[tuple[str, int, str], list[ModeRow]] = {}
    for r in rows:
        if r.reason:
            groups.setdefault(("" if r.what_if else r.dtype, r.status, r.reason), []).append(r)
    out = []
    for (_, status, why), found in groups.items():
        dtypes, modes = ({getattr(r, n): None for r in found} for n in ("dtype", "cube_math_type"))
        out.append((list(dtypes), ", ".join(modes), status, why))
    return out

"""The page of a precision study: error by mode with time, and for sweeps growth and the overflow cliff."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from markupsafe import Markup

from ...kernels.study.results import EXACT, GOLDENS, ROUNDED, ModeRow, Study
from ...simulator.precision.metrics import ErrorReport
from ..facts import texts
from ..facts.charts import spread
from ..facts.study.json_form import StudySweep, read_study
from ..facts.study.lost import WORDS
from ..facts.study.rows import (
    colours,
    distinct,
    labelled,
    lost_percent,
    refusals,
    row_name,
    sweep_label,
    with_modes,
)
from ..facts.study.words import (
    BITS,
    NEED,
    REFERENCES,
    ULP,
    UNDER,
    kept_text,
    knobs_apart,
    rules_text,
    tiling_line,
    tiling_text,
)
from .study.bits_chart import bits_chart
from .study.legend import with_legend
from .study.lost import lost_table
from .study.magnitude_chart import magnitude_charts
from .svg import ChartFrame, line, mark
from .writing import Page, Section, render

TITLES = {
    "k": "Growth over the length of the sums",
    "scale": "The overflow cliff",
    "distribution": "By distribution",
}


def study_page(given: Study | Mapping[str, Any]) -> Page:
    """`given`: a study, or the JSON of `ascendtile precision --json`."""
    study = read_study(given)
    sections = []
    for name in study.outputs[:8]:
        sections += _of_sweep(study, name) if study.parameter else _of_study(study, name)
    tiling = tiling_line(study.first) if study.parameter is None else ""
    refused = refusals(study.first.rows)
    notes = render("study_notes.html", study=study.first, refused=refused, tiling=tiling)
    sections.append(Section("choices", "Refusals, notes, choices", notes))
    sample = f"; sample: {texts.clean(study.first.sample, 200)}" if study.first.sample else ""
    return Page(
        title=", ".join(texts.clean(x, 200) for x in (f"{study.first.op}: precision", study.case) if x),
        subtitle=f"{texts.clean(study.first.product, 60)}; data: {_data(study)}{sample}",
        summary=[*([_sentence(study.answer)] if study.answer else []), *_sentences(study)],
        facts=_facts(study),
        sections=[s for s in sections if s.body.strip()],
    )


def _data(study: StudySweep) -> str:
    return texts.clean(", ".join(f"{k} {v}" for k, v in study.first.data.items()), 200) or "given by the user"


def _facts(study: StudySweep) -> list[tuple[str, str, str]]:
    rows = [r for p in study.points for r in p.rows]
    timed = [r.time_us for r in rows if r.time_us is not None and math.isfinite(r.time_us)]
    out = [("modes and types", str(sum(1 for r in study.first.rows if r.errors)), "")]
    if study.parameter:
        out.append(("points of the sweep", str(len(study.points)), texts.clean(study.parameter, 30)))
    return out + ([("fastest", f"{texts.micros(min(timed))} us", "")] if timed else [])


def _sentences(study: StudySweep) -> list[str]:
    """The fastest row and the most exact one."""
    out = []
    for name in study.outputs[:3]:
        rows = [r for r in distinct(study.first.rows, name) if r.time_us is not None]
        rows = [r for r in rows if _bits(r, name, EXACT) is not None]
        if not rows or study.parameter:
            continue
        fast = min(rows, key=lambda r: r.time_us or 0)
        exact = max(rows, key=lambda r: _bits(r, name, EXACT) or 0)
        each = (
            f"{row_name(r)} ({texts.micros(r.time_us or 0)} us, {_bits(r, name, EXACT):.3g} bits)"
            for r in (fast, exact)
        )
        out.append("{}: fastest is {}, most exact {}.".format(texts.clean(name, 40), *each))
    count = f"{len(study.points)} points, {len(study.first.rows)} modes and data types each"
    return out or [f"{count}; those that compute the same in the same time are one row of the table."]


def _bits(r: ModeRow, name: str, golden: str) -> float | None:
    e = r.errors.get(name, {}).get(golden)
    return e.effective_bits if e is not None and math.isfinite(e.effective_bits) else None


# ---- a study of one point ----


def _of_study(study: StudySweep, name: str) -> list[Section]:
    rows = study.first.rows
    shown, rules = [r for r in rows if name in r.errors], _rules(rows, name)
    names = [] if study.first.tiling is not None else knobs_apart(rows)[1]
    table = render(
        "study_table.html", study=study.first, rows=shown, output=name, goldens=GOLDENS, rules=rules,
        kept=kept_text, tiling=tiling_text, knobs=names,
    )  # fmt: skip
    k, shown_name = study.outputs.index(name), texts.clean(name, 40)
    modes = f"{shown_name}: error by mode, with time"
    return [
        Section(f"modes-{k}", modes, bits_chart(rows, name) + table, lead(study)),
        Section(f"magnitude-{k}", f"{shown_name}: error by magnitude", magnitude_charts(rows, name)),
        Section(f"lost-{k}", f"{shown_name}: too large, too small", lost_table(rows, name), _sentence(WORDS)),
    ]


def lead(study: StudySweep) -> str:
    """What the figures mean."""
    judged = NEED if study.first.need else rules_text()
    seeds = f"Spread: between the bits of {study.first.seeds} seeds." if study.first.seeds > 1 else ""
    return " ".join(_sentence(w) for w in (BITS, REFERENCES, ULP, UNDER, judged, seeds) if w)


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:].removesuffix('.')}."


def _rules(rows: Iterable[ModeRow], name: str) -> list[str]:
    return list(dict.fromkeys(v.rule for r in rows if name in r.verdicts for v in r.verdicts[name][ROUNDED]))


# ---- a sweep ----


def _of_sweep(study: StudySweep, name: str) -> list[Section]:
    k, parameter = study.outputs.index(name), study.parameter or ""
    title = f"{texts.clean(name, 40)}: {TITLES.get(parameter, texts.clean(parameter, 30))}"
    every = [r.errors[name][EXACT] for p in study.points for r in p.rows if EXACT in r.errors.get(name, {})]
    finite = not any(map(lost_percent, every))
    charts = [
        _lines(study, name, "effective bits", lambda e: e.effective_bits, "Effective bits, exact"),
        *(
            []
            if finite
            else [_lines(study, name, "elements, %", lost_percent, "Elements that are NaN or infinite")]
        ),
        _lines(study, name, "largest error, ulp", lambda e: e.max_ulp, "Largest error", True),
    ]
    body = Markup('<div class="charts">{}</div>').format(Markup("").join(charts))
    points = [(p.value, with_modes(p.rows, name)) for p in study.points]
    table = render("sweep_table.html", study=study, output=name, points=points, golden=EXACT, kept=kept_text)
    return [Section(f"sweep-{k}", title, body + table, lead(study))]


def _lines(
    study: StudySweep,
    name: str,
    y_title: str,
    value: Callable[[ErrorReport], float],
    label: str,
    log: bool = False,
    zero: bool = False,
) -> Markup:
    """A line for each data type and compute type over the points. zero: nothing is drawn where all figures are 0."""
    series: dict[str, list[tuple[int, float]]] = {}
    for k, p in enumerate(study.points):
        for key, r in labelled(p.rows, name).items():
            v = value(r.errors[name][EXACT]) if EXACT in r.errors[name] else math.nan
            if math.isfinite(v) and (v > 0 or not log):
                series.setdefault(key, []).append((k, v))
    if not series or (zero and not any(v for points in series.values() for _, v in points)):
        return Markup("")
    frame = ChartFrame(width=560, height=320)
    x = frame.x(-0.3, len(study.points) - 0.7)
    low, high = spread([v for points in series.values() for _, v in points], log)
    y = frame.y(low if log else 0.0, high, log)
    every = max(1, math.ceil(len(study.points) / 9))
    ticks = [(float(k), sweep_label(p.value)) for k, p in enumerate(study.points) if k % every == 0]
    parts = [frame.axes(x, y, texts.clean(study.parameter or "", 40), y_title, ticks)]
    numbers = colours(study, name)
    for key, points in sorted(series.items(), reverse=True):
        j = numbers[key]
        parts.append(line([(x(k), y(v)) for k, v in points], class_=f"s{j % 7} thick"))
        for k, v in points:
            tip = f"{key}, {study.points[k].value}: {v:.4g}"
            parts.append(mark(j, x(k), y(v), 4, class_=f"f{j % 7}", data_tip=tip))
    names = [(key, numbers[key]) for key in sorted(series, reverse=True)]
    chart = frame.svg(f"{label} of {texts.clean(name, 40)}", *parts)
    return with_legend(chart, names, label)

"""Two runs side by side: time, pipes, waits, source lines, bounds, buffers and errors, with what changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from markupsafe import Markup

from ascendtile.reports import facts, words
from ascendtile.reports.html import run_words
from ascendtile.reports.html.run_page import each, timeline
from ascendtile.reports.html.writing import Page, Section, render
from ascendtile.simulator.run import Run

MOST_LINES = 60
Shown = Callable[[float], str]


@dataclass(frozen=True)
class Pair:
    """One figure of both runs; None where a run does not have it."""

    name: str
    a: float | None
    b: float | None

    @property
    def difference(self) -> float:
        return (self.b or 0.0) - (self.a or 0.0)


def comparison_page(a: Run, b: Run) -> Page:
    """Run A is what B is compared with."""
    data: dict[str, Any] = {}
    sections = [
        Section("what", "What differs", render("differs.html", rows=_choices(a, b))),
        Section("pipes", "Pipes and waits", _table("cycles", _pipes(a, b), words.count)),
        Section("lines", "Source lines", _table("cycles", _lines(a, b), words.count)),
        Section("bounds", "Lower bounds", _table("us", _by(a.bounds, b.bounds, words.meaning), words.micros)),
        Section("buffers", "Buffers at their peak", _table("KiB", _buffers(a, b), words.kib)),
        Section("errors", "Errors", _table("", _errors(a, b), words.figure)),
        Section("timeline-a", "Timeline of A", each(_dearest(a), lambda x: timeline(x, data))),
        Section("timeline-b", "Timeline of B", each(_dearest(b), lambda x: timeline(x, data))),
    ]
    return Page(
        title=f"A: {run_words.title(a)}; B: {run_words.title(b)}",
        subtitle=f"A on {words.clean(facts.product_name(a), 40)}, B on {words.clean(facts.product_name(b), 40)}",
        summary=_sentences(a, b),
        facts=_facts(a, b),
        sections=[s for s in sections if s.body.strip()],
        data=data,
        scripts=("timeline.js",) if data else (),
    )


def _dearest(run: Run) -> list[Any]:
    return sorted(run.launches, key=lambda x: -x.time_us)[:1]


def _facts(a: Run, b: Run) -> list[tuple[str, str, str]]:
    if not (facts.timed(a) and facts.timed(b)):
        return []
    ratio = facts.share(a.time_us, b.time_us)
    each_ = [
        (f"time of {n}", f"{words.micros(r.time_us)} us", words.meaning(r.bound[0]) if r.bounds else "")
        for n, r in (("A", a), ("B", b))
    ]
    return [*each_, ("B is", f"{ratio:.3g} x", "as fast as A")]


def _sentences(a: Run, b: Run) -> list[str]:
    """Where most cycles were won or lost."""
    if not (facts.timed(a) and facts.timed(b)):
        return ["One of the two runs has values only: there are no times to compare."]
    more = b.time_us - a.time_us
    out = [f"B takes {words.micros(abs(more))} us {'more' if more > 0 else 'less'} than A."]
    for what, pairs in (("line", _lines(a, b)), ("pipe or wait", _pipes(a, b))):
        top = max(pairs, key=lambda p: abs(p.difference), default=None)
        if top is not None and top.difference:
            word = "more" if top.difference > 0 else "fewer"
            out.append(
                f"The {what} that changed most is {top.name}: {words.count(abs(top.difference))} cycles {word}."
            )
    return out


def _choices(a: Run, b: Run) -> list[tuple[str, str, str]]:
    """Everything that was chosen otherwise."""
    sides = [
        {
            "operator": r.op or r.name,
            "case": r.case,
            "type": r.dtype,
            "product": facts.product_name(r),
            "cubeMathType": r.cube_math_type,
        }
        | {f"tiling {k}": v for k, v in r.tiling.items()}
        | {f"option {k}": v for k, v in r.options.items()}
        | {f"figure {k}": v for k, v in facts.overrides(r).items()}
        for r in (a, b)
    ]
    names = dict.fromkeys((*sides[0], *sides[1]))
    first, second = sides
    return [
        (
            words.clean(n, 60),
            words.clean(str(first.get(n, "-")), 120),
            words.clean(str(second.get(n, "-")), 120),
        )
        for n in names
        if first.get(n) != second.get(n)
    ]


def _pipes(a: Run, b: Run) -> list[Pair]:
    out = []
    for pipe in dict.fromkeys((*a.pipes, *b.pipes)):
        both = (a.pipes.get(pipe), b.pipes.get(pipe))
        name = words.clean(pipe, 24)
        out.append(Pair(f"{name} busy", *(p.busy_cycles if p else None for p in both)))
        for reason in dict.fromkeys(r for p in both if p for r in p.stalls):
            text = f"{name} waits: {words.STALLS.get(reason, words.clean(reason, 24))}"
            out.append(Pair(text, *(p.stalls.get(reason) if p else None for p in both)))
    return [p for p in out if max(p.a or 0.0, p.b or 0.0) >= 1.0]


def _lines(a: Run, b: Run) -> list[Pair]:
    """By file and text: a line that moved is still the same line."""
    sums: dict[tuple[str, str], list[float | None]] = {}
    for k, run in enumerate((a, b)):
        for x in run.lines:
            pair = sums.setdefault(
                (PurePath(words.clean(x.file)).name, words.clean(x.source, 120)), [None, None]
            )
            pair[k] = (pair[k] or 0.0) + x.cycles
    found = [Pair(f"{text}  ({file})", p[0], p[1]) for (file, text), p in sums.items()]
    found.sort(key=lambda p: -abs(p.difference))
    return [p for p in found if max(p.a or 0.0, p.b or 0.0) >= 1.0][:MOST_LINES]


def _by(a: dict[str, float], b: dict[str, float], name: Callable[[str], str]) -> list[Pair]:
    return [Pair(name(n), a.get(n), b.get(n)) for n in dict.fromkeys((*a, *b))]


def _buffers(a: Run, b: Run) -> list[Pair]:
    first, second = ({n: float(x.peak_bytes) for n, x in r.buffers.items()} for r in (a, b))
    return _by(first, second, lambda n: words.clean(n, 24))


def _errors(a: Run, b: Run) -> list[Pair]:
    out = []
    for n in dict.fromkeys((*a.errors, *b.errors)):
        both = (a.errors.get(n), b.errors.get(n))
        for label, field in (("largest error, ulp", "max_ulp"), ("effective bits", "effective_bits")):
            out.append(
                Pair(f"{words.clean(n, 40)}: {label}", *(getattr(e, field) if e else None for e in both))
            )
    return out


def _table(unit: str, pairs: Iterable[Pair], show: Shown) -> Markup:
    rows = [p for p in pairs if p.a is not None or p.b is not None]
    finite = [abs(p.difference) for p in rows if math.isfinite(p.difference)]
    most = max(finite, default=0.0) or 1.0
    if not rows:
        return Markup("")
    return render("pairs.html", unit=unit, rows=rows, show=show, most=most, tiny=most * 1e-6)

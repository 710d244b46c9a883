"""Two runs side by side: time, pipes, waits, source lines, bounds, buffers and errors, with what changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from markupsafe import Markup

from ...simulator.record.run import Launch, Run
from ..facts import facts, texts
from ..facts.advice.causes import causes, causing_waits, further, moved, verdict
from ..facts.compiler_cost import compiler_cost
from ..facts.differences import BITS, FigurePair, RunDifference
from . import run_summary
from .run_page import dearest, each, timeline
from .writing import Page, Section, render

MOST_LINES = 60
MOST_TICKS = 2.0**50  # records may hold any times
ONE_SCALE = "All timelines of this page have one scale: at first, equal widths are equal times."
WAITS_LEAD = (
    "Of waits only those that may be a cause: for buffers, flags and shared bandwidth. Waits for data follow from "
    "other work. What is the same in both runs is left out."
)
Shown = Callable[[float], str]


def comparison_page(a: Run, b: Run) -> Page:
    """Run A is what B is compared with."""
    data: dict[str, Any] = {}

    def drawn(launch: Launch) -> Markup:
        return timeline(launch, data)

    d = RunDifference.of(a, b)
    sections = [
        Section("what", "What differs", render("differs.html", rows=_choices(d))),
        Section("lines", "Time by source line", _table("us", _lines(d), texts.micros)),
        Section("pipes", "Pipes and waits", _table("us", _pipes(d), texts.micros), WAITS_LEAD),
        Section("bounds", "Lower bounds", _table("us", _meant(moved(d.bounds)), texts.micros)),
        Section("buffers", "Buffers at their peak", _table("KiB", map(_clean, moved(d.buffers)), texts.kib)),
        Section("moved", "Bytes moved", _table("MiB", map(_clean, moved(d.traffic)), _mib)),
        Section("errors", "Errors", _table("", map(_clean, d.errors), texts.figure)),
        Section("timeline-a", "Timeline of A", each(dearest(a), drawn, named=True), ONE_SCALE),
        Section("timeline-b", "Timeline of B", each(dearest(b), drawn, named=True), ONE_SCALE),
    ]
    share_scale(data)
    return Page(
        title=_title(run_summary.title(a), run_summary.title(b)),
        subtitle=f"A on {texts.clean(facts.product_name(a), 40)}, B on {texts.clean(facts.product_name(b), 40)}",
        summary=_sentences(d),
        facts=_facts(d),
        sections=[s for s in sections if s.body.strip()],
        data=data,
        scripts=("timeline.js",) if data else (),
    )


def _title(a: str, b: str) -> str:
    return f"{a}: two runs, A and B" if a == b else f"A: {a}; B: {b}"


def _mib(size: float) -> str:
    return texts.figure(size / 1024**2)


def share_scale(data: dict[str, Any]) -> None:
    """Give every timeline the axis of the longest in us: `axis`, in ticks of its own. One without a clock keeps its own."""
    per_tick = {n: t["cycles_per_tick"] * t["us_per_cycle"] for n, t in data.items()}
    longest = max((t["span"] * per_tick[n] for n, t in data.items()), default=0.0)
    for n, t in data.items():
        if 0 < per_tick[n] < math.inf and longest < math.inf:
            t["axis"] = max(t["span"], round(min(longest / per_tick[n], MOST_TICKS)))


def _facts(d: RunDifference) -> list[tuple[str, str, str]]:
    if d.time.first is None or d.time.second is None:
        return []
    ratio = facts.share(d.time.first, d.time.second)
    each_ = [
        (f"time of {n}", f"{texts.micros(r.time_us)} us", texts.bound_meaning(r.bound[0]) if r.bounds else "")
        for n, r in (("A", d.first), ("B", d.second))
    ]
    return [*each_, ("B is", f"{ratio:.3g} x", "as fast as A")]


def _sentences(d: RunDifference) -> list[str]:
    """The largest cause first; of two authors of one kernel that is who made the code."""
    return [s for s in (*compiler_cost(d), verdict(d), further(d)) if s]


def _choices(d: RunDifference) -> list[tuple[str, str, str]]:
    """Everything that was chosen otherwise."""
    return [(texts.clean(n, 60), texts.clean(a, 120), texts.clean(b, 120)) for n, a, b in d.settings]


def _pipes(d: RunDifference) -> list[FigurePair]:
    return [_clean(p) for p in (*moved(d.busy), *causing_waits(d))]


def _lines(d: RunDifference) -> list[FigurePair]:
    return [_clean(p) for p in causes(d)[:MOST_LINES]]


def _clean(p: FigurePair) -> FigurePair:
    return FigurePair(texts.clean(p.name, 160), p.first, p.second)


def _meant(pairs: Iterable[FigurePair]) -> list[FigurePair]:
    return [FigurePair(texts.bound_meaning(p.name), p.first, p.second) for p in pairs]


def _table(unit: str, pairs: Iterable[FigurePair], show: Shown) -> Markup:
    rows = [p for p in pairs if p.first is not None or p.second is not None]
    finite = [abs(p.change) for p in rows if math.isfinite(p.change)]
    most = max(finite, default=0.0) or 1.0
    if not rows:
        return Markup("")
    signs = [-1 if p.name.endswith(BITS) else 1 for p in rows]  # of what is worse
    signed = list(zip(rows, signs, strict=True))
    return render("pairs.html", unit=unit, rows=signed, show=show, most=most, tiny=most * 1e-6)

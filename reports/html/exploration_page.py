"""The page of one exploration, or of all that a store holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from ...simulator.errors import UsageError
from ...tiling.results.exploration import Exploration, Found
from ..facts import texts
from ..facts.charts import ONLY_TIME, empty_cells, only_time, other_axis, spread
from .svg import ChartFrame, el, line, spot
from .writing import Page, Section, render

MOST_SHOWN = 12  # explorations of a store
MOST_POINTS = 20_000  # that a heat map looks at, the best ones
MOST_ROWS = 1000
MOST_DOTS = 3000
MOST_AXES = 24
NOT_WHOLE = (
    "Only the best {} of the {} evaluated tilings are in this file, so which knobs matter is not known and there is no heat "
    "map; `ascendtile explore --export json` writes all of them."
)


def exploration_page(every: Sequence[Exploration]) -> Page:
    """The first exploration has the top of the page; all have their sections."""
    if not every:
        raise UsageError("has no exploration: nothing was evaluated yet")
    first, sections = every[0], []
    data: dict[str, Any] = {}
    for k, e in enumerate(every[:MOST_SHOWN]):
        sections += _sections(e, k, len(every) > 1, data)
    hidden = len(every) - MOST_SHOWN
    more = [f"{hidden} more explorations of this store are not shown."] if hidden > 0 else []
    return Page(
        title=", ".join(f"{title(e)}" for e in every[:3]) + (" ..." if len(every) > 3 else ""),
        subtitle=f"Exploration of tilings on {texts.clean(first.product, 60)}{_code(first)}",
        summary=[s for e in every[:3] for s in sentences(e)] + more,
        facts=key_figures(first),
        sections=sections,
        data=data,
        scripts=("explore.js",),
    )


def _code(e: Exploration) -> str:
    return f", code by {texts.clean(e.compiler, 60)}" if e.compiler else ""


def title(e: Exploration) -> str:
    """Operator and case."""
    return " ".join(texts.clean(x, 60) for x in (e.op, e.case) if x)


def key_figures(e: Exploration) -> list[tuple[str, str, str]]:
    """The best time, and how much was looked at."""
    best = e.best
    proof = "proved" if e.optimal else "not proved"
    return [
        *([] if best is None else [("best", f"{texts.micros(best.time_us)} us", proof)]),
        ("points of the space", texts.count(e.size), f"{texts.count(e.legal)} legal"),
        ("evaluated", texts.count(e.evaluated), ", ".join(_beside(e))),
        ("Pareto front", str(len(e.pareto)), "point" if len(e.pareto) == 1 else "points"),
    ]


def _beside(e: Exploration) -> list[str]:
    """What stands beside the number of evaluated tilings."""
    failed = sum(e.failed.values())
    out = [f"{texts.count(e.bounded)} bounds"] + ([f"{texts.count(failed)} failed"] if failed else [])
    return out if e.whole else [*out, f"the best {texts.count(len(e.found))} in this file"]


def sentences(e: Exploration) -> list[str]:
    """What was found, and how sure it is."""
    best = e.best
    if best is None:
        return [f"{title(e)}: no tiling could be evaluated. {texts.clean(e.proof, 300)}"]
    by = f"; its bound is {texts.bound_meaning(best.evaluation.bound)}" if best.evaluation.bound else ""
    return [
        f"{title(e)}: the best tiling takes {texts.micros(best.time_us)} us with {tiling_text(best)}{by}.",
        f"{texts.clean(e.proof, 300)}.",
        *([] if e.whole else [NOT_WHOLE.format(texts.count(len(e.found)), texts.count(e.evaluated))]),
    ]


def tiling_text(x: Found) -> str:
    """block_m=128 block_n=256 ..."""
    return texts.clean(" ".join(f"{n}={v}" for n, v in x.point.items()), 400)


def _sections(e: Exploration, k: int, several: bool, data: dict[str, Any]) -> list[Section]:
    prefix, head = (f"e{k}-", f"{title(e)}: ") if several else ("", "")
    data[f"explore{k}"] = heat_data(e)
    axes = list(data[f"explore{k}"]["axes"])
    made = [
        ("heat", "Heat map", heat(e, f"explore{k}", axes), _heat_lead(e)),
        ("front", "Pareto front", front(e), " ".join(_front_lead(e))),
        ("knobs", "Which knobs matter", knobs(e), ""),
        ("tilings", "Tilings", tilings(e, k), _error_lead(e)),
        ("space", "The space", render("space.html", e=e), ""),
    ]
    return [Section(prefix + i, head + t, body, lead) for i, t, body, lead in made if body.strip()]


def heat(e: Exploration, name: str, axes: list[str]) -> Markup:
    """The map, of all evaluated tilings or not at all."""
    return render("heat.html", name=name, axes=axes) if e.whole else Markup("")


def _heat_lead(e: Exploration) -> str:
    every = (
        "Each cell is the best that was evaluated with these two values; the stronger its colour, the faster."
    )
    return f"{every} {empty_cells(e)}".rstrip()


def _front_lead(e: Exploration) -> list[str]:
    """What the picture shows; where time is the only figure that differs, that the front is the fastest alone."""
    out = ["Each point is a tiling; those of the front are beaten by none in everything."]
    if not e.whole:
        out.append("Points that are not in this file are not shown; none of them is on the front.")
    if not only_time(e):
        return out
    bound = " The height is the lower bound, which is no aim of its own." if other_axis(e) else ""
    return [*out, f"{ONLY_TIME}.{bound}"]


def _error_lead(e: Exploration) -> str:
    known = any(x.evaluation.error is not None for x in e.found)
    return f"{texts.ERROR_OF_TILING[0].upper()}{texts.ERROR_OF_TILING[1:]}." if known else ""


def heat_data(e: Exploration) -> dict[str, Any]:
    """Axes with their values, the most important first, and points as places on them with their figures."""
    order = [*e.sensitivity(), *(n for n in e.axes if n not in e.sensitivity())]
    names = [n for n in order[:MOST_AXES] if len(e.axes[n]) > 1]
    places = {n: {repr(v): k for k, v in enumerate(e.axes[n])} for n in names}
    shown = e.ranked[:MOST_POINTS]
    points = [[*(places[n].get(repr(x.point.get(n)), -1) for n in names), *_figures(x)] for x in shown]
    axes = {texts.clean(n, 60): [texts.clean(str(v), 40) for v in e.axes[n]] for n in names}
    return {"axes": axes, "points": points}


def _figures(x: Found) -> list[float | None]:
    """time in us, KiB of UB, error."""
    ub = x.evaluation.ub_peak_bytes
    found = (x.time_us, None if ub is None else ub / 1024, x.evaluation.error)
    return [None if v is None or not math.isfinite(v) else float(f"{v:.6g}") for v in found]


def front(e: Exploration) -> Markup:
    """Time against UB peak (the lower bound, where all have one peak), and against error where it was computed."""
    axis = other_axis(e)
    charts = [_scatter(e, *axis, False)] if axis else []
    if any(x.evaluation.error for x in e.found):
        charts.append(_scatter(e, "mean error over mean value", lambda x: x.evaluation.error or 0.0, True))
    figures = Markup("").join(Markup("<figure>{}</figure>").format(c) for c in charts if c)
    if figures:
        return Markup('<div class="charts">{}</div>').format(figures)
    return Markup("<p>{}</p>").format("; ".join(_tip(x).replace("\n", ": ") for x in e.pareto[:6]))


def _scatter(e: Exploration, y_title: str, value: Any, log: bool) -> Markup:
    chosen = {id(x) for x in e.pareto}
    points = [x for x in e.ranked if math.isfinite(x.time_us) and x.time_us > 0][:MOST_DOTS]
    points += [x for x in e.pareto if x not in points]
    if not points:
        return Markup("")
    frame = ChartFrame(width=620, height=360)
    x = frame.x(*spread([p.time_us for p in points], log=True), log=True)
    y = frame.y(*spread([value(p) for p in points], log), log)
    parts = [frame.axes(x, y, "us", y_title)]
    best = sorted((p for p in points if id(p) in chosen), key=lambda p: p.time_us)
    places = ((x(p.time_us), y(value(p)), _tip(p)) for p in points if id(p) not in chosen)
    parts += [el("circle", class_="f7 pale", cx=a, cy=b, r=3.5, data_tip=tip) for a, b, tip in places]
    parts.append(line([(x(p.time_us), y(value(p))) for p in best], class_="s0 thick pale"))
    parts += [spot(0, x(p.time_us), y(value(p)), 5.5, _tip(p), "f3 front") for p in best]
    return frame.svg(f"Tilings by time and {y_title}, with the Pareto front", *parts)


def _tip(p: Found) -> str:
    e = p.evaluation
    ub = f", UB {texts.kib(e.ub_peak_bytes)} KiB" if e.ub_peak_bytes is not None else ""
    error = f", error {texts.small(e.error)}" if e.error is not None else ""
    return f"{texts.micros(p.time_us)} us{ub}{error}\n{tiling_text(p)}"


def knobs(e: Exploration) -> Markup:
    """What the worst value of each costs at least."""
    found = [(texts.clean(n, 60), x) for n, x in e.sensitivity().items() if math.isfinite(x)]
    return (
        render("knobs.html", knobs=found, most=max(x for _, x in found), what=texts.OBJECTIVES[e.objective])
        if found
        else Markup("")
    )


def tilings(e: Exploration, k: int) -> Markup:
    """Every evaluated tiling, best first."""
    ranked = e.ranked
    if not ranked:
        return Markup("")
    axes = [n for n in e.axes if len(e.axes[n]) > 1] or list(e.axes) or list(ranked[0].point)
    chosen = {id(x) for x in e.pareto}
    rows = [
        (x, [str(x.point.get(n, "")) for n in axes], id(x) in chosen, x.time_us / ranked[0].time_us)
        for x in ranked[:MOST_ROWS]
    ]
    return render(
        "tilings.html",
        rows=rows,
        axes=axes,
        total=len(ranked) if e.whole else e.evaluated,
        figures=any(x.evaluation.pipe is not None or x.evaluation.bound_us is not None for x in ranked),
        name=f"tilings{k}",
        errors=any(x.evaluation.error is not None for x in ranked),
    )

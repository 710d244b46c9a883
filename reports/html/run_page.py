"""The page of one run, with the errors of its outputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from markupsafe import Markup

from ...simulator.messages import Message
from ...simulator.precision.metrics import ErrorReport
from ...simulator.precision.places import ErrorPlaces
from ...simulator.record.run import Launch, Run
from ..facts import facts, texts
from ..facts.advice.slowing import LEAD, TITLE, other_messages, slow_lines
from ..facts.charts import named, populated, power, spread
from ..facts.timelines import NOTHING, slowest_core, told_part, told_text
from ..facts.warned import headed
from . import run_summary
from .error_blame import blame_tables
from .launch_charts import buffers, rooflines
from .pipes_chart import bounds_ladder, pipe_table
from .run_summary import provenance, repeating
from .source_lines import source_tables
from .svg import ChartFrame, el, line, mark
from .timeline_data import timeline_data
from .writing import Page, Section, render

MOST_OUTPUTS = 12


def error_panel(run: Run) -> Markup:
    """Empty if the run has no errors."""
    if not run.errors:
        return Markup("")
    first = list(run.errors.items())[:MOST_OUTPUTS]
    shown = [(n, e, histogram(n, e), against_magnitude(n, e.places)) for n, e in first]
    return render("errors.html", outputs=shown, every=run.errors, against=facts.error_reference(run))


def histogram(name: str, e: ErrorReport) -> Markup:
    """Elements by their error in ulp: one bar for an octave, by logarithm; empty where there is nothing to show."""
    bars = populated(e)
    if not bars:
        return Markup("")
    frame = ChartFrame(width=560, height=250, bottom=62)
    x = frame.x(0.0, float(len(bars)))
    y = frame.y(0.5, max(n for _, n in bars) * 2.0, log=True)
    parts = [frame.axes(x, y, "error, ulp", "elements", [])]
    every = max(1, math.ceil(len(bars) / 14))
    for k, (label, n) in enumerate(bars):
        upper = " and more, below the double" if ".." in label else ""
        tip = f"{named(label)} ulp{upper}: {n:,} elements"
        if n > 0:
            box = {"x": x(k + 0.08), "y": y(n), "width": x(k + 0.92) - x(k + 0.08), "height": y(0.5) - y(n)}
            parts.append(el("rect", class_="f2" if label == "0" else "f0", data_tip=tip, **box))
        if k % every == 0:
            where = f"translate({x(k + 0.5):.1f} {frame.height - frame.bottom + 12}) rotate(-35)"
            parts.append(el("text", named(label), class_="tick", transform=where, text_anchor="end"))
    return frame.svg(f"Histogram of the errors of {texts.clean(name, 40)} in ulp", *parts)


def against_magnitude(name: str, places: ErrorPlaces | None) -> Markup:
    """Mean and largest error in ulp by the octave of the float64 result."""
    octaves = [] if places is None else [o for o in places.octaves if o.count > 0]
    if not octaves:
        return Markup("")
    frame = ChartFrame(width=560, height=250)
    low, high = octaves[0].exponent, octaves[-1].exponent
    x = frame.x(low - 0.5, high + 1.5)
    sizes = [v for o in octaves for v in (o.mean_ulp, o.max_ulp) if v > 0]
    y = frame.y(*spread(sizes, log=True), log=True)
    every = max(1, math.ceil((high - low + 2) / 9))
    ticks = [(float(k), power(k)) for k in range(low, high + 2) if (k - low) % every == 0]
    parts = [frame.axes(x, y, "magnitude of the float64 result", "error, ulp", ticks)]
    for k, (label, value) in enumerate((("largest", "max_ulp"), ("mean", "mean_ulp"))):
        points = [(o, getattr(o, value)) for o in octaves if getattr(o, value) > 0]
        parts.append(line([(x(o.exponent + 0.5), y(v)) for o, v in points], class_=f"s{3 - 3 * k} thick"))
        for o, v in points:
            tip = f"{power(o.exponent)}: {label} {v:.3g} ulp of {o.count:,} elements"
            parts.append(mark(k, x(o.exponent + 0.5), y(v), 3.2, class_=f"f{3 - 3 * k}", data_tip=tip))
    return frame.svg(f"Error of {texts.clean(name, 40)} against the magnitude of the result", *parts)


MOST_LISTED = 40  # messages of a kind
MOST_LAUNCHES = 6  # that have pictures of their own, the dearest first


def dearest(run: Run) -> list[Launch]:
    """Those that have pictures."""
    return sorted(run.launches, key=lambda x: -x.time_us)[:MOST_LAUNCHES]


def run_page(run: Run) -> Page:
    """Sections without facts are left out; what a run is warned of comes first where it has faults."""
    warned = Section("warnings", "Warnings", warnings(run))
    data: dict[str, Any] = {}
    dear = dearest(run)
    timed = [
        Section("slowing", f"{TITLE[:1].upper()}{TITLE[1:]}", slowing(run), f"{LEAD[:1].upper()}{LEAD[1:]}."),
        Section("timeline", "Timeline", each(dear, lambda x: timeline(x, data))),
        Section("source", "Cycles by source line", each(dear, source_tables)),
        Section("pipes", "Pipes and stalls", pipe_table(run) if run.pipes else Markup("")),
        Section("bounds", "Bounds ladder", bounds_ladder(run) if run.bounds else Markup("")),
        Section("roofline", "Roofline", each(dear, rooflines), ROOFLINE_LEAD),
        Section("buffers", "Buffers", each(dear, buffers), BUFFERS_LEAD),
    ]
    rest = [
        Section("errors", "Errors", error_panel(run)),
        Section("blame", "Error by source line", blame_tables(run), BLAME_LEAD),
        Section("trust", "What the time rests on", provenance(run) if run.launches else Markup("")),
        *([] if run.faults else [warned]),
        Section("repeat", "Repeat this run", repeating(run)),
    ]
    return Page(
        title=run_summary.title(run),
        subtitle=run_summary.device(run),
        summary=run_summary.sentences(run),
        facts=run_summary.key_figures(run),
        sections=[s for s in (*([warned] if run.faults else []), *timed, *rest) if s.body.strip()],
        data=data,
        scripts=("timeline.js",) if data else (),
    )


def slowing(run: Run) -> Markup:
    """Lines of which the compiler makes slow code, with what to write instead."""
    found = slow_lines(run)
    return render("slowing.html", lines=found) if found else Markup("")


ROOFLINE_LEAD = (
    "The dashed line is what this run reaches. Each marker belongs to the sloped line of its colour: where it lies on that "
    "line, that path to memory is used in full; where the dashed line is at the peak, the unit is. Operations are those "
    "that the unit carries out: what pads a tile counts like the rest."
)
BUFFERS_LEAD = (
    "The stairs are what holds a value while one core works. The peak is higher where several copies of a tile, or values "
    "that take turns, are set aside and not full at the same moment."
)


BLAME_LEAD = (
    "What the roundings of each line make of the error. The shares of an output add up to 100 %; a negative one, to the "
    "left, undoes some of the others."
)


def each(launches: list[Launch], view: Callable[[Launch], Markup], named: bool = False) -> Markup:
    """The view of the dearest launch, and those of the others to open; one alone has its name only if that is asked for."""
    shown = [(x, body) for x in launches if (body := view(x)).strip()]
    parts = []
    for k, (x, body) in enumerate(shown):
        name = f"{texts.clean(x.kernel, 60)}, {texts.micros(x.time_us)} us"
        first = "{body}" if len(launches) == 1 and not named else "<h3>{name}</h3>{body}"
        wrap = "<details><summary>{name}</summary>{body}</details>" if k else first
        parts.append(Markup(wrap).format(name=name, body=body))
    return Markup("").join(parts)


def timeline(launch: Launch, data: dict[str, Any]) -> Markup:
    """The place of the canvas; puts what the script draws into `data`."""
    t = launch.timeline
    if t is None or not len(t.start):
        return Markup("")
    if not len(told_part(t).start):
        return Markup("<p>{}</p>").format(f"The timeline is too short to draw: {NOTHING}.")
    name = f"timeline{len(data)}"
    data[name] = {**timeline_data(launch), "us_per_cycle": _finite(launch.us_per_cycle)}
    cores = list(dict.fromkeys(x["core"] for x in data[name]["lanes"]))
    shown = sum(x["count"] for x in data[name]["lanes"])
    records = texts.RECORDS[:1].upper() + texts.RECORDS[1:]
    told = {"shown": shown, "cut": told_text(launch), "records": records, "slowest": slowest_core(launch)}
    return render("timeline.html", name=name, launch=launch, cores=cores, **told)


def _finite(x: float) -> float:
    return x if math.isfinite(x) and x > 0 else 0.0


def warnings(run: Run) -> Markup:
    """What to look at: a list under each heading, faults first."""
    return Markup("").join(_listed(*head) for head in headed(other_messages(run)))


def _listed(kind: str, title: str, found: list[Message]) -> Markup:
    items = Markup("").join(Markup("<li>{}</li>").format(texts.clean(w, 1200)) for w in found[:MOST_LISTED])
    more = len(found) - MOST_LISTED
    tail = Markup("<li>and {} more</li>").format(more) if more > 0 else Markup("")
    text = '<div class="kind-{}"><h3>{}</h3><ul class="plain">{}{}</ul></div>'
    return Markup(text).format(kind, f"{title[:1].upper()}{title[1:]}", items, tail)

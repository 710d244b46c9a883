"""A run in sentences, its key figures, what the time rests on, and how to get it again."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from ...simulator.record.run import ASSUMED_FIGURES, INTERVAL_PERCENT, Run
from ..facts import facts, texts
from ..facts.advice import tried
from ..facts.advice.slowing import SlowLine, slow_lines
from ..facts.authors import code_text
from ..facts.intervals import interval_text
from ..facts.l2_text import l2_text
from ..facts.repeat_command import options_text, repeat_command
from ..facts.warned import faults_text, what_ifs_text
from .writing import render

MENTIONED = 0.01


def title(run: Run) -> str:
    """Operator, case, type, and options that are not the usual ones."""
    parts = run.op or run.name, run.case, run.dtype, options_text(run)
    return ", ".join(texts.clean(x, 80) for x in parts if x)


def device(run: Run) -> str:
    """Device, tiling, precision mode and who made the code."""
    name = texts.clean(str(facts.product_figure(run, "product.name") or "unknown device"), 60)
    tiling = ", ".join(f"{k}={v}" for k, v in run.tiling.items())
    cube = f"; cubeMathType {run.cube_math_type}" if any(n.endswith(".M") for n in run.pipes) else ""
    code = f"; code by {code_text(run)}" if code_text(run) else ""
    return texts.clean(
        f"{name} ({facts.product_name(run)}){f'; tiling {tiling}' if tiling else ''}{cube}{code}", 600
    )


def key_figures(run: Run) -> list[tuple[str, str, str]]:
    """(name, figure, remark)."""
    out = []
    bound = facts.binding(run)
    if facts.timed(run):
        ends, overhead = run.interval_us, texts.micros(sum(x.overhead_us for x in run.launches))
        between = (
            f"{INTERVAL_PERCENT} % measured: {texts.micros(ends[0])} to {texts.micros(ends[1])} us"
            if ends
            else ""
        )
        out += [
            ("time", f"{texts.micros(run.time_us)} us", between),
            ("cycles", texts.count(run.cycles), f"+ {overhead} us launch overhead"),
        ]
    if bound is not None:
        remark = f"{texts.clean(bound.name, 30)}, {texts.percent(bound.fraction)} of the time"
        out.append(("lower bound", f"{texts.micros(bound.time_us)} us", remark))
    used = [(n, b) for n, b in run.buffers.items() if b.peak_bytes > 0]
    full = [(facts.share(b.peak_bytes, b.capacity_bytes), n, b) for n, b in used]
    if full:
        part, name, b = max(full, key=lambda x: x[:2])
        remark = f"{texts.kib(b.peak_bytes)} of {texts.kib(b.capacity_bytes)} KiB"
        out.append((f"fullest buffer: {texts.clean(name, 12)}", texts.percent(part), remark))
    if run.errors:
        name, e = max(run.errors.items(), key=lambda x: (x[1].max_ulp == x[1].max_ulp, x[1].max_ulp))
        remark = f"{texts.clean(name, 30)}, {texts.clean(e.fmt, 12)}"
        out.append(("largest error", f"{texts.figure(e.max_ulp)} ulp", remark))
    return out


def sentences(run: Run) -> list[str]:
    """What a reader should know first."""
    return [*_faults(run), *_time(run), *_l2(run), *_held(run), *_fit(run), *_wrong(run)]


def _faults(run: Run) -> list[str]:
    return [f"The run has {text}." for text in (faults_text(run), what_ifs_text(run)) if text]


def _time(run: Run) -> list[str]:
    bound = facts.binding(run)
    if bound is None:
        return ["Only values were asked for: this run has no times."]
    n = len(run.launches)
    times = f"{texts.micros(run.time_us)} us in {n} {'launch' if n == 1 else 'launches'}"
    between = interval_text(run)
    return [
        f"The run takes {times}. {facts.allowed(bound)}.",
        *([f"{between[:1].upper()}{between[1:]}."] if between else []),
    ]


def _l2(run: Run) -> list[str]:
    return [f"L2: {text}."] if (text := l2_text(run)) else []


def _held(run: Run) -> list[str]:
    saved = [(texts.meaning(n), 1 - facts.share(us, run.time_us)) for n, us in run.lifted.items()]
    named = [f"{n} ({texts.percent(x)} less time without it)" for n, x in saved if x >= MENTIONED][:3]
    out = [f"Its limiters: {', '.join(named)}."] if named else []
    out += [f"To try: {text}." for text in filter(None, [tried.advice(run)])]
    out += [_slowest(x) for x in slow_lines(run)[:1]]
    lines = facts.dear_lines(run)
    if lines and not named:
        part = texts.percent(facts.share(lines[0].cycles, run.cycles))
        out.append(
            f"The line that costs most is {texts.place(lines[0].file, lines[0].line)} with {part} of the cycles."
        )
    return out


def _slowest(x: SlowLine) -> str:
    first = x.found[0]
    what, cure = texts.clean(first.what, 300), texts.clean(first.cure, 300)
    return f"Of the lines that the compiler makes slow code of, {x.place} takes most, {x.cost}: {what}. Instead: {cure}."


def _fit(run: Run) -> list[str]:
    used = [(n, b) for n, b in run.buffers.items() if b.peak_bytes > 0]
    each = [
        f"{texts.clean(n, 12)} {texts.percent(facts.share(b.peak_bytes, b.capacity_bytes))}" for n, b in used
    ]
    return [f"Everything fits; at their peaks the buffers are full to: {', '.join(each)}."] if each else []


def _wrong(run: Run) -> list[str]:
    out = [
        f"{texts.clean(n, 30)} is off by {texts.figure(e.max_ulp)} ulp of {texts.clean(e.fmt, 12)} at most and has "
        f"{texts.figure(e.effective_bits)} effective bits."
        for n, e in list(run.errors.items())[:4]
    ]
    return [" ".join(out)] if out else []


COLOURS = {"A": 2, "B": 0, "C": 1, "D": 3}
MOST_FIGURES = 200


def provenance(run: Run) -> Markup:
    """Share of the time by grade, and the assumed figures that it used with their values."""
    shares = [
        (g, texts.GRADES.get(g, g), us, facts.share(us, run.time_us), COLOURS.get(g, 6))
        for g, us in sorted(run.grades.items())
    ]
    return render("provenance.html", shares=shares, figures=assumed(run), changed=facts.overrides(run))


def assumed(run: Run) -> list[dict[str, Any]]:
    """The figures with grade D that the notes name: key, value, unit, where it comes from."""
    notes = (n.removeprefix(ASSUMED_FIGURES) for n in run.notes if n.startswith(ASSUMED_FIGURES))
    keys = [k for note in notes for k in note.split(", ")]
    found = facts.figures(run)
    fields = ("value", "unit", "source")
    return [{"key": k, **{n: str(found.get(k, {}).get(n, "")) for n in fields}} for k in keys[:MOST_FIGURES]]


def repeating(run: Run) -> Markup:
    """The command, and every choice that the numbers depend on."""
    choices = {"tiling": run.tiling, "options": run.options, "inputs": run.inputs}
    return render(
        "repeat.html", command=repeat_command(run), choices=choices, launches=run.launches, notes=run.notes
    )

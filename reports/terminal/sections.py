"""The sections of the page of one run, each a function from Run to renderables; a section without facts is empty.

`tables.py` has the shapes of their lines, `record_view.py` puts the sections together.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from ...simulator.messages import FAULT, NOTE, TIME
from ...simulator.precision.metrics import ErrorReport
from ...simulator.precision.numeric_switches import FIXED, SWITCHES
from ...simulator.record.run import Buffer, LiveValue, Run
from ..facts import facts, texts
from ..facts.advice.slowing import other_messages
from ..facts.authors import code_text
from ..facts.blame import source_of
from ..facts.intervals import interval_text
from ..facts.l2_text import l2_text
from ..facts.launch_figures import (
    alive_at_peak,
    allocated_text,
    bits_text,
    freed_text,
    holes_bytes,
    made_at,
    shape_text,
    why_text,
)
from ..facts.repeat_command import options_text
from ..facts.texts import Bar, clean
from ..facts.warned import WHAT_IF_KIND, faults_text, headed, what_ifs_text
from .console import PAGE_WIDTH
from .tables import CutLine, add_row, fact, item, make_table

Block = list[RenderableType]

FROM_WIDTH = 20
MOST_BOUNDS = 6
MOST_LIMITS = 3
MOST_VALUES = 5
MOST_LINES = 3
MOST_LAUNCHES = 10
MOST_REMARKS = 8
BAR = 9  # columns of the bar of a share
SMALLEST_SHARE = facts.SMALLEST_SHARE
MENTIONED_SHARE = 0.01


def title_line(run: Run) -> Text:
    """Operator, case, data type."""
    text = Text(clean(run.op or run.name, 38), style="bold")
    for part in (run.case, run.dtype):
        text.append(f"  {clean(part, 18)}" if part else "", style="not bold")
    return text


def heading(run: Run) -> Block:
    """Who ran what, on what."""
    device = facts.product_figure(run, "product.name") or "?"
    rows: Block = [title_line(run), fact("device", f"{device} ({facts.product_name(run)}){_changed(run)}")]
    tiling = "  ".join(f"{k}={v}" for k, v in run.tiling.items())
    if tiling:
        rows.append(fact("tiling", tiling))
    if options := options_text(run):
        rows.append(fact("options", options))
    code = code_text(run)
    if code:
        rows.append(fact("code", code))
    if any("M" in name.split(".") for name in run.pipes):
        rows.append(fact("cube", f"cubeMathType {run.cube_math_type}"))
    if wrong := faults_text(run):
        rows.append(fact("faults", wrong.partition(": ")[0] + ", see below", style=STYLES[FAULT]))
    if lacks := what_ifs_text(run):
        rows.append(fact("what-ifs", lacks.partition(": ")[0] + ", see below", style=STYLES[WHAT_IF_KIND]))
    return rows


def _changed(run: Run) -> str:
    changed = ", ".join(f"{k} = {v}" for k, v in facts.overrides(run).items())
    return f", changed: {changed}" if changed else ""


def time(run: Run) -> Block:
    """Time, cycles, cores, and the bound that binds."""
    if not facts.timed(run):
        idle = not run.launches and run.time_seconds is not None
        return [fact("time", "none: no kernel runs" if idle else "not asked for: this run has values only")]
    mhz = facts.product_figure(run, "clock.aicore_mhz")
    clock = f" at {mhz:g} MHz" if isinstance(mhz, int | float) else ""
    rows: Block = [fact("time", facts.time_text(run, clock), style="bold")]
    between = interval_text(run)
    rows += [fact("board", between)] if between else []
    bound = facts.binding(run)
    if bound is not None:
        rows.append(fact("bound", facts.allowed(bound)))
    found = l2_text(run)
    l2 = [fact("l2", found)] if found else []
    return [*rows, *l2, *_trust(run), *_held_by(run), fact("work", _work(run))]


def _held_by(run: Run) -> Block:
    """What would save most if it took no time, found by timing the run without it."""
    saved = [(n, 1 - facts.share(us, run.time_us)) for n, us in run.lifted.items()]
    named = [(texts.meaning(n), texts.percent(x)) for n, x in saved if x >= MENTIONED_SHARE][:MOST_LIMITS]
    if not run.lifted:
        return []
    if not named:
        return [fact("limiter", "none: without any one of the limits alone it takes as long")]
    (first, most), *rest = named
    text = f"{first}: {most} less time without it"
    return [fact("limiter", "; ".join([f"{text[:1].upper()}{text[1:]}", *(f"{n} {x}" for n, x in rest)]))]


def _trust(run: Run) -> Block:
    """Which share of the time rests on figures of which grade."""
    shares = {g: facts.share(us, run.time_us) for g, us in sorted(run.grades.items())}
    told = {g: x for g, x in shares.items() if x >= SMALLEST_SHARE and g in texts.GRADES}
    named = [f"{texts.percent(x)} {texts.GRADES[g]}" for g, x in told.items()]
    return [fact("figures", ", ".join(named))] if named else []


def _work(run: Run) -> str:
    programs = sum(x.programs for x in run.launches)
    instructions = texts.count(sum(x.instructions for x in run.launches))
    if len(run.launches) > 1:
        return f"{programs} programs in {len(run.launches)} launches, {instructions} instructions"
    launch = run.launches[0]
    return f"{programs} programs on {launch.cores_used} of {launch.cores} cores, {instructions} instructions"


def launches(run: Run) -> Block:
    """One row per launch, if there are several."""
    if len(run.launches) < 2:
        return []
    table = make_table(("launches", 30), ("grid", 16), (">us", 9), (">cycles", 12), (">cores", 8))
    for x in run.launches[:MOST_LAUNCHES]:
        cells = (x.kernel, str(x.grid), texts.micros(x.time_us), texts.count(x.cycles), str(x.cores_used))
        add_row(table, *cells)
    return [Text(), table, *more(len(run.launches) - MOST_LAUNCHES, "launches")]


def bounds(run: Run) -> Block:
    """The lower bounds, tightest first, as shares of the run's time."""
    ordered = sorted(run.bounds.items(), key=lambda item: -item[1])
    if not ordered:
        return []
    table = make_table(("lower bounds", 35), (">us", 9), (">of time", 8), ("", 20))
    for name, us in ordered[:MOST_BOUNDS]:
        part = facts.share(us, run.time_us)
        add_row(
            table, texts.bound_meaning(name), texts.micros(us), texts.percent(part), Bar(part, style="cyan")
        )
    rest = ordered[MOST_BOUNDS:]
    below = [f"  {len(rest)} more, none above {texts.micros(us)} us" for _, us in rest[:1]]
    return [Text(), table, *(Text(text, style="dim") for text in below)]


def pipes(run: Run) -> Block:
    """How long each pipe was busy, and what it waited for most."""
    if not run.pipes:
        return []
    table = make_table(
        ("pipes", 10), (">busy cycles", 12), (">of cycles", 9), ("", 20), ("waits most for", 25)
    )
    idle = []
    for name, pipe in sorted(run.pipes.items(), key=lambda item: -item[1].busy_cycles):
        if pipe.busy_cycles <= 0:
            idle.append(clean(name, 12))
            continue
        cells = (name, texts.count(pipe.busy_cycles), texts.percent(pipe.share))
        add_row(table, *cells, Bar(pipe.share, style="green"), facts.main_stall_text(pipe, run.cycles))
        part = facts.share(pipe.shared_cycles, run.cycles)
        if part >= SMALLEST_SHARE:
            shared = texts.count(pipe.shared_cycles), texts.percent(part)
            add_row(table, "  of which", *shared, "for shared bandwidth", "", style="dim")
    last = [CutLine("  never used: ", ", ".join(idle), "dim")] if idle else []
    return [Text(), table, *last]


def buffers(run: Run) -> Block:
    """Peak against capacity, and who is alive there."""
    used = {n: b for n, b in run.buffers.items() if b.peak_bytes}
    if not used:
        return []
    table = make_table(("buffers at their peak", 35), (">KiB", 7), (">of", 15), ("", FROM_WIDTH))
    for name, buffer in sorted(used.items(), key=lambda item: -_fill(item[1])):
        fill = _fill(buffer)
        sizes = texts.kib(buffer.peak_bytes), texts.kib(buffer.capacity_bytes)
        add_row(
            table, f"{name}  {texts.percent(fill)}", *sizes, Bar(fill, style="red" if fill > 1 else "magenta")
        )
        add_row(table, f"  {bits_text(buffer)}", "", "", "", style="dim")
        found = alive_at_peak(buffer)
        for n, value in found[:MOST_VALUES]:
            add_row(table, *_alive(n, value), made_at(value), style="dim")
        if len(found) > MOST_VALUES:
            add_row(table, f"  and {sum(n for n, _ in found[MOST_VALUES:])} smaller", "", "", "", style="dim")
        if holes := holes_bytes(buffer):
            add_row(table, "  between and above them", texts.kib(holes), "hole", "", style="dim")
    said = [(n, ":", allocated_text(b)) for n, b in used.items()]
    said += [(n, " would need", freed_text(b)) for n, b in used.items()]
    return [Text(), table, *(item(f"{clean(n, 12)}{verb} {x}", "dim") for n, verb, x in said if x)]


def _fill(buffer: Buffer) -> float:
    return facts.share(buffer.peak_bytes, buffer.capacity_bytes)


def _alive(n: int, value: LiveValue) -> tuple[str, str, str]:
    """Of n alike."""
    name = f"{f'{n} x ' if n > 1 else ''}{clean(value.name, 20)}"
    return (
        f"  {name}  {shape_text(value)}".rstrip(),
        texts.kib(n * value.bytes * value.copies),
        why_text(value),
    )


def errors(run: Run) -> Block:
    """Errors of every output against float64, and which lines' roundings make them up."""
    if not run.errors:
        return []
    against = facts.error_reference(run)
    figures = ((n, 9) for n in (">max abs", ">max rel", ">mean rel", ">rmse"))
    head = f"error against {against}"
    table = make_table((head, max(22, len(head))), *figures, (">max ulp", 9), (">bits", 6))
    for name, e in run.errors.items():
        sizes = (texts.small(x) for x in (e.max_abs, e.max_rel, e.mean_rel, e.rmse))
        add_row(table, name, *sizes, texts.figure(e.max_ulp), texts.figure(e.effective_bits))
    more = (loss for name, e in run.errors.items() for loss in _losses(name, e))
    return [Text(), table, *more, *_error_lines(run)]


def _error_lines(run: Run) -> Block:
    """Output by output the lines whose roundings make up its error, beside their source, the largest share first."""
    if not run.error_lines:
        return []
    found, code = facts.error_shares(run), source_of(run)
    most = max((abs(share) for *_, share in found), default=0.0)
    table = make_table((">share", 7), ("", BAR), ("output", 12), ("rounded at", 22), ("source", 26))
    for output, place, share in found:
        bar = Bar(facts.share(abs(share), most), BAR, "green" if share < 0 else "red")
        add_row(table, texts.percent(share), bar, clean(output, 12), clean(place, 60), code.get(place, ""))
    return [Text(), table]


def _losses(name: str, e: ErrorReport) -> Block:
    """What the figures do not say: elements that are NaN, infinite, zero or subnormal and should not be."""
    elements = math.prod(e.shape)
    counts = {
        "NaN on one side only": e.nan_mismatch,
        "infinite on one side only": e.inf_mismatch,
        "too large for the type": e.overflow,
        "lost to zero": e.underflow,
        "subnormal": e.subnormal if facts.share(e.subnormal, elements) >= MENTIONED_SHARE else 0,
    }
    found = ", ".join(f"{texts.count(n)} {what}" for what, n in counts.items() if n)
    text = f"{clean(name, 30)}: {found}, of {texts.count(elements)} elements"
    return [item(text, "yellow")] if found else []


def numerics(run: Run) -> Block:
    """The choices that the values were computed with, if any were computed."""
    names = (*SWITCHES, *FIXED, "accumulate", "atomic_order")
    return numerics_lines({n: str(x) for n, x in run.options.items() if n in names}) if run.errors else []


def numerics_lines(chosen: Mapping[str, str]) -> Block:
    """One paragraph: choices with a source, those of the user, and those that nobody published."""
    groups: dict[str, list[str]] = {"": [], "chosen": [], "file": [], "assumed": []}
    for name, text in chosen.items():
        kind = next((k for k in ("chosen", "file", "assumed") if f"({k}" in text), "")
        groups[kind].append(f"{name}={text.partition(' (')[0]}")
    file = next((x.partition(" (file ")[2].rstrip(")") for x in chosen.values() if " (file " in x), "")
    heads = {"": "numerics", "chosen": "chosen", "file": file, "assumed": "assumed, nobody published them"}
    told = ((heads[k], clean(", ".join(found), 600)) for k, found in groups.items() if found)
    return [Text(f"\n{head}: {text}", style="dim") for head, text in told]


def lines(run: Run) -> Block:
    """The source lines that cost most: share and cycles, place, text."""
    dear = facts.dear_lines(run)
    if not dear:
        return []
    out: Block = [Text(), Text("the lines that cost most", style="bold")]
    for cost in dear[:MOST_LINES]:
        part = texts.percent(facts.share(cost.cycles, run.cycles))
        head = f"{part:>6}  {texts.count(cost.cycles):>9} cycles  "
        out.append(CutLine(head, texts.place(cost.file, cost.line), "bold"))
        out.append(CutLine("        ", cost.source.strip()))
    return out


def remarks(run: Run) -> Block:
    """Warnings by their kind, the most serious first, and notes."""
    out: Block = []
    for kind, title, found in headed(other_messages(run)):
        out += remarked(title, kind, found, STYLES[kind])
    return [*out, *remarked("notes", "note", run.notes, "dim")]


STYLES = {
    FAULT: "bold red",
    WHAT_IF_KIND: "bold magenta",
    TIME: "yellow",
    NOTE: "",
}  # of the kinds of messages


def remarked(title: str, what: str, found: Sequence[str], style: str) -> Block:
    """Texts under a title, wrapped; what: one of them, for the number of those that are left out."""
    if not found:
        return []
    hidden = len(found) - MOST_REMARKS
    shown = [item(text, style) for text in found[:MOST_REMARKS]]
    return [
        Text(),
        Text(title, style=style if style != "dim" else "bold"),
        *shown,
        *more(hidden, f"{what}{'s' * (hidden > 1)}"),
    ]


def opening(record: str | None) -> Block:
    """How to look at this run again: a command that can be copied, on one line where it fits."""
    if record is None:
        return [Text('keep    run.save("x.run") or --save x.run; then: ascendtile report x.run', style="dim")]
    file = clean(shlex.quote(record))
    command = f"ascendtile report {file}"
    if cell_len(command) <= PAGE_WIDTH - 8:
        return [fact("open", command)]
    if cell_len(command) <= PAGE_WIDTH:
        return [Text(command)]
    return [Text("ascendtile report \\"), Text(file, overflow="fold")]


def more(hidden: int, what: str) -> Block:
    return [Text(f"  and {hidden} more {what}", style="dim")] if hidden > 0 else []

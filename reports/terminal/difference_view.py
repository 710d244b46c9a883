"""The comparison of two runs as a page of the terminal and as plain data."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ...simulator.precision.metrics import json_value
from ...simulator.record.files import picked
from ...simulator.record.run import Run
from ..facts import facts, texts
from ..facts.advice.causes import causes, causing_waits, further, largest_cause, moved, verdict
from ..facts.authors import compiler
from ..facts.compiler_cost import compiler_cost
from ..facts.differences import FigurePair, RunDifference
from .sections import Block, title_line
from .tables import add_row, fact, make_table

MENTIONED = 0.005  # of the longer run's time: what moved less is not shown
MOST_ROWS = 8
MOST_SETTINGS = 12


def difference_page(d: RunDifference) -> RenderableType:
    """Two runs: the whole, what differs in the choices, then lines, pipes, waits, bounds, buffers."""
    longer = max(d.time.first or 0.0, d.time.second or 0.0)
    timed = None not in (d.time.first, d.time.second)
    faster = [fact("B is", _verdict(d.time), style="bold")] if timed else []
    because = ". ".join(filter(None, (largest_cause(d), further(d)))) if timed else ""
    tables = (
        ("time by source line", tuple(causes(d)), True),
        ("pipes, busy", d.busy, True),
        ("waits that may be a cause", tuple(causing_waits(d)), True),
        ("lower bounds", tuple(moved(d.bounds)), False),
    )
    blocks = [_table(title, pairs, longer, ranked) for title, pairs, ranked in tables]
    return Group(
        *_titles(d),
        fact("A", _who(d.first)),
        fact("B", _who(d.second)),
        *faster,
        *([fact("because", because)] if because else []),
        *([fact("code", " ".join(compiler_cost(d)))] if compiler_cost(d) else []),
        *_settings(d),
        *(row for block in blocks for row in block),
        *_sizes("buffers at their peak, KiB", d.buffers, 1024),
        *_sizes("moved, MiB", d.traffic, 1024**2),
        *_errors(d),
    )


def _titles(d: RunDifference) -> Block:
    """What was run; both names where they differ."""
    a, b = (title_line(run) for run in (d.first, d.second))
    return [a] if a == b else [Text("A  ").append_text(a), Text("B  ").append_text(b)]


def _who(run: Run) -> str:
    bound = facts.binding(run)
    reached = f"{texts.percent(bound.fraction)} of it reached" if bound else ""
    limit = f"; bound {texts.bound_meaning(bound.name)}, {reached}" if bound else ""
    time = f"{texts.micros(run.time_us)} us" if facts.timed(run) else "values only"
    return f"{facts.product_name(run)}  {time}{limit}"


def _verdict(time: FigurePair) -> str:
    first, second = time.first or 0.0, time.second or 0.0
    if first == second or not first:
        return "as fast as A"
    part = abs(second - first) / first
    return f"{texts.percent(part)} {'slower' if second > first else 'faster'} ({texts.signed_micros(second - first)} us)"


def _settings(d: RunDifference) -> Block:
    if not d.settings:
        return []
    table = make_table(("what differs", 20), ("A", 28), ("B", 28))
    for name, a, b in d.settings[:MOST_SETTINGS]:
        add_row(table, name, a, b)
    return [Text(), table, *_more(len(d.settings) - MOST_SETTINGS)]


def _table(title: str, pairs: tuple[FigurePair, ...], longer: float, ranked: bool) -> Block:
    """Only what moved, the largest first, where there is a rank."""
    kept = sorted(pairs, key=lambda p: -abs(p.change)) if ranked else list(pairs)
    kept = [p for p in kept if abs(p.change) >= MENTIONED * longer] if ranked else kept
    if not kept:
        return []
    table = make_table((title, 47), (">A us", 9), (">B us", 9), (">B - A", 10))
    for p in kept[:MOST_ROWS]:
        name = texts.bound_meaning(p.name) if not ranked else p.name
        add_row(table, name, _cell(p.first), _cell(p.second), texts.signed_micros(p.change))
    return [Text(), table, *_more(len(kept) - MOST_ROWS)]


def _more(hidden: int) -> Block:
    return [Text(f"  and {hidden} more", style="dim")] if hidden > 0 else []


def _sizes(title: str, pairs: tuple[FigurePair, ...], unit: int) -> Block:
    if not moved(pairs):
        return []
    table = make_table((title, 47), (">A", 9), (">B", 9), (">B - A", 10))
    for p in moved(pairs):
        sizes = ("-" if x is None else f"{x / unit:,.1f}" for x in (p.first, p.second))
        add_row(table, p.name, *sizes, f"{p.change / unit:+,.1f}")
    return [Text(), table]


def _errors(d: RunDifference) -> Block:
    if not d.errors:
        return []
    table = make_table(("errors against float64", 47), (">A", 9), (">B", 9))
    for p in d.errors:
        add_row(table, p.name, *("-" if x is None else texts.figure(x) for x in (p.first, p.second)))
    return [Text(), table]


def _cell(x: float | None) -> str:
    return "-" if x is None else texts.micros(x)


def difference_json(d: RunDifference) -> dict[str, Any]:
    """{"a": {...}, "b": {...}, "time_us": {"a", "b", "change"}, "lines_us": [{"name", "a", "b", "change"}], ...}"""
    groups = {
        "causes_us": causes(d),
        "lines_us": d.every_line,
        "busy_us": d.busy,
        "waits_us": d.waits,
        "bounds_us": d.bounds,
        "buffers_bytes": d.buffers,
        "traffic_bytes": d.traffic,
        "errors": d.errors,
    }
    plain: dict[str, Any] = json_value(
        {
            "a": _about(d.first),
            "b": _about(d.second),
            "time_us": _pair(d.time),
            "verdict": verdict(d),
            "compiler": compiler_cost(d),
            "settings": [{"name": n, "a": a, "b": b} for n, a, b in d.settings],
            **{n: [{"name": p.name, **_pair(p)} for p in pairs] for n, pairs in groups.items()},
        }
    )
    return plain


def _about(run: Run) -> dict[str, Any]:
    device = {"product": facts.product_name(run), "compiler": compiler(run) or None}
    return {"op": run.op or run.name, **picked(run, "case dtype"), **device}


def _pair(p: FigurePair) -> dict[str, Any]:
    return {"a": p.first, "b": p.second, "change": p.change}

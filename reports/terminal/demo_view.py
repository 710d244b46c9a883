"""Views of the demo: a run in a few lines, and the table of all runs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from ...simulator.record.run import Run
from ..facts import facts, texts
from ..facts.texts import clean
from . import sections, tables


def compact(run: Run, record: str) -> RenderableType:
    """The page of a run in a few lines."""
    bound = facts.binding(run)
    pipes = sorted(run.pipes.items(), key=lambda item: -item[1].busy_cycles)
    shares = "  ".join(f"{name} {texts.percent(pipe.share)}" for name, pipe in pipes if pipe.busy_cycles > 0)
    ub = run.buffers.get("UB")
    rows = [
        sections.title_line(run),
        tables.fact("time", facts.time_text(run)),
        tables.fact("bound", facts.allowed(bound) if bound else "none"),
        tables.fact("pipes", f"{shares}  of the cycles" if shares else "none used"),
        tables.fact("UB", ub_text(ub.peak_bytes, ub.capacity_bytes) if ub else "not used"),
        *sections.errors(run),
        *sections.lines(run),
        *sections.opening(record),
    ]
    return Group(*rows)


def ub_text(peak: int, capacity: int) -> str:
    """172.0 of 192.0 KiB (90 %)"""
    return f"{texts.kib(peak)} of {texts.kib(capacity)} KiB ({texts.percent(facts.share(peak, capacity))})"


def summary(runs: Sequence[Run]) -> RenderableType:
    """All runs, a row each."""
    table = tables.make_table(
        ("op", 25), ("dtype", 9), (">us", 7), (">cycles", 9), (">bound", 14), (">UB", 5), (">bits", 5)
    )
    for run in runs:
        tables.add_row(table, *_cells(run))
    legend = "us: with the launch; bound: what binds, as a share of the us; bits: effective bits of the worst output"
    return Group(Text("summary", style="bold"), table, Text(legend, style="dim"))


def _cells(run: Run) -> tuple[str, ...]:
    bound = facts.binding(run)
    ub = run.buffers.get("UB")
    bits = min((e.effective_bits for e in run.errors.values()), default=None)
    return (
        clean(run.op or run.name),
        run.dtype or "",
        texts.micros(run.time_us),
        texts.count(run.cycles),
        f"{bound.name} {texts.percent(bound.fraction)}" if bound else "",
        texts.percent(facts.share(ub.peak_bytes, ub.capacity_bytes)) if ub else "",
        "" if bits is None else texts.figure(bits),
    )

"""Chains as pages: what there is, a run with its times, errors and blame, and a search with its proof."""

from __future__ import annotations

import linecache
import math
from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ....kernels.chains import Chain, ChainRun
from ....kernels.chains.blame import ChainBlame
from ....kernels.chains.results import TensorRun
from ....tiling.chains import ChainSearch
from ...facts import facts, texts
from ...facts.texts import Bar, clean
from ..tables import add_row, fact, folding, item, make_table

MOST_SOURCES = 10
MOST_LINES = 4  # of a step
LEAST_SHARE = 0.005
BAR = 12
GIVEN = "given"
LEGEND = (
    "error against float64 of the numbers before any rounding, in ulp of the format (of fp32 where no figures are known for "
    "it); over, under, subn: shares of the exact elements that the format makes infinite or its largest number, zero, or "
    "subnormal. Times of a loop of each operator, added up."
)
SHARES = (
    "storage: what rounding the exact tensor once to its format makes of the error; arithmetic: what the step adds. Shares "
    "add up to 100 %; one below 0 undoes others."
)


def listed_chains(found: Mapping[str, Chain]) -> dict[str, Any]:
    """The JSON of `ascendtile chain --json`."""
    return {"chains": [_chain_data(c) for c in found.values()]}


def _chain_data(c: Chain) -> dict[str, Any]:
    tensors = ((s, {"reads": list(s.reads), "makes": list(s.outputs.values())}) for s in c.order)
    steps = [{"name": s.name, "op": s.operator.name, **of} for s, of in tensors]
    return {
        **{"name": c.name, "title": c.title, "sizes": dict(c.sizes), "inputs": [x.name for x in c.inputs]},
        **{"steps": steps, "outputs": list(c.outputs), "groups": {n: list(x) for n, x in c.groups.items()}},
    }


def chains_page(found: Mapping[str, Chain]) -> RenderableType:
    """Every chain: its sizes, steps, tensors and groups."""
    parts: list[RenderableType] = []
    for c in found.values():
        parts += [Text.assemble((c.name, "bold"), f"  {c.title}"), fact("sizes", _pairs(c.sizes))]
        parts += [fact("steps", ", ".join(f"{s.name} ({s.operator.name})" for s in c.order))]
        parts += [fact("tensors", ", ".join(c.tensors)), fact("outputs", ", ".join(c.outputs))]
        parts += [fact("groups", "; ".join(f"{n}: {', '.join(x)}" for n, x in c.groups.items())), Text()]
    return Group(*parts[:-1])


def run_page(run: ChainRun) -> RenderableType:
    """Times by step, errors by tensor, and blame by output."""
    return Group(*_heading(run), *_body(run))


def search_page(found: ChainSearch) -> RenderableType:
    """The answer with its proof, then the run of the best or the nearest."""
    e = found.exploration
    axes = "; ".join(f"{n}: {', '.join(map(str, x))}" for n, x in e.axes.items())
    refused = [f"{count:,} {why}" for why, count in e.refused.items()]
    head: list[RenderableType] = [
        Text.assemble((clean(found.chain, 38), "bold"), f"  on {clean(e.product, 30)}"),
        fact("answer", found.answer, style="bold"),
        fact("proof", found.proof + ("" if found.proved else " (not proved)")),
        fact("space", f"{e.size:,} assignments of {axes}"),
        *(fact("", text) for text in refused),
        *(fact("note", text) for text in e.notes),
    ]
    return Group(*head, *([] if found.run is None else [Text(), *_heading(found.run), *_body(found.run)]))


def _pairs(given: Mapping[str, Any]) -> str:
    return " ".join(f"{n}={x}" for n, x in given.items())


def _heading(run: ChainRun) -> list[RenderableType]:
    data = f"{run.data['distribution']}, seed {run.data['seed']}" if run.data else "given by the user"
    parts: list[RenderableType] = [
        Text.assemble((clean(run.chain, 38), "bold"), f"  {clean(run.title, 100)}"),
        fact("device", clean(run.product)),
        fact("sizes", f"{_pairs(run.sizes) or 'none'}; numbers: {data}"),
        fact("chosen", run.words),
    ]
    if run.need is not None:
        said = "; ".join(f"{n}: {'kept' if k.passed else 'not kept'}, {k.words}" for n, k in run.kept.items())
        parts.append(fact("need", f"{run.need.words}: {said}", style="bold"))
    if run.time_us is not None:
        casts = [c for s in run.steps for c in s.casts]
        spent = (
            f", {texts.micros(sum(s.casts_us for s in run.steps))} us of it in {len(casts)} casts"
            if casts
            else ""
        )
        parts.append(fact("time", f"{texts.micros(run.time_us)} us{spent}", style="bold"))
    return parts


def _body(run: ChainRun) -> list[RenderableType]:
    parts: list[RenderableType] = [Text(), _steps(run), Text(), _tensors(run)]
    if run.values:
        parts.append(Text(LEGEND, style="dim"))
    if run.blame is not None:
        parts += [part for output in run.outputs for part in _blamed(run.blame, output)]
        parts.append(Text(SHARES, style="dim"))
    return [*parts, *(Text(f"\n{clean(text, 400)}") for text in run.notes)]


def _steps(run: ChainRun) -> RenderableType:
    table = folding(
        ("step", 16), ("operator", 18), ("in", 8), ("cubeMathType", 16), (">us", 8), (">casts us", 9)
    )
    for s in run.steps:
        time = "-" if s.time_us is None else texts.micros(s.time_us)
        casts = "-" if s.time_us is None or not s.casts else f"{texts.micros(s.casts_us)}"
        table.add_row(*map(Text, (s.name, s.op, s.dtype, s.mode or "-", time, casts)))
    return table


def _tensors(run: ChainRun) -> RenderableType:
    figures = (
        (">bits", 5),
        (">MARE", 7),
        (">MERE", 7),
        (">max ulp", 8),
        (">over", 6),
        (">under", 6),
        (">subn", 6),
    )
    table = folding(("tensor", 13), ("format", 10), *figures)
    for t in run.tensors.values():
        told = "* " if t.name in run.outputs else ""
        table.add_row(*map(Text, (f"{told}{t.name}", t.format, *_figures(t))))
    return Group(table, *(line for t in run.tensors.values() for line in _mismatches(t)))


def _mismatches(t: TensorRun) -> list[RenderableType]:
    """Elements that no figure of the table is about."""
    if t.error is None or t.error.agrees:
        return []
    e = t.error
    text = f"{t.name}: {e.nan_mismatch:,} NaN and {e.inf_mismatch:,} infinities on one side only, of {math.prod(t.shape):,}"
    return [item(clean(text, 200), "yellow")]


def _figures(t: TensorRun) -> tuple[str, ...]:
    if t.error is None or t.lost is None:
        return ("-",) * 7
    e = t.error
    lost = (_share(t.lost[n]) for n in ("overflow", "underflow", "subnormal"))
    return (
        texts.figure(e.effective_bits),
        f"{e.max_rel:.1e}",
        f"{e.mean_rel:.1e}",
        texts.figure(e.max_ulp),
        *lost,
    )


def _share(x: float) -> str:
    return "0" if x == 0 else texts.percent(x)


def _blamed(blame: ChainBlame, output: str) -> list[RenderableType]:
    """The sources of an output's error, the largest first, with lines where there are any."""
    found = blame.shares[output]
    broken = [
        item(f"{clean(key, 40)} makes {count:,} elements infinite or NaN", "yellow")
        for key, count in blame.broken.get(output, {}).items()
    ]
    if not any(found.values()):
        exact = "its finite elements are exact" if broken else "it is exact: nothing is to blame"
        return [Text(f"\nblame of {clean(output, 40)}: {exact}", style="bold"), *broken]
    ranked = sorted(blame.sources, key=lambda s: -abs(found[s.key]))
    shown = [s for s in ranked[:MOST_SOURCES] if abs(found[s.key]) >= LEAST_SHARE]
    most = max(abs(x) for x in found.values())
    table = make_table((">share", 8), ("", BAR), ("what rounds", 34), ("by step", 20))
    for s in shown:
        add_row(
            table, texts.percent(found[s.key]), _bar(found[s.key], most), clean(s.key, 34), s.step or GIVEN
        )
    rest = sum(x for n, x in found.items() if n not in {s.key for s in shown})
    if len(shown) < len(found):
        add_row(
            table, texts.percent(rest), _bar(rest, most), f"{len(found) - len(shown)} others", "", style="dim"
        )
    return [Text(f"\nblame of {clean(output, 40)}", style="bold"), *broken, table, *_lines(blame, output)]


def _bar(x: float, most: float) -> Bar:
    return Bar(facts.share(abs(x), most), BAR, "green" if x < 0 else "red")


def _lines(blame: ChainBlame, output: str) -> list[RenderableType]:
    """The lines of each step, the largest first, with their source."""
    by_step = blame.lines.get(output, {})
    rows = [
        (x, step, place)
        for step, lines in by_step.items()
        for place, x in sorted(lines.items(), key=lambda item: -abs(item[1]))[:MOST_LINES]
        if abs(x) >= LEAST_SHARE
    ]
    if not rows:
        return []
    table = make_table((">share", 8), ("step", 14), ("rounded at", 24), ("source", 31))
    for x, step, place in sorted(rows, key=lambda row: -abs(row[0])):
        file, _, line = place.rpartition(":")
        number = int(line) if line.isdigit() else 0
        at = texts.place(file, number) if number else place
        source = linecache.getline(file, number).strip() if number else ""
        add_row(table, texts.percent(x), clean(step, 14), clean(at, 60), clean(source, 80))
    return [Text(), table]

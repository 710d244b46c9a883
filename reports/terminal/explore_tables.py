"""Tables of several explorations: many shapes, changed machines, and two tilings side by side."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.text import Text

from ...simulator.record.run import SHARED
from ...tiling.difference import Difference, Side
from ...tiling.results.exploration import Exploration
from ...tiling.shapes import Shapes
from ...tiling.what_if import Variants
from ..facts import texts
from ..facts.texts import clean
from .explore_view import device_text, explored, tiling_text
from .tables import fact, folding


def shapes_page(s: Shapes) -> RenderableType:
    """The best tiling of every case, and the single one for all."""
    table = folding(("case", 16), (">us", 7), ("proved", 6), (">single loses", 6), ("tiling", 0))
    for name, e in s.explorations.items():
        loss = f"{texts.percent(s.losses[name])}" if name in s.losses else "-"
        table.add_row(*map(Text, (clean(name, 60), _best_us(e), _proved(e), loss, _best_tiling(e))))
    if s.single is None:
        single = "no tiling among the best of the cases runs in all of them"
    else:
        single = f"{tiling_text(s.single)}; loses {texts.percent(s.mean_loss or 0.0)} in the mean"
    return Group(
        Text.assemble((clean(s.op, 38), "bold"), f"  {len(s.explorations)} cases"),
        fact("device", device_text(next(iter(s.explorations.values())))),
        table,
        fact("single", f"best for all of {s.tried:,} tilings tried for all: {single}"),
        *_notes_of_all(s.explorations.values()),
    )


def _notes_of_all(explorations: Iterable[Exploration]) -> list[RenderableType]:
    """Notes that each of them has: of the store and the workers, not of one case or machine."""
    first, *others = explorations
    return [fact("note", clean(x)) for x in first.notes if all(x in e.notes for e in others)]


def _best_us(e: Exploration) -> str:
    return "-" if e.best is None else texts.micros(e.best.time_us)


def _best_tiling(e: Exploration) -> str:
    return clean(e.proof, 200) if e.best is None else tiling_text(e.best.point)


def _proved(e: Exploration) -> str:
    return "yes" if e.optimal else "no"


def variants_page(v: Variants) -> RenderableType:
    """The best tiling on every machine."""
    usual = v.usual
    table = folding(
        ("machine", 30), (">us", 7), (">speed -up", 5), ("bound", 10), ("tiling: what differs", 0)
    )
    for key, e in v.explorations.items():
        changed = "\n".join(clean(f"{n}={x}", 60) for n, x in zip(v.names, key, strict=False)) or "as it is"
        speed, bound, differs = "-", "-", clean(e.proof, 200)
        if e.best is not None:
            bound = str(e.best.evaluation.bound)
            old = usual.best.point if usual.best is not None and key else {}
            differs = tiling_text({n: x for n, x in e.best.point.items() if old.get(n) != x}) or "the same"
            if usual.best is not None:
                speed = f"{usual.best.time_us / e.best.time_us:.3g}"
        table.add_row(*map(Text, (changed, _best_us(e), speed, bound, differs)))
    sets = {key: " ".join(f"{n}={x}" for n, x in zip(v.names, key, strict=True)) for key in v.refused}
    without = [f"{sets[key]}: {why}" for key, why in v.refused.items()]
    unproved = sum(not e.optimal for e in v.explorations.values())
    proved = "every row is the proved best of its space"
    proof = f"{unproved} rows are not proved best" if unproved else proved
    return Group(
        *explored(usual, ", changed"),
        table,
        fact("proof", proof),
        *(fact("without", clean(why, 300)) for why in without),
        *_notes_of_all(v.explorations.values()),
    )


def difference_page(d: Difference) -> RenderableType:
    """Two tilings pipe by pipe."""
    a, b = d.first, d.second
    table = folding(("", 20), (">A us", 10), (">B us", 10), (">B - A", 10))
    rows = [("time", a.time_us, b.time_us), ("launches", a.launch_us, b.launch_us)]
    for pipe in dict.fromkeys((*a.pipes, *b.pipes)):
        rows.append((f"{pipe} busy", _busy(a, pipe), _busy(b, pipe)))
        for reason in dict.fromkeys((*_reasons(a, pipe), *_reasons(b, pipe))):
            x, y = _waits(a, pipe, reason), _waits(b, pipe, reason)
            if max(x, y) >= 0.01 * max(a.time_us, b.time_us):
                rows.append(("  of it: sharing" if reason == SHARED else f"  waits: {reason}", x, y))
    for name, x, y in rows:
        table.add_row(*map(Text, (name, texts.micros(x), texts.micros(y), texts.signed_micros(y - x))))
    moved = ", ".join(
        f"{n} {a.resources.get(n, 0) / 2**20:.4g} / {b.resources.get(n, 0) / 2**20:.4g}" for n in a.resources
    )
    return Group(
        *explored(d),
        fact("A", f"{_differing(a, b)}; bound {a.bound}"),
        fact("B", f"{_differing(b, a)}; bound {b.bound}"),
        table,
        fact("moved", f"MiB of A / B: {moved}"),
        fact("UB", f"KiB of A / B: {texts.kib(a.ub_peak_bytes)} / {texts.kib(b.ub_peak_bytes)}"),
    )


def _busy(s: Side, pipe: str) -> float:
    return s.pipes.get(pipe, (0.0, {}))[0]


def _waits(s: Side, pipe: str, reason: str) -> float:
    return s.pipes.get(pipe, (0.0, {}))[1].get(reason, 0.0)


def _reasons(s: Side, pipe: str) -> list[str]:
    """Why it was busy longer goes before what it waited for."""
    return sorted(s.pipes.get(pipe, (0.0, {}))[1], key=lambda reason: reason != SHARED)


def _differing(one: Side, other: Side) -> str:
    found = {n: x for n, x in one.tiling.items() if other.tiling.get(n) != x}
    return tiling_text(found) or "the same tiling"

"""The page of an exploration: the best tiling and its proof, what was refused, the best few and why they win."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ...tiling.results.exploration import Exploration, Found
from ..facts import texts
from ..facts.texts import clean
from .tables import fact, folding

SHOWN = 5
MOST_REASONS = 8


def exploration_page(e: Exploration, top: int = SHOWN) -> RenderableType:
    """The whole page."""
    parts: list[RenderableType] = [
        *explored(e),
        fact("space", _space(e)),
        *(fact("", f"{n:,} {clean(why, 200)}") for why, n in list(e.refused.items())[:MOST_REASONS]),
        fact("search", _search(e)),
        fact("best", _best(e), style="bold"),
        fact("proof", clean(e.proof, 400)),
    ]
    failed = list(e.failed.items())[:MOST_REASONS]
    parts += [fact("failed", f"{n:,} {clean(why, 300)}") for why, n in failed]
    return Group(
        *parts, *_top(e, top), *_sensitivity(e), *_front(e), *(fact("note", clean(x)) for x in e.notes)
    )


def device_text(of: Any, changed: str = "") -> str:
    """ "ascend910b3, code by ascendc"; of a store that does not say by whom, the device alone."""
    code = f", code by {clean(of.compiler, 60)}" if of.compiler else ""
    return f"{clean(of.product, 60)}{changed}{code}"


def explored(of: Any, changed: str = "") -> list[RenderableType]:
    """What was explored, on what: the head of a page."""
    title = Text.assemble((clean(of.op, 38), "bold"), f"  {clean(of.case or '', 30)}")
    return [title, fact("device", device_text(of, changed))]


def _space(e: Exploration) -> str:
    legal = f"{e.legal:,} legal" if e.sampler == "exact" else f"{e.legal:,} drawn"
    refused = sum(e.refused.values())
    return f"{e.size:,} tilings, {legal}" + (f"; {refused:,} refused:" if refused else "")


def _search(e: Exploration) -> str:
    failed = f", {sum(e.failed.values()):,} failed" if e.failed else ""
    known = f", {e.reused:,} of them from the store" if e.reused else ""
    rate = f", {e.bounded:,} bounds" if e.bounded else ""
    part = " (ended early, no proof)" if e.sampler == "exact" and _ended_early(e) else ""
    return f"{e.sampler}{part}{rate}, {e.evaluated:,} tilings evaluated{failed}{known}, {e.seconds:.3g} s{only_best(e)}"


def _ended_early(e: Exploration) -> bool:
    """Whether an exact search left points that could be better, by its budget or stopped from outside."""
    return not e.optimal and bool(e.found or e.interrupted) and not e.proof.startswith("none of")


def only_best(e: Exploration) -> str:
    """That the others are not there, where that is so."""
    return "" if e.whole else f"; only the best {len(e.found):,} are in this file"


def _best(e: Exploration) -> str:
    if e.best is None:
        return "none"
    return f"{measure(e, e.best)}: {tiling_text(e.best.point)}"


def measure(e: Exploration, x: Found) -> str:
    """What the objective is about, and the time."""
    time = f"{texts.micros(x.time_us)} us"
    if e.objective == "error":
        return f"error {_error(x)}, {time}"
    if e.objective == "ub":
        return f"{texts.kib(float(x.evaluation.ub_peak_bytes or 0))} KiB of UB, {time}"
    return time


def _error(x: Found) -> str:
    return "-" if x.evaluation.error is None else f"{x.evaluation.error:.2g}"


def tiling_text(point: dict[str, Any]) -> str:
    """ "block_m=128 block_n=256"; "auto" is what is left to the operator or kernel."""
    return clean(" ".join(f"{n}={'auto' if v is None else v}" for n, v in point.items()), 400)


def _top(e: Exploration, top: int) -> list[RenderableType]:
    ranked = e.ranked[:top]
    if not ranked:
        return []
    pipes = any(x.evaluation.pipe is not None for x in ranked)
    errors = any(x.evaluation.error is not None for x in ranked)
    why = (("busiest", 10), ("waits for", 15 if errors else 25)) if pipes else ()
    error = ((">error", 7),) if errors else ()
    table = folding(("#", 2), (">us", 7), *error, (">UB KiB", 6), *why, ("tiling", 0))
    for k, x in enumerate(ranked):
        peak = f"{(x.evaluation.ub_peak_bytes or 0) / 1024:.4g}"
        because = (_busiest(x), _waits(x)) if pipes else ()
        differs = {n: v for n, v in x.point.items() if k == 0 or v != ranked[0].point.get(n)}
        figures = (texts.micros(x.time_us), *([_error(x)] if errors else []), peak)
        table.add_row(*map(Text, (str(k + 1), *figures, *because, tiling_text(differs) or "as 1")))
    head = Text(f"\nbest {len(ranked)} (tiling: what differs from 1)", style="bold")
    return [head, *([Text(texts.ERROR_OF_TILING)] if errors else []), table]


def _busiest(x: Found) -> str:
    if x.evaluation.pipe is None:
        return "-"
    return f"{x.evaluation.pipe.split('.')[-1]} {texts.percent(x.evaluation.waits.get('busy', 0.0))}"


def _waits(x: Found) -> str:
    """The two largest waits of that pipe; why it is not busy all the time."""
    if not x.evaluation.waits:
        return "-"
    waits = {n: s for n, s in x.evaluation.waits.items() if n not in ("busy", "bandwidth") and s >= 0.01}
    largest = sorted(waits, key=lambda n: -waits[n])[:2]
    return ", ".join(f"{n} {texts.percent(waits[n])}" for n in largest) or "nothing"


def _sensitivity(e: Exploration) -> list[RenderableType]:
    if not e.whole:
        others = f"the other {e.evaluated - len(e.found):,} tilings"
        return [fact("knobs", f"not known: {others} are not in this file")]
    found = [f"{n} +{texts.percent(x)}" for n, x in e.sensitivity().items() if x > 0.0005]
    unknown = [n for n, values in e.axes.items() if len(values) > 1 and n not in e.sensitivity()]
    above = "" if e.objective == "time" else ", with a figure above 0"
    alone = f"no two tilings that differ in {clean(', '.join(unknown), 200)} alone{above}: not known"
    rest = [alone] if unknown else []
    known = (
        [f"{texts.OBJECTIVES[e.objective]} with the worst value over that with the best: {', '.join(found)}"]
        if found
        else []
    )
    return [fact("knobs", "; ".join([*known, *rest]))] if e.ranked and (known or rest) else []


def _front(e: Exploration) -> list[RenderableType]:
    """Points that none beats in time, error and UB; of use only if there are several."""
    front = e.pareto
    if len(front) < 2:
        return []
    shown = [
        f"{texts.micros(x.time_us)} us"
        + (f" error {_error(x)}" if x.evaluation.error is not None else "")
        + f" {(x.evaluation.ub_peak_bytes or 0) / 1024:.4g} KiB"
        for x in front[:6]
    ]
    more = f" and {len(front) - 6} more" if len(front) > 6 else ""
    return [fact("front", f"not beaten in time, error and UB: {'; '.join(shown)}{more}")]

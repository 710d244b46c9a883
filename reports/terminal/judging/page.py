"""The page of `ascendtile judge`: the verdict, its time beside others, errors, fit, the line that costs, what to change."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from ....simulator.record.run import INTERVAL_PERCENT
from ...facts import texts
from ...judging.judged_case import first_line
from ...judging.verdict import CaseVerdict, ComparedOutput, ReferenceTime, Verdict
from ..sections import Block, more
from ..tables import add_row, fact, item, make_table

MOST_LINES = 12  # of a message of the compiler
MOST_LAUNCHES = 6
MOST_CASES = 12
MOST_FAULTS = 5
MOST_ULP = 1e9  # no format has as many between two numbers that are near
WORDS = {
    "correct": "correct",
    "correct_so_far": "correct so far: of large outputs some positions were looked at, --full decides",
    "timed": "timed: values were not judged",
    "wrong": "wrong",
    "cheat": "refused: this is no answer to the task",
    "not_compiled": "not compiled",
    "does_not_fit": "does not fit",
    "failed": "failed",
    "deferred": "deferred: the model does not know, ask a board",
}


def verdict_page(verdict: Verdict) -> RenderableType:
    """All that a programmer needs of a verdict, on 80 columns."""
    style = "bold green" if verdict.accepted else "bold red"
    return Group(
        Text(WORDS[verdict.verdict], style),
        *_why(verdict),
        *_cheats(verdict),
        *_error(verdict),
        *_time(verdict),
        *_outputs(verdict),
        *_fit(verdict),
        *_line(verdict),
        *_launches(verdict),
        *_cases(verdict),
        *_faults(verdict),
        *_next(verdict),
    )


def _why(verdict: Verdict) -> Block:
    if not verdict.message or verdict.cheats:
        return []
    return [fact("note" if verdict.accepted else "why", verdict.message)]


def _cheats(verdict: Verdict) -> Block:
    rows: Block = []
    for x in verdict.cheats:
        place = f"line {x.line}: " if x.line else ""
        rows.append(fact("cheat", f"{x.name}: {place}{x.message}"))
        rows += [fact("", x.evidence)] if x.evidence else []
    return rows


def _error(verdict: Verdict) -> Block:
    """What the compiler, or Python, said: its lines as they are, for the caret stands below its place.

    The first is left out where it is in the message, which stands above.
    """
    found = str(verdict.metadata.get("compilation_error") or verdict.metadata.get("runtime_error") or "")
    if len(found.splitlines()) < 2:
        return []
    first = first_line(found)
    told = not verdict.cheats and first in verdict.message
    lines = (found.partition(first)[2].lstrip(" ").lstrip("\n") if told else found).splitlines()
    shown = [Text(f"  {texts.clean(line, 160)}") for line in lines[:MOST_LINES]]
    return [*shown, *more(len(lines) - MOST_LINES, "lines")]


# ---- time ----


def _time(verdict: Verdict) -> Block:
    if verdict.time_us is None:
        return [fact("device", verdict.product)]
    rows: Block = [
        fact("device", verdict.product),
        fact("time", f"{texts.micros(verdict.time_us)} us{_of_cases(verdict)}{_beside(verdict)}"),
    ]
    if verdict.interval_us is not None:
        low, high = (texts.micros(x) for x in verdict.interval_us)
        rows.append(fact("board", f"{INTERVAL_PERCENT} % of measured times lie between {low} and {high} us"))
    if verdict.reference is not None:
        rows.append(fact("against", _reference(verdict.reference, verdict.speedup)))
    if verdict.floor_us is not None:
        rows.append(fact("floor", f"no kernel is faster than {texts.micros(verdict.floor_us)} us here"))
    if verdict.bound is not None and verdict.distance is not None:
        rows.append(fact("bound", _bound(verdict)))
    reason = f": {verdict.confidence_reason}" if verdict.confidence_reason else ""
    return [*rows, fact("trust", f"{verdict.confidence}{reason}")]


def _of_cases(verdict: Verdict) -> str:
    return f" for {len(verdict.cases)} cases" if len(verdict.cases) > 1 else ""


def _beside(verdict: Verdict) -> str:
    """What of the time is not in launches."""
    host_us = sum(x.time_us for x in verdict.host_ops)
    if not host_us:
        return ""
    ops = ", ".join(dict.fromkeys(x.op for x in verdict.host_ops if x.time_us))
    return f", {texts.micros(host_us)} us of it {ops} beside the launches"


def _reference(reference: ReferenceTime, speedup: float | None) -> str:
    kinds = {
        "vendor": "the vendor's kernels, as we cost them",
        "floor": "the least that the task's operators can take",
        "mixed": "the task's operators: the vendor's kernels where we cost them, else the least they can take",
    }
    ratio = "" if speedup is None else f", {speedup:.2f} times as long"
    return f"{texts.micros(reference.time_us)} us{ratio} ({kinds[reference.kind]})"


def _bound(verdict: Verdict) -> str:
    bound = verdict.bound
    assert bound is not None
    name = texts.bound_meaning(bound.name)
    return (
        f"{name} allows {texts.micros(bound.time_us)} us, {texts.percent(bound.share)} of the launches' time"
    )


# ---- values, fit, lines ----


def _outputs(verdict: Verdict) -> Block:
    if not any(x.checked for x in verdict.outputs):
        return []
    table = make_table(
        ("error", 12), (">max abs", 9), (">max rel", 9), (">max ulp", 8), (">beyond", 9), (">checked", 11)
    )
    for x in verdict.outputs:
        add_row(table, *_error_cells(x), style="" if x.passed else "red")
    return [Text(), table, *_rule(verdict.outputs[0])]


def _error_cells(x: ComparedOutput) -> tuple[str, ...]:
    sizes = (texts.small(v) if v is not None else "" for v in (x.max_abs, x.max_rel))
    ulp = _ulp(x.max_ulp) if x.max_ulp is not None else ""
    whole = x.checked == x.elements
    return (x.name, *sizes, ulp, texts.count(x.outside), "all" if whole else texts.count(x.checked))


def _ulp(units: float) -> str:
    return texts.figure(units) if units <= MOST_ULP else "> 1e9"  # beside 0 they are endless


def _rule(x: ComparedOutput) -> Block:
    rule = x.tolerance
    if not rule.rtol:
        return [Text(f"allowed: none ({rule.source})", style="dim")]
    return [Text(f"allowed: rtol {rule.rtol:.3g}, atol {rule.atol:.3g} ({rule.source})", style="dim")]


def _fit(verdict: Verdict) -> Block:
    ub = verdict.ub
    if ub is None:
        return []
    words = f"{texts.count(ub.bits)} of {texts.count(ub.available_bits)} bits"
    return [
        Text(),
        fact("UB", words, style="" if ub.fits else "red"),
    ]


def _line(verdict: Verdict) -> Block:
    x = verdict.line
    if x is None:
        return []
    why = f": {x.why}" if x.why else ""
    rows: Block = [
        fact(
            "line",
            f"{texts.place(x.file, x.line)} takes {texts.micros(x.us)} us, {texts.percent(x.share)}{why}",
        )
    ]
    return [*rows, fact("", x.text)]


def _launches(verdict: Verdict) -> Block:
    if len(verdict.launches) < 2:
        return []
    table = make_table(("kernel", 30), (">grid", 14), (">count", 7), (">us each", 9))
    for x in verdict.launches[:MOST_LAUNCHES]:
        grid = "x".join(map(str, x.grid))
        add_row(table, x.kernel, grid, texts.count(x.count), texts.micros(x.time_us))
    return [Text(), table, *more(len(verdict.launches) - MOST_LAUNCHES, "kinds of launches")]


def _cases(verdict: Verdict) -> Block:
    """Of several cases those that are not as good as the others, and how many there are."""
    if len(verdict.cases) < 2:
        return []
    worse = [x for x in verdict.cases if x.verdict not in ("correct", "correct_so_far", "timed")]
    title = f"{len(verdict.cases) - len(worse)} of {len(verdict.cases)} cases are right"
    return [
        Text(),
        Text(title, "bold"),
        *map(_case, worse[:MOST_CASES]),
        *more(len(worse) - MOST_CASES, "cases"),
    ]


def _case(case: CaseVerdict) -> RenderableType:
    message = f": {case.message}" if case.message else ""
    return item(f"case {case.index} ({case.inputs}) {WORDS[case.verdict].partition(':')[0]}{message}", "")


def _faults(verdict: Verdict) -> Block:
    rows: Block = [item(text, "bold red") for text in verdict.faults[:MOST_FAULTS]]
    title = Text("faults: wrong or undefined on the device", "bold")
    return [Text(), title, *rows, *more(len(verdict.faults) - MOST_FAULTS, "faults")] if rows else []


def _next(verdict: Verdict) -> Block:
    return [Text(), fact("next", verdict.suggestion, style="bold")] if verdict.suggestion else []

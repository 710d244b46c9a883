"""`assert_cycles`: what a kernel takes, against a limit, a baseline, or another run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...simulator.errors import UsageError
from ...simulator.products.quantity import show
from ...simulator.record.run import Run
from ..facts import texts
from .baseline.entry import BaselineEntry, difference, same_kernel
from .baseline.state import BaselineState, current
from .runs import one_run

if TYPE_CHECKING:
    from collections.abc import Iterable

__tracebackhide__ = True  # pytest shows the line of the test
NAME = "assert_cycles"


def assert_cycles(
    run: object,
    max: float | None = None,
    baseline: str | Run | None = None,
    *,
    rel: float = 0.0,
    abs: float = 0.0,
) -> None:
    """Fail unless `run` takes as many cycles as it did, or at most `max`.

    Simulated cycles are the same in every run, so they are compared exactly, and a kernel that became faster fails, too,
    until its baseline is written anew: one that is out of date would let the gain be lost again.

    Args:
        run: a `Run`, an `OpResult`, or a list of them, whose launches are added up.
        max: the most cycles, of the AI Core clock, without launch overheads. Without `baseline` nothing else is looked at.
        baseline: None for the entry of this test and kernel in ascendtile-baseline.json; a label where a test asserts the
            same kernel several times; or a run to compare with.
        rel, abs: cycles may differ from the baseline by the larger of `rel` times it and `abs`.

    Raises:
        AssertionError: it takes more or less; the text has the difference by line and pipe. Or there is no such entry.
        UsageError: the run has no times, the file is damaged, an argument makes no sense, or one key has two kernels.
    """
    _check({"max": max, "rel": rel, "abs": abs})
    if (rel or abs) and baseline is None and max is not None:
        raise UsageError(
            f"{NAME}: rel and abs are of a baseline, and max alone asks for none; give baseline=, too"
        )
    whole = one_run(run, NAME)
    if max is not None and whole.cycles > max:
        raise AssertionError(_too_slow(whole, max))
    if isinstance(baseline, Run):
        first = BaselineEntry.of(one_run(baseline, NAME))
        _compare(first, BaselineEntry.of(whole), rel, abs, f"the run {first.kernel}", "")
    elif baseline is not None or max is None:
        _by_file(BaselineEntry.of(whole), baseline, rel, abs)


def _check(figures: dict[str, float | None]) -> None:
    for name, x in figures.items():
        number = isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x) and x >= 0
        if x is not None and not number:
            raise UsageError(f"{NAME}: {name} is a number of 0 or more, got {show(x)}")


def _too_slow(run: Run, most: float) -> str:
    more = texts.signed_percent(run.cycles / most - 1) if most else "none are allowed"
    dear = run.lines[:3]
    lines = [
        f"    {texts.count(x.cycles):>12}  {texts.place(x.file, x.line)}  {x.source.strip()}" for x in dear
    ]
    head = f"{run.name} takes {_cycles(run.cycles)}, at most {_cycles(most)} are allowed ({more})"
    return "\n".join([head, *(["  the lines that cost most, in cycles:"] if lines else []), *lines])


def _by_file(entry: BaselineEntry, label: str | None, rel: float, abs: float) -> None:
    state = current()
    if state is None or state.test is None:
        raise UsageError(
            f"{NAME}: a baseline is of a test, and no test of pytest with the plug-in of ascendtile is running; give max=, "
            "or a run as baseline="
        )
    key = _key(label, entry)
    known = state.test.entries.setdefault(key, entry)
    if known != entry:
        raise UsageError(
            f"{NAME}: {state.test.nodeid} asserts {show(key)} twice, with {_cycles(known.cycles)} and with "
            f"{_cycles(entry.cycles)}: give each a label of its own, baseline='small'"
        )
    if not state.update:
        _compare_with_file(state, key, entry, rel, abs)


def _key(label: str | None, entry: BaselineEntry) -> str:
    if label is None:
        return entry.kernel
    if not isinstance(label, str) or not label or label != texts.clean(label):
        raise UsageError(
            f"{NAME}: baseline is a label without control characters, or a run, got {show(label)}"
        )
    return label


def _compare_with_file(state: BaselineState, key: str, entry: BaselineEntry, rel: float, abs: float) -> None:
    assert state.test is not None
    test = state.test.nodeid
    accept = f"to accept it: {state.update_command(state.test.shown)}"
    entries = state.entries.get(test, {})
    if key not in entries:
        has = f"; of this test it has {_listed(entries)}" if entries else ""
        raise AssertionError(
            f"{state.shown} has no {show(key)} of {test}{has}. This run takes {_cycles(entry.cycles)}; {accept}"
        )
    _compare(entries[key], entry, rel, abs, state.shown, accept)


def _compare(
    before: BaselineEntry, after: BaselineEntry, rel: float, abs: float, whose: str, accept: str
) -> None:
    for what, a, b in (
        ("product", before.product, after.product),
        ("compiler", before.compiler, after.compiler),
    ):
        if a != b:
            ways = f"give each {what} a label of its own, baseline='...'" if accept else "take the same one"
            raise AssertionError(
                f"{after.kernel}: {whose} is of {what} {a or '?'}, this run of {b or '?'}: {ways}{_or(accept)}"
            )
    allowed = max(rel * before.cycles, abs)
    change = after.cycles - before.cycles
    if not -allowed <= change <= allowed:
        raise AssertionError(_differs(before, after, allowed, whose, accept))


def _differs(before: BaselineEntry, after: BaselineEntry, allowed: float, whose: str, accept: str) -> str:
    from ..terminal.console import as_text
    from ..terminal.difference_view import difference_page

    change = after.cycles - before.cycles
    part = f", {texts.signed_percent(change / before.cycles)}" if before.cycles else ""
    head = (
        f"{after.kernel} takes {_cycles(after.cycles)}, {whose} has {_digits(before.cycles)} "
        f"({_signed(change)}{part}; allowed {'none' if not allowed else f'+-{_digits(allowed)}'})"
    )
    model = (
        "Neither source lines nor choices differ: what is modelled does, or an argument that is not recorded."
        if same_kernel(before, after)
        else ""
    )
    versions = (
        f"The baseline was made by ascendtile {before.ascendtile}, this run by {after.ascendtile}."
        if before.ascendtile != after.ascendtile
        else ""
    )
    page = f"A is {whose}, B is this run:\n\n{as_text(difference_page(difference(before, after)))}"
    return "\n".join(filter(None, (head, model, versions, page, accept)))


def _cycles(x: float) -> str:
    return f"{_digits(x)} cycles"


def _digits(x: float) -> str:
    """Whole cycles; of few all digits that count."""
    return texts.count(x) if x >= 1000 or x == int(x) else f"{x:.6g}"


def _signed(change: float) -> str:
    small = change and abs(change) < 0.5
    return f"{change:+.3g}" if small else f"{change:+,.0f}"


def _or(accept: str) -> str:
    return f"; or {accept}" if accept else ""


def _listed(names: Iterable[str]) -> str:
    return ", ".join(show(n) for n in sorted(names)[:5])

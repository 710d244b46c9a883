"""Why one run takes longer than another: parts of the time that add up to the whole, so that each is a cause for itself."""

from __future__ import annotations

from .. import texts
from ..differences import LEAST_US, FigurePair, RunDifference

MOST_NAMED = 3
WORTH_NAMING = 0.1  # of the whole change
OVERHEAD, BETWEEN = "launch overhead", "handing out programs and idle cores"


def causes(d: RunDifference) -> list[FigurePair]:
    """Source lines, the overhead of launches and the rest, in us, largest change first; what did not change is left out."""
    if d.time.first is None or d.time.second is None:
        return []
    overheads = [sum(x.overhead_us for x in run.launches) for run in (d.first, d.second)]
    rest = [(x or 0.0) - o for x, o in zip((d.other.first, d.other.second), overheads, strict=True)]
    rest = [x if abs(x) > LEAST_US else 0.0 for x in rest]  # what sums leave is rounding
    found = [*d.lines, FigurePair(OVERHEAD, *overheads), FigurePair(BETWEEN, *rest)]
    return sorted((p for p in found if abs(p.change) > LEAST_US), key=lambda p: -abs(p.change))


def verdict(d: RunDifference) -> str:
    """B takes 3.96 us more than A; the largest cause is launch overhead: 3.38 us more"""
    if d.time.first is None or d.time.second is None:
        return "One of the two runs has values only: there are no times to compare."
    if abs(d.time.change) <= LEAST_US:
        return "B takes as long as A."
    cause = largest_cause(d)
    return f"B takes {changed(d.time.change)} than A{f'; the largest cause is {cause}' if cause else ''}."


def largest_cause(d: RunDifference) -> str:
    """launch overhead: 3.38 us more. Empty where there is none."""
    return next((_named(p) for p in causes(d) if p.change * d.time.change > 0), "")


def further(d: RunDifference) -> str:
    """The next causes, and what changed most the other way; empty where there is nothing worth its name."""
    more = d.time.change
    worth = (
        [p for p in causes(d) if abs(p.change) >= WORTH_NAMING * abs(more)] if abs(more) > LEAST_US else []
    )
    with_it, against = ([p for p in worth if p.change * more * sign > 0] for sign in (1, -1))
    out = []
    if rest := with_it[1:MOST_NAMED]:
        out.append(f"Next come {'; '.join(map(_named, rest))}.")
    if against:
        out.append(f"The other way went {'; '.join(map(_named, against[:MOST_NAMED]))}.")
    return " ".join(out)


def _named(p: FigurePair) -> str:
    return f"{texts.clean(p.name, 120)}: {changed(p.change)}"


def changed(us: float) -> str:
    """3.38 us more"""
    return f"{texts.micros(abs(us))} us {'more' if us > 0 else 'less'}"


def is_cause(name: str) -> bool:
    """Whether a wait ("AIV.V waits for a free buffer") is more than what follows from other work: waits for data, for the
    scalar issue or for an end only say that something else takes long."""
    return name.endswith(tuple(texts.STALLS[reason] for reason in ("buffer", "flag", "bandwidth")))


def moved(pairs: tuple[FigurePair, ...]) -> list[FigurePair]:
    """Those that are not the same in both runs, what changed most first."""
    return sorted((p for p in pairs if abs(p.change) > LEAST_US), key=lambda p: -abs(p.change))


def causing_waits(run_difference: RunDifference) -> list[FigurePair]:
    """Waits for buffers, flags and shared bandwidth that changed."""
    return [p for p in moved(run_difference.waits) if is_cause(p.name)]

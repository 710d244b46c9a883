"""Exact search: legal points in the order of their lower bounds, the engine on the front, until no bound is below the best.

Points are taken in batches of a fixed size, whatever the number of workers, so that the same points are evaluated and
the same one wins everywhere. With an objective that has no bound, or a budget, the search may end without
a proof, and says so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..evaluate import Evaluation
from ..results.exploration import Found, best_words, cost
from ..space.space import Point, Space
from .bounding import Bounded, Bounding
from .budget import Budget

BATCH = 32
EVERY_POINT = (
    512  # a batch where all points are looked at anyway: workers wait for each other at the end of one
)
Evaluate = Callable[[list[Point]], Iterator[Evaluation]]
Report = Callable[[int, int, float], None]


@dataclass
class Outcome:
    """What a search did.

    looked: points that were tried; skipped: legal points that a sampled sweep drew and left out, as their bound is above
    the best; known: points of a sampled sweep that a store had before it began; interrupted: whether it was stopped from
    outside. by_rule: rule -> points that were drawn and not tried. lacking: (in what it does not fit, bytes of that
    buffer) -> points that were placed and not timed, and the least and most bytes that they need. above: limit -> points
    whose figure is not below it, and the nearest figure; nearest: that point. failed: message -> points that were tried and
    could not be run; alike: messages without their numbers -> the first such one.
    """

    found: list[Found] = field(default_factory=list)
    failed: dict[str, int] = field(default_factory=dict)
    alike: dict[str, str] = field(default_factory=dict)
    by_rule: dict[str, int] = field(default_factory=dict)
    lacking: dict[tuple[str, int], tuple[int, int, int]] = field(default_factory=dict)
    above: dict[str, tuple[int, float]] = field(default_factory=dict)
    nearest: dict[str, Found] = field(default_factory=dict)
    looked: int = 0
    skipped: int = 0
    known: int = 0
    optimal: bool = False
    proof: str = ""
    interrupted: bool = False

    def add(self, point: Point, evaluation: Evaluation) -> None:
        """Sort one evaluation in."""
        self.looked += 1
        if evaluation.refused and evaluation.need_bytes and evaluation.have_bytes:
            self._lacks((evaluation.refused, evaluation.have_bytes), evaluation.need_bytes)
        elif evaluation.refused and evaluation.over is not None:
            self._is_above(evaluation.refused, evaluation.over, Found(point, evaluation))
        elif why := evaluation.refused or evaluation.failed:
            same = self.alike.setdefault(re.sub(r"\d+", "0", why), why)  # but for the numbers in it
            self.failed[same] = self.failed.get(same, 0) + 1
        else:
            self.found.append(Found(point, evaluation))

    def _lacks(self, what: tuple[str, int], need: int) -> None:
        count, least, most = self.lacking.get(what, (0, need, need))
        self.lacking[what] = count + 1, min(least, need), max(most, need)

    def _is_above(self, limit: str, figure: float, found: Found) -> None:
        count, nearest = self.above.get(limit, (0, math.inf))
        self.above[limit] = count + 1, min(nearest, figure)
        if figure < nearest:
            self.nearest[limit] = found

    @property
    def misfits(self) -> dict[str, int]:
        """In what buffer points do not fit, with the bytes, or what limit they do not keep -> how many."""
        limits = {f"{what}; the nearest has {x[1]:,.6g}": x[0] for what, x in self.above.items()}
        return {_words(*what, *x): x[0] for what, x in self.lacking.items()} | limits

    @property
    def tried(self) -> dict[str, int]:
        """Why points that were tried have no result -> how many."""
        return {**self.misfits, **self.failed}

    @property
    def refused(self) -> dict[str, int]:
        """Rule -> points: those of rules, and those that do not fit."""
        return {**self.by_rule, **self.misfits}

    def best(self, objective: str) -> float:
        """The least cost so far; infinity before there is one."""
        return min((cost(x.evaluation, objective) for x in self.found), default=float("inf"))


def _words(what: str, have: int, count: int, least: int, most: int) -> str:
    """ "does not fit in UB: needs 200,704 to 401,408 of 196,608 bytes"."""
    need = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    return f"{what}: needs {need} of {have:,} bytes"


def search(
    space: Space,
    legal: np.ndarray,
    bounds: np.ndarray | None,
    objective: str,
    evaluate: Evaluate,
    budget: Budget,
    report: Report = lambda done, left, best: None,
    ahead: Sequence[Point] = (),
    bounding: Bounding | None = None,
    batch: int = BATCH,
) -> Outcome:
    """Evaluate points until the best is proved, the space is done, or the budget is spent.

    bounding: makes bounds of more points, which are asked for when no other point can be the best.

    ahead: points to evaluate before all others, which need not be of the space; the first of them whatever the budget.
    legal: numbers of the other points. bounds: least time in us of each; None where there is none, or for another objective.
    report: told after every point (done, left as far as is known, best so far). batch: points that are asked for together
    where there are bounds; those of one batch are evaluated even if the first of them ends the search.
    """
    order = legal if bounds is None else legal[np.argsort(bounds, kind="stable")]
    first = np.full(len(ahead), -np.inf)
    ordered = None if bounds is None else np.sort(np.append(first, bounds), kind="stable")
    count = len(ahead) + len(order)
    out, best = Outcome(), float("inf")
    stopped = False
    try:
        while True:
            if out.looked >= count or (ordered is not None and ordered[out.looked] > best):
                more = bounding.more() if bounding else None
                if more is None:
                    break
                assert ordered is not None
                order, ordered = _joined(order, ordered, out.looked, len(ahead), more)
                count = len(ahead) + len(order)
                continue
            if out.looked >= min(1, len(ahead)) and budget.over(out.looked):
                stopped = True
                break
            end = _front(ordered, count, best)
            room = budget.room(out.looked, EVERY_POINT if ordered is None else batch)
            stop = min(out.looked + room, max(out.looked + 1, end))
            rest = order[max(0, out.looked - len(ahead)) : max(0, stop - len(ahead))]
            points = [*ahead[out.looked : stop], *(space.point(int(k)) for k in rest)]
            for point, evaluation in zip(points, evaluate(points), strict=True):
                out.add(point, evaluation)
                best = min(best, cost(evaluation, objective))
                report(out.looked, max(0, _front(ordered, count, best) - out.looked), best)
                if budget.late():  # a batch may take longer than what is left
                    break
    except KeyboardInterrupt:
        out.interrupted = True
    out.optimal, out.proof = _conclude(
        out, objective, ordered, count, best, stopped, bounding.left if bounding else 0
    )
    return out


def _joined(
    order: np.ndarray, ordered: np.ndarray, looked: int, ahead: int, more: Bounded
) -> tuple[np.ndarray, np.ndarray]:
    """More points among those that were not looked at, by their bounds."""
    done = looked - ahead
    numbers, bounds = np.append(order[done:], more[0]), np.append(ordered[looked:], more[1])
    by_bound = np.argsort(bounds, kind="stable")
    return np.append(order[:done], numbers[by_bound]), np.append(ordered[:looked], bounds[by_bound])


def _front(ordered: np.ndarray | None, count: int, best: float) -> int:
    """How many points have to be looked at: those with a bound not above the best."""
    return count if ordered is None else int(np.searchsorted(ordered, best, side="right"))


def _conclude(
    out: Outcome,
    objective: str,
    ordered: np.ndarray | None,
    count: int,
    best: float,
    stopped: bool,
    unbounded: int,
) -> tuple[bool, str]:
    stopped = stopped or unbounded > 0
    legal = count - sum(out.misfits.values())
    rest, shown = count - out.looked, best_words(out.found, objective) if out.found else ""
    if stopped or out.interrupted:
        why = "interrupted" if out.interrupted else "the budget ended"
        whole = (
            legal + sum(x[0] for x in out.above.values()) + unbounded
        )  # those above a limit were legal, and looked at
        left = f"{rest + unbounded:,} of {whole:,} legal points not looked at"
        if unbounded:
            left += f", {unbounded:,} of them without a bound, for which there was no time"
        if ordered is not None and rest:
            below = max(0, _front(ordered, count, best) - out.looked)
            left += f", {below:,} {'others' if unbounded else 'of them'} with a bound below"
        return False, f"not proved: {why} with {left}" + (f"; {shown}" if out.found else "")
    if not out.found:
        return False, f"none of the {count:,} points that the rules allow {_why_none(out)}"
    ran = f", of which {sum(out.failed.values()):,} could not be run" if out.failed else ""
    if not rest:
        return True, f"{shown}; all {legal:,} legal points were evaluated{ran}"
    assert ordered is not None
    least = f"({ordered[out.looked]:,.6g} us or more)"
    either = ", whether they fit or not" if out.lacking else ""
    return True, f"{shown}; all {rest:,} remaining points have a bound above it {least}{either}"


def _why_none(out: Outcome) -> str:
    """ "could be run, 3 of them have no room in a buffer"; that none keeps the limits where all could be run."""
    lacking, above = sum(x[0] for x in out.lacking.values()), sum(x[0] for x in out.above.values())
    fit = f", {lacking:,} of them have no room in a buffer" if lacking else ""
    kept = f", {above:,} of them do not keep a limit" if above else ""
    if above:
        return f"is left{fit}{kept}" if above < out.looked else "keeps the limits"
    return f"could be run{fit}"

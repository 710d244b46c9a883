"""Sampling for spaces beyond exact search: points are proposed in batches, our own store keeps what came of them.

A study of Optuna lives in memory and is refilled from the store: to write each trial to Optuna's own storage would take
longer than to evaluate it. A proposal that was evaluated before, or has a bound above the best, needs no engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...simulator.errors import UsageError
from ..evaluate import Evaluation
from ..results.exploration import best_words, cost
from ..space.space import Point, Space
from .budget import Budget
from .exact import Evaluate, Outcome, Report
from .proposals import SAMPLERS, Costs, OptunaProposals, Proposals, RandomProposals

BATCH = 16
USUAL_POINTS = 1000  # where no budget is given
# Even draws where proposals give no new point: rules and bounds of many take hardly longer than those of a few.
WIDE = (128, 512, 2048)
LISTED = 1 << 16  # points of a space whose last ones are looked for one by one
LeastTime = Callable[[np.ndarray], Sequence[float] | np.ndarray]  # numbers of points -> bounds

__all__ = ["SAMPLERS", "sample"]


def sample(
    space: Space,
    least: LeastTime | None,
    objective: str,
    evaluate: Evaluate,
    budget: Budget,
    sampler: str,
    seed: int = 0,
    known: Iterable[tuple[Point, Evaluation]] = (),
    report: Report = lambda done, left, best: None,
    ahead: Sequence[Point] = (),
) -> Outcome:
    """Evaluate proposed points until the budget is spent, or no new point is found: a proof only if none is left.

    sampler: "random", "tpe", or "nsga2", which makes time, error and UB small together. known: evaluations of earlier
    sweeps, which count as those of this one do: a sweep that was interrupted goes on where it was. ahead: points to evaluate
    before all others, which need not be of the space. Raises `UsageError` if no point is legal.
    """
    objectives = 3 if sampler == "nsga2" else 1
    source = _source(space, sampler, objectives, seed)
    if budget.points is None and budget.seconds is None:
        budget = Budget(USUAL_POINTS)
    sampled = _Sampled(space, least, objective, objectives, evaluate, source, seed)
    more = True
    try:
        sampled.begin(ahead)
        sampled.refill(known)
        while more and not budget.over(sampled.out.looked):
            more = sampled.batch(budget.room(sampled.out.looked, BATCH))
            left = 0 if budget.points is None else budget.points - sampled.out.looked
            report(sampled.out.looked, left, sampled.best)
    except KeyboardInterrupt:
        sampled.out.interrupted = True
    if not (more or sampled.out.interrupted or sampled.out.looked or sampled.out.skipped):
        raise UsageError(_empty(sampled))
    sampled.out.optimal = bool(sampled.out.found) and sampled.nothing_left()
    sampled.out.proof = _proof(sampled, sampler, seed, more)
    return sampled.out


def _proof(sampled: _Sampled, sampler: str, seed: int, more: bool) -> str:
    out, shown = sampled.out, ""
    if out.found:
        shown = f"; {best_words(out.found, sampled.objective)}"
    if out.optimal:
        rest = f", {sampled.above():,} more have a bound above it" if sampled.above() else ""
        return f"{shown.removeprefix('; ')}; all {out.looked:,} legal points that may be better were evaluated{rest}"
    above = f", {out.skipped:,} more had a bound above the best" if out.skipped else ""
    above += f", {out.known:,} of them from the store" if out.known else ""
    ended = "" if more else f"; ended as {sum(WIDE):,} even draws gave no new point to try"
    return (
        f"not proved: {out.looked:,} of {sampled.space.size:,} points sampled ({sampler}, seed {seed}){above}"
        f"{ended}{shown}"
    )


def _empty(sampled: _Sampled) -> str:
    drawn = ", ".join(f"{n!r} refused {count:,}" for n, count in sampled.out.by_rule.items())
    count = sum(sampled.out.by_rule.values())
    return f"no legal point was found: of {count:,} that were drawn {drawn}; widen an axis or drop a rule"


def _source(space: Space, sampler: str, objectives: int, seed: int) -> Proposals:
    if sampler not in SAMPLERS:
        raise UsageError(f"sampler must be one of exact, {', '.join(SAMPLERS)}, got {sampler!r}")
    if sampler == "random":
        return RandomProposals(space, seed)
    return OptunaProposals(space, sampler, objectives, seed)


class _Sampled:
    """One sampled sweep. settled: costs of the points that need no evaluation any more (None: not legal, cannot be run)."""

    def __init__(
        self,
        space: Space,
        least: LeastTime | None,
        objective: str,
        objectives: int,
        evaluate: Evaluate,
        source: Proposals,
        seed: int,
    ) -> None:
        self.space, self.least, self.objective, self.objectives = space, least, objective, objectives
        self.evaluate, self.source, self.evenly = evaluate, source, RandomProposals(space, seed + 1)
        self.settled: dict[int, Costs | None] = {}
        self.bounds: dict[int, float] = {}  # of legal points that are not settled
        self.out, self.best = Outcome(), float("inf")

    def begin(self, ahead: Sequence[Point]) -> None:
        """Evaluate points before all others."""
        for point, e in zip(ahead, self.evaluate(list(ahead)), strict=True):
            self._take(self.space.number_of(point), point, e)

    def refill(self, known: Iterable[tuple[Point, Evaluation]]) -> None:
        """Take over what is known of legal points of the space."""
        inside = {self.space.number_of(p): (p, e) for p, e in known}
        numbers = [k for k in inside if k is not None and k not in self.settled]
        rules = self.space.refusals(np.array(numbers, np.int64))
        for number in (k for k, rule in zip(numbers, rules, strict=True) if rule is None):
            self._take(number, *inside[number])
            self.out.known += 1
        self.source.learn((k, c) for k, c in self.settled.items() if c is not None)

    def _take(self, number: int | None, point: Point, e: Evaluation) -> None:
        self.out.add(point, e)
        self.best = min(self.best, cost(e, self.objective))
        if number is not None:
            self.settled[number] = self._costs(e)
            self.bounds.pop(number, None)

    def nothing_left(self) -> bool:
        """Whether every point of the space was evaluated, is refused, or has a bound above the best."""
        known = len(self.settled) + len(self.bounds) == self.space.size
        return known and min(self.bounds.values(), default=float("inf")) > self.best

    def above(self) -> int:
        """Points that were left out for their bounds."""
        return self.out.skipped + len(self.bounds)

    def batch(self, count: int) -> bool:
        """Evaluate new points, tell what they are worth; whether there were any."""
        asked = self._new(count)
        points = [self.space.point(number) for _, number in asked]
        for (trial, number), point, e in zip(asked, points, self.evaluate(points), strict=True):
            self._take(number, point, e)
            self.source.tell(trial, number, self._costs(e))
        return bool(asked)

    def _new(self, count: int) -> list[tuple[Any, int]]:
        """Proposals that are new, legal, and may be better; where there are none, even draws that are."""
        found = self._sift(self.source.ask(count), count)
        for wide in WIDE:
            if found:
                break
            found = self._sift(self.evenly.ask(wide), count)
        if not found and self.space.size <= LISTED:
            left = (k for k in range(self.space.size) if k not in self.settled)
            found = self._sift([(None, k) for k in left], count)
        return found

    def _sift(self, proposed: list[tuple[Any, int]], count: int) -> list[tuple[Any, int]]:
        """The first few that need an evaluation. Optuna is told of its own that do not."""
        self._look([number for _, number in proposed])
        out: list[tuple[Any, int]] = []
        taken: set[int] = set()
        for trial, number in proposed:
            if number in taken:
                if trial is not None:
                    self.source.tell(trial, number, None)
            elif self._settled(number):
                if trial is not None:
                    self.source.tell(trial, number, self.settled[number])
            elif len(out) < count:
                out.append((trial, number))
                taken.add(number)
        return out

    def _look(self, numbers: list[int]) -> None:
        """Rules and bounds of those that are new, all at once: one at a time takes as long as many."""
        new = [k for k in dict.fromkeys(numbers) if k not in self.settled and k not in self.bounds]
        if not new:
            return
        legal: list[int] = []
        for number, rule in zip(new, self.space.refusals(np.array(new, np.int64)), strict=True):
            if rule is None:
                legal.append(number)
            else:
                self.out.by_rule[rule] = self.out.by_rule.get(rule, 0) + 1
                self.settled[number] = None
        if self.least is None or self.objectives > 1:
            self.bounds.update(dict.fromkeys(legal, 0.0))
        elif legal:
            self.bounds.update(zip(legal, map(float, self.least(np.array(legal))), strict=True))

    def _settled(self, number: int) -> bool:
        """Whether there is nothing to evaluate. A bound above the best stands for the cost."""
        if number in self.settled:
            return True
        if self.bounds[number] > self.best:
            self.settled[number] = (self.bounds.pop(number),)
            self.out.skipped += 1
            return True
        return False

    def _costs(self, e: Evaluation) -> Costs | None:
        if e.time_us is None:
            return None
        if self.objectives == 1:
            return (cost(e, self.objective),)
        return (e.time_us, 0.0 if e.error is None else e.error, float(e.ub_peak_bytes or 0))

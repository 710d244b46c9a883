"""Sampling for spaces beyond exact search: Optuna proposes points in batches, our own store keeps what came of them.

The study lives in memory and is refilled from the store: writing each trial to Optuna's own storage would take longer than
evaluating it. A proposal that was evaluated before, and one whose bound is above the best, is answered without the engine.
"""

from __future__ import annotations

import random
import time as clock
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from ..simulator.errors import UsageError
from .evaluate import Evaluation
from .exploration import cost
from .pareto import pareto
from .search import UNITS, Budget, Evaluate, Outcome, Report
from .space import Point, Space

SAMPLERS = ("random", "tpe", "nsga2")
BATCH = 16
USUAL_POINTS = 1000  # where no budget is given
FRUITLESS = 16  # batches in a row without a point that is new and legal
REPRODUCES = 24  # NSGA-II: members of a generation
STUCK = 4  # batches in a row without such a point, after which points are drawn evenly, WIDE at a time
WIDE = 256  # rules and bounds of many points take hardly longer than those of a few
SHARES = {
    "tpe": 32,
    "nsga2": 2,
}  # one proposal in so many is Optuna's: it takes about as long as an evaluation, or a tenth
PARENTS = 8  # best points whose neighbours are proposed
LeastTime = Callable[[list[Point]], Sequence[float]]  # bounds of a batch


class Proposals(Protocol):
    """Where points come from, and who learns of their costs (None: the point is not legal or cannot be run)."""

    def ask(self, count: int) -> list[tuple[Any, Point]]: ...

    def tell(self, asked: Any, point: Point, costs: tuple[float, ...] | None) -> None: ...


class RandomProposals:
    """Points drawn evenly."""

    def __init__(self, space: Space, seed: int) -> None:
        self.space, self.draw = space, random.Random(seed)

    def ask(self, count: int) -> list[tuple[Any, Point]]:
        return [(None, {n: self.draw.choice(v) for n, v in self.space.axes.items()}) for _ in range(count)]

    def tell(self, asked: Any, point: Point, costs: tuple[float, ...] | None) -> None:
        """Nothing to learn."""


class OptunaProposals:
    """Optuna's TPE for one cost, NSGA-II for several. An axis of numbers keeps their order, others are choices.

    A proposal of TPE takes longer than many an evaluation. So one in `SHARES` comes from it, the others are neighbours of
    the best points so far (of several costs: of points that none beats), of which it learns as well.
    """

    def __init__(self, space: Space, sampler: str, objectives: int, seed: int) -> None:
        self.optuna = _optuna()
        samplers = self.optuna.samplers
        self.space = space
        if sampler == "tpe":
            made = samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
        else:
            made = samplers.NSGAIISampler(population_size=REPRODUCES, seed=seed)
        self.study = self.optuna.create_study(directions=["minimize"] * objectives, sampler=made)
        self.kinds = {n: self._kind(v) for n, v in space.axes.items()}
        self.draw, self.share = random.Random(seed), SHARES[sampler]
        self.due = 0
        self.best: list[tuple[tuple[float, ...], Point]] = []

    def _kind(self, values: tuple[Any, ...]) -> Any:
        kinds = self.optuna.distributions
        if all(isinstance(x, int | float) and not isinstance(x, bool) for x in values):
            return kinds.IntDistribution(0, len(values) - 1)
        return kinds.CategoricalDistribution(list(range(len(values))))

    def ask(self, count: int) -> list[tuple[Any, Point]]:
        near = count
        if len(self.best) < PARENTS:
            near = 0
        else:
            self.due += count
            while self.due >= self.share and near:
                self.due, near = self.due - self.share, near - 1
        trials = [self.study.ask(self.kinds) for _ in range(count - near)]
        proposed = [(t, {n: v[t.params[n]] for n, v in self.space.axes.items()}) for t in trials]
        return [*proposed, *((None, self._neighbour()) for _ in range(near))]

    def _neighbour(self) -> Point:
        """A good point with one or two axes changed: by a step where there is an order, else to any other value."""
        point = dict(self.draw.choice(self.best)[1])
        several = [n for n, v in self.space.axes.items() if len(v) > 1]
        for name in self.draw.sample(several, min(len(several), self.draw.choice((1, 1, 2)))):
            values = self.space.axes[name]
            now, last = values.index(point[name]), len(values) - 1
            ordered = isinstance(self.kinds[name], self.optuna.distributions.IntDistribution)
            step = self.draw.choice((-2, -1, 1, 2)) if ordered else self.draw.randint(1, last)
            to = min(max(now + step, 0), last) if ordered else (now + step) % (last + 1)
            point[name] = values[to]
        return point

    def tell(self, asked: Any, point: Point, costs: tuple[float, ...] | None) -> None:
        """What a proposal is worth; `asked` None adds a point that was evaluated before."""
        state = self.optuna.trial.TrialState
        if costs is not None:
            self._learn(costs, point)
        if asked is None:
            if costs is not None:
                self._add(point, costs)
        elif costs is None:
            self.study.tell(asked, state=state.FAIL)
        else:
            self.study.tell(asked, list(costs))

    def _learn(self, costs: tuple[float, ...], point: Point) -> None:
        """Keep the parents of neighbours: the best few, and of several costs those first that none beats."""
        found = sorted([*self.best, (costs, point)], key=lambda x: x[0])
        if len(costs) > 1 and len(found) > PARENTS:
            front = set(pareto(np.array([c for c, _ in found])).tolist())
            found = [x for k, x in enumerate(found) if k in front] + [
                x for k, x in enumerate(found) if k not in front
            ]
            if len(front) > PARENTS:  # one leaves, so that not only the fastest stay
                found.pop(self.draw.randrange(len(front)))
        self.best = found[:PARENTS]

    def _add(self, point: Point, costs: tuple[float, ...]) -> None:
        """A point that the study did not propose."""
        params = {n: v.index(point[n]) for n, v in self.space.axes.items()}
        complete = self.optuna.trial.TrialState.COMPLETE
        self.study.add_trial(
            self.optuna.trial.create_trial(
                params=params, distributions=self.kinds, values=list(costs), state=complete
            )
        )


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise UsageError(
            "sampling needs Optuna: pip install 'ascendtile[search]'; or take sampler 'random', or narrow the space"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


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
) -> Outcome:
    """Evaluate proposed points until the budget is spent. known: evaluations of earlier sweeps, to learn from.

    sampler: "random", "tpe", or "nsga2", which makes time, error and UB small together. The outcome is never a proof.
    """
    objectives = 3 if sampler == "nsga2" else 1
    source = _source(space, sampler, objectives, seed)
    if budget.points is None and budget.seconds is None:
        budget = Budget(USUAL_POINTS, None)
    walk = _Walk(space, least, objective, objectives, evaluate, source, seed)
    walk.refill(known if sampler != "random" else ())
    begin = clock.perf_counter()
    try:
        while not budget.over(walk.out.looked, begin) and walk.fruitless < FRUITLESS:
            walk.batch(min(BATCH, budget.room(walk.out.looked)))
            left = 0 if budget.points is None else budget.points - walk.out.looked
            report(walk.out.looked, left, walk.best)
    except KeyboardInterrupt:
        walk.out.interrupted = True
    shown = f"; best {walk.best:,.6g}{UNITS[objective]}" if walk.out.found else ""
    walk.out.proof = (
        f"not proved: {walk.out.looked:,} of {space.size:,} points sampled ({sampler}, seed {seed}){shown}"
    )
    return walk.out


def _source(space: Space, sampler: str, objectives: int, seed: int) -> Proposals:
    if sampler not in SAMPLERS:
        raise UsageError(f"sampler must be one of exact, {', '.join(SAMPLERS)}, got {sampler!r}")
    return (
        RandomProposals(space, seed)
        if sampler == "random"
        else OptunaProposals(space, sampler, objectives, seed)
    )


class _Walk:
    """One sampled sweep."""

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
        self.evaluate, self.source, self.evenly = evaluate, source, RandomProposals(space, seed)
        self.seen: dict[int, tuple[float, ...] | None] = {}
        self.bounds: dict[int, float] = {}
        self.refusals: dict[int, str | None] = {}
        self.out, self.best, self.fruitless = Outcome(), float("inf"), 0

    def refill(self, known: Iterable[tuple[Point, Evaluation]]) -> None:
        for point, e in known:
            if all(point.get(n) in v for n, v in self.space.axes.items()):
                costs = self._costs(e)
                if costs is not None:
                    self.source.tell(None, point, costs)

    def batch(self, count: int) -> None:
        """Ask for points, evaluate those that are new, tell what they are worth."""
        asked: list[Any] = []
        points: list[Point] = []
        stuck = self.fruitless >= STUCK
        proposed = self.evenly.ask(WIDE) if stuck else self.source.ask(count)
        self._look([p for _, p in proposed])
        for trial, point in proposed:
            if len(points) == count:
                break
            number = self.space.number(point)
            answer = self._known(number)
            if answer is not False:
                if trial is not None:  # a neighbour that is known teaches nothing
                    self.source.tell(trial, point, answer)  # type: ignore[arg-type]
            else:
                self.seen[number] = None
                asked.append(trial)
                points.append(point)
        self.fruitless = 0 if points else self.fruitless + 1
        for trial, point, e in zip(asked, points, self.evaluate(points), strict=True):
            self.out.add(point, e)
            self.best = min(self.best, cost(e, self.objective))
            self.seen[self.space.number(point)] = self._costs(e)
            self.source.tell(trial, point, self._costs(e))

    def _look(self, points: list[Point]) -> None:
        """Rules and bounds of those that are new, all at once: one at a time takes as long as many."""
        new = {self.space.number(p): p for p in points}
        new = {k: p for k, p in new.items() if k not in self.seen and k not in self.refusals}
        if new:
            rules = self.space.refusals(np.array(list(new)))
            self.refusals.update(zip(new, rules, strict=True))
        legal = [k for k in new if self.refusals[k] is None]
        if legal and self.least is not None and self.objectives == 1:
            self.bounds.update(zip(legal, map(float, self.least([new[k] for k in legal])), strict=True))

    def _known(self, number: int) -> tuple[float, ...] | bool | None:
        """Costs of a proposal that needs no evaluation (None: not legal), False if it does."""
        if number in self.seen:
            return self.seen[number]
        refused = self.refusals[number]
        if refused is not None:
            self.out.refused[refused] = self.out.refused.get(refused, 0) + 1
            self.seen[number] = None
            return None
        bound = self.bounds.get(number, 0.0)
        if bound > self.best:
            self.seen[number] = (bound,)
            return (bound,)
        return False

    def _costs(self, e: Evaluation) -> tuple[float, ...] | None:
        if e.time_us is None:
            return None
        if self.objectives == 1:
            return (cost(e, self.objective),)
        return (e.time_us, 0.0 if e.error is None else e.error, float(e.ub_peak_bytes or 0))

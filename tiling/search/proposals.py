"""Where the points of a sampled sweep come from: even draws, neighbours of the best points, and Optuna.

Points go by their numbers in the space. A proposal of Optuna takes as long as many an evaluation, its import as long as a
hundred. So it is imported when it is first asked, learns in batches, and is not asked often.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from ...simulator.errors import UsageError
from ..results.pareto import pareto
from ..space.space import Space

SAMPLERS = ("random", "tpe", "nsga2")
STARTUP = 16  # points with a result that are drawn evenly before TPE and neighbours begin
REPRODUCES = 24  # NSGA-II: members of a generation
SHARES = {"tpe": 32, "nsga2": 2}  # one point in so many is Optuna's: its proposal takes 5 ms, or 0.5 ms
PARENTS = 8  # best points whose neighbours are proposed
SEVERAL = (
    4  # neighbours proposed for each point that is wanted: many are known, refused, or have a high bound
)
MOST_TRIALS = 128  # results that TPE starts from; it takes longer the more there are, so at twice as many it starts anew
BEST_TRIALS = 32  # of these those that are best, the others are the latest

Costs = tuple[float, ...]


class Proposals(Protocol):
    """Gives numbers of points, and learns of their costs (None: not legal, or cannot be run)."""

    def ask(self, count: int) -> list[tuple[Any, int]]:
        """(what `tell` wants back, number) of points for a batch of `count`; there may be more, the first are meant most."""
        ...

    def tell(self, asked: Any, number: int, costs: Costs | None) -> None: ...

    def learn(self, known: Iterable[tuple[int, Costs]]) -> None:
        """Points that were evaluated before."""
        ...


class RandomProposals:
    """Points drawn evenly."""

    def __init__(self, space: Space, seed: int) -> None:
        self.size, self.draw = space.size, np.random.default_rng(seed)

    def ask(self, count: int) -> list[tuple[Any, int]]:
        return [(None, k) for k in self.draw.integers(0, self.size, count).tolist()]

    def tell(self, asked: Any, number: int, costs: Costs | None) -> None:
        """Nothing to learn."""

    def learn(self, known: Iterable[tuple[int, Costs]]) -> None:
        """Nothing to learn."""


class Neighbours:
    """Points beside the best so far; of several costs beside points that none beats."""

    def __init__(self, space: Space, seed: int) -> None:
        self.space, self.draw = space, random.Random(seed)
        self.ordered = [_ordered(v) for v in space.axes.values()]
        self.lengths = [len(v) for v in space.axes.values()]
        self.several = [k for k, length in enumerate(self.lengths) if length > 1]
        self.best: list[tuple[Costs, int]] = []

    def ready(self) -> bool:
        return len(self.best) >= PARENTS

    def ask(self) -> int:
        """A good point with one or two axes changed: by a step where there is an order, else to any other value."""
        digits = self.space.digits(self.draw.choice(self.best)[1])
        for k in self.draw.sample(self.several, min(len(self.several), self.draw.choice((1, 1, 2)))):
            last = self.lengths[k] - 1
            if self.ordered[k]:
                digits[k] = min(max(digits[k] + self.draw.choice((-2, -1, 1, 2)), 0), last)
            else:
                digits[k] = (digits[k] + self.draw.randint(1, last)) % (last + 1)
        return self.space.joined(digits)

    def learn(self, number: int, costs: Costs) -> None:
        """Keep the parents: the best few, and of several costs those first that none beats."""
        found = sorted([*self.best, (costs, number)])
        if len(costs) > 1 and len(found) > PARENTS:
            front = set(pareto(np.array([c for c, _ in found])).tolist())
            order = sorted(range(len(found)), key=lambda k: k not in front)
            found = [found[k] for k in order]
            if len(front) > PARENTS:  # one leaves, so that not only the fastest stay
                found.pop(self.draw.randrange(len(front)))
        self.best = found[:PARENTS]


class OptunaProposals:
    """One point in `SHARES` is Optuna's: of TPE for one cost, of NSGA-II for several. The others are neighbours.

    Optuna learns of all of them. TPE begins after `STARTUP` even draws, NSGA-II draws its first generation itself.
    """

    def __init__(self, space: Space, sampler: str, objectives: int, seed: int) -> None:
        self.study = OptunaStudy(space, sampler, objectives, seed)
        self.evenly, self.near = RandomProposals(space, seed), Neighbours(space, seed)
        self.wait, self.share = STARTUP if sampler == "tpe" else 0, SHARES[sampler]
        self.told, self.due = 0, 0

    def ask(self, count: int) -> list[tuple[Any, int]]:
        if self.told < self.wait:
            return self.evenly.ask(SEVERAL * count)
        if not self.near.ready():
            return self.study.ask(count) if self.wait == 0 else self.evenly.ask(SEVERAL * count)
        several = min(count, self.due // self.share)
        self.due -= several * self.share
        near = [(None, self.near.ask()) for _ in range(SEVERAL * (count - several))]
        return [*self.study.ask(several), *near]

    def tell(self, asked: Any, number: int, costs: Costs | None) -> None:
        self.due += 1
        if costs is not None:
            self.told += 1
            self.near.learn(number, costs)
        self.study.tell(asked, number, costs)

    def learn(self, known: Iterable[tuple[int, Costs]]) -> None:
        for number, costs in known:
            self.told += 1
            self.near.learn(number, costs)
            self.study.tell(None, number, costs)


class OptunaStudy:
    """An Optuna study in memory, filled when it is asked. An axis of numbers keeps its order, others are choices."""

    def __init__(self, space: Space, sampler: str, objectives: int, seed: int) -> None:
        if find_spec("optuna") is None:
            raise UsageError(
                "sampling needs Optuna: pip install 'ascendtile[search]'; or take sampler 'random', or narrow the space"
            )
        self.space, self.kind, self.objectives, self.seed = space, sampler, objectives, seed
        self.made: Any = None
        self.kinds: dict[str, Any] = {}
        self.results: list[tuple[int, Costs]] = []  # of the study and those that it is yet to be told
        self.known = 0  # how many of them the study has

    def ask(self, count: int) -> list[tuple[Any, int]]:
        """Trials and the numbers of their points."""
        if not count:
            return []
        self._hand_over()
        trials = [self.made.ask(self.kinds) for _ in range(count)]
        return [(t, self.space.joined([t.params[n] for n in self.space.axes])) for t in trials]

    def tell(self, asked: Any, number: int, costs: Costs | None) -> None:
        """What a point is worth; `asked` None: the study did not propose it."""
        if asked is None:
            if costs is not None:
                self.results.append((number, costs))
        elif costs is None:
            self.made.tell(asked, state=_optuna().trial.TrialState.FAIL)
        else:
            self.made.tell(asked, list(costs))
            self.results.insert(self.known, (number, costs))
            self.known += 1

    def _hand_over(self) -> None:
        """Tell the study what came in since it was last asked; make it, or make it anew where it has grown too large."""
        if self.made is None or (self.kind == "tpe" and len(self.results) > 2 * MOST_TRIALS):
            self._make()
        new, self.known = self.results[self.known :], len(self.results)
        self.made.add_trials([self._trial(number, costs) for number, costs in new])

    def _make(self) -> None:
        optuna = _optuna()
        if self.kind == "tpe":
            self.results, self.known = _few(self.results), 0
            made = optuna.samplers.TPESampler(seed=self.seed + len(self.results), multivariate=True)
        else:
            made = optuna.samplers.NSGAIISampler(population_size=REPRODUCES, seed=self.seed)
        self.made = optuna.create_study(directions=["minimize"] * self.objectives, sampler=made)
        self.kinds = {n: _kind(optuna.distributions, v) for n, v in self.space.axes.items()}

    def _trial(self, number: int, costs: Costs) -> Any:
        trial = _optuna().trial
        params = dict(zip(self.space.axes, self.space.digits(number), strict=True))
        complete = trial.TrialState.COMPLETE
        return trial.create_trial(params=params, distributions=self.kinds, values=list(costs), state=complete)


def _few(results: list[tuple[int, Costs]]) -> list[tuple[int, Costs]]:
    """The best of many results and the latest of the others, in their order."""
    if len(results) <= MOST_TRIALS:
        return results
    order = sorted(range(len(results)), key=lambda k: results[k][1])
    kept = set(order[:BEST_TRIALS])
    others = [k for k in range(len(results)) if k not in kept][BEST_TRIALS - MOST_TRIALS :]
    return [results[k] for k in sorted({*kept, *others})]


def _ordered(values: Sequence[Any]) -> bool:
    return all(isinstance(x, int | float) and not isinstance(x, bool) for x in values)


def _kind(distributions: Any, values: Sequence[Any]) -> Any:
    if _ordered(values):
        return distributions.IntDistribution(0, len(values) - 1)
    return distributions.CategoricalDistribution(list(range(len(values))))


def _optuna() -> Any:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna

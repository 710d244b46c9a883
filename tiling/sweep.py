"""One sweep: a problem over its space, evaluated by workers through a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from ..simulator.messages import WHAT_IF
from ..simulator.record.files import picked
from .evaluate import Evaluation, TilingProblem, evaluation_of, sweep_name
from .results.exploration import Exploration, axes_of
from .results.reading import about
from .results.store import Store, StoreError, key_of
from .search.bounding import Bounding
from .search.budget import Budget
from .search.exact import BATCH, Outcome, Report, search
from .search.sampling import sample
from .space.space import MOST_POINTS, Point, Space
from .workers import Workers

EXACT = "exact"
BoundsOf = Callable[[Space, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Task:
    """What is to be explored: the problem that workers get, its space, and bounds where there are any."""

    problem: TilingProblem
    space: Space
    bounds: BoundsOf | None
    title: str
    product: str
    case: str | None
    notes: tuple[str, ...] = ()
    compiler: str = ""  # who makes the code, unless a point says so
    usual: tuple[Point, ...] = ()  # what the operator chooses by itself: tried first
    batch: int = BATCH  # as of `search`


@dataclass
class Sweep:
    """One sweep through a store. beside: points that are tried and are not of the axes; lost: why the store took no more."""

    task: Task
    space: Space
    objective: str
    budget: Budget
    workers: Workers
    store: Store
    report: Report
    reused = legal = bounded = beside = 0
    sampler = EXACT
    lost: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.name = sweep_name(self.task.problem)
        self.refused: dict[str, int] = {}

    def run(self, sampler: str, seed: int) -> Outcome:
        found = self._run(sampler, seed)
        self._keep(self.store.flush)
        return found

    def _run(self, sampler: str, seed: int) -> Outcome:
        beyond = self.space.size > MOST_POINTS
        self.sampler = ("tpe" if beyond else EXACT) if sampler == "auto" else sampler
        if self.sampler == EXACT:
            return self._exact()
        rows = {key_of(self.name, p): (p, r) for p, r in self.store.rows(self.name)}
        known = [(rows[k][0], x) for k, x in self._believed({k: r for k, (_, r) in rows.items()}).items()]
        task = self.task
        least = None if self.objective != "time" or task.bounds is None else self._least
        how = (self._evaluate, self.budget, self.sampler, seed, known, self.report, task.usual)
        found = sample(self.space, least, self.objective, *how)
        self.beside = sum(self.space.number_of(p) is None for p in task.usual)
        self.reused += found.known
        self.legal = len(found.found) + sum(found.failed.values()) + found.skipped
        return found

    def _exact(self) -> Outcome:
        """The operator's own choice first: it is known whatever the rules and bounds of the others take."""
        own: dict[int, Evaluation] = {}
        try:
            for point, found in zip(self.task.usual, self._evaluate([*self.task.usual]), strict=True):
                own[id(point)] = found
            legal, self.refused = self.space.legal()
            legal, bounds, bounding = self._besides(legal), None, None
            if self.objective == "time" and self.task.bounds is not None:
                bounding = Bounding(self._least, legal, self.budget)
                legal, bounds = bounding.first()
        except KeyboardInterrupt:
            return self._stopped_early(own)
        evaluate = partial(self._evaluate, known_here=own)
        how = (self.budget, self.report, self.task.usual, bounding, self.task.batch)
        out = search(self.space, legal, bounds, self.objective, evaluate, *how)
        self.legal -= sum(out.misfits.values())
        return out

    def _stopped_early(self, own: Mapping[int, Evaluation]) -> Outcome:
        """Interrupted before the search began."""
        out = Outcome(interrupted=True, proof="not proved: interrupted before all bounds were there")
        for point in self.task.usual:
            if id(point) in own:
                out.add(point, own[id(point)])
        return out

    def _besides(self, legal: np.ndarray) -> np.ndarray:
        """Numbers of the legal points without the operator's own choice, which is tried before them and counted here.

        That is one point more than the axes have, or one that no rule can refuse: it is what runs without a tiling.
        """
        for point in self.task.usual:
            number = self.space.number_of(point)
            if number is None:
                self.beside += 1
                continue
            rule = self.space.allowed(number)
            if rule is not None:
                self.refused[rule] -= 1
            legal = legal[legal != number]
        self.refused = {n: count for n, count in self.refused.items() if count}
        self.legal = len(legal) + len(self.task.usual)
        return legal

    def _least(self, numbers: np.ndarray) -> np.ndarray:
        assert self.task.bounds is not None
        self.bounded += len(numbers)
        return self.task.bounds(self.space, numbers)

    def _evaluate(
        self, points: list[Point], known_here: Mapping[int, Evaluation] = MappingProxyType({})
    ) -> Iterator[Evaluation]:
        """Through the store: known results come from there, new ones go there as they come.

        known_here: evaluations of this sweep by the identity of their points.
        """
        new = self._stored_or_new([p for p in points if id(p) not in known_here])
        for p in points:
            yield known_here[id(p)] if id(p) in known_here else next(new)

    def _stored_or_new(self, points: list[Point]) -> Iterator[Evaluation]:
        keys = [key_of(self.name, p) for p in points]
        known = self._believed(self.store.known(keys))
        new = self.workers.evaluate([p for k, p in zip(keys, points, strict=True) if k not in known])
        for key, point in zip(keys, points, strict=True):
            if key in known:
                self.reused += 1
                yield known[key]
                continue
            found = next(new)
            self._keep(partial(self.store.add, key, self.name, point, found.to_dict()))
            yield found

    def _believed(self, results: Mapping[str, dict[str, Any]]) -> dict[str, Evaluation]:
        """Those of the results by key that are evaluations; the others are forgotten."""
        read = {key: evaluation_of(result) for key, result in results.items()}
        self.store.dropped |= {key for key, found in read.items() if found is None}
        return {key: found for key, found in read.items() if found is not None}

    def _keep(self, write: Callable[[], None]) -> None:
        """A store that takes no more ends no sweep: it goes on without, and says so."""
        if not self.lost:
            try:
                write()
            except StoreError as e:
                self.lost = (str(e),)

    def described(self, out: Exploration) -> Exploration:
        """Keep how the sweep ended; with a note if the store has no room for that."""
        before = self.lost
        self._keep(lambda: self.store.describe(self.name, about(out)))
        return out if self.lost == before else replace(out, notes=(*out.notes, *self.lost))

    def exploration(self, found: Outcome, seconds: float) -> Exploration:
        return Exploration(
            op=self.task.title,
            size=self.space.size + self.beside,
            refused=dict(Counter(self.refused) + Counter(found.refused)),
            found=tuple(found.found),
            seconds=seconds,
            axes=axes_of(found.found, self.space.axes),
            notes=(
                *self.task.notes,
                *self._notes_besides(),
                *_about_what_ifs(found),
                *filter(None, self._notes_of_helpers()),
                *self.lost,
            ),
            **picked(self.task, "product compiler case"),
            **picked(self, "objective legal bounded reused sampler"),
            **picked(found, "failed optimal proof interrupted"),
        )

    def _notes_of_helpers(self) -> tuple[str, ...]:
        """Messages of workers and store; empty ones where all went as asked."""
        return self.workers.note, self.store.note, self.store.about_dropped()

    def _notes_besides(self) -> list[str]:
        points = [p for p in self.task.usual if self.beside and self.space.number_of(p) is None]
        return [
            f"{' '.join(f'{n}={x}' for n, x in p.items())} is what {self.task.title} chooses by itself: one point more than "
            "the axes have"
            for p in points
        ]


def _about_what_ifs(found: Outcome) -> list[str]:
    """That times are of what the product lacks."""
    count = sum(x.evaluation.what_if for x in found.found)
    some = "all" if count == len(found.found) else f"{count} of {len(found.found)}"
    lacks = f"{WHAT_IF}the product lacks what {some} of these tilings use"
    return [f"{lacks}; `ascendtile run` says what, and by which rates it is timed"] if count else []

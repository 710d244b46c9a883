"""`cheapest_chain`: the assignment of a chain that takes the least time and keeps what is needed, with its proof.

The time of every assignment is known before any value is computed. They are evaluated in its order, the fastest first, until
one keeps the need: then all that take less time were evaluated and fail. No assignment is left out by a guess about its
error, which a narrower format may also make smaller.
"""

from __future__ import annotations

import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...kernels.chains.assignment import Assignment
from ...kernels.chains.chain import Chain
from ...kernels.chains.registry import get_chain
from ...kernels.chains.results import ChainRun
from ...kernels.chains.running import run_on
from ...kernels.study.rows import read_need
from ...simulator.device import ASCENDC, current_device
from ...simulator.precision.need import Need
from ...simulator.products import Product
from ...simulator.record.codec import Encoder
from ...simulator.record.lazy_views import PrintedRecord
from ..device_state import name_of_product, product_here
from ..explore import Interrupted
from ..results.exploration import Exploration
from ..results.store import Store
from ..search.budget import Budget
from ..search.exact import Outcome, Report
from ..space.space import Point
from ..sweep import EXACT, Sweep, Task
from ..workers import Here
from .choices import ChainChoices
from .problem import ChainProblem


@dataclass(frozen=True)
class ChainSearch(PrintedRecord):
    """What a search found.

    best: the cheapest assignment that keeps the need, None if none does. nearest: then the one whose error is least above
    it. run: best or nearest with its errors, blame and times. cheaper: how many legal assignments take less time than the
    best; exploration: every point that keeps the need, and the counts of the others.
    """

    chain: str
    need: Need
    best: Assignment | None
    nearest: Assignment | None
    run: ChainRun | None
    cheaper: int
    exploration: Exploration

    @property
    def proved(self) -> bool:
        """Whether no cheaper assignment of the space keeps the need, or none at all."""
        return self.exploration.optimal or (self.best is None and not self._unlooked)

    @property
    def _unlooked(self) -> bool:
        return self.exploration.proof.startswith("not proved")

    @property
    def answer(self) -> str:
        """One line."""
        if self.run is None:
            return f"no assignment of {self.chain} can run: {self.exploration.proof}"
        bits = ", ".join(f"{n} {e.effective_bits:.3g} bits" for n, e in self.run.errors.items())
        told = f"{self.run.words}, {self.run.time_us:.4g} us ({bits})"
        if self.best is not None:
            return f"cheapest {'' if self.proved else 'found '}that keeps {self.need.words}: {told}"
        which = "no assignment that was evaluated keeps" if self._unlooked else "no assignment keeps"
        return f"{which} {self.need.words}; nearest is {told}"

    @property
    def proof(self) -> str:
        """What makes the answer certain, or why it is not."""
        e = self.exploration
        if self._unlooked:
            return e.proof
        legal = e.legal + sum(n for rule, n in e.refused.items() if rule.startswith("do not keep"))
        if self.best is None:
            return f"all {legal:,} legal assignments were evaluated"
        rest = legal - self.cheaper - 1
        fail = f"assignments that take less time: {self.cheaper:,}, all evaluated, and none keeps it"
        return f"{fail if self.cheaper else 'no assignment takes less time'}; {rest:,} others take as long or longer"

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `ascendtile chain --search --json`: these keys and no others."""
        chosen = self.best or self.nearest
        e = self.exploration
        return {
            "chain": self.chain,
            "product": e.product,
            "need": self.need.words,
            "met": self.best is not None,
            "formats": None if chosen is None else dict(chosen.formats),
            "modes": None if chosen is None else dict(chosen.modes),
            "answer": self.answer,
            "proved": self.proved,
            "proof": self.proof,
            "cheaper": self.cheaper,
            "space": {
                "axes": {n: list(x) for n, x in e.axes.items()},
                "size": e.size,
                "refused": dict(e.refused),
            },
            "passing": [Encoder({}).encode(x.listed(), dict[str, Any]) for x in e.ranked[:10]],
            "notes": list(e.notes),
            "run": None if self.run is None else self.run.to_dict(),
        }

    def __repr__(self) -> str:
        """One line."""
        return f"<ChainSearch {self.answer}>"


def cheapest_chain(
    chain: str | Chain,
    need: Mapping[str, Any] | Need,
    sizes: Mapping[str, int] | None = None,
    space: Mapping[str, Sequence[Any]] | None = None,
    formats: Mapping[str, Any] | None = None,
    modes: Mapping[str, Any] | None = None,
    product: str | Product | None = None,
    overrides: Mapping[str, Any] | None = None,
    seed: int = 0,
    distribution: str = "normal",
    inputs: Mapping[str, Any] | None = None,
    budget: int | None = None,
    seconds: float | None = None,
    store: str | Path | None = None,
    cache: str | Path | None = None,
    report: Report = lambda done, left, best: None,
) -> ChainSearch:
    """The assignment of a chain that takes the least time among those whose outputs all keep a need.

    need: as of `precision_study`. space: tensor, step or group -> formats or cubeMathTypes to choose among; without, every
    group of the chain, and what is in none, is stored in fp16 or fp32 and multiplied in every cubeMathType. formats, modes:
    what is chosen for all, as of `run_chain`. budget: assignments to evaluate at most; seconds likewise: then the answer may
    not be proved. store: a file that keeps every result, from which an interrupted search goes on; cache: one that nobody
    asked for, and which may fail. report: called with (done, left as far as is known, least time so far).

    Raises `UsageError`; `Interrupted` where it was stopped from outside.
    """
    begin, found = clock.perf_counter(), get_chain(chain)
    wanted = read_need(need, [("", "float32")])
    problem = ChainProblem(
        found, wanted, product_here(product), dict(overrides or {}), found.sized(sizes), seed, distribution, inputs,
        dict(formats or {}), dict(modes or {}), {n: tuple(x) for n, x in (space or {}).items()},
    )  # fmt: skip
    with problem.there():
        choices = problem.choices
        choices.legal()
        title, machine = f"chain {found.name}", name_of_product(problem.product)
        task = Task(
            problem, choices.space, choices.bounds, title, machine, None, (), current_device().code_by(ASCENDC),
            _first(choices), batch=1,
        )  # fmt: skip
        with Store(store or cache, cache=store is None) as kept:
            sweep = Sweep(
                task, choices.space, "time", Budget(budget, seconds, begin), Here(problem), kept, report
            )
            outcome = sweep.run(EXACT, seed)
            explored = sweep.described(sweep.exploration(outcome, clock.perf_counter() - begin))
        if outcome.interrupted:
            raise Interrupted(explored)
        return _result(problem, outcome, explored)


def _first(choices: ChainChoices) -> tuple[Point, ...]:
    """The widest assignment, where it is legal: nothing slower has to be looked at if it keeps the need."""
    number = choices.space.number_of(choices.usual)
    return () if number is None or choices.space.allowed(number) else (choices.usual,)


def _result(problem: ChainProblem, outcome: Outcome, explored: Exploration) -> ChainSearch:
    choices, best = problem.choices, explored.best
    near = min(outcome.nearest.values(), key=lambda x: x.evaluation.over or 0.0, default=None)
    chosen = best or near
    assignment = None if chosen is None else choices.assignment(chosen.point)
    run = None if assignment is None else run_on(choices.bench, assignment, problem.need)
    cheaper = 0
    if best is not None:
        cheaper = int(np.sum(choices.bounds(choices.space, choices.legal()) < best.time_us))
    return ChainSearch(
        problem.chain.name,
        problem.need,
        assignment if best else None,
        None if best else assignment,
        run,
        cheaper,
        explored,
    )

"""Which roundings make up the error of a chain: it is evaluated again, with one more of them each time.

In the order of the steps the float64 values of tensors give way to those of the run: first what storing the exact result in
the tensor's format alone would make of it (the storage), then what the step really made (its arithmetic); what lies behind
is float64. Without any rounding that gives the reference, with all of them the values of the run, so that what each changes
adds up to the error, element by element. A share is the product of a part and the error over the square of the error, summed
over the elements (`simulator/execution/float64/sharing.py`): shares add up to one; one that undoes others is negative.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from ...simulator.execution.float64.sharing import shares
from ..operator.tensors import Arrays
from .assignment import Assignment
from .bench import ChainBench
from .chain import ChainStep
from .storage import values_of

STORAGE, ARITHMETIC = "storage", "arithmetic"


@dataclass(frozen=True)
class RoundingSource:
    """kind: STORAGE, of tensor `name`, or ARITHMETIC, of step `name`. step: the one that makes it; "" of what is given."""

    kind: str
    name: str
    step: str

    @property
    def key(self) -> str:
        """ "storage of h", "arithmetic of down"."""
        return f"{self.kind} of {self.name}"


@dataclass(frozen=True)
class ChainBlame:
    """shares: output -> source, by its key -> share of the error. lines: output -> step -> "file:line" -> share, where asked
    for: what the step's own sources have together, apart by the line that rounds. broken: output -> source -> how many
    elements it makes infinite or NaN that were finite without it; shares are of the others."""

    sources: tuple[RoundingSource, ...]
    shares: Mapping[str, Mapping[str, float]]
    broken: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    lines: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)

    def by_step(self, output: str) -> dict[str, float]:
        """Step -> share of all that it and the storage of what it makes round; "" is the storage of what is given."""
        out: dict[str, float] = {}
        for source in self.sources:
            out[source.step] = out.get(source.step, 0.0) + self.shares[output][source.key]
        return out

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "shares": {n: dict(x) for n, x in self.shares.items()},
            "by_step": {n: self.by_step(n) for n in self.shares},
            "lines": {n: {s: dict(x) for s, x in by.items()} for n, by in self.lines.items()},
            "broken": {n: dict(x) for n, x in self.broken.items()},
        }


def blame_of(bench: ChainBench, assignment: Assignment, stored: Mapping[str, np.ndarray]) -> ChainBlame:
    """The blame of a run whose tensors are stored so."""
    real = {n: values_of(x) for n, x in stored.items()}
    found = list(_replaced(bench, assignment, real))
    names = [source.key for source, _ in found]
    steps = [_outputs(bench, bench.reference), *(outputs for _, outputs in found)]
    broken = {n: _broken([s[n] for s in steps], names) for n in bench.chain.outputs}
    return ChainBlame(tuple(source for source, _ in found), shares(steps, names), broken)


def _broken(steps: Sequence[np.ndarray], names: Sequence[str]) -> dict[str, int]:
    """Source -> elements that are finite before it and not behind it, of those that make any."""
    lost = (int(np.sum(np.isfinite(a) & ~np.isfinite(b))) for a, b in pairwise(steps))
    return {name: count for name, count in zip(names, lost, strict=True) if count}


def _replaced(
    bench: ChainBench, assignment: Assignment, real: Mapping[str, np.ndarray]
) -> Iterator[tuple[RoundingSource, Arrays]]:
    """Source by source, and the outputs with the roundings up to it."""
    now, order = dict(bench.reference), bench.chain.order
    for x in bench.chain.inputs:
        now = continued(bench, now, {x.name: real[x.name]}, order)
        yield RoundingSource(STORAGE, x.name, ""), _outputs(bench, now)
    for k, step in enumerate(order):
        later, exact = order[k + 1 :], bench.formula(step, now)
        for t in step.outputs.values():
            rounded = values_of(bench.storage(assignment.formats[t]).stored(exact[t]))
            now = continued(bench, now, {t: rounded}, later)
            yield RoundingSource(STORAGE, t, step.name), _outputs(bench, now)
        now = continued(bench, now, {t: real[t] for t in step.outputs.values()}, later)
        yield RoundingSource(ARITHMETIC, step.name, step.name), _outputs(bench, now)


def continued(bench: ChainBench, known: Arrays, changed: Arrays, steps: tuple[ChainStep, ...]) -> Arrays:
    """Every tensor once some have other values: of the steps behind, those that read them again are evaluated in float64."""
    odd = {n for n, x in changed.items() if not np.array_equal(x, known[n], equal_nan=True)}
    out = {**known, **changed}
    for step in steps:
        if not odd.isdisjoint(step.reads):
            out |= bench.formula(step, out)
            odd.update(step.outputs.values())
    return out


def _outputs(bench: ChainBench, tensors: Mapping[str, np.ndarray]) -> Arrays:
    return {n: tensors[n] for n in bench.chain.outputs}

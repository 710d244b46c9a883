"""One assignment of a chain as a problem of a sweep: its time, and whether its outputs keep what is needed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ...kernels.chains.bench import ChainBench
from ...kernels.chains.chain import Chain
from ...kernels.chains.lowering import input_shapes, planned
from ...kernels.chains.running import error_of
from ...kernels.chains.storage import values_of
from ...kernels.operator.operator import Operator
from ...simulator.device import CUBE_MATH_TYPES, device
from ...simulator.precision.need import Need
from ...simulator.products import Product
from ..device_state import state_here
from ..evaluate import Evaluation, machine_of
from ..kernel_problem import sources_of, words_of
from ..space.space import Point
from .choices import ChainChoices

FARTHEST = 2.0**1000  # how many times too large an error is told to be, at most: also where NaN differ


@dataclass(frozen=True)
class ChainProblem:
    """A chain, what its results have to keep, and what is chosen for all points. state: as of `OperatorProblem`."""

    chain: Chain
    need: Need
    product: str | Product
    overrides: Mapping[str, float]
    sizes: Mapping[str, int]
    seed: int = 0
    distribution: str = "normal"
    inputs: Mapping[str, Any] | None = None
    formats: Mapping[str, Any] = field(default_factory=dict)
    modes: Mapping[str, Any] = field(default_factory=dict)
    space: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=state_here)

    def there(self) -> Any:
        """The device that it runs on."""
        return device(machine_of(self), **self.state)

    @cached_property
    def choices(self) -> ChainChoices:
        """Made on the device of the problem."""
        with self.there():
            bench = ChainBench(self.chain, self.sizes, self.seed, self.distribution, self.inputs)
            return ChainChoices(bench, self.space, self.formats, self.modes)

    def describe(self) -> dict[str, Any]:
        """All that results depend on; axes are in the points."""
        drawn = {"seed": self.seed, "distribution": self.distribution}
        return {
            "chain": _words_of(self.chain),
            "operators": [
                _operator_words(s.op, self) for s in self.chain.order if isinstance(s.op, Operator)
            ],
            "sizes": dict(self.choices.bench.sizes),
            "need": asdict(self.need),
            "product": machine_of(self).fingerprint,
            "numbers": drawn
            if self.inputs is None
            else {n: _bytes(x) for n, x in self.choices.bench.exact.items()},
            "fixed": [dict(self.formats), dict(self.modes)],
            "state": dict(self.state),
        }

    def evaluate(self, point: Point) -> Evaluation:
        """Time and errors of a point that keeps the need; else a refusal with how many times too large its error is."""
        with self.there():
            bench, assignment = self.choices.bench, self.choices.assignment(point)
            stored = bench.values(assignment)
            reports = {n: error_of(bench, n, stored[n], assignment) for n in self.chain.outputs}
            kept = [self.need.judge(values_of(stored[n]), bench.reference[n], e) for n, e in reports.items()]
            time_us = self.choices.time_us(point)
        if all(k.passed for k in kept):
            errors = {n: 2.0**-e.effective_bits for n, e in reports.items()}
            return Evaluation(time_us, bound_us=time_us, bound="sum of the steps", errors=errors)
        over = min(FARTHEST, max(k.factor for k in kept))
        return Evaluation(refused=f"do not keep {self.need.words}: errors times what is allowed", over=over)


def _words_of(chain: Chain) -> Any:
    """A chain as plain data; operators of the user's own by their names."""
    steps = [
        {
            **{n: repr(getattr(s, n)) for n in ("inputs", "outputs", "options", "tiling")},
            "name": s.name,
            "op": s.operator.name,
        }
        for s in chain.order
    ]
    return {
        "name": chain.name,
        "inputs": repr(chain.inputs),
        "steps": steps,
        "outputs": list(chain.outputs),
        "groups": repr(dict(chain.groups)),
    }


def _operator_words(op: Operator, problem: ChainProblem) -> list[str]:
    """The sources of an operator of the user's own, and of its kernels."""
    bench = problem.choices.bench
    step = next(s for s in problem.chain.order if s.op is op)
    with problem.there():
        tensors = input_shapes(step, bench.shapes, bench.sizes, op.dtypes_on(bench.product)[0])
        plan = planned(step, tensors, bench.product, CUBE_MATH_TYPES[0])
    kernels = [text for launch in plan.steps for text in sources_of(launch.kernel)]
    return [op.name, *(w for f in (op.plan, op.formula, op.check) for w in words_of(f)), *kernels]


def _bytes(x: np.ndarray) -> list[Any]:
    return [list(x.shape), str(x.dtype), hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()]

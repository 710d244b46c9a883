"""`same_bits`: an operator under all its configurations, compared by `simulator/orders`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...simulator.device import Device, device
from ...simulator.errors import AscendtileError, UsageError
from ...simulator.orders.comparing import SECONDS, TRIES, compare
from ...simulator.orders.launches import LaunchSequence
from ...simulator.orders.variations import Configuration, Variations
from ...simulator.orders.varying import ANY_CORES, USUAL_AXES, Asked
from ...simulator.orders.verdict import SameBits
from ...simulator.products import Product, product_names
from ..operator.messages import near
from ..operator.notes import mode_name
from ..operator.operator import Case, Operator
from ..operator.parameter import as_mapping
from ..operator.plan import Plan, PlanContext
from ..operator.registry import get_operator
from ..operator.tensors import Arrays, Knobs, Sizes
from ..running.fitting import plan_that_fits
from ..running.launching import call_of
from ..running.problem import OpInputs, problem_of_case
from .batches import Batch
from .points import one_knob_each

SMALL = "tiny"  # the case that every operator has


def same_bits(
    name: str | Operator,
    case: str | Case | Sizes | None = None,
    vary: Sequence[str] = USUAL_AXES,
    *,
    dtype: str | None = None,
    product: str | Product | None = None,
    cube_math_type: str | int = "KEEP_DTYPE",
    tiling: Mapping[str, Any] | None = None,
    tilings: Mapping[str, Sequence[Any]] | None = None,
    batch: Sequence[int] = (),
    products: Sequence[str] = (),
    seeds: int = 4,
    options: Mapping[str, Any] | None = None,
    overrides: Mapping[str, Any] | None = None,
    numerics: Mapping[str, Any] | None = None,
    tries: int = TRIES,
    seconds: float = SECONDS,
    signed_zeros: bool = False,
    finite: bool = True,
) -> SameBits:
    """Whether each element of an operator's outputs has the same bits in every configuration: proven, or a counterexample.

    case: a case's name or sizes by name; None is `tiny`, small enough that all is done in seconds. vary: what is varied, one
    at a time: batch (the first samples alone), tiling (one knob each), cores, order (of programs, where atomics make it
    matter), product. tiling: knobs of every configuration; tilings: values of knobs to compare, by name; without, those that
    the operator suggests. batch: numbers of samples; the largest is run whole. products: by name; without, all that run it.
    seeds: drawn orders of programs. tries, seconds, signed_zeros, finite: see `simulator.orders.comparing.compare`. Other
    arguments: as in `run_op`. Raises `UsageError`.
    """
    op = get_operator(name)
    asked = Asked(tuple(vary), dict(tilings or {}), tuple(batch), "", tuple(products), seeds)
    choice: dict[str, Any] = {"cube_math_type": mode_name(op, cube_math_type), "overrides": overrides}
    choice |= {"values": True, "time": False}
    choice |= {"numerics": numerics} if numerics else {}
    with device(product, **choice) as machine:
        knobs = dict(as_mapping(f"{op.name}: tiling", tiling, "knob to value"))
        op.read_tiling(knobs)
        varied = _Varied(op, machine, asked, knobs, case, dtype, dict(options or {}))
        return compare(varied.subject(), tries, signed_zeros, finite, seconds)


@dataclass(frozen=True)
class _Way:
    """One configuration: knobs, samples (None: all), seed of the order, product (None: the current one)."""

    knobs: Knobs
    samples: int | None = None
    seed: int | None = None
    product: str | None = None


class _Varied:
    """The configurations of one operator."""

    def __init__(
        self,
        op: Operator,
        machine: Device,
        asked: Asked,
        knobs: Knobs,
        case: str | Case | Sizes | None,
        dtype: str | None,
        options: dict[str, Any],
    ) -> None:
        self.op, self.machine, self.asked, self.tilings = op, machine, asked, asked.tilings
        known = [p.name for p in op.parameters]
        for n in asked.tilings:
            if n not in known:
                raise UsageError(f"{op.name} has no tiling parameter {n!r}{near(n, known)}")
        chosen = op.case(SMALL if case is None and SMALL in op.cases else case)
        self.batch = Batch.of(op, chosen.sizes, asked.batch if "batch" in asked.vary else ())
        chosen = replace(chosen, sizes=self.batch.sizes)
        self.problem: OpInputs = problem_of_case(op, chosen, dtype, machine, 0, "normal", options)
        self.inputs: Arrays = {n: np.ascontiguousarray(x) for n, x in self.problem.tensors.items()}
        self.base = _Way(knobs)
        self.laws: list[str] = []
        self.notes: list[str] = []

    def subject(self) -> Variations:
        """What is compared."""
        self.plan = self._plan(self.base, self.inputs)
        made = [Configuration(self._name_of_base(), self._launches(self.base))]
        for axis in self.asked.vary:
            chosen: Callable[[], Iterator[Configuration]] = getattr(self, f"_{axis}")
            made += list(chosen())
        return Variations(
            self.op.name,
            self.inputs,
            made,
            laws=self.laws,
            notes=self.notes,
            advice=self._advice,
            doubts=self._made_by_the_host(),
        )

    def _name_of_base(self) -> str:
        own = " ".join(f"{n}={x}" for n, x in self.base.knobs.items())
        samples = f"batch {self.batch.name}={self.batch.largest}" if self.batch.name else ""
        return ", ".join(x for x in (samples, own or "the operator's own tiling") if x)

    # -- plans ---------------------------------------------------------------------------------------------------------

    def _plan(self, way: _Way, inputs: Mapping[str, np.ndarray]) -> Plan:
        tensors = dict(inputs)
        with self._on(way) as machine:
            self.op.dtypes_on(machine.product)
            self.op.check(tensors, self.problem.options, machine.product)
            context = PlanContext(machine.product, values=True)
            knobs = self.op.read_tiling(way.knobs)
            plan = plan_that_fits(self.op, tensors, self.problem.options, knobs, context)
            for step in plan.steps:
                call_of(step)
            return plan

    def _some(self, way: _Way, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Copies of the inputs of a configuration."""
        return {n: np.array(x, order="C") for n, x in self.batch.first(way.samples, inputs).items()}

    def _on(self, way: _Way) -> Any:
        return device(way.product or self.machine.product)

    def _launches(self, way: _Way) -> Callable[[Mapping[str, np.ndarray]], LaunchSequence]:
        """Planned once; the next time its tensors begin as they were planned."""

        @functools.cache
        def planned() -> tuple[LaunchSequence, list[tuple[np.ndarray, np.ndarray]]]:
            tensors = self._some(way, self.inputs)
            plan = self._plan(way, tensors)
            with self._on(way):
                calls = [call_of(step) for step in plan.steps]
            found = LaunchSequence(calls, tensors, self._compared(way, plan))
            return found if way.seed is None else found.with_seed(way.seed), _begin(plan)

        def launches(inputs: Mapping[str, np.ndarray]) -> LaunchSequence:
            found, begin = planned()
            for array, before in begin:
                array[...] = before
            for n, x in self.batch.first(way.samples, inputs).items():
                found.inputs[n][...] = x
            return found

        return launches

    def _compared(self, way: _Way, plan: Plan) -> dict[str, np.ndarray]:
        """The outputs; for fewer samples those that have a part for each."""
        outputs = {n: x for n, x in plan.outputs.items() if isinstance(x, np.ndarray)}
        if way.samples is None:
            return outputs
        return {n: x for n, x in outputs.items() if x.shape != self.plan.outputs[n].shape}

    def _made_by_the_host(self) -> dict[str, str]:
        """Tensors that a plan makes out of the values of inputs: their elements would count as constants."""
        others = {n: np.ascontiguousarray(x[..., ::-1]) if x.ndim else x for n, x in self.inputs.items()}
        plans = [self._plan(self.base, x) for x in (self.inputs, others)]
        made = [
            [x for step in plan.steps for x in _own_arrays(step.arguments, self.inputs)] for plan in plans
        ]
        alike = all(a.tobytes() == b.tobytes() for a, b in zip(*made, strict=False))
        return {} if alike else {self.op.name: "the host makes a tensor out of the values of inputs"}

    def _tried(self, name: str, way: _Way, note: str = "") -> Iterator[Configuration]:
        """A configuration, if the operator takes it; with tiling the same as before it is none."""
        try:
            plan = self._plan(way, self._some(way, self.inputs))
        except AscendtileError as e:
            text = str(e).splitlines()[0]
            if note != "suggested":
                raise UsageError(f"{self.op.name}: {name} cannot be compared: {text}") from None
            self.notes.append(f"{name} is not compared: {text}")
            return
        if way.product is None and way.samples is None and plan.tiling == self.plan.tiling:
            return
        yield Configuration(name, self._launches(way))

    # -- axes ----------------------------------------------------------------------------------------------------------

    def _batch(self) -> Iterator[Configuration]:
        if not self.batch.smaller:
            self.notes.append(f"batch: {self.op.name} has no size that counts samples")
            return
        few = replace(self.base, samples=self.batch.smaller[0])
        shapes = {
            n: x.shape for n, x in self._plan(few, self.batch.first(few.samples, self.inputs)).outputs.items()
        }
        whole = [n for n, x in self.plan.outputs.items() if x.shape == shapes[n]]
        if whole:
            self.notes.append(
                f"batch: not compared, as they have no part for each sample: {', '.join(whole)}"
            )
        for n in self.batch.smaller if len(whole) < len(shapes) else ():
            yield from self._tried(f"batch {self.batch.name}={n}", replace(self.base, samples=n))

    def _tiling(self) -> Iterator[Configuration]:
        for name, knobs in one_knob_each(self.op, self.problem, self.machine, self.plan, self.tilings):
            how = "asked" if self.tilings else "suggested"
            yield from self._tried(name, _Way({**self.base.knobs, **knobs}), how)

    def _cores(self) -> Iterator[Configuration]:
        used = self.plan.tiling.get("cores")
        if not isinstance(used, int) or "cores" in self.base.knobs:
            self.laws.append(ANY_CORES)
            return
        for n in dict.fromkeys((1, max(1, used // 2))):
            if n != used:
                yield from self._tried(f"cores={n}", _Way({**self.base.knobs, "cores": n}), "suggested")

    def _order(self) -> Iterator[Configuration]:
        found = self._launches(self.base)(self.inputs)
        for seed in self.asked.drawn_orders(found, self.laws, self.notes):
            yield Configuration(f"order of seed {seed}", self._launches(replace(self.base, seed=seed)))

    def _product(self) -> Iterator[Configuration]:
        for name in self.asked.products or product_names():
            if name != self.machine.product.name:
                how = "asked" if self.asked.products else "suggested"
                yield from self._tried(name, replace(self.base, product=name), how)

    # -- advice --------------------------------------------------------------------------------------------------------

    def _advice(self, differing: Sequence[tuple[str, str]]) -> list[str]:
        names = {n for pair in differing if self._name_of_base() in pair for n in pair}
        out = []
        atomics = [p for p in self.op.parameters if self.plan.tiling.get(p.name) == "atomic"]
        if atomics and any(n.startswith("order of seed") for n in names):
            ways = " or ".join(x for x in atomics[0].choices or () if x != "atomic")
            out.append(f"take {atomics[0].name}={ways}: atomic adds in the order in which programs come")
        knobs = dict.fromkeys(n.split("=")[0] for n in sorted(names) if n.split("=")[0] in self.plan.tiling)
        if knobs:
            out.append(f"give {', '.join(knobs)} for all runs: --tiling {next(iter(knobs))}=VALUE")
        if not knobs and any(n.startswith("batch ") and n != self._name_of_base() for n in names):
            fixed = " ".join(f"{n}={x}" for n, x in self.plan.used.items() if n in self.op.order_knobs)
            out.append(f"the tiling follows the batch; fix it{f': --tiling {fixed}' if fixed else ''}")
        return out


def _begin(plan: Plan) -> list[tuple[np.ndarray, np.ndarray]]:
    """The tensors of all launches, each with what it holds before the first."""
    arrays = {id(x): x for step in plan.steps for x in step.arguments.values() if isinstance(x, np.ndarray)}
    return [(x, x.copy()) for x in arrays.values() if x.flags.writeable]


def _own_arrays(arguments: Mapping[str, Any], inputs: Arrays) -> list[np.ndarray]:
    """Those among the arguments of a launch that are no input."""
    shapes = {(x.shape, x.dtype) for x in inputs.values()}
    arrays = [x for x in arguments.values() if isinstance(x, np.ndarray)]
    return [x for x in arrays if (x.shape, x.dtype) not in shapes]

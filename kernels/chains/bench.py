"""Runs the steps of one chain on one product: values, times and the float64 reference, each made once.

What a step gives depends on the formats of the tensors before it and on the modes of the steps before it: values are kept by
these, so that assignments which begin alike share them. Its time depends on the formats of its own tensors and its mode.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...simulator.device import current_device, device
from ...simulator.interpreter.tensors import Shape
from ...simulator.precision import dtypes as ty
from ...simulator.precision.rounding import encode
from ...simulator.products import Product
from ..operator.draw import Draw
from ..operator.operator import Operator
from ..operator.tensors import Arrays, dtype_of, element_type
from ..running.run_op import run_op
from .assignment import USUAL_MODE, Assignment
from .chain import Chain, ChainStep, ReshapedTensor, dims_of
from .drawing import drawn, given
from .glue import cast_to
from .lowering import ChainCast, LoweredStep, input_shapes, lowered, naming_step, shapes_made
from .storage import AnyStorage, storage_of, values_of

KEPT_BYTES = 1 << 29  # of values of steps; what was used longest ago goes first
LEAN: Mapping[str, Any] = {"timeline": 0, "details": False}


class Timed(NamedTuple):
    """Time of the launches of an operator in us, their number, and what the product lacks for them."""

    time_us: float
    launches: int
    what_ifs: tuple[str, ...]


class ChainBench:
    """A chain with its sizes, its numbers and the current device. inputs: arrays by name in place of drawn numbers."""

    def __init__(
        self,
        chain: Chain,
        sizes: Mapping[str, Any] | None = None,
        seed: int = 0,
        distribution: str = "normal",
        inputs: Mapping[str, Any] | None = None,
    ) -> None:
        self.chain, self.sizes = chain, chain.sized(sizes)
        self.device = current_device()
        self.product: Product = self.device.product
        self.numbers, self.inputs = Draw(seed, distribution), inputs
        self.shapes: dict[str, tuple[int, ...]] = {x.name: dims_of(x.shape, self.sizes) for x in chain.inputs}
        for step in chain.order:
            self.shapes |= shapes_made(step, self.shapes, self.sizes, self.product)
        self.storages: dict[str, AnyStorage] = {}
        self.steps: dict[Any, LoweredStep] = {}
        self.times: dict[Any, Timed] = {}
        self.kept: OrderedDict[Any, Arrays] = OrderedDict()

    # ---- float64 ----

    @cached_property
    def exact(self) -> Arrays:
        """What the chain is given, before any rounding."""
        if self.inputs is None:
            return drawn(self.chain, self.sizes, self.numbers)
        return given(self.chain, self.sizes, self.inputs)

    @cached_property
    def reference(self) -> Arrays:
        """Every tensor in float64."""
        out = {n: x.astype(np.float64) for n, x in self.exact.items()}
        for step in self.chain.order:
            out |= self.formula(step, out)
        return out

    def formula(self, step: ChainStep, tensors: Mapping[str, np.ndarray]) -> Arrays:
        """What a step gives in float64 of tensors in float64, by tensor."""
        op = step.operator
        made = op.formula(self.operands(step, tensors), op.read_options(step.options))
        return {t: np.asarray(made[n], np.float64).reshape(self.shapes[t]) for n, t in step.outputs.items()}

    def operands(self, step: ChainStep, tensors: Mapping[str, np.ndarray]) -> Arrays:
        """The inputs of the operator of a step, in their shapes."""
        return {
            n: tensors[x.tensor].reshape(dims_of(x.shape, self.sizes))
            if isinstance(x, ReshapedTensor)
            else tensors[x]
            for n, x in step.inputs.items()
        }

    # ---- an assignment ----

    def storage(self, name: str) -> AnyStorage:
        """The storage of that format, made once."""
        if name not in self.storages:
            self.storages[name] = storage_of(name, self.product)
        return self.storages[name]

    def lowered(self, step: ChainStep, assignment: Assignment) -> LoweredStep:
        """How a step runs."""
        key = _own(step, assignment)
        if key not in self.steps:
            storages = {t: self.storage(assignment.formats[t]) for t in step.tensors}
            mode = assignment.modes.get(step.name, USUAL_MODE)
            self.steps[key] = lowered(step, self.shapes, self.sizes, storages, mode, self.product)
        return self.steps[key]

    # ---- time ----

    def step_time(self, low: LoweredStep) -> Timed:
        """Time of the operator; of equal calls only one is timed."""
        step = low.step
        tensors = input_shapes(step, self.shapes, self.sizes, low.dtype)
        return self._timed(step.operator, tensors, step.options, low.mode, step.tiling, step)

    def cast_time(self, cast: ChainCast, step: ChainStep) -> Timed:
        """The same of a cast before or behind a step."""
        x = Shape(cast.shape, ty.element_type(cast.source))
        return self._timed(cast_to(ty.element_type(cast.target)), {"x": x}, {}, USUAL_MODE, {}, step)

    def _timed(
        self, op: Operator, tensors: Mapping[str, Any], options: Any, mode: str, tiling: Any, step: ChainStep
    ) -> Timed:
        key = (id(op), mode, *(repr(sorted(x.items())) for x in (options, tiling)))
        key = (*key, *((n, x.shape, x.dtype.name) for n, x in tensors.items()))
        if key not in self.times:
            how: dict[str, Any] = {"options": options, "tiling": tiling, "cube_math_type": mode}
            with device(self.product, **LEAN), naming_step(step):
                found = run_op(op, inputs=tensors, values=False, **how)
            said = tuple(dict.fromkeys(str(m) for m in found.run.warnings if m.is_what_if))
            self.times[key] = Timed(found.time_us, len(found.launches), said)
        return self.times[key]

    # ---- values ----

    def values(self, assignment: Assignment) -> Arrays:
        """Every tensor as it is stored: arrays of its type, codes of a format that is a what-if."""
        out: Arrays = {}
        for n, x in self.exact.items():
            out[n] = self.storage(assignment.formats[n]).stored(x)
        for step in self.chain.order:
            key = self._history(step, assignment)
            if key not in self.kept:
                self._keep(key, self._computed(self.lowered(step, assignment), out, assignment))
            self.kept.move_to_end(key)
            out |= self.kept[key]
        return out

    def run(self, low: LoweredStep, stored: Arrays) -> Arrays:
        """The outputs of the operator of a step as it writes them, by name of output."""
        how: dict[str, Any] = {
            "options": low.step.options,
            "tiling": low.step.tiling,
            "cube_math_type": low.mode,
        }
        with device(self.product, **LEAN), naming_step(low.step):
            inputs = self.loaded(low, stored)
            return run_op(low.step.operator, inputs=inputs, time=False, errors=False, **how).outputs

    def loaded(self, low: LoweredStep, stored: Arrays) -> Arrays:
        """Its inputs in the types that the operator gets: what is stored in a narrower one is there without a loss."""
        op = low.step.operator
        kinds = {n: element_type(op.input_dtype(n, low.dtype)) for n in low.step.inputs}
        operands = self.operands(low.step, stored)
        return {
            n: x if x.dtype == kinds[n].storage else encode(values_of(x), kinds[n].name)
            for n, x in operands.items()
        }

    def _computed(self, low: LoweredStep, stored: Arrays, assignment: Assignment) -> Arrays:
        made = self.run(low, stored)
        out = {}
        for n, t in low.step.outputs.items():
            storage = self.storage(assignment.formats[t])
            out[t] = self.kept_as(storage, made[n].reshape(self.shapes[t]), low.step)
        return out

    def kept_as(self, storage: AnyStorage, x: np.ndarray, step: ChainStep) -> np.ndarray:
        """What an operator wrote, as it is stored: by a cast where it is of another type."""
        if not storage.coded:  # an array does not say that it holds TF32, or blocks
            return storage.stored(values_of(x))
        kind = next(iter(storage.types(x.shape)))
        if dtype_of(x) == kind:
            return x
        with device(self.product, **LEAN), naming_step(step):
            return run_op(cast_to(kind), inputs={"x": x}, time=False, errors=False).outputs["out"]

    def _keep(self, key: Any, made: Arrays) -> None:
        self.kept[key] = made
        while (
            len(self.kept) > 1 and sum(x.nbytes for a in self.kept.values() for x in a.values()) > KEPT_BYTES
        ):
            self.kept.popitem(last=False)

    @cached_property
    def _before(self) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
        """Step -> every tensor and every step that its results depend on, itself included."""
        out: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        makers = {t: s for s in self.chain.order for t in s.outputs.values()}
        for step in self.chain.order:
            tensors, steps = dict.fromkeys(step.tensors), {step.name: None}
            for t in step.reads:
                if t in makers:
                    earlier = out[makers[t].name]
                    tensors |= dict.fromkeys(earlier[0])
                    steps |= dict.fromkeys(earlier[1])
            out[step.name] = (*tensors,), (*steps,)
        return out

    def _history(self, step: ChainStep, assignment: Assignment) -> Any:
        tensors, steps = self._before[step.name]
        modes = (assignment.modes.get(n, "") for n in steps)
        return (step.name, *(assignment.formats[t] for t in tensors), *modes)


def _own(step: ChainStep, assignment: Assignment) -> Any:
    return (step.name, *(assignment.formats[t] for t in step.tensors), assignment.modes.get(step.name, ""))

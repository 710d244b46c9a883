"""What to try for convolutions in slices, and how fast it can be at best: as of the narrower ones that they are.

The launches that cut and that put together are timed, once: no tiling changes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ....simulator.device import device
from ....simulator.l2.state import WARM
from ....simulator.precision.splits import SPLITS, Split
from ....simulator.products import Product
from ...operator.plan import PlanContext, Step
from ...operator.tensors import Columns, Options, Tensors, part_of
from ...running.launching import timed_once
from ..bound import Subject, bounds_of
from ..call import RESULTS, ConvolutionCall, call_of
from ..forward_launches import as_gradient
from ..forward_launches import call_of as forward_call_of
from ..plan import Maker
from ..space import axes_of, rules_of
from . import forward, gradients
from .cutting import PLAIN, Cutter


class SlicedSubject(NamedTuple):
    """What makes one result of slices, and the launches around it."""

    of_slices: Subject
    around: list[Step]


Subjects = Callable[[Tensors, Options, PlanContext, Split], Iterator[SlicedSubject]]


def gradient_subjects(
    tensors: Tensors, options: Options, context: PlanContext, split: Split
) -> Iterator[SlicedSubject]:
    """Of each sum of each gradient that the Cube makes; what grad_bias takes, which has no tiles, is left out."""
    call, cutter = call_of(tensors, options), Cutter(split, context)
    for result in (r for r, wanted in zip(RESULTS[:2], call.wants, strict=False) if wanted):
        kind, shape = gradients.of_sums(result, call, cutter), getattr(call, result).shape
        for products in split.groups:
            before = len(cutter.steps)
            cut = gradients.operands(result, tensors, call, cutter, products)
            if products == split.groups[-1]:
                gradients.unscaled(result, call, cutter, cutter.sums(shape))
            yield SlicedSubject(_one(result, cut, options, context, kind), cutter.steps[before:])


def _one(result: str, cut: Tensors, options: Options, context: PlanContext, kind: str) -> Subject:
    def begun(knobs: Mapping[str, Any]) -> Maker:
        return gradients.one_result(result, cut, options, knobs, context, kind)

    def made(knobs: Mapping[str, Any]) -> tuple[Maker, tuple[Step, ...]]:
        maker = begun(knobs)
        getattr(maker, result)()
        return maker, maker.steps

    return Subject(gradients.call_of_result(result, cut, options, kind), begun, made)


def forward_subjects(
    tensors: Tensors, options: Options, context: PlanContext, split: Split
) -> Iterator[SlicedSubject]:
    """Of each sum of y."""
    cutter, given = Cutter(split, context), forward_call_of(tensors, options)
    for products in split.groups:
        before = len(cutter.steps)
        cut = forward.operands(tensors, given, cutter, products)
        call = as_gradient(forward_call_of(cut, options), cutter.kind.name)
        if products == split.groups[-1]:
            y = cutter.sums(call.input.shape)
            forward.finished(part_of(y, 0) if split.top is None else y, tensors.get("bias"), cutter)
        yield SlicedSubject(_image(call, cut, options, context), cutter.steps[before:])


def _image(call: ConvolutionCall, cut: Tensors, options: Options, context: PlanContext) -> Subject:
    def begun(knobs: Mapping[str, Any]) -> Maker:
        return forward.image(cut, options, knobs, context)

    def made(knobs: Mapping[str, Any]) -> tuple[Maker, tuple[Step, ...]]:
        maker = begun(knobs)
        maker.grad_input()
        return maker, maker.steps

    return Subject(call, begun, made)


def explored(
    of: Subjects, tensors: Tensors, product: Product, options: Options, mode: str
) -> dict[str, tuple[Any, ...]]:
    """Axes of the tiles of every result; each has launches of its own."""
    axes: dict[str, tuple[Any, ...]] = {}
    for x in of(tensors, options, PlanContext(product, False), SPLITS[mode]):
        for name, values in axes_of(x.of_slices).items():
            axes[name] = tuple(dict.fromkeys((*axes.get(name, ()), *values)))
    return axes


def fits(
    of: Subjects, tensors: Tensors, product: Product, mode: str, points: Columns, options: Options
) -> Columns:
    """The rules of every result."""
    rules: dict[str, np.ndarray] = {}
    for x in of(tensors, options, PlanContext(product, False), SPLITS[mode]):
        for rule, kept in rules_of(lambda x=x: x.of_slices, product, PLAIN, points).items():  # type: ignore[misc]
            rules[rule] = kept & rules.get(rule, kept)
    return rules


def bound_us(
    of: Subjects, tensors: Tensors, product: Product, mode: str, points: Columns, options: Options
) -> np.ndarray:
    """Least time in us of each point: bounds of every result, and the time of what is around them."""
    total: Any = np.zeros(len(next(iter(points.values()))))
    for x in of(tensors, options, PlanContext(product, False), SPLITS[mode]):
        total = total + bounds_of(lambda x=x: x.of_slices, product, PLAIN, points)  # type: ignore[misc]
        with device(product, values=False, timeline=0, cube_math_type=mode, l2=WARM):
            total = total + sum(launch.time_us for launch in timed_once(x.around))
    return np.asarray(total)

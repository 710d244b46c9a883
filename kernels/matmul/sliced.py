"""The product of FP32 operands in slices: cut, multiplied slice by slice, and put together (`precision/splits`).

Slices of an operand lie one after the other; a core loads a tile of each and multiplies all pairs of the mode while they are
in L1, so that a slice is loaded once for all its products. Sums of one power of two share an accumulator in L0C.
"""

from __future__ import annotations

from typing import NamedTuple

from ...simulator.device import device
from ...simulator.interpreter.tensors import Shape
from ...simulator.l2.state import WARM
from ...simulator.precision import dtypes as ty
from ...simulator.precision.cube_math import Resolution
from ...simulator.precision.splits import SPLITS, Split
from ...simulator.products import Product
from ..operator.plan import PlanContext, Step
from ..operator.tensors import Knobs, Tensor, Tensors, element_type, part_of
from ..running.launching import timed_once
from ..shared.splitting import Largest, combine_step, cut_apart, largest_of
from ..shared.sums import sum_partials_step
from .tiles import product_step


class Slices(NamedTuple):
    """Both operands in slices, and what their scales are made from."""

    a: Tensor
    b: Tensor
    rows: Largest
    columns: Largest


def cut_operands(tensors: Tensors, split: Split, context: PlanContext, steps: list[Step]) -> Slices:
    """Adds the launches that fill the slices."""
    a, b = tensors["a"], tensors["b"]
    first, second = split.counts
    rows, columns = (largest_of(x, split, along, context, steps) for x, along in ((a, 1), (b, 0)))
    left = cut_apart(a, rows, split, first, context, steps)
    return Slices(left, cut_apart(b, columns, split, second, context, steps), rows, columns)


def one_slice(tensors: Tensors, split: Split) -> tuple[Shape, Shape]:
    """A slice of each operand, for the choice of a tiling."""
    kind = element_type(split.slices)
    return Shape(tensors["a"].shape, kind), Shape(tensors["b"].shape, kind)


def product_of(
    slices: Slices, tiling: Knobs, found: Resolution, context: PlanContext, steps: list[Step]
) -> Tensor:
    """out (M, N) fp32 of the slices, by launches added to `steps`: one for each accumulator, then what combines them."""
    split, parts = found.split, tiling["split_k"]
    assert split is not None
    sums, cores = _sums(slices, split, context), context.product.vector_cores
    for number, products in enumerate(split.groups):
        one = part_of(sums, number)
        target = one if parts == 1 else context.tensor((parts, *one.shape), ty.float32)
        steps.append(product_step(slices.a, slices.b, target, tiling, found, products))
        if target is not one:
            steps.append(sum_partials_step(target, one, cores, tiling["buffers"]))
    return put_together(slices, sums, split, context, steps)


def _sums(slices: Slices, split: Split, context: PlanContext) -> Tensor:
    """Where the accumulators go."""
    kind = ty.int32 if split.slices == "int8" else ty.float32
    return context.tensor((len(split.groups), slices.a.shape[-2], slices.b.shape[-1]), kind)


def put_together(
    slices: Slices, sums: Tensor, split: Split, context: PlanContext, steps: list[Step]
) -> Tensor:
    """The result: the only sum as it is, or what a launch makes of sums and scales."""
    if split.top is None:
        return part_of(sums, 0)
    out, cores = context.tensor(sums.shape[1:], ty.float32), context.product.vector_cores
    steps.append(combine_step(sums, slices.rows, slices.columns, split, out, cores))
    return out


def around_us(tensors: Tensors, product: Product, mode: str) -> float:
    """Time in us of the launches before and after the products, of which no tiling changes any; what they read is in L2."""
    split, context = SPLITS[mode], PlanContext(product, False)
    steps: list[Step] = []
    with device(product, values=False, timeline=0, cube_math_type=mode, l2=WARM):
        slices = cut_operands(tensors, split, context, steps)
        put_together(slices, _sums(slices, split, context), split, context, steps)
        return float(sum(x.time_us for x in timed_once(steps)))

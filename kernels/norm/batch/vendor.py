"""What the vendor's library launches for BatchNormReduceBackward (hicann/ops-nn, norm/sync_batch_norm_backward_reduce).

A chain of general kernels: everything is cast to FP32, dy * x is written out in FP32, two ReduceSum launches sum it and
dy, a kernel on (C,) vectors forms sum(dy * x) - mean * sum(dy) and its product with invstd, and outputs of another type
are cast. 16-bit inputs move 32 bytes per element, FP32 inputs 20, against 4 and 8 of one fused pass.
"""

from __future__ import annotations

from ....simulator.precision.dtypes import float32
from ...operator.layout import up
from ...operator.plan import Made, PlanContext, Step
from ...operator.tensors import Knobs, Tensor, part_of
from ...shared.casts import cast_step, converted
from ...shared.sums import REPEAT
from ..planes import Planes
from .choice import ChannelTensors, choose, finish_step, sum_steps
from .tiles import multiply

MULTIPLY_BLOCK = 8192
# Of a core in the last kernel: 4096 bytes of FP32 (hicann/ops-nn, op_host of the AscendC version).
LEAST_CHANNELS = 1024


def vendor_steps(given: ChannelTensors, view: Planes, knobs: Knobs, context: PlanContext) -> Made:
    """The chain and its tiling; sums by the general reduction, uncentred."""
    steps: list[Step] = []
    dy, x, mean, invstd = (
        t if t is None else converted(t, float32, context, steps)
        for t in (given.dy, given.x, given.mean, given.invstd)
    )
    assert dy is not None
    tiling = choose(
        view, 4, False, {**knobs, "strategy": "auto", "form": "uncentred", "banks": "packed"}, context
    )
    sums = context.tensor((2, view.channels), float32)
    if x is not None:
        product = context.tensor(x.shape, float32)
        steps.append(_multiply_step(dy, x, product, context.product.vector_cores))
        steps += _reduce(product, part_of(sums, 1), view, tiling, context)
    steps += _reduce(dy, part_of(sums, 0), view, tiling, context)
    wide = tuple(None if o is None else context.tensor(o.shape, float32) for o in given.outputs)
    whole = ChannelTensors(dy, x, mean, invstd, wide)
    cols = up(min(view.channels, LEAST_CHANNELS), REPEAT)
    steps.append(finish_step(whole, sums, tiling, context.product.vector_cores, cols))
    for out, found in zip(given.outputs, wide, strict=True):
        if out is not None and found is not None:
            steps.append(cast_step(found, out, context.product.vector_cores, knobs["buffers"]))
    return steps, {**tiling, "strategy": "vendor"}


def _multiply_step(x: Tensor, y: Tensor, out: Tensor, cores: int) -> Step:
    block = min(MULTIPLY_BLOCK, up(-(-x.size // cores), 8))
    grid = min(cores, -(-x.size // block))
    return Step(multiply, grid, {"x_ptr": x, "y_ptr": y, "out_ptr": out, "n": x.size, "BLOCK": block})


def _reduce(x: Tensor, out: Tensor, view: Planes, tiling: Knobs, context: PlanContext) -> list[Step]:
    return sum_steps(ChannelTensors(x, None, None, None, (out, None, None, None)), view, tiling, context)

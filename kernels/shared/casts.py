# mypy: disable-error-code="no-untyped-def"
"""Launches that convert a whole tensor to another element type."""

from __future__ import annotations

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.precision.dtypes import DType
from ..operator.layout import up
from ..operator.plan import PlanContext, Step
from ..operator.tensors import Tensor, dtype_of

CAST_BLOCK = 8192  # elements


@sim.jit
def cast_flat(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = x in the type of out, n elements; programs take blocks in turn."""
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n, other=0.0)
        tl.store(out_ptr + at, x.to(out_ptr.dtype.element_ty), mask=at < n)


def cast_step(x: Tensor, out: Tensor, cores: int, buffers: int) -> Step:
    """Launch that converts a tensor on the Vector units, as the host library does before the product."""
    block = min(CAST_BLOCK, up(x.size, 16))
    arguments = {"x_ptr": x, "out_ptr": out, "n": x.size, "BLOCK": block, "multibuffer": buffers}
    return Step(cast_flat, min(cores, -(-x.size // block)), arguments)


def converted(x: Tensor, dtype: DType, context: PlanContext, steps: list[Step], buffers: int = 2) -> Tensor:
    """`x` itself if it is of that type, else a tensor that one more launch, added to `steps`, fills."""
    if dtype_of(x) == dtype:
        return x
    out = context.tensor(x.shape, dtype)
    steps.append(cast_step(x, out, context.product.vector_cores, buffers))
    return out

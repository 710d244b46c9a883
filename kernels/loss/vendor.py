# mypy: disable-error-code="no-untyped-def"
"""What the vendor's experimental kernel launches for the gradient of binary cross-entropy on logits, with its tiling.

hicann/ops-nn, experimental/loss/sigmoid_cross_entropy_with_logits_grad_v2: every tensor has one type and the shape of the
logits, so that casts and inputs that broadcast are written out first, and tiles have one copy. Of the memory it keeps
back, only the two values for all cases are known; tuned cases keep less.
"""

from __future__ import annotations

from typing import Any

from ...simulator.precision import dtypes as ty
from ..operator.plan import Made, PlanContext, Step
from ..operator.tensors import Knobs, Options, Tensor, Tensors, dtype_of
from ..shared.broadcasting import broadcast_step
from ..shared.casts import cast_step, converted
from .tiles import BROADCAST, make_step, tile_elements

ORDER = ("grad_output", "x", "target", "weight", "pos_weight")
RESERVE = {4: 16 << 10, 2: 64 << 10}  # bytes of UB kept back, by the size of an element
LEAST_SHARE = 1024  # elements that are worth a core
# Elements up to which float32 with both weights takes so many cores: waking more would cost more than they save.
FEWER_CORES = ((8192, 8), (65536, 16), (524288, 24), (1048576, 32))
CAST_BUFFERS = 2
# The 910A, whose older kernel keeps infinities from its reciprocal: logits below this count as it.
TRAINING = 1001
LEAST_LOGIT = -88.7


def vendor_tile(ub_bytes: int, itemsize: int, weights: int) -> int:
    """Elements of a tile of four tensors and `weights`, with FP32 working copies: 3, or 5 for 16-bit types."""
    working = 3 if itemsize == 4 else 5
    blocks = (ub_bytes - RESERVE[itemsize]) // 32 // (4 + weights + working * 4 // itemsize)
    return blocks * 32 // itemsize


def vendor_cores(n: int, rank: int, dtype: ty.DType, weights: int, reduction: str, have: int) -> int:
    """Cores for n elements, with the windows that were tuned by hand."""
    found = min(-(-n // LEAST_SHARE), have)
    if dtype == ty.float32 and weights == 2:
        found = min([found, *(cores for most, cores in FEWER_CORES if n <= most)])
    if dtype == ty.float32 and rank in (3, 4) and reduction == "sum" and 250_000 <= n <= 950_000:
        found = min(40, have)
    if dtype == ty.bfloat16 and rank == 3 and reduction == "mean" and 20_000 <= n <= 30_000:
        found = min(25, have)
    return found


def vendor_steps(tensors: Tensors, out: Tensor, options: Options, knobs: Knobs, context: PlanContext) -> Made:
    """Casts, launches that write out what broadcasts, the kernel, the cast of its result; and the knobs as used."""
    x, cores = tensors["x"], context.cores(knobs["cores"])
    kinds = {dtype_of(t) for t in tensors.values()}
    common = kinds.pop() if len(kinds) == 1 else ty.float32
    steps: list[Step] = []
    full = {n: _whole(tensors[n], x, common, context, steps) for n in ORDER if n in tensors}
    result = out if dtype_of(out) == common else context.tensor(x.shape, common)
    tiling = _tiling(full, x, common, options, knobs, context)
    least = LEAST_LOGIT if context.product.integer("product.npu_arch") == TRAINING else None
    step = make_step(full, result, options, tiling, least)
    steps.append(step)
    if result is not out:
        steps.append(cast_step(result, out, cores, CAST_BUFFERS))
    return steps, {**tiling, "block": tile_elements(step), "cores": step.grid}


def _tiling(
    full: Tensors, x: Tensor, common: ty.DType, options: Options, knobs: Knobs, context: PlanContext
) -> dict[str, Any]:
    weights = sum(n in full for n in BROADCAST[1:])
    most = vendor_tile(context.product.ub_bytes, common.itemsize, weights)
    cores = context.cores(knobs["cores"])
    rule = vendor_cores(x.size, len(x.shape), common, weights, options["reduction"], cores)
    return {**knobs, "block": knobs["block"] or most, "cores": knobs["cores"] or rule, "buffers": 1}


def _whole(tensor: Tensor, like: Tensor, dtype: ty.DType, context: PlanContext, steps: list[Step]) -> Tensor:
    """The tensor in that type and in the shape of `like`."""
    cores = context.product.vector_cores
    tensor = converted(tensor, dtype, context, steps, CAST_BUFFERS)
    if tensor.size == like.size:
        return tensor
    whole = context.tensor(like.shape, dtype)
    steps.append(broadcast_step(tensor, whole, cores))
    return whole

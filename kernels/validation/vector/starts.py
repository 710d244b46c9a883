# mypy: disable-error-code="no-untyped-def"
"""The start of a vendor's kernel that reads a long tiling and chooses one of many schedules when it runs."""

from __future__ import annotations

from functools import lru_cache

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.products import Product
from ..settings import Settings
from ..table import Row

# Starts of an element-wise kernel on as many cores that the start of another kernel takes. Sums, means, transpositions and
# logarithms of softmax: what the smallest of each kind take, with next to no work: msi-alexnet-reduce_sum-3 (2.6 of them),
# msi-alexnet-transpose-3 (2.6). Kernels that only have a tiling of their own: msi-qwen-range-2.
SLOW_START, OWN_START = 2.6, 1.8
STARTS = {
    **dict.fromkeys(("transpose", "log_softmax", "log_softmax_grad"), SLOW_START),
    **dict.fromkeys(("range", "dropout", "slice", "concat", "gather", "pad", "tile"), OWN_START),
    **dict.fromkeys(("avgpool", "avgpool_grad"), OWN_START),
}
LANES = 8


@sim.jit
def next_to_nothing(y_ptr, LANES: tl.constexpr):
    """A block of 32 bytes for each core."""
    at = tl.program_id(0) * LANES + tl.arange(0, LANES)
    tl.store(y_ptr + at, tl.zeros((LANES,), tl.float32))


def slow_start_us(row: Row, starts: float = 0.0) -> float:
    """What its start takes beyond that of an element-wise kernel on the row's cores, in their own time (time=core), too.

    starts: how many of these it takes; without it what is known of the row's operator.
    Kernels that are launched again and again take as long (fg2162-[1024,1]-torch): what they fetch is new with each launch.
    """
    more = (starts or STARTS.get(row.op, 1.0)) - 1.0
    return more * _start_us(row.product, Settings(row).number("cores")) if more else 0.0


@lru_cache(maxsize=256)
def _start_us(product: Product | str, cores: int) -> float:
    """Time of a kernel with next to no work on so many cores, whose code is fetched first. Once for each product: rows are
    predicted by hundreds, and those of a fit with the same few changed products."""
    with sim.device(product=product, values=False, timeline=0, cold_code=True):
        start = next_to_nothing.time((cores,), sim.shape(cores * LANES, "float32"), LANES=LANES)
    return float(start.time_us)

# mypy: disable-error-code="no-untyped-def"
"""The start of a vendor's kernel that reads a long tiling and chooses one of many schedules when it runs."""

from __future__ import annotations

from functools import lru_cache

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.products import Product
from ..settings import Settings
from ..table import Row

# Starts of an element-wise kernel on as many cores that the start of such a kernel takes: sums, means, transpositions,
# ranges, logarithms of softmax. The middle of what the smallest of each kind take, with next to no work:
# msi-alexnet-reduce_sum-3 (2.8 of them), msi-alexnet-transpose-3 (2.8), msi-qwen-range-2 (1.8).
SLOW_START = 2.8
LANES = 8


@sim.jit
def next_to_nothing(y_ptr, LANES: tl.constexpr):
    """A block of 32 bytes for each core."""
    at = tl.program_id(0) * LANES + tl.arange(0, LANES)
    tl.store(y_ptr + at, tl.zeros((LANES,), tl.float32))


def slow_start_us(row: Row) -> float:
    """What its start takes beyond that of an element-wise kernel on the row's cores, in their own time (time=core), too.

    Kernels that are launched again and again take as long (fg2162-[1024,1]-torch): what they fetch is new with each launch.
    """
    return (SLOW_START - 1.0) * _start_us(row.product, Settings(row).number("cores"))


@lru_cache(maxsize=256)
def _start_us(product: Product | str, cores: int) -> float:
    """Time of a kernel with next to no work on so many cores, whose code is fetched first. Once for each product: rows are
    predicted by hundreds, and those of a fit with the same few changed products."""
    with sim.device(product=product, values=False, timeline=0, cold_code=True):
        start = next_to_nothing.time((cores,), sim.shape(cores * LANES, "float32"), LANES=LANES)
    return float(start.time_us)

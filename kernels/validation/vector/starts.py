# mypy: disable-error-code="no-untyped-def"
"""The start of a vendor's kernel that has more code than an element-wise one, or chooses its schedule when it runs."""

from __future__ import annotations

from functools import lru_cache

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.products import Product, load_product
from ..settings import Settings
from ..table import Row

# Sums, means, transpositions, softmax: starts of an element-wise kernel on as many cores that theirs takes, by the smallest
# of two kinds, with next to no work: msi-alexnet-reduce_sum-3 (2.6), msi-alexnet-transpose-3 (2.6).
SLOW_START = 2.6
LANES = 8
# Codes of an element-wise kernel that the code of one with rows, planes, several stages or a tiling of its own is as long
# as: the middle of msi-qwen-concat-1 (22 cores, 2.8) and msi-alexnet-avgpool_grad-1 (48 cores, 2.4), with next to no work.
LARGER_CODE = 2.6


def larger_code_us(row: Row) -> float:
    """What fetching it takes beyond the code of an element-wise kernel, all cores side by side; nothing in a loop."""
    if not _after_others(row):
        return 0.0
    each = load_product(row.product).number("launch.cold_code_us_per_core")
    return (LARGER_CODE - 1.0) * Settings(row).number("cores") * each


def slow_code_us(row: Row) -> float:
    """`slow_start_us` after other kernels, nothing in a loop: of kernels that nobody measured in one (softmax)."""
    return slow_start_us(row) if _after_others(row) else 0.0


def _after_others(row: Row) -> bool:
    return bool(Settings(row).device_options()["cold_code"])


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

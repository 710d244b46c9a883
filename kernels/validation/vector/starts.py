# mypy: disable-error-code="no-untyped-def"
"""The start of a vendor's kernel that has more code than an element-wise one, or chooses its schedule when it runs."""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.products import load_product
from ..settings import Settings, tensor
from ..table import Row

# Starts of an element-wise kernel on as many cores that the start of such a kernel takes: sums, means, transpositions,
# softmax. What the smallest of two kinds take, with next to no work: msi-alexnet-reduce_sum-3, msi-alexnet-transpose-3.
SLOW_START = 2.8
LANES = 8
# Codes of an element-wise kernel that the code of one with rows, planes, masks or stages is as long as: the middle of
# msi-qwen-concat-1 (22 cores, 2.8) and msi-alexnet-avgpool_grad-1 (48 cores, 2.4), which do next to no work.
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
    s = Settings(row)
    cores = s.number("cores")
    with sim.device(**s.device_options() | {"cold_code": True}):
        start = next_to_nothing.time((cores,), tensor("fp32", cores * LANES), LANES=LANES)
    return (SLOW_START - 1.0) * float(start.time_us)

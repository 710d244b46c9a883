# mypy: disable-error-code="no-untyped-def"
"""The start of a vendor's kernel that reads a long tiling and chooses one of many schedules when it runs."""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.products import load_product
from ..settings import Settings, tensor
from ..table import Row

# Sums, means, transpositions, logarithms of softmax: starts of an element-wise kernel on as many cores that theirs takes, by
# the smallest of two kinds, with next to no work: msi-alexnet-reduce_sum-3 (2.6), msi-alexnet-transpose-3 (2.6).
SLOW_START = 2.6
SLOW = ("transpose", "log_softmax", "log_softmax_grad")
# Other kernels that are not made for element-wise expressions: what they fetch more, in parts of the code of one that is, by
# msi-qwen-range-2. It goes by the cores: on one core a slice takes 0.4 us more than a copy, on 40 a range takes 5 us more.
OWN_CODE = 1.3
OWN = ("range", "dropout", "slice", "concat", "gather", "pad", "tile", "avgpool", "avgpool_grad")
LANES = 8


@sim.jit
def next_to_nothing(y_ptr, LANES: tl.constexpr):
    """A block of 32 bytes for each core."""
    at = tl.program_id(0) * LANES + tl.arange(0, LANES)
    tl.store(y_ptr + at, tl.zeros((LANES,), tl.float32))


def slow_start_us(row: Row, slow: bool = False) -> float:
    """What its start takes beyond that of an element-wise kernel on the row's cores, in their own time (time=core), too.

    slow: whether it is slow whatever the row's operator.
    Kernels that are launched again and again take as long (fg2162-[1024,1]-torch): what they fetch is new with each launch.
    """
    s = Settings(row)
    if row.op in OWN:
        return OWN_CODE * s.number("cores") * load_product(row.product).number("launch.cold_code_us_per_core")
    if not slow and row.op not in SLOW:
        return 0.0
    cores = s.number("cores")
    with sim.device(**s.device_options() | {"cold_code": True}):
        start = next_to_nothing.time((cores,), tensor("fp32", cores * LANES), LANES=LANES)
    return (SLOW_START - 1.0) * float(start.time_us)

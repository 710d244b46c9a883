# mypy: disable-error-code="no-untyped-def"
"""The start of a vendor's kernel that reads a long tiling and chooses one of many schedules when it runs."""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import language as tl
from ..settings import Settings, tensor
from ..table import Row

# Starts of an element-wise kernel on as many cores that the start of such a kernel takes: sums, means, transpositions,
# ranges, logarithms of softmax. Fitted on the smallest of each kind, with next to no work: msi-alexnet-reduce_sum-3 (3.3 of
# them), msi-alexnet-transpose-3 (3.5), msi-qwen-range-2 (2.1).
SLOW_START = 2.9
LANES = 8


@sim.jit
def next_to_nothing(y_ptr, LANES: tl.constexpr):
    """A block of 32 bytes for each core."""
    at = tl.program_id(0) * LANES + tl.arange(0, LANES)
    tl.store(y_ptr + at, tl.zeros((LANES,), tl.float32))


def slow_start_us(row: Row) -> float:
    """What its start takes beyond that of an element-wise kernel on the row's cores, in their own time (time=core), too."""
    s = Settings(row)
    cores = s.number("cores")
    with sim.device(**s.device_options()):
        start = next_to_nothing.time((cores,), tensor("fp32", cores * LANES), LANES=LANES)
    return (SLOW_START - 1.0) * float(start.time_us)

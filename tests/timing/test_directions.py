"""Which arguments a kernel reads and which it writes, through selections, loops and atomics."""

from __future__ import annotations

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl


@sim.jit
def all_sorts(a_ptr, b_ptr, sum_ptr, old_ptr, both_ptr, unused_ptr, flag, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    source = a_ptr if flag > 0 else b_ptr
    x = tl.zeros((BLOCK,), tl.float32)
    for _iteration in range(2):
        x = tl.load(source + at)
        tl.atomic_add(sum_ptr + at, x)
        source += BLOCK
    before = tl.atomic_max(old_ptr + at, x)
    tl.store(both_ptr + at, tl.load(both_ptr + at) + before)


def test_each_argument_is_what_the_kernel_does_with_it():
    x = sim.shape(256, "float32")
    (found,) = all_sorts.time((1,), x, x, x, x, x, x, 1, BLOCK=64).launches
    assert found.directions == {
        "a_ptr": "in",
        "b_ptr": "in",
        "sum_ptr": "out",
        "old_ptr": "in out",
        "both_ptr": "in out",
    }
    with sim.device("ascend910b3", timeline=0):
        assert all_sorts.time((1,), x, x, x, x, x, x, 1, BLOCK=64).launches[0].directions == {}

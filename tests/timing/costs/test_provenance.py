"""Which share of a time rests on figures of which grade."""

import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.kernels import run_op


@sim.jit
def add(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, x + x, mask=at < n)


@sim.jit
def sines(x_ptr, y_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.sin(tl.load(x_ptr + at)))


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    "case", [("rms_norm_grad", "tiny"), ("matmul", "tiny"), ("bce_with_logits_backward", None)]
)
@pytest.mark.parametrize("product", ["ascend910b3", "ascend310p"])
def test_the_shares_of_all_grades_are_the_whole_time(case, product):
    run = run_op(case[0], case=case[1], dtype="float16", product=product, values=False).run
    assert sum(run.grades.values()) == pytest.approx(run.time_us, rel=1e-9)
    assert set(run.grades) <= set("ABCD")


def test_a_sequence_that_nobody_published_counts_as_assumed():
    shape = sim.shape(4096, "float32")
    with sim.device("ascend910b3"):
        plain = add.time((1,), shape, shape, 4096, BLOCK=4096).launches[0]
        assumed = sines.time((1,), shape, shape, BLOCK=4096).launches[0]
    assert assumed.grades["D"] > plain.grades.get("D", 0.0)

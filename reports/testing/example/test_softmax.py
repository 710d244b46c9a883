"""What the kernel computes, how long it takes, and what it needs."""

import numpy as np
import pytest
from softmax import softmax

import ascendtile.simulator as sim
from ascendtile.reports.testing import assert_cycles, assert_fits, assert_no_faults, assert_ulp


def test_values():
    x = np.random.default_rng(0).standard_normal((70, 500)).astype(np.float16)
    y = np.empty_like(x)
    with sim.device(check=True, time=False):
        run = softmax(x, y)
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    assert_ulp(y, e / e.sum(axis=1, keepdims=True), max=0.6)
    assert_no_faults(run)


@pytest.mark.parametrize("product", ["ascend910b3", "ascend310p"])
@pytest.mark.parametrize("cols", [512, 1024])
def test_time(product, cols):
    x = sim.shape((4096, cols), "float16")
    with sim.device(product, values=False):  # time only: no memory is touched
        run = softmax(x, x)
    assert_cycles(run)  # as ascendtile-baseline.json has it
    assert_fits(run, ub="160KiB")

"""A project that times 64 kernels: four cases of each of our 16 operators at their real sizes."""

import pytest

from ascendtile.kernels import get_operator, operators, run_op
from ascendtile.reports.testing import assert_cycles

KERNELS = [(name, case) for name in operators() for case in list(get_operator(name).cases)[:4]]


@pytest.mark.parametrize(("name", "case"), KERNELS)
def test_time(name, case):
    assert_cycles(run_op(name, case, "float16", values=False))

"""The operators of this package are right kernels: no check takes them for wrong ones."""

from __future__ import annotations

import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import get_operator, operators, run_op


@pytest.mark.drawn(7)
@pytest.mark.parametrize("compiler", ["ascendc", "triton-ascend"])
@pytest.mark.parametrize("name", operators())
def test_an_operator_has_no_faults_with_every_check(name: str, compiler: str) -> None:
    case = "tiny" if "tiny" in get_operator(name).cases else next(iter(get_operator(name).cases))
    with sim.device(check=True, compiler=compiler):
        run = run_op(name, case, errors=False).run
    assert run.options["check"] is True
    assert run.faults == ()

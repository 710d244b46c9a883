"""Laws of errors in explorations of a kernel: the objective "error", and limits on figures of a point."""

from __future__ import annotations

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import UsageError
from ascendtile.tiling import explore


@sim.jit
def summed(x_ptr, out_ptr, n, BLOCK: tl.constexpr, HALF: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float16 if HALF else tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x_ptr + start + tl.arange(0, BLOCK)).to(total.dtype)
    tl.store(out_ptr, tl.sum(total.to(tl.float32), axis=0))


def arguments():
    x = np.random.default_rng(0).random(4096).astype(np.float16)
    return {"x_ptr": x, "out_ptr": np.zeros(1, np.float32), "n": 4096}


def explored(**more):
    return explore(summed, arguments(), space={"BLOCK": [64, 256], "HALF": [True, False]}, grid=(1,), **more)


def test_the_smallest_error_wins_and_is_that_of_the_kernels_own_float64_values():
    found = explored(objective="error")
    assert len(found.found) == 4
    assert not found.best.point["HALF"]
    assert found.best.evaluation.error == min(x.evaluation.error for x in found.found)
    with sim.device(errors=True):
        given = arguments()
        run = summed[(1,)](**given, **found.best.point)
    assert found.best.evaluation.error == 2.0 ** -run.errors["out_ptr"].effective_bits


def test_no_point_above_a_limit_has_a_result_and_the_fastest_below_it_wins():
    every = explored(objective="error").found
    limit = sorted(x.evaluation.error for x in every)[2]
    found = explored(constraint=f"error<{limit!r}")
    assert len(found.found) == 2
    assert all(x.evaluation.error < limit for x in found.found)
    assert found.best.time_us == min(x.time_us for x in found.found)
    assert sum(found.failed.values()) == 2


def test_a_reference_of_the_device_is_what_errors_are_against():
    with sim.device(reference=lambda x_ptr: np.array([x_ptr.sum() * 2])):
        found = explored(objective="error")
    assert found.best.evaluation.error == pytest.approx(0.5, rel=1e-2)


@pytest.mark.parametrize("text", ["error", "error<", "bits<3", "error<0", "error<x"])
def test_a_limit_that_is_none_is_refused_with_its_form(text):
    with pytest.raises(UsageError, match="a constraint is a function of knobs, or error<NUMBER"):
        explored(constraint=text)


def test_errors_of_shapes_are_refused():
    given = {**arguments(), "x_ptr": sim.shape(4096, "float16")}
    axes = {"BLOCK": [64], "HALF": [True]}
    with pytest.raises(UsageError, match="errors need data, and 'x_ptr' is a shape"):
        explore(summed, given, space=axes, grid=(1,), objective="error")

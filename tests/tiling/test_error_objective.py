"""Laws of errors in explorations of a kernel: the objective "error", and limits on figures of a point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import UsageError
from ascendtile.tiling import Exploration, explore
from ascendtile.tiling.evaluate import Evaluation
from ascendtile.tiling.results.exploration import Found, best_words
from ascendtile.tiling.results.pareto import TIE, tied


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
    assert found.best.evaluation.error <= 1.01 * min(x.evaluation.error for x in found.found)
    with sim.device(errors=True):
        given = arguments()
        run = summed[(1,)](**given, **found.best.point)
    assert found.best.evaluation.error == 2.0 ** -run.errors["out_ptr"].effective_bits


def judged(*figures):
    found = tuple(Found({"B": k}, Evaluation(t, errors={"y": e})) for k, (t, e) in enumerate(figures))
    axes = {"B": tuple(range(len(figures)))}
    return Exploration("x", "x", None, "error", 9, 9, {}, 0, found, {}, 0, 0.0, True, "", axes)


def test_of_errors_within_one_percent_the_fastest_is_best_and_alone_on_the_front():
    found = judged((11.3, 1.760e-4), (8.5, 1.764e-4), (9.0, 1.9e-4), (5.0, 3.0e-4))
    assert [x.point["B"] for x in found.ranked] == [1, 0, 2, 3]
    assert [x.point["B"] for x in found.pareto] == [3, 1]
    assert best_words(found.found, "error").startswith("best 0.0001764, the fastest of those within 1%")


def test_an_exploration_by_error_shows_errors_and_judges_knobs_by_them():
    found = judged((10.0, 1e-4), (10.0, 3e-4))
    assert found.sensitivity() == pytest.approx({"B": 2.0})
    assert "error with the worst value over that with the best: B +200" in str(found)
    assert "mean |error| over mean |result|" in str(found)
    assert judged((1.0, 0.0), (1.0, 0.0)).sensitivity() == {"B": 0.0}


@settings(max_examples=30)
@given(st.lists(st.floats(0, 1e3)))
def test_tied_errors_keep_their_order_and_move_by_at_most_one_percent(errors):
    values = np.array(errors)
    found = tied(values)
    assert (found <= values).all()
    assert (values <= found * (1 + TIE)).all()
    order = np.argsort(values, kind="stable")
    assert (np.diff(found[order]) >= 0).all()


def test_no_point_above_a_limit_has_a_result_and_the_fastest_below_it_wins():
    every = explored(objective="error").found
    limit = sorted(x.evaluation.error for x in every)[2]
    found = explored(constraint=f"error<{limit!r}")
    assert len(found.found) == 2
    assert all(x.evaluation.error < limit for x in found.found)
    assert found.best.time_us == min(x.time_us for x in found.found)
    assert not found.failed
    ((why, count),) = found.refused.items()
    nearest = min(x.evaluation.error for x in every if x.evaluation.error >= limit)
    assert (count, found.legal) == (2, 2)
    assert why == f"do not keep error<{limit:.10g}; the nearest has {nearest:,.6g}"


def test_of_tilings_whose_values_differ_the_one_nearer_to_float64_is_named_where_errors_are_known():
    notes = {
        kind: [x for x in explored(objective=kind).notes if "values differ" in x]
        for kind in ("error", "time")
    }
    assert any("HALF=False is nearer to float64, with an error of" in x for x in notes["error"])
    assert any('objective="error" says which is nearer' in x for x in notes["time"])
    assert not any("wrong" in x for kind in notes.values() for x in kind)


def test_where_no_point_keeps_a_limit_the_nearest_figure_is_told():
    with pytest.raises(
        UsageError, match=r"all 4 points that were tried do not keep ub<2 bytes; the nearest has \d+"
    ):
        explored(constraint="ub<2")


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

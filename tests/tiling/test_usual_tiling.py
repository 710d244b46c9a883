"""What an operator chooses by itself is the first point of every exploration: no best is slower than no exploration."""

from __future__ import annotations

import pytest

from ascendtile.kernels import run_op
from ascendtile.tiling import explore

# The operator's choice: beside the axes, on them, with a name that a rule refuses, and one that cannot be asked for.
CASES = {
    "beside": ("bce_with_logits", "tiny"),
    "on": ("rms_norm", {"rows": 64, "cols": 64}),
    "second name": ("matmul", "tiny"),
    "not asked for": ("bce_with_logits_backward", {"shape": (8, 1000)}),
}


def usual_us(op, case, **more):
    return run_op(op, case=case, dtype="float16", values=False, **more).time_us


@pytest.mark.parametrize("what", CASES)
def test_the_usual_tiling_is_tried_first(what):
    op, case = CASES[what]
    found = explore(op, case=case, dtype="float16", budget=1)
    assert [x.time_us for x in found.found] == [usual_us(op, case)]
    assert found.size == found.legal + sum(found.refused.values())
    assert all(found.found[0].point[n] in values for n, values in found.axes.items())


def test_no_proved_best_is_slower_than_the_usual_tiling():
    found = explore("bce_with_logits", case="tiny", dtype="float16")
    assert found.optimal
    assert found.best.time_us == min(x.time_us for x in found.found) <= usual_us("bce_with_logits", "tiny")
    beside = {"block": 400, "cores": 1, "buffers": 2}
    assert (found.size, found.legal) == (11, 11)
    assert found.bounded == 10
    assert any("block=400" in words and "chooses by itself" in words for words in found.notes)
    assert found.found[0].point == beside
    assert found.axes["block"] == tuple(sorted(found.axes["block"]))


def test_values_that_were_given_hold_for_the_usual_tiling():
    """It takes the one value that is given, and is left out where it is none of several."""
    one = explore("bce_with_logits", case="tiny", dtype="float16", space={"block": 64}, budget=1)
    assert one.best.point["block"] == 64
    assert one.best.time_us == usual_us("bce_with_logits", "tiny", tiling={"block": 64})
    several = explore("bce_with_logits", case="tiny", dtype="float16", space={"block": (64, 128)})
    assert {x.point["block"] for x in several.found} <= {64, 128}
    ruled = explore("bce_with_logits", case="tiny", dtype="float16", constraint=lambda block: block < 400)
    assert max(x.point["block"] for x in ruled.found) < 400
    assert ruled.size == 10


@pytest.mark.parametrize("objective", ["time", "ub"])
def test_counts_of_a_space_do_not_depend_on_how_far_the_search_goes(objective):
    """Which points fit is known of those that were placed: these alone move from the legal ones to the refused ones."""
    whole = {"case": {"rows": 64, "cols": 8192}, "dtype": "float16"}
    space = {"cols": (2048, 8192), "rows": (1, 2, 4), "cores": 8}
    one = explore("rms_norm", **whole, space=space, budget=1, objective=objective)
    every = explore("rms_norm", **whole, space=space, objective=objective)
    misfits = {why: n for why, n in every.refused.items() if why.startswith("does not fit in UB: needs ")}
    assert one.size == every.size == every.legal + sum(every.refused.values())
    assert one.refused == {why: n for why, n in every.refused.items() if why not in misfits}
    assert one.legal == every.legal + sum(misfits.values())
    assert every.bounded <= one.legal
    assert every.evaluated + sum(every.failed.values()) <= every.legal

"""Lists of variants: which rows make one, what is picked, what it loses."""

from dataclasses import replace

import pytest

from ascendtile.kernels.validation import Prediction, Result, order_in_words, read_tables, validate
from ascendtile.kernels.validation.accuracy.orders import orders

ROW = next(r for r in read_tables() if r.id == "asc-add8192-c2")


def result(name, tiling, measured, predicted, note="", **changed):
    row = replace(ROW, id=name, tiling=tiling, measured=measured, **changed)
    return Result(row, Prediction(predicted, None, note))


def test_the_pick_is_what_we_predict_to_be_fastest_and_costs_what_the_board_takes_for_it():
    a, b, c = result("a", "n=1", 100.0, 50.0), result("b", "n=2", 80.0, 60.0), result("c", "n=3", 200.0, 90.0)
    (found,) = orders([a, b, c])
    assert (found.variants, found.best, found.picked, found.right) == (3, "n=2", "n=1", False)
    assert found.loss == pytest.approx(100 / 80)
    assert found.spearman == pytest.approx(0.5)
    assert orders([b, c])[0].right
    assert order_in_words([found, *orders([b, c])]) == "best picked in 1 of 2, worst loss 1.25x"
    assert order_in_words([]) == ""


def test_of_equal_predictions_the_slowest_counts_as_picked():
    (found,) = orders([result("a", "n=1", 100.0, 50.0), result("b", "n=2", 80.0, 50.0)])
    assert (found.picked, found.spearman) == ("n=1", None)


def test_variants_that_no_tiling_tells_apart_tie():
    a, b = (result(f"asc-guide-const-{k}", "n=1", time, 50.0) for k, time in enumerate((106.2, 78.7)))
    (found,) = orders([a, b])
    assert (found.best, found.picked) == ("asc-guide-const-1", "asc-guide-const-0")


def test_a_list_is_of_one_source_and_of_the_same_work_and_of_published_tilings():
    a = result("a", "n=1", 100.0, 50.0)
    for other in (
        result("b", "n=2", 80.0, 60.0, source="another"),
        result("b", "n=2", 80.0, 60.0, shapes="4096x4096"),
        result("b", "n=2 times=4", 80.0, 60.0),
        result("b", "n=2 code=cold", 80.0, 60.0),
        result("b", "n=2", 80.0, 60.0, note="no tiling published: best of 3, blocks of 256"),
        result("b", "n=2", 80.0, 60.0, excluded="the board was cold"),
        result("b", "n=1", 80.0, 60.0),
    ):
        assert orders([a, other]) == ()
    assert len(orders([a, result("b", "n=2", 80.0, 60.0, source=f"{ROW.source} (case 3)")])) == 1


@pytest.mark.exhaustive
def test_the_best_variants_of_the_vendors_copies_are_picked():
    """A few lists that take no time; all are in `ascendtile validate`."""
    names = ("asc-gm2ub-5", "asc-gm2ub-6", "asc-gm2l1-1", "asc-gm2l1-2", "mhc-matmul", "fa-1024", "akg-div")
    found = validate([r for r in read_tables() if r.id.startswith(names)], cases=()).orders
    assert len(found) == 5
    assert all(v.right for v in found)


def test_tiles_apart_in_the_banks_cost_the_vector_unit_less_where_they_just_fit():
    """add_high_performance case 6: 16 256 elements leave room for the gap that 16 384 do not."""
    steps = [r for r in read_tables() if r.id in ("asc-add8192-c5", "asc-add8192-c6")]
    (found,) = validate(steps, cases=()).orders
    assert "banks=apart" in found.picked
    assert found.right

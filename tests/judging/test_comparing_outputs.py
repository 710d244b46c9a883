"""When an output is right: by whose rule, in blocks, with NaN and infinities, and by which reference."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.reports.judging.tasks import comparing
from ascendtile.reports.judging.tasks.comparing import checked_positions, compared_output, one_report
from ascendtile.reports.judging.tasks.tolerances import AKG, EXACT, GROUPED, KERNELBENCH, tolerance

FP32 = tolerance(KERNELBENCH, "float32")


def compared(got, want, rule=FP32, exact=None):
    return compared_output("out", got, want, want if exact is None else exact, rule)


@pytest.mark.parametrize(
    ("whose", "dtype", "rtol", "atol", "outside"),
    [
        (KERNELBENCH, "float32", 1e-4, 1e-4, 0),
        (KERNELBENCH, "float16", 1e-2, 1e-2, 0),
        (KERNELBENCH, "bfloat16", 1e-2, 1e-2, 0),
        (GROUPED, "float32", 2**-13, 1e-5, 0),
        (GROUPED, "float16", 2**-10, 1e-3, 0),
        (GROUPED, "bfloat16", 2**-7, 1e-2, 0),
        (AKG, "float16", 0.004, 0, 0.004),
        (AKG, "bfloat16", 0.03, 0, 0.03),
        (AKG, "float32", 0.02, 0, 0.02),
        (AKG, "int8", 0.01, 0, 0.01),
    ],
)
def test_rules_are_those_of_the_benchmarks(whose, dtype, rtol, atol, outside):
    found = tolerance(whose, dtype)
    assert (found.rtol, found.atol, found.outside) == (rtol, atol, outside)
    assert whose in found.source


@pytest.mark.parametrize("whose", [KERNELBENCH, GROUPED])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool"])
def test_integers_are_equal_where_the_benchmark_has_no_rule_for_them(whose, dtype):
    found = tolerance(whose, dtype)
    assert (found.rtol, found.atol, found.outside, found.source) == (0, 0, 0, EXACT.source)
    assert tolerance(AKG, "bool") == tolerance(GROUPED, "bool") == EXACT


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
def test_two_benchmarks_look_at_elements_whatever_the_shape_and_dtype_are_but_for_booleans(dtype):
    assert not tolerance(KERNELBENCH, dtype).any_form
    assert {tolerance(x, dtype).any_form for x in (AKG, GROUPED)} == {dtype != "bool"}


@given(st.integers(1, 3000), st.integers(0, 2**32), st.integers(1, 700))
def test_blocks_add_up_to_the_whole(n, seed, block):
    rng = np.random.default_rng(seed)
    want = rng.normal(size=n).astype(np.float32)
    got = want + rng.normal(scale=1e-4, size=n).astype(np.float32)
    found, before = [], comparing.BLOCK
    for size in (before, block):
        comparing.BLOCK = size
        found.append(compared(got, want))
    comparing.BLOCK = before
    whole, pieces = found
    outside = np.abs(got.astype(float) - want) > 1e-4 + 1e-4 * np.abs(want.astype(float))
    assert whole.outside == pieces.outside == outside.sum()
    assert (whole.max_abs, whole.max_ulp, whole.passed) == (pieces.max_abs, pieces.max_ulp, pieces.passed)
    assert whole.mean_abs == pytest.approx(pieces.mean_abs)
    assert whole.max_abs == np.abs(got.astype(float) - want).max()


def test_one_wrong_element_fails_and_is_named():
    want = np.zeros((3, 5), np.float32)
    got = want.copy()
    got[2, 1] = 0.5
    found = compared(got, want)
    assert not found.passed
    assert (found.outside, found.worst, found.got, found.want) == (1, (2, 1), 0.5, 0.0)
    assert "[2, 1]: 0.5, not 0" in found.message


def test_akgs_rule_lets_a_share_be_wrong_and_no_more():
    want = np.ones(1000, np.float32)
    rule = tolerance(AKG, "float32")
    for wrong, passes in ((20, True), (21, False)):
        got = want.copy()
        got[:wrong] = 2
        assert compared(got, want, rule).passed is passes


def test_akgs_rule_is_absolute_where_the_reference_is_zero():
    rule = tolerance(AKG, "float32")
    assert compared(np.full(4, 0.01, np.float32), np.zeros(4, np.float32), rule).passed
    assert not compared(np.full(4, 0.03, np.float32), np.zeros(4, np.float32), rule).passed


@pytest.mark.parametrize("rule", [FP32, tolerance(AKG, "float32")], ids=["KernelBench", "AKG"])
@pytest.mark.parametrize(
    ("got", "want"), [(np.nan, 1.0), (1.0, np.nan), (np.inf, 1.0), (np.inf, -np.inf), (1.0, np.inf)]
)
def test_what_is_not_finite_on_one_side_fails_by_any_rule(rule, got, want):
    a, w = np.ones(1000, np.float32), np.ones(1000, np.float32)
    a[7], w[7] = got, want
    found = compared(a, w, rule)
    assert not found.passed
    assert "[7]" in found.message


def test_nan_and_infinities_in_the_same_places_pass():
    want = np.array([np.nan, np.inf, -np.inf, 1], np.float32)
    assert compared(want.copy(), want).passed
    assert compared(np.full(3, np.nan, np.float32), np.full(3, np.nan, np.float32)).passed


def test_an_element_near_to_either_reference_passes_and_the_error_is_that_of_float64():
    want = np.full(4, 1.0, np.float32)
    exact = np.full(4, 1.01)
    assert compared(np.full(4, 1.01, np.float32), want, FP32, exact).passed
    found = compared(want.copy(), want, FP32, exact)
    assert found.passed
    assert found.max_abs == pytest.approx(0.01)
    assert not compared(np.full(4, 1.005, np.float32), want, FP32, exact).passed


def test_other_shapes_and_dtypes_fail_with_both_in_the_message():
    want = np.zeros((2, 3), np.float32)
    assert "shape [3, 2], the task's has [2, 3]" in compared(np.zeros((3, 2), np.float32), want).message
    assert "float16, the task's is float32" in compared(np.zeros((2, 3), np.float16), want).message


@pytest.mark.parametrize(
    ("got", "want", "said"),
    [
        (np.ones((1,), np.float32), np.ones((), np.float32), "has shape [1], the task's has []"),
        (np.ones((6,), np.float32), np.ones((2, 3), np.float16), "has shape [6], the task's has [2, 3]"),
        (np.arange(6, dtype=np.int8), np.arange(6, dtype=np.float16), "is int8, the task's is float16"),
        (np.arange(6, dtype=np.float16), np.arange(6, dtype=np.int32), "is float16, the task's is int32"),
        (np.arange(6, dtype=np.int32), np.arange(6, dtype=np.int64), "is int32, the task's is int64"),
    ],
)
@pytest.mark.parametrize("whose", [AKG, GROUPED])
def test_another_form_passes_with_words_where_the_benchmark_looks_at_elements(whose, got, want, said):
    rule = tolerance(whose, want.dtype.name)
    found = compared(got, want, rule)
    assert (found.passed, found.shape, found.dtype) == (True, got.shape, got.dtype.name)
    assert found.message == f"out {said}: {rule.source.partition(':')[0]} compares elements alone"
    bad = compared(got + got.dtype.type(1), want, rule)
    assert (bad.passed, bad.outside) == (False, want.size)
    assert "beyond the tolerance" in bad.message
    fewer = compared(got.reshape(-1)[1:], want, rule)
    assert (fewer.passed, fewer.checked) == (False, 0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_no_integer_is_what_is_not_finite(bad):
    want = np.arange(4, dtype=np.int64)
    got = want.astype(np.float32)
    got[2] = bad
    assert not compared(got, want, tolerance(GROUPED, "int64")).passed


def test_bfloat16_counts_in_its_own_ulp():
    want = np.ones(4, ml_dtypes.bfloat16)
    found = compared(want + np.array(2**-7, ml_dtypes.bfloat16), want, tolerance(GROUPED, "bfloat16"))
    assert found.max_ulp == 1.0
    assert found.passed


def test_integers_must_be_equal_and_have_no_ulp():
    want = np.arange(4, dtype=np.int64) + 2**60
    assert compared(want.copy(), want, EXACT).passed
    found = compared(want + 1, want, EXACT)
    assert (found.passed, found.outside, found.max_ulp) == (False, 4, None)


def test_nothing_to_compare_passes():
    empty = np.zeros((0, 3), np.float32)
    found = compared(empty, empty)
    assert (found.passed, found.checked, found.max_abs) == (True, 0, None)


def test_positions_are_named_in_the_whole_output():
    got, want = np.array([1, 9], np.float32), np.array([1, 2], np.float32)
    found = checked_positions("out", ((4, 5), "float32"), [3, 17], (got, want, want), FP32)
    assert (found.worst, found.checked, found.elements, found.passed) == ((3, 2), 2, 20, False)


def test_of_several_calls_the_one_that_fails_is_told():
    want = np.ones(4, np.float32)
    good, bad = compared(want, want), compared(want + 1, want)
    assert one_report([good, bad]) is bad
    assert one_report([bad, good]) is bad

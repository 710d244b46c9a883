"""Asserts hold or fail by the figures of the run, and a failure names the object, both numbers and the way out."""

from __future__ import annotations

import json
import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.kernels import run_op
from ascendtile.reports.testing import assert_cycles, assert_fits, assert_no_faults, assert_ulp
from ascendtile.simulator.errors import UsageError

from ..support.kernels import add
from .conftest import time_add


def failure(assertion, *given, **named):
    with pytest.raises(AssertionError) as found:
        assertion(*given, **named)
    return str(found.value)


# ---- cycles ----


def test_a_limit_holds_at_the_cycles_themselves_and_fails_below(large):
    assert_cycles(large, max=large.cycles)
    text = failure(assert_cycles, large, max=math.nextafter(large.cycles, 0))
    assert text.startswith(f"add takes {large.cycles:,.0f} cycles, at most ")
    assert "kernels.py:" in text  # the lines that cost most


def test_a_list_is_the_sum_of_its_runs(small, large):
    both = small.cycles + large.cycles
    assert_cycles([small, large], max=both)
    assert "add takes" in failure(assert_cycles, [small, large], max=both * 0.999)


def test_an_operators_result_is_its_run():
    result = run_op("rms_norm_grad", "tiny", "float16", values=False)
    assert_cycles(result, max=result.cycles)


@pytest.mark.parametrize(("rel", "abs_"), [(0.5, 0.0), (0.0, 1e6)])
def test_a_run_may_differ_from_another_by_what_is_allowed(small, large, rel, abs_):
    assert_cycles(large, baseline=large)
    assert_cycles(large, baseline=small, rel=rel, abs=abs_)
    assert "allowed none" in failure(assert_cycles, large, baseline=small)


@pytest.mark.parametrize("faster", [False, True])
def test_a_difference_is_told_by_line_pipe_and_choice_both_ways(small, large, faster):
    before, after = (small, large) if faster else (large, small)
    text = failure(assert_cycles, after, baseline=before)
    part = after.cycles / before.cycles - 1
    assert f"{part:+.0%}".replace("%", " %") in text
    assert f"{before.cycles:,.0f}" in text
    assert f"{after.cycles:,.0f} cycles" in text
    for what in ("tiling BLOCK", "because", "pipes, busy", "AIV.MTE3", "B is"):
        assert what in text


@pytest.mark.parametrize(
    ("other", "what"),
    [({"product": "ascend310p"}, "product"), ({"compiler": "ascendc"}, "compiler")],
)
def test_times_of_another_product_or_compiler_are_not_compared(large, other, what):
    text = failure(assert_cycles, time_add(**other), baseline=large)
    assert f"is of {what} " in text
    assert next(iter(other.values())) in text


def test_bad_arguments_are_named(large):
    run = run_op("rms_norm_grad", "tiny", "float16", time=False)
    with pytest.raises(UsageError, match="rel and abs are of a baseline"):
        assert_cycles(large, max=1e9, rel=0.1)
    for arguments, message in (
        ((large, -1), "max is a number of 0 or more, got -1"),
        ((large, math.nan), "max is a number of 0 or more"),
        ((run, 1), "was run for values only"),
        (([], 1), "there is no run in it"),
        (("a.run", 1), "'a.run' is no run"),
        ((large,), "no test of pytest with the plug-in"),
    ):
        with pytest.raises(UsageError, match=message):
            outside_of_tests(assert_cycles, *arguments)


def outside_of_tests(assertion, *given):
    from ascendtile.reports.testing.baseline import state

    states, state._states = state._states, []
    try:
        assertion(*given)
    finally:
        state._states = states


# ---- fit ----


def test_a_limit_of_a_buffer_holds_at_its_peak_and_fails_below(large):
    peak = large.buffers["UB"].peak_bytes
    assert_fits(large, ub=peak, l1=1)  # which is not used at all
    assert_fits(large, UB=f"{peak / 1024}KiB")
    text = failure(assert_fits, large, ub=peak - 1)
    assert text.startswith(f"add needs {peak} bytes of UB, the test allows {peak - 1}. Alive at the peak:")
    assert "[4096] fp16" in text


def test_a_launch_that_overflows_fails_with_a_size_that_fits():
    text = failure(assert_fits, lambda: time_add(block=131072))
    assert "ub overflow, requires" in text
    assert "65536" in text or "32768" in text


def test_a_run_with_a_larger_buffer_is_held_against_the_product_as_it_is():
    large = time_add(block=65536, overrides={"buffers.ub": "4MiB"})
    assert large.buffers["UB"].peak_bytes > 196608
    assert "ascend910b3 has 196608" in failure(assert_fits, large)


def test_limits_that_make_no_sense_are_refused(large):
    for limits, message in (
        ({"ubb": 1}, "no buffer 'ubb'; there are ub, l1, l0a, l0b, l0c, bt$"),
        ({"ub_reserved_default": 1}, "no buffer 'ub_reserved_default'"),
        ({"ub": "1KB"}, "write KiB"),
        ({"ub": -1}, "must not be negative"),
        ({"ub": None}, "must be a number in bytes"),
    ):
        with pytest.raises(UsageError, match=message):
            assert_fits(large, **limits)


# ---- faults ----


@sim.jit
def meet(out_ptr, step, B: tl.constexpr):
    p = tl.program_id(0)
    tl.store(out_ptr + p * step + tl.arange(0, B), p * 1.0)


def test_faults_are_listed_with_their_lines():
    out = np.zeros(64, np.float32)
    with sim.device(check=True):
        assert_no_faults(meet[(4,)](out, 16, B=16))
        wrong = meet[(4,)](out, 8, B=16)
    text = failure(assert_no_faults, [wrong])
    assert text.startswith(f"meet has {len(wrong.faults)} fault")
    assert "test_asserts.py:" in text


def test_a_run_in_which_nobody_looked_for_faults_is_refused(large):
    with pytest.raises(UsageError, match="run for time only"):
        assert_no_faults(large)


# ---- ulp ----


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_the_ulp_is_that_of_the_type_of_what_was_got(dtype):
    one = np.ones((3, 4), dtype)
    ulp = float(ml_dtypes.finfo(dtype).eps)
    want = np.ones((3, 4))
    want[1, 2] = 1 + 3 * ulp
    assert_ulp(one, want, max=3)
    text = failure(assert_ulp, one, want, max=2.9)
    assert f"3 ulp at [1, 2]: got 1.0, want {1 + 3 * ulp!r}; at most 2.9 ulp are allowed" in text
    assert "11 of 12 are exact" in text


@given(st.floats(width=16, allow_nan=False, allow_infinity=False, min_value=-60000, max_value=60000))
def test_rounding_is_within_half_an_ulp_of_what_was_rounded(x):
    wide = np.array([x * (1 + 2**-12)])
    assert_ulp(wide.astype(np.float16), wide, max=0.5)


@pytest.mark.parametrize(
    ("got", "want"), [(np.nan, 1.0), (1.0, np.nan), (np.inf, 1.0), (-np.inf, np.inf), (1.0, np.inf)]
)
def test_nan_and_infinity_stand_where_they_have_to(got, want):
    same = np.float32([2.0, np.nan, np.inf, got])
    text = failure(assert_ulp, same, np.array([2.0, np.nan, np.inf, want]), max=1e9)
    assert f"[3]: got {got!r}, want {want!r}" in text
    assert_ulp(same, same.astype(np.float64), max=0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ml_dtypes.bfloat16])
def test_what_the_format_rounds_to_infinity_is_that_infinity(dtype):
    top = float(ml_dtypes.finfo(dtype).max)
    tie = top + top * float(ml_dtypes.finfo(dtype).eps) / (2 - float(ml_dtypes.finfo(dtype).eps)) / 2
    for sign in (1, -1):
        infinite = np.array([sign * np.inf], dtype)
        for want in (tie, 2 * top, 1e300):
            assert_ulp(infinite, np.array([sign * want]), max=0.5)
            failure(assert_ulp, infinite, np.array([-sign * want]), max=1e9)
        failure(assert_ulp, infinite, np.array([sign * np.nextafter(tie, 0)]), max=1e9)


def test_what_cannot_be_compared_is_refused():
    one = np.ones(3, np.float32)
    for given_, message in (
        ((one, np.ones(4), 1), r"got has shape \(3,\), want has \(4,\)"),
        ((np.ones(3, np.int32), one, 1), "got is int32, which has no ulp"),
        ((np.ones(3), one, 1), "got is float64, which has no ulp"),
        ((one[:0], one[:0], 1), "nothing to compare"),
        ((one, one, -1), "max is a number of ulp"),
        ((object(), one, 1), "got is object"),
    ):
        with pytest.raises(UsageError, match=message):
            assert_ulp(*given_)


@pytest.mark.extra("torch")
def test_tensors_of_torch_are_read_as_they_are():
    import torch

    got = torch.ones(4, dtype=torch.bfloat16)
    assert_ulp(got, torch.ones(4, dtype=torch.float64), max=0)
    assert "ulp at [2]" in failure(assert_ulp, got, torch.tensor([1.0, 1, 1.1, 1]), max=1)


def test_a_launch_with_values_passes_all_four():
    x = np.arange(64, dtype=np.float16)
    out = np.empty_like(x)
    run = add[(1,)](x, x, out, 64, BLOCK=64)
    assert_cycles(run, max=1e6)
    assert_fits(run, ub="1KiB")
    assert_no_faults(run)
    assert_ulp(out, 2.0 * x.astype(np.float64), max=0)
    assert json.dumps(run.cycles)

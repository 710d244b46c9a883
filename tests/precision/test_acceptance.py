"""Acceptance rules: each passes just inside its threshold and fails just outside."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from ascendtile.simulator.precision.acceptance import DUAL, MIXED, SINGLE, TORCH, Verdict, verdicts
from ascendtile.simulator.precision.metrics import SMALL_VALUES


def verdict(rule: str, actual: Any, golden: Any, fmt: str, **options: Any) -> Verdict:
    found = {v.rule: v for v in verdicts(actual, golden, fmt, **options)}
    return found[rule]


@pytest.mark.parametrize("fmt", SINGLE)
def test_single_benchmark_mere(fmt: str) -> None:
    golden = np.ones(100)
    for factor, passed in ((0.99, True), (1.01, False)):
        got = verdict("single-benchmark", golden * (1 + factor * SINGLE[fmt]), golden, fmt)
        assert got.passed is passed
        assert got.measured["mere"] == pytest.approx(factor * SINGLE[fmt], rel=1e-6)
        assert got.thresholds == {"mere": SINGLE[fmt], "mare": 10 * SINGLE[fmt]}


def test_single_benchmark_mare() -> None:
    golden = np.ones(1000)
    for factor, passed in ((9.9, True), (10.1, False)):
        actual = golden.copy()
        actual[7] += factor * SINGLE["fp16"]
        assert verdict("single-benchmark", actual, golden, "fp16").passed is passed


@pytest.mark.parametrize("fmt", MIXED)
def test_mixed_tolerance_share(fmt: str) -> None:
    rtol, atol, _ = MIXED[fmt]
    golden = np.full(1000, 0.5)
    for count, passed in ((10, True), (11, False)):
        actual = golden.copy()
        actual[:count] += 1.01 * (atol + rtol * 0.5)
        got = verdict("mixed-tolerance", actual, golden, fmt)
        assert got.passed is passed
        assert got.measured["failing_share"] == count / 1000


def test_mixed_tolerance_limit_is_the_larger_of_the_constant_and_32_ulp() -> None:
    golden = np.ones(1000)
    golden[0] = 1000.0  # 32 ulp of FP16 there are 16
    for error, passed in ((15.9, True), (16.1, False)):
        actual = golden.copy()
        actual[0] += error
        got = verdict("mixed-tolerance", actual, golden, "fp16")
        assert got.passed is passed
        assert got.thresholds["max_abs"] == 16
    assert verdict("mixed-tolerance", golden[1:], golden[1:], "fp16").thresholds["max_abs"] == 0.1


@pytest.mark.parametrize("fmt", TORCH)
def test_torch_defaults(fmt: str) -> None:
    rtol, atol = TORCH[fmt]
    golden = np.full(10, 2.0)
    for factor, passed in ((0.99, True), (1.01, False)):
        actual = golden.copy()
        actual[3] += factor * (atol + rtol * 2)
        got = verdict("torch", actual, golden, fmt)
        assert (got.passed, got.fmt) == (passed, fmt)


def test_hf32_is_judged_by_its_own_thresholds_and_torch_by_the_storage() -> None:
    golden = np.ones(10)
    found = {v.rule: v.fmt for v in verdicts(golden, golden, "fp32", golden, compute="hf32")}
    dual = dict.fromkeys((f"dual-benchmark {level}" for level in DUAL), "hf32")
    assert found == {"single-benchmark": "hf32", "mixed-tolerance": "hf32", "torch": "fp32", **dual}


def test_formats_without_thresholds_have_only_the_rules_that_apply() -> None:
    assert [v.rule for v in verdicts([1.0], [1.0], "tf32", [1.0])] == ["torch"]


@pytest.mark.parametrize("level", DUAL)
@pytest.mark.parametrize("figure", ["mare_ratio", "mere_ratio", "rmse_ratio"])
def test_dual_benchmark_ratios(level: str, figure: str) -> None:
    """All errors scaled by one factor scale all three ratios; the strictest limit decides."""
    rng = np.random.default_rng(5)
    golden = rng.uniform(1, 2, 2000)
    noise = rng.uniform(-1, 1, 2000) * 1e-3
    limit = min(DUAL[level][:3])
    for factor, passed in ((limit * 0.99, True), (limit * 1.01, False)):
        actual, reference = golden + factor * noise, golden + noise
        got = verdict(f"dual-benchmark {level}", actual, golden, "fp16", reference=reference)
        assert got.passed is passed
        assert got.measured[figure] == pytest.approx(factor)
        assert got.thresholds["cases"] == DUAL[level][3]


def test_dual_benchmark_has_a_floor_under_the_reference() -> None:
    golden = np.ones(100)
    got = verdict("dual-benchmark L0", golden + 2.0**-17, golden, "fp16", reference=golden)
    assert got.measured["rmse_ratio"] == 0.5


def test_dual_benchmark_counts_errors_of_small_values() -> None:
    below, error = SMALL_VALUES["fp16"]
    golden = np.full(100, below / 2)
    actual, reference = golden.copy(), golden.copy()
    reference[:3] += 1.5 * error
    for count, passed in ((6, True), (7, False)):
        actual[:count] = below / 2 + 1.5 * error
        got = verdict("dual-benchmark L0", actual, golden, "fp16", reference=reference)
        assert got.passed is passed
        assert got.measured["small_errors_ratio"] == count / 3


def test_small_values_are_masked_out_of_the_ratios() -> None:
    golden = np.array([1.0, 1e-6])
    reference = golden * (1 + 1e-3)
    actual = np.array([1 + 1e-3, 2e-6])  # the second has a relative error of 1
    got = verdict("dual-benchmark L2", actual, golden, "fp16", reference=reference)
    assert got.measured["mare_ratio"] == pytest.approx(1)


@pytest.mark.parametrize("rule", ["single-benchmark", "mixed-tolerance", "torch"])
def test_special_values_must_agree(rule: str) -> None:
    golden = np.array([1.0, np.inf, np.nan])
    assert verdict(rule, golden, golden, "fp16").passed
    got = verdict(rule, [1.0, 65504.0, np.nan], golden, "fp16")
    assert not got.passed
    assert "NaN or infinity differs in 1 elements, first at (1,)" in got.words
    assert verdict(rule, [1.0, 65504.0, np.nan], golden, "fp16", infinities=False).passed
    assert not verdict(rule, [1.0, 65504.0, 0.0], golden, "fp16", infinities=False).passed


def test_words_carry_both_numbers() -> None:
    golden = np.ones(100)
    got = verdict("single-benchmark", golden * 1.002, golden, "fp16")
    assert got.words == "single-benchmark (fp16) failed: mere 0.002 >= 0.000977; mare 0.002 < 0.00977"
    got = verdict("torch", golden, golden, "bf16")
    assert got.words == "torch (bf16) passed: failing_share 0 <= 0"


def test_json() -> None:
    got = verdict("torch", [np.nan], [1.0], "fp16").to_dict()
    assert got["measured"] == {"failing_share": "NaN"}
    assert json.loads(json.dumps(got, allow_nan=False)) == got
    assert "no element is finite on both sides" in got["words"]


def test_nothing_to_judge_is_no_pass() -> None:
    for golden in ([np.inf, np.inf], [np.nan, -np.inf]):
        found = verdicts(np.array(golden), np.array(golden), "fp16", reference=np.array(golden))
        assert {v.passed for v in found} == {None}
        assert all("judged nothing" in v.words for v in found)
    assert {v.passed for v in verdicts([np.nan, 1.0], [np.nan, 1.0], "fp16")} == {True}
    assert {v.passed for v in verdicts([np.nan], [1.0], "fp16")} == {False}

"""Error metrics against the formulas written out in numpy, element by element in float64."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.precision.formats import FORMATS
from ascendtile.simulator.precision.metrics import (
    HISTOGRAM_EXPONENTS,
    SMALL_VALUES,
    ErrorReport,
    compare,
    histogram_labels,
)
from ascendtile.simulator.precision.rounding import round_to

Doubles = NDArray[np.float64]


def data(fmt: str, seed: int, n: int = 30_000) -> tuple[NDArray[np.float32], Doubles]:
    """A rounded array with some errors of every size, and its golden with every kind of special value."""
    rng = np.random.default_rng(seed)
    golden = rng.standard_normal(n) * 2.0 ** rng.integers(-20, 18, n)
    golden[:6] = [0.0, 1e-9, 7e4, 3.4e38, -7e4, 2.0**-15]
    actual = golden * (1 + rng.standard_normal(n) * 2.0 ** -rng.integers(5, 30, n))
    with np.errstate(over="ignore"):
        actual = round_to(actual, fmt).astype(np.float32)
    actual[n // 2 : n // 2 + 2000] = golden[n // 2 : n // 2 + 2000].astype(np.float32)
    golden[100:104], actual[100:104] = [np.nan, np.inf, -np.inf, np.inf], [np.nan, np.inf, np.inf, 1.0]
    golden[200:203], actual[200:203] = [1.0, 1.0, np.nan], [np.nan, np.inf, 2.0]
    return actual, golden


def slowly(actual: Any, golden: Doubles, fmt: str, compute: str) -> dict[str, Any]:
    """Every figure of the report, one formula a line."""
    a, g = actual.astype(np.float64), golden
    both = np.isfinite(a) & np.isfinite(g)
    f = FORMATS[fmt]
    x, y = a[both], g[both]
    error = np.abs(x - y)
    rel, ulps = error / (np.abs(y) + 1e-7), error / f.ulp(y)
    small = np.abs(y) < SMALL_VALUES[compute][0]
    finite_overflow = np.abs(y) >= (f.max + f.ulp(f.max) / 2)
    infinite_overflow = np.isinf(a) & np.isfinite(g)
    lost_overflow = np.isnan(a) & np.isfinite(g) & (np.abs(g) >= f.max + f.ulp(f.max) / 2)
    return {
        "compared": both.sum(),
        "exact": (error == 0).sum(),
        "max_abs": error.max(),
        "mean_abs": error.mean(),
        "max_rel": rel.max(),
        "mean_rel": rel.mean(),
        "rmse": np.sqrt(np.mean(error**2)),
        "max_ulp": ulps.max(),
        "p999_ulp": np.percentile(ulps, 99.9, method="inverted_cdf"),
        "effective_bits": -np.log2(error.mean() / np.abs(y).mean()),
        "cosine": np.dot(x, y) / np.linalg.norm(x) / np.linalg.norm(y),
        "error_balance": np.mean((x - y) / np.maximum(np.abs(y), 1)),
        "worst_index": (np.flatnonzero(both)[ulps.argmax()],),
        "max_abs_index": (np.flatnonzero(both)[error.argmax()],),
        "overflow": finite_overflow.sum() + infinite_overflow.sum() + lost_overflow.sum(),
        "nan": np.isnan(a).sum(),
        "underflow": ((x == 0) & (y != 0)).sum(),
        "subnormal": ((x != 0) & (np.abs(x) < f.min_normal)).sum(),
        "nan_mismatch": (np.isnan(a) != np.isnan(g)).sum(),
        "inf_mismatch": ((np.isinf(a) | np.isinf(g)) & (a != g) & ~np.isnan(a) & ~np.isnan(g)).sum(),
        "small_share": small.mean(),
        "small_errors": (error[small] > SMALL_VALUES[compute][1]).sum(),
        "max_rel_large": rel[~small].max(),
        "mean_rel_large": rel[~small].mean(),
        "ulp_histogram": histogram(ulps),
    }


def histogram(ulps: Doubles) -> tuple[int, ...]:
    edges = [0.0, *(2.0**e for e in HISTOGRAM_EXPONENTS), 2.0**HISTOGRAM_EXPONENTS.stop, np.inf]
    counts = np.histogram(ulps[ulps > 0], bins=[np.nextafter(0, 1), *edges[1:]])[0]
    return (int((ulps == 0).sum()), *map(int, counts))


FORMAT_PAIRS = [("fp16", "fp16"), ("bf16", "bf16"), ("fp32", "fp32"), ("fp32", "hf32")]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("dtypes", ["f4 f8", "f8 f8", "f4 f4", "f8 f4"])
@pytest.mark.parametrize(("fmt", "compute"), FORMAT_PAIRS)
def test_every_figure(fmt: str, compute: str, dtypes: str) -> None:
    actual, golden = data(fmt, seed=len(dtypes) + len(compute))
    actual, golden = (x.astype(t) for x, t in zip((actual, golden), dtypes.split(), strict=True))
    report = compare(actual, golden, fmt, compute=compute)
    expected = slowly(actual, golden.astype(np.float64), fmt, compute)
    for key, value in expected.items():
        assert getattr(report, key) == pytest.approx(value, rel=1e-11, abs=0), key
    assert (report.fmt, report.compute, report.shape) == (fmt, compute, golden.shape)
    assert set(expected) | {"fmt", "compute", "shape", "mismatch_index"} == {
        f.name for f in dataclasses.fields(ErrorReport) if f.name != "places"
    }


@pytest.mark.parametrize("n", [1, 2, 999, 1000, 1001, 4096, 4097])
def test_the_percentile_is_an_element_at_any_length(n: int) -> None:
    rng = np.random.default_rng(n)
    golden = rng.standard_normal(n)
    actual = golden.astype(np.float32) * np.where(rng.random(n) < 0.002, np.float32(1.01), np.float32(1))
    ulps = np.abs(actual - golden) / FORMATS["fp32"].ulp(golden)
    enough = next(u for i, u in enumerate(np.sort(ulps)) if 1000 * (i + 1) >= 999 * n)
    assert compare(actual, golden, "fp32").p999_ulp == enough


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_storage_arrays_of_any_layout(dtype: Any) -> None:
    golden = np.random.default_rng(1).standard_normal((40, 60))
    stored = golden.astype(np.float32).astype(dtype)
    whole = compare(stored, golden, dtype.__name__)
    assert compare(stored.T, golden.T, dtype.__name__).rmse == pytest.approx(whole.rmse, rel=1e-12)
    assert compare(stored[::2, 1:], golden[::2, 1:], dtype.__name__).compared == 20 * 59
    assert 0.45 < whole.max_ulp <= 0.5001


def test_indices_are_those_of_the_shape() -> None:
    golden = np.ones((3, 4, 5))
    actual = golden.copy()
    actual[2, 1, 3] = 1.5
    actual[0, 2, 4] = np.nan
    report = compare(actual, golden, "fp32")
    assert report.worst_index == report.max_abs_index == (2, 1, 3)
    assert report.mismatch_index == (0, 2, 4)
    assert not report.agrees


def test_the_first_mismatch_is_named_even_at_the_front() -> None:
    assert compare([np.nan, 1.0, np.inf], [1.0, 1.0, 1.0], "fp16").mismatch_index == (0,)


@pytest.mark.parametrize("fmt", SMALL_VALUES)
def test_the_small_value_domain_ends_before_its_threshold(fmt: str) -> None:
    below, error = SMALL_VALUES[fmt]
    golden = np.array([below, below * 0.75, below * 0.75])
    report = compare(golden + np.array([0, error, 1.01 * error]), golden, "fp32", compute=fmt)
    assert (report.small_share, report.small_errors) == (2 / 3, 1)


def test_agreement_on_special_values() -> None:
    special = np.array([np.nan, np.inf, -np.inf, 1.0])
    assert compare(special, special, "fp16").agrees
    assert compare(special, -special, "fp16").inf_mismatch == 2
    assert compare([np.nan], [np.inf], "fp16").nan_mismatch == 1


def test_an_exact_result() -> None:
    report = compare(np.ones(5), np.ones(5), "bf16")
    assert (report.exact, report.max_ulp, report.p999_ulp, report.rmse) == (5, 0, 0, 0)
    assert report.effective_bits == math.inf
    assert report.cosine == pytest.approx(1)


def test_nothing_finite_leaves_no_size() -> None:
    report = compare([np.nan, np.inf], [np.nan, np.inf], "fp16")
    assert report.agrees
    assert report.compared == 0
    assert math.isnan(report.max_ulp)
    assert math.isnan(report.p999_ulp)
    assert report.worst_index is None


def test_ulp_of_a_golden_zero_is_the_smallest_subnormal() -> None:
    assert compare([2.0**-24], [0.0], "fp16").max_ulp == 1
    assert compare([2.0**-24], [0.0], "fp16").effective_bits == -math.inf


def test_a_saturated_result_counts_as_overflow() -> None:
    assert compare([65504.0, 65504.0, np.inf], [65519.0, 65520.0, 1e5], "fp16").overflow == 2


def test_a_nan_where_the_golden_is_too_large_is_an_overflow() -> None:
    report = compare([np.nan, np.nan, np.inf], [1e9, 1.0, 2.0], "fp16")
    assert (report.overflow, report.nan, report.nan_mismatch, report.inf_mismatch) == (2, 2, 2, 1)


@pytest.mark.parametrize("special", [False, True])
def test_json_both_ways(special: bool) -> None:
    actual, golden = data("fp16", seed=3) if special else (np.ones(4), np.ones(4))
    report = compare(actual, golden, "fp16")
    text = json.dumps(report.to_dict(), allow_nan=False)
    assert ErrorReport.from_dict(json.loads(text)) == report


def test_json_of_what_is_not_finite() -> None:
    values = compare([np.nan], [np.nan], "fp16").to_dict()
    assert values["max_abs"] == "NaN"
    assert compare([1.0], [1.0], "fp16").to_dict()["effective_bits"] == "Infinity"
    assert math.isnan(ErrorReport.from_dict(values).max_abs)


def test_the_labels_fit_the_histogram() -> None:
    report = compare([1.0, 1.0, 1.0], [1.0, 1 + 2.0**-9, 1 + 2.0**-11], "fp16")
    named = dict(zip(histogram_labels(), report.ulp_histogram, strict=True))
    assert {k: v for k, v in named.items() if v} == {"0": 1, "2^1..2^2": 1, "2^-1..2^0": 1}


# ---- statistics that the published device measurements and the model of the Cube agree on


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    ("fmt", "mode", "bits"),
    [
        *(("hf32", mode, 12.75) for mode in ("RINT", "ROUND", "RNZ")),
        ("hf32", "TRUNC", 11.34),
        ("tf32", "RINT", 11.75),
        ("fp16", "RINT", 11.75),
        ("bf16", "RINT", 8.75),
    ],
)
def test_effective_bits_of_a_product_of_rounded_operands(fmt: str, mode: str, bits: float) -> None:
    """12.7 to 12.8 bits were measured on 910B with HF32 (Jittor, pull request 18025): 11 bits, to nearest."""
    rng = np.random.default_rng(11)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((256, 64), (64, 256)))
    golden = a.astype(np.float64) @ b
    product = round_to(a, fmt, mode).astype(np.float64) @ round_to(b, fmt, mode)
    assert compare(product, golden, "fp32").effective_bits == pytest.approx(bits, abs=0.1)


# ---- wrong usage


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: compare([1.0], [1.0, 2.0], "fp16"), r"actual has shape \(1,\), golden has \(2,\)"),
        (lambda: compare([], [], "fp16"), r"nothing to compare in arrays of shape \(0,\)"),
        (
            lambda: compare([1.0], [1.0], "int8"),
            r"no error metrics for int8: known are fp16, bf16, fp32, hf32",
        ),
        (lambda: compare([1.0], [1.0], "fp32", compute="fp64"), r"no error metrics for fp64"),
        (lambda: compare([1j], [1.0], "fp16"), r"actual is complex128; give floating-point numbers"),
        (
            lambda: ErrorReport.from_dict({"fmt": "fp16", "colour": 1}),
            r"missing or unknown: .*colour, compared",
        ),
    ],
    ids=range(6),
)
def test_error_texts(call: Callable[[], object], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        call()

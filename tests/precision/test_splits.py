"""Splits of FP32 operands: what their slices are, and what the sums of slices keep."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.device import CUBE_MATH_TYPES
from ascendtile.simulator.precision.cube_math import MODES, resolve_convolution, resolve_matmul, resolve_split
from ascendtile.simulator.precision.splits import MOST_INT8_TERMS, SPLITS
from ascendtile.simulator.precision.splits.slices import beyond, scales, slice_sums, slices_of

A2, TRAINING = ("fp16", "bf16", "fp32", "hf32", "int8"), ("fp16", "int8", "uint8")
TYPES = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "int8": np.int8}
SINGLES = st.floats(width=32, allow_nan=False, allow_infinity=False)


def rows(numbers, shape=(8, 16)):
    return np.float32(numbers.standard_normal(shape))


@pytest.mark.parametrize("split", SPLITS.values(), ids=lambda s: s.name)
def test_a_slice_is_held_by_its_format(split):
    x = rows(np.random.default_rng(1)) * np.float32(2.0) ** np.arange(-8, 8, dtype=np.float32)
    for part in slices_of(x, split, 4, 1):
        assert (part == part.astype(TYPES[split.slices]).astype(np.float32)).all()
        assert np.abs(part).max() <= (64 if split.step else 65504 if split.slices == "fp16" else np.inf)


@pytest.mark.parametrize("count", range(2, 5))
def test_more_int8_slices_keep_seven_bits_more_each(count):
    x, split = rows(np.random.default_rng(2), (64, 64)), SPLITS[f"INT8X{count}"]
    error = np.abs(slice_sums(x, split, axis=1) - np.float64(x))
    binade = np.exp2(1 + np.floor(np.log2(np.abs(x).max(axis=1, keepdims=True))))
    assert (error <= binade * 2.0 ** -(7 * count)).all()
    if count < 4:  # four slices hold all bits of most FP32 numbers
        assert error.max() > binade.min() * 2.0 ** -(7 * count + 1)


@given(st.lists(SINGLES, min_size=1, max_size=20))
def test_two_fp16_slices_keep_22_bits_of_what_is_not_far_below_the_largest_of_a_row(given):
    x = np.float32([given])
    error = np.abs(slice_sums(x, SPLITS["FP16X3"], axis=1) - np.float64(x))
    far = np.abs(np.float64(x)).max() * 2.0**-38  # half of FP16's smallest number, below 2^15
    small = 2.0**-149  # FP32's own
    assert (error <= np.maximum(np.abs(np.float64(x)) * 2.0**-22, max(far, small))).all()


@given(st.lists(SINGLES, min_size=1, max_size=20))
def test_three_bf16_slices_are_the_number_itself_where_none_is_subnormal(given):
    x = np.float32([given])
    x = x[(np.abs(x) > 2.0**-100) & (np.abs(x) < 2.0**127)][None]
    if x.size:
        assert (slice_sums(x, SPLITS["BF16X6"], axis=1) == np.float64(x)).all()
        error = np.abs(slice_sums(x, SPLITS["BF16X3"]) - np.float64(x))
        assert (error <= np.abs(np.float64(x)) * 2.0**-17).all()


@given(st.lists(SINGLES, min_size=1, max_size=20), st.sampled_from(["FP16X3", "INT8X3"]))
def test_scales_are_powers_of_two_that_bring_the_largest_to_the_top(given, name):
    x, split = np.float32([given]), SPLITS[name]
    found = scales(x, split, 1)
    mantissa, _ = np.frexp(found)
    assert (mantissa == 0.5).all()
    assert found.shape == (1, 1)
    top = np.abs(np.float64(x) * found).max()
    assert top < 2.0 ** (split.top + 1)
    assert top >= 2.0**split.top or np.abs(x).max() < 2.0 ** (split.top - 125)


def test_products_are_those_that_the_names_say():
    assert SPLITS["FP16X3"].products == ((1, 0), (0, 1), (0, 0))
    for name in ("FP16X2", "FP16X3", "BF16X2", "BF16X3", "BF16X6", "BF16X9"):
        assert len(SPLITS[name].products) == int(name[-1])
        assert len(SPLITS[name].groups) == 1
    for split in SPLITS.values():
        sums = [i + j for i, j in split.products]
        assert sums == sorted(sums, reverse=True)
        assert len(set(split.products)) == len(sums)
    eight = SPLITS["INT8X3"]
    assert [{i + j for i, j in g} for g in eight.groups] == [{2}, {1}, {0}]
    assert eight.counts == (3, 3)
    assert SPLITS["FP16X2"].counts == (2, 1)
    assert [SPLITS[n].bits for n in ("FP16X2", "FP16X3", "BF16X3", "BF16X6", "INT8X3")] == [
        11,
        22,
        16,
        24,
        21,
    ]


def test_what_no_slice_holds_is_told():
    plain, huge = np.float32([1, -3e38]), np.float32([3.4e38])
    for split in SPLITS.values():
        assert not beyond(plain, split)
        assert beyond(huge, split) == (split.slices == "bf16")
        assert beyond(np.float32([np.inf]), split)
        assert beyond(np.float32([np.nan]), split)


def test_splits_have_no_number_and_no_place_in_the_vendors_tables():
    assert not set(SPLITS) & {*MODES, *CUBE_MATH_TYPES}
    for name in SPLITS:
        assert resolve_matmul(A2, ("fp32", "fp32"), name).status == 161002
        assert resolve_convolution(A2, ("fp32",) * 3, name).status == 161002


def test_a_split_needs_fp32_operands_and_a_cube_that_takes_its_slices():
    found = resolve_split(TRAINING, ("fp32", "fp32"), "FP16X3")
    assert found.ok
    assert found.compute == "fp16"
    assert found.operand == "fp16x3"
    assert found.output() == "fp32"
    assert resolve_split(A2, ("fp16", "bf16"), "BF16X3").ok  # promoted to FP32
    assert "bf16" in resolve_split(TRAINING, ("fp32", "fp32"), "BF16X3").reason
    assert "split is of FP32" in resolve_split(A2, ("fp16", "fp16"), "FP16X3").reason


def test_int32_sums_of_int8_slices_have_a_longest():
    longest = MOST_INT8_TERMS // 3
    assert resolve_split(A2, ("fp32", "fp32"), "INT8X3", longest).ok
    refused = resolve_split(A2, ("fp32", "fp32"), "INT8X3", longest + 1)
    assert not refused.ok
    assert str(MOST_INT8_TERMS) in refused.reason
    assert 64 * 64 * MOST_INT8_TERMS <= 2**31

"""Sums are taken in the order of the hardware: vectors worked out by hand from the vendor's description."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.precision import dtypes as ty
from ascendtile.simulator.units import vector
from ascendtile.simulator.units.vector import Numerics

TREE, SEQUENTIAL = Numerics("tree_tree"), Numerics("tree_sequential")
BIG = 2.0**24  # float32 loses a one added to it


def total(values: Any, dtype: ty.DType = ty.float32, numerics: Numerics = TREE) -> float:
    x = np.array([values], np.float32)
    return float(vector.reduce("sum", x, 0, dtype, numerics)[0])


def test_adjacent_pairs_inside_a_repeat() -> None:
    assert total([BIG] + [1.0] * 63) == 16777278
    assert total([BIG] + [1.0] * 31 + [-BIG] + [1.0] * 31) == 61  # lane i with i + 32 would give 62
    assert total([2048.0] + [1.0] * 127, ty.float16) == 2174


@pytest.mark.parametrize(("numerics", "want"), [(TREE, 16777218.0), (SEQUENTIAL, 16777216.0)])
def test_results_of_repeats_by_the_same_tree_or_one_after_another(numerics: Numerics, want: float) -> None:
    x = np.zeros((4, 64))
    x[:, 0] = BIG, 1, 1, 1
    assert total(x.reshape(-1), numerics=numerics) == want


def test_a_repeat_of_halves_has_128_lanes() -> None:
    ones = [1.0] * 127
    assert total([2048.0, *ones, 0.5, *[0.0] * 127], ty.float16, SEQUENTIAL) == 2174
    assert total([2048.0, *ones, 1.0, *[0.0] * 127], ty.float16, SEQUENTIAL) == 2176  # 2175 ties to even


def test_every_level_rounds_to_the_half() -> None:
    assert total([60000.0, 60000.0, -30000.0, 100.0], ty.float16) == np.inf
    assert total([2048.0, 1.0, 1.0, 0.0], ty.float16) == 2048  # 2049 ties to 2048, then 2048 + 1 again
    assert total([2048.0, 0.0, 1.0, 1.0], ty.float16) == 2050
    assert total([256.0, 1.0, 1.0, 0.0], ty.bfloat16) == 256
    assert total([256.0, 0.0, 1.0, 1.0], ty.bfloat16) == 258


def pairs(values: list[np.float32]) -> list[np.float32]:
    out = [values[k] + values[k + 1] for k in range(0, len(values) - 1, 2)]
    return out + values[len(out) * 2 :]


def reference(values: np.ndarray, numerics: Numerics) -> np.float32:
    """The order in words: repeats of 64 by adjacent pairs, a lane without a partner goes up as it is."""
    repeats = []
    for first in range(0, len(values), 64):
        level = list(values[first : first + 64])
        while len(level) > 1:
            level = pairs(level)
        repeats.append(level[0])
    if len(repeats) == 1:
        return repeats[0]
    if numerics is TREE:
        return reference(np.array(repeats, np.float32), numerics)
    out = repeats[0]
    for r in repeats[1:]:
        out = out + r
    return out


@pytest.mark.parametrize("numerics", [TREE, SEQUENTIAL], ids=lambda n: n.sum_order)
@given(n=st.integers(1, 300) | st.sampled_from([4096, 4097, 8192]), seed=st.integers(0, 5))
def test_sums_of_any_length_follow_the_order(n: int, seed: int, numerics: Numerics) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((2, 3, n)) * 10.0 ** rng.integers(-3, 4, n)).astype(np.float32)
    got = vector.reduce("sum", x, 1, ty.float32, numerics)
    want = [[reference(row, numerics) for row in tile] for tile in x]
    np.testing.assert_array_equal(got, np.array(want))


def test_another_axis_folds_the_upper_half_onto_the_lower() -> None:
    x = np.array([[[BIG], [-BIG], [1.0], [1.0]]], np.float32)
    assert vector.reduce("sum", x, 0, ty.float32, TREE).tolist() == [
        [1.0]
    ]  # 2^24 + 1 loses its one, -2^24 + 1 does not
    y = np.array([[[1.0], [2.0], [4.0]]], np.float32)
    assert vector.reduce("sum", y, 0, ty.float32, TREE).tolist() == [[7.0]]
    z = np.array([[[60000.0, 1.0], [60000.0, 2.0]]], np.float32)
    assert vector.reduce("sum", z, 0, ty.float16, TREE).tolist() == [[np.inf, 3.0]]


def test_integers_wrap_in_any_order() -> None:
    x = np.array([[2**31 - 1, 1, 5]], np.int32)
    assert vector.reduce("sum", x, 0, ty.int32, TREE).tolist() == [-(2**31) + 5]
    y = np.array([[2**32 - 1, 3]], np.uint32)
    assert vector.reduce("sum", y, 0, ty.uint32, TREE).tolist() == [2]
    z = np.array([[-(2**63), -1]], np.int64)
    assert vector.reduce("sum", z, 0, ty.int64, TREE).tolist() == [2**63 - 1]


def test_maximum_and_minimum_skip_nan() -> None:
    x = np.array([[[1, np.nan, 3], [np.nan, np.nan, np.nan]]], np.float32)
    np.testing.assert_array_equal(vector.reduce("max", x, 1, ty.float32, TREE), [[3, np.nan]])
    np.testing.assert_array_equal(vector.reduce("min", x, 0, ty.float32, TREE), [[1, np.nan, 3]])
    i = np.array([[5, -7, 2]], np.int32)
    assert vector.reduce("min", i, 0, ty.int32, TREE).tolist() == [-7]

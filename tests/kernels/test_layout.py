"""Merging of axes, strides of broadcasts, tiles over axes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.kernels.operator.layout import (
    Axes,
    broadcast_strides,
    contiguous_strides,
    even_part,
    merge_axes,
    tile_count,
    tile_of,
)

SHAPES = st.lists(st.integers(1, 5), max_size=5).map(tuple)


@given(SHAPES)
def test_contiguous_strides_are_those_of_numpy(shape):
    a = np.empty(shape, np.int8)
    assert [s for s, n in zip(contiguous_strides(shape), shape, strict=True) if n > 1] == [
        s for s, n in zip(a.strides, shape, strict=True) if n > 1
    ]


@given(SHAPES, st.data())
def test_broadcast_strides_are_those_of_numpy(shape, data):
    own = tuple(n if data.draw(st.booleans()) else 1 for n in shape)[data.draw(st.integers(0, len(shape))) :]
    view = np.broadcast_to(np.empty(own, np.int8), shape)
    ours = broadcast_strides(own, shape)
    assert all(a == b for a, b, n in zip(ours, view.strides, shape, strict=True) if n > 1)


@given(SHAPES, st.data())
def test_merged_axes_reach_the_same_elements_in_the_same_order(shape, data):
    a = np.arange(5 ** len(shape)).reshape((5,) * len(shape))[tuple(slice(n) for n in shape)]
    a = a.transpose(data.draw(st.permutations(range(len(shape)))))
    strides = [s // a.itemsize for s in a.strides]
    axes = merge_axes(a.shape, [strides, contiguous_strides(a.shape)])
    offsets = np.zeros(axes.lengths, int)
    for k, (n, s) in enumerate(zip(axes.lengths, axes.strides[0], strict=True)):
        offsets += (np.arange(n) * s).reshape([-1 if j == k else 1 for j in range(len(axes.lengths))])
    np.testing.assert_array_equal(offsets.reshape(-1), a.reshape(-1))
    assert len(axes.strides[1]) == 0 or axes.strides[1] == contiguous_strides(axes.lengths)


def test_what_merges():
    full, row, column = (contiguous_strides((4, 3, 5)), (0, 0, 1), (0, 1, 0))
    assert merge_axes((4, 3, 5), [full, full]) == Axes((60,), ((1,), (1,)))
    assert merge_axes((4, 3, 5), [full, row]) == Axes((12, 5), ((5, 1), (0, 1)))
    assert merge_axes((4, 3, 5), [full, column]).lengths == (4, 3, 5)
    assert merge_axes((1, 1), [(1, 1)]) == Axes((), ((),))
    assert merge_axes((1, 1), [(1, 1)]).padded() == Axes((1, 1), ((0, 0),))


@pytest.mark.parametrize(
    ("rows", "cols", "elements", "tile"),
    [
        (19, 65536, 6000, (1, 4096)),  # 16 even parts
        (256, 1000, 3000, (2, 1000)),
        (100, 14, 448, (25, 14)),  # 28 rows of 16 would fit; 25 divides 100
        (7, 3, 10_000, (7, 3)),
        (13, 5, 16 * 6, (6, 5)),  # no divisor of 13 is at least half of 6
        (5, 7, 1, (1, 1)),
    ],
)
def test_tiles(rows, cols, elements, tile):
    assert tile_of(rows, cols, elements) == tile


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_even_parts(n, most):
    part = even_part(n, most)
    assert 1 <= part <= most
    assert part == most or n % part == 0


def test_tiles_cover_the_last_two_axes_for_all_outer_ones():
    assert tile_count((2, 3, 10, 7), 4, 7) == 2 * 3 * 3

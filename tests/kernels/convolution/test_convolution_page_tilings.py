"""Tilings as the page of aclnnConvolutionBackward has them, 4.3 to 4.8: merged groups, base tiles, capacities, parts."""

from __future__ import annotations

from math import lcm

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.kernels import get_operator, run_op
from ascendtile.kernels.convolution.geometry import Axis, Geometry, merge_groups
from ascendtile.kernels.convolution.vendor import base_image, base_weight
from ascendtile.simulator.products import load_product

OP, A2 = get_operator("convolution_backward"), load_product("ascend910b3")


def layer(groups=1, narrow=64, wide=64, taps=3, size=28):
    axis = Axis(size, size, taps, before=taps // 2)
    return Geometry(2, groups, narrow, wide, (Axis(1, 1, 1), axis, axis), False, 2)


@given(st.integers(1, 600), st.integers(1, 40), st.integers(1, 40), st.sampled_from((8, 16)))
def test_groups_are_merged_until_they_fill_fractals(groups, wide, narrow, c0):
    """4.4: ext = min(lcm(lcm(Cin/g, C0) / (Cin/g), lcm(Cout/g, 16) / (Cout/g)), g), merged groups cd(g, ext)."""
    found = merge_groups(layer(groups, narrow, wide), c0)
    ext = min(lcm(lcm(wide, c0) // wide, lcm(narrow, 16) // narrow), groups)
    assert (found.extent, found.count) == (ext, -(-groups // ext))


def test_depthwise_in_16_bits_carries_16_useful_weights_of_256():
    """4.4: sixteen groups of one channel are a fractal with a diagonal."""
    found = merge_groups(layer(groups=96, narrow=1, wide=1), 16)
    assert (found.extent, found.count, found.narrow, found.wide) == (16, 6, 16, 16)


@given(
    st.integers(1, 80), st.integers(1, 300), st.integers(1, 300), st.integers(1, 7), st.sampled_from((2, 4))
)
def test_base_tiles_of_grad_input_keep_their_rules(size, narrow, wide, taps, itemsize):
    """4.3: twice baseM x baseK in L0A, baseN x baseK in L0B, the sums in L0C; baseK and kh kw C0 divide."""
    g = layer(1, narrow, wide, taps, max(size, taps))
    m, n, k = base_image(g, merge_groups(g, 32 // itemsize), A2, itemsize)
    c0 = 32 // itemsize
    length = taps * taps * c0
    assert m * k * itemsize * 2 <= A2.l0a_bytes
    assert n * k * itemsize * 2 <= A2.l0b_bytes
    assert m * n * 4 <= A2.l0c_bytes
    assert k == c0 or length % k == 0 or k % length == 0
    assert m % 16 == n % 16 == k % c0 == 0


def test_three_by_three_leaves_a_quarter_of_l0_empty():
    """4.3: baseK 48 in place of 64 for 3 x 3 with C0 = 16: 12288 of 16384 elements at baseM 256."""
    m, _, k = base_image(layer(1, 128, 128), merge_groups(layer(1, 128, 128), 16), A2, 2)
    assert (m, k, m * k) == (256, 48, 12288)
    assert A2.l0a_bytes // 2 // 2 == 16384


@pytest.mark.parametrize(("itemsize", "base"), [(2, (128, 128, 128)), (4, (128, 128, 64))])
def test_base_tiles_of_grad_weight(itemsize, base):
    """4.6: 128 x 128 x 128, in FP32 half of K; two of its sums fit in L0C."""
    assert base_weight(itemsize) == base
    assert 2 * base[0] * base[1] * 4 <= A2.l0c_bytes


@pytest.mark.parametrize("parts", [1, 3])
def test_zeros_are_written_where_sums_are_added_atomically(parts):
    """4.5: the output is filled with zeros first when any atomic add will happen, and not otherwise."""
    tiling = {"launches": "joint", "weight_parts": parts, "taps": "window"}
    found = run_op(OP, "resnet50-l3-3x3", "float16", A2, values=False, tiling=tiling)
    lines = [line.source for launch in found.launches for line in launch.lines]
    assert any("atomic_add" in x for x in lines) == (parts > 1)
    assert any("tl.zeros((COLS,)" in x or "zero, mask" in x for x in lines) == (parts > 1)


def test_a_barrier_stands_between_the_zeros_and_the_sums():
    """4.5: in one launch the cores meet (SyncAll) after the zeros are written."""
    tiling = {"launches": "whole", "weight_parts": 3, "taps": "window"}
    (launch,) = run_op(OP, "resnet50-l3-3x3", "float16", A2, values=False, tiling=tiling).launches
    lines = [line.source for line in launch.lines]
    assert any("zero, mask" in x for x in lines)
    assert any("sync_block_all" in x for x in lines)


@pytest.mark.exhaustive
def test_more_parts_write_more():
    """4.8: each part more adds m n 4 bytes of atomic writes."""

    def written(parts):
        tiling = {"launches": "apart", "weight_parts": parts, "taps": "window"}
        launches = run_op(OP, "resnet50-l3-3x3", "float16", A2, values=False, tiling=tiling).launches
        (found,) = [x for x in launches if x.kernel == "weight_tiles"]
        return found.pipes["AIC.FIXP"].busy_cycles * found.grid[0]

    assert written(2) < written(4) < written(8)

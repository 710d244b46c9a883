"""Copies between strided and contiguous tensors: right for any strides, within UB of every product, without waste."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.kernels.running.launching import call_of, timed_steps
from ascendtile.kernels.running.strided_copies import copy_step, footprint_bytes, view_copy_step
from ascendtile.simulator.launch import compute
from ascendtile.simulator.products import load_product

from .strided_views import View, channels_last, turned, views_of

PRODUCTS = ("ascend910b3", "ascend310p", "ascend910a", "ascend310b")
DTYPES = ("float16", "float32")
SHAPES = st.lists(st.sampled_from([1, 2, 3, 4, 7, 16, 17, 33]), max_size=4).map(tuple)
LONG = st.tuples(SHAPES.map(lambda s: s[:2]), st.integers(300, 900)).map(lambda x: (*x[0], x[1]))


@settings(max_examples=25)
@given(st.data(), st.sampled_from(PRODUCTS), st.sampled_from(DTYPES), SHAPES | LONG)
def test_any_view_becomes_contiguous_and_comes_back(data, name, dtype, shape):
    product, (view, target) = load_product(name), (data.draw(views_of(shape, r)) for r in (True, False))
    source = view.of((np.arange(view.elements) % 2048).astype(dtype))
    found, buffer = np.full(shape, np.nan, dtype), np.zeros(target.elements, dtype)
    with sim.device(name):
        compute(call_of(copy_step(source, found, product)))
        compute(call_of(view_copy_step(found, target.of(buffer), product)))
    np.testing.assert_array_equal(found, source)
    want = np.zeros_like(buffer)
    target.of(want)[...] = source
    np.testing.assert_array_equal(buffer, want, "nothing between the elements of a strided output is written")


def empty(view: View, dtype: str) -> np.ndarray:
    """The view over nothing, for time only."""
    one = np.empty(1, dtype)
    return np.lib.stride_tricks.as_strided(one, view.shape, [s * one.itemsize for s in view.strides])


def both_ways(view: View, dtype: str, product: str) -> list:
    """Steps that copy from a view, and into one if no elements of it are the same."""
    x, like = empty(view, dtype), sim.shape(view.shape, dtype)
    steps = [copy_step(x, like, load_product(product))]
    return steps if 0 in view.strides else [*steps, view_copy_step(like, x, load_product(product))]


SIZES = st.lists(st.sampled_from([2, 3, 5, 8, 16, 64, 300, 1000, 5000]), min_size=1, max_size=4).filter(
    lambda s: np.prod(s, dtype=float) < 1e6
)


@settings(max_examples=25)
@given(st.data(), st.sampled_from(PRODUCTS), st.sampled_from(DTYPES), SIZES.map(tuple))
def test_tiles_fit_whatever_the_strides_and_the_footprint_is_not_too_small(data, product, dtype, shape):
    view = data.draw(views_of(shape))
    with sim.device(product, values=False):
        for step in both_ways(view, dtype, product):
            peak = timed_steps((step,))[0].buffers["UB"].peak_bytes
            a = step.arguments
            if "TURNED" in a:
                itemsize = np.dtype(dtype).itemsize
                assert peak <= footprint_bytes(a["TILE"], a["FROM"][-3:], a["TO"][-3:], a["TURNED"], itemsize)


NAMED = {
    **{f"image of {c}": channels_last((1, c, 800, 1216)) for c in (2, 3, 4, 8, 16)},
    "small image": channels_last((1, 3, 96, 96)),
    "transposed 6000": turned((512, 6000)),
    "transposed 20000": turned((20000, 64)),
    "transposed, 3 columns": turned((20000, 3)),
    "batch innermost": View((8, 64, 56, 56), (1, 25088, 448, 8)),
    "every second": View((1024, 1024), (4096, 2)),
    "every second, transposed": View((512, 512), (2, 2048)),
    "three channels of four": View((1, 3, 512, 512), (1 << 20, 1, 2048, 4)),
    "repeated": View((4096, 1024), (1, 0)),
    "backwards": View((1000000,), (-1,)),
}


@pytest.mark.drawn(6)
@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("name", NAMED)
def test_large_views_fit_in_ub(name, product):
    with sim.device(product, values=False):
        for dtype in DTYPES:
            assert all(x.time_us > 0 for x in timed_steps(both_ways(NAMED[name], dtype, product)))


@pytest.mark.drawn(4)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("c", [2, 3, 4, 8, 16])
def test_an_image_with_channels_last_takes_at_most_thrice_what_its_bytes_take(c, dtype):
    """Of the rate of memory, beside the launch; channels would move as blocks of 32 bytes each, 5 to 16 times as many."""
    view, product = NAMED[f"image of {c}"], load_product("ascend910b3")
    moved = 2 * np.prod(view.shape) * np.dtype(dtype).itemsize
    with sim.device("ascend910b3", values=False):
        for launch in timed_steps(both_ways(view, dtype, "ascend910b3")):
            assert launch.time_us < 3 * moved / (product.number("memory.bandwidth_tb_per_s") * 1e6) + 5

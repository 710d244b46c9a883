"""Convolution backward to the ends of its documented ranges: large kernels, strides, dilations and paddings.

The tiling that the operator chooses by itself always fits, and work follows the output. Values of integers are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.kernels import convolution_backward, get_operator

COUPLED = ("ascend910a", "ascend310p")
PRODUCTS = ("ascend910b3", "ascend910b1", "ascend910c", *COUPLED)
LARGEST = 2**31 - 2
SPARSE = [HealthCheck.filter_too_much, HealthCheck.too_slow]  # few draws are small enough


@dataclass(frozen=True)
class Reach:
    """A call by its axes: for each (positions of the smaller image, left over, taps, stride, padding, dilation)."""

    axes: tuple[tuple[int, int, int, int, int, int], ...]
    batch: int = 1
    groups: int = 1
    narrow: int = 2  # channels of a group of the smaller image
    wide: int = 2
    transposed: bool = False

    @property
    def sizes(self):
        """(wide, narrow) spatial sizes."""
        wide = tuple((o - 1) * s - 2 * p + d * (k - 1) + 1 + left for o, left, k, s, p, d in self.axes)
        return wide, tuple(a[0] for a in self.axes)

    @property
    def shapes(self):
        wide, narrow = (
            (self.batch, self.groups * c, *n)
            for c, n in zip((self.wide, self.narrow), self.sizes, strict=True)
        )
        weight = (self.groups * self.narrow, self.wide, *(a[2] for a in self.axes))
        return {"grad_output": wide, "input": narrow, "weight": weight} if self.transposed else {
            "grad_output": narrow, "input": wide, "weight": weight}  # fmt: skip

    @property
    def options(self):
        left, stride, padding, dilation = (tuple(a[k] for a in self.axes) for k in (1, 3, 4, 5))
        extra = {"output_padding": left} if self.transposed else {}
        common = {"stride": stride, "padding": padding, "dilation": dilation, "groups": self.groups}
        return {**common, "transposed": self.transposed, **extra}

    def timed(self, dtype="float16", product="ascend910b3", **more):
        shapes = {n: sim.shape(s, dtype) for n, s in self.shapes.items()}
        mode = "USE_FP16" if product in COUPLED else "KEEP_DTYPE"
        given = {"cube_math_type": mode, "product": product, **self.options, **more}
        return convolution_backward(**shapes, values=False, **given)

    def check_values(self, dtype=np.float16, seed=0, **more):
        numbers = np.random.default_rng(seed)
        arrays = {n: numbers.integers(-2, 3, s).astype(dtype) for n, s in self.shapes.items()}
        found = convolution_backward(**arrays, **self.options, errors=False, time=False, **more)
        options = {**self.options, "transposed": str(self.transposed).lower()}
        expected = get_operator("convolution_backward").reference(arrays, **options)
        for name, x in found.outputs.items():
            np.testing.assert_array_equal(x, expected[name].astype(dtype))
        return found


# -- large kernels -----------------------------------------------------------------------------------------------------


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("product", "dtype"),
    [
        ("ascend910b3", "float16"),
        ("ascend910c", "float32"),
        ("ascend910a", "float16"),
        ("ascend310p", "float32"),
    ],
)
def test_a_kernel_of_one_axis_reaches_255(product, dtype):
    assert Reach(((6, 0, 255, 1, 0, 1),)).timed(dtype, product).time_us > 0


@pytest.mark.parametrize("transposed", [False, True])
def test_a_kernel_of_255_gives_the_values_of_the_reference(transposed):
    found = Reach(((6, 0, 255, 1, 0, 1),), transposed=transposed).check_values()
    assert 1 <= found.tiling["weight_taps"] <= 32


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("depth", "dtype"), [(256, "float32"), (300, "bfloat16")])
def test_the_depth_of_a_kernel_has_no_end(depth, dtype):
    call = Reach(((2, 0, depth, 1, 0, 1), (1, 0, 1, 1, 0, 1), (1, 0, 1, 1, 0, 1)))
    assert call.timed(dtype).time_us > 0


@pytest.mark.parametrize("taps", [(17, 17), (255, 2)])
def test_weights_of_many_taps_are_cut_along_them(taps):
    """One group of whole channels, so that the weight is laid out in blocks."""
    axes = tuple((1, 0, k, 1, 0, 1) for k in taps)
    found = Reach(axes, narrow=16, wide=16).check_values(np.float16, output_mask=(True, False, False))
    assert found.tiling["filter_layout"] == "FRACTAL_Z"


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    ("windows", "transposed"),
    [(0, False), (1, True), (2, False), (3, True), (5, False), (10, False), (10, True)],
)
def test_taps_of_a_tile_change_no_value(windows, transposed):
    call = Reach(((3, 1, 2, 2, 1, 1), (4, 1, 5, 3, 2, 2)), batch=2, narrow=3, wide=5, transposed=transposed)
    found = call.check_values(tiling={"weight_taps": windows})
    assert found.tiling["weight_taps"] == windows


@pytest.mark.drawn(1)
@pytest.mark.parametrize("windows", [6, 9, 100])
def test_rows_of_taps_that_do_not_divide_a_kernel_change_no_value(windows):
    call = Reach(((5, 1, 3, 2, 1, 2), (4, 0, 3, 1, 1, 1)), batch=2, narrow=3, wide=5)
    found = call.check_values(tiling={"weight_taps": windows})
    assert found.tiling["weight_taps"] == min(windows, 9)


# -- strides -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "dilation"), [(9, 1), (100, 2)])
def test_time_does_not_follow_a_stride_beyond_the_image(size, dilation):
    """One window of 3 x 3 in 2D: the same launches and cycles for any stride."""
    shapes = (1, 2, 1, 1), (1, 2, size, size), (2, 2, 3, 3)
    dy, x, w = (sim.shape(s, "float16") for s in shapes)
    times = {
        s: convolution_backward(dy, x, w, stride=s, dilation=dilation, values=False).time_us
        for s in (size - 1, 200, LARGEST)
    }
    assert len(set(times.values())) == 1
    assert size > 9 or next(iter(times.values())) < 10


@pytest.mark.exhaustive
def test_the_products_follow_the_windows_and_not_the_stride():
    """As many windows far apart: the Cube multiplies no more; only what is cleared and copied grows with the image."""
    busy = {}
    for stride in (8, 500):
        found = Reach(((4, 0, 3, stride, 0, 1), (4, 0, 3, stride, 0, 1))).timed()
        busy[stride] = sum(x.pipes["AIC.M"].busy_cycles for x in found.launches if "AIC.M" in x.pipes)
    assert 0 < busy[500] <= busy[8]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("stride", "dilation", "transposed"),
    [(5, 7, False), (64, 1, False), (999, 7, False), (999, 1, True), (LARGEST, 1, False), (LARGEST, 7, True)],
)
def test_values_of_large_strides(stride, dilation, transposed):
    windows = 1 if stride == LARGEST else 3
    left = 0 if transposed else min(stride - 1, 11)
    Reach(((windows, left, 3, stride, 1, dilation),), narrow=3, transposed=transposed).check_values()


# -- dilations and paddings --------------------------------------------------------------------------------------------


@pytest.mark.drawn(1)
@pytest.mark.parametrize("stride", [1, 7])
def test_a_dilation_of_255_fits_and_is_exact(stride):
    call = Reach(((5, 0, 9, stride, 255, 255),), narrow=3, wide=5)
    call.check_values()
    assert Reach(((20, 0, 255, stride, 255, 255),), narrow=16, wide=16).timed().time_us > 0


def test_paddings_of_255_are_not_multiplied_for_nothing():
    """Windows in the padding alone read zeros."""
    Reach(((260, 0, 3, 2, 255, 1),)).check_values()


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_transposed_patches_in_another_type_keep_their_place(dtype):
    """grad_input of a transposed convolution is the smaller image: nothing is folded back into it."""
    call = Reach(((2, 0, 128, 128, 0, 1),), narrow=16, wide=3, transposed=True)
    assert call.check_values(dtype, cube_math_type="USE_FP16").tiling["taps"] == "patch"


# -- whatever is drawn -------------------------------------------------------------------------------------------------


def reaches(largest: int, taps: int, products: int) -> st.SearchStrategy[Reach]:
    """Calls within the documented ranges of A2, up to so many elements of an image and multiplications."""

    @st.composite
    def drawn(draw):
        rank = draw(st.sampled_from((1, 2, 2, 3)))
        far = [] if rank == 3 else [st.sampled_from((200, 1000, LARGEST))]
        stride = st.one_of(st.integers(1, 5), st.integers(1, 63), *far)
        axes = []
        for _ in range(rank):
            k = draw(st.one_of(st.integers(1, 4), st.integers(1, min(255, taps))))
            d, p, s = (
                draw(st.sampled_from((1, 1, 2, 12, 255))),
                draw(st.sampled_from((0, 0, 1, 3, 64, 255))),
                draw(stride),
            )
            o = draw(st.one_of(st.integers(1, 3), st.integers(1, 60)))
            left = draw(st.integers(0, min(s - 1, 40)))
            axes.append((o, left, k, s, p, d))
        channel = st.sampled_from((1, 2, 3, 16, 17, 64, 130))
        groups = draw(st.sampled_from((1, 1, 1, 2, 5, 32)))
        return Reach(
            tuple(axes), draw(st.integers(1, 3)), groups, draw(channel), draw(channel), draw(st.booleans())
        )

    def small(r: Reach) -> bool:
        images = [prod(float(n) for n in x) for x in (r.shapes["grad_output"], r.shapes["input"])]
        count = r.batch * r.groups * r.narrow * r.wide * prod(float(a[0] * a[2]) for a in r.axes)
        fine = all(n >= 1 for n in r.sizes[0]) and prod(a[2] for a in r.axes) <= taps
        return fine and max(images) <= largest and count <= products

    return drawn().filter(small)


def check_time(call, product, dtype, mask):
    if product in COUPLED and (len(call.axes) > 2 or dtype == "bfloat16"):
        return
    assert call.timed(dtype, product, output_mask=mask).time_us > 0


MASKS = st.sampled_from(((True, True, True), (True, False, False), (False, True, False), (False, True, True)))
DTYPES = st.sampled_from(("float16", "float32", "bfloat16"))


@settings(max_examples=8, deadline=None, suppress_health_check=SPARSE)
@given(reaches(300_000, 64, 2e8), st.sampled_from(PRODUCTS), DTYPES, MASKS)
def test_the_tiling_that_is_chosen_fits(call, product, dtype, mask):
    check_time(call, product, dtype, mask)


@pytest.mark.exhaustive
@settings(max_examples=400, deadline=None, suppress_health_check=SPARSE)
@given(reaches(20_000_000, 1000, 2e10), st.sampled_from(PRODUCTS), DTYPES, MASKS)
def test_every_tiling_that_is_chosen_fits(call, product, dtype, mask):
    check_time(call, product, dtype, mask)


@settings(max_examples=8, deadline=None, suppress_health_check=SPARSE)
@given(reaches(4_000, 40, 2e5), st.integers(0, 99))
def test_values_to_the_ends_of_the_ranges(call, seed):
    call.check_values(np.float32, seed)


@pytest.mark.exhaustive
@settings(max_examples=300, deadline=None, suppress_health_check=SPARSE)
@given(reaches(100_000, 100, 2e7), st.integers(0, 99))
def test_all_values_to_the_ends_of_the_ranges(call, seed):
    call.check_values(np.float32, seed)

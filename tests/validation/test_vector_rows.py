"""Laws of the predictions of kernels on the Vector units, for any sizes and types that a table may name."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.kernels.validation import Row, predict, read_tables
from ascendtile.kernels.validation.vector import scans, starts, sums
from ascendtile.kernels.validation.vector.batch_norms import channel_moments
from ascendtile.kernels.validation.vector.expressions import BINARY, TERNARY, UNARY
from ascendtile.kernels.validation.vector.row_kernels import rotated
from ascendtile.kernels.validation.vector.streams import own_elements
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.products import load_product

ROWS = {r.id: r for r in read_tables()}
AXES = {
    1: (*UNARY, "memset", "fill", "range", "reduce_sum", "reduce_lpnorm", "adamw"),
    2: (
        *(f"reduce_{how} {axis}" for how in sums.JOINED for axis in ("rows", "columns")),
        *(f"{scan} {axis}" for scan in scans.SCANS for axis in ("rows", "columns")),
        "softmax", "log_softmax", "softmax_grad", "log_softmax_grad", "layernorm", "layernorm_grad", "add row",
        "mul columns", "broadcast row", "broadcast columns", "argmax row", "transpose", "rmsnorm", "groupnorm",
    ),
    3: (
        "reduce_mean middle", "reduce_sum images", "cummax middle", "transpose", "gather", "tile", "rope", "slice",
        "concat", "pad", "batchnorm_reduce", "batchnorm_update", "batchnorm_update_grad", "batchnorm_reduce_grad",
    ),
}  # fmt: skip
SIZES = (1, 2, 7, 32, 100, 1000)  # the last one of up to two axes
MACHINES = (  # a product, its cores, and types of elements
    ("ascend910b2", 48, ("fp32", "fp16", "bf16")),
    ("ascend910a", 32, ("fp32", "fp16")),
    ("ascend310p", 8, ("fp32", "fp16")),
)
OPS = [(op, axes) for axes, ops in AXES.items() for op in ops]


def row(op, shapes, dtypes="fp32", tiling="cores=48"):
    """A row that nobody measured."""
    cells = dict.fromkeys(Row.__dataclass_fields__, "") | {"measured": None, "fitted": False, "unit": "us"}
    sizes = "x".join(map(str, shapes))
    return Row(
        **cells
        | {"id": op, "op": op, "product": "ascend910b2", "shapes": sizes, "dtypes": dtypes, "tiling": tiling}
    )


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_sizes_types_and_cores_have_a_prediction_that_is_more_than_a_launch(data):
    op, axes = data.draw(st.sampled_from(OPS))
    shapes = [data.draw(st.sampled_from(SIZES[: len(SIZES) - axes // 3])) for _ in range(axes)]
    if op == "rope":
        shapes[-1] *= 2
    if op in ("slice", "pad"):  # the rows that are longer
        shapes[-1] += shapes[-2]
    product, most, kinds = data.draw(st.sampled_from(MACHINES))
    kind = data.draw(st.sampled_from(kinds))
    cores, l2 = data.draw(st.sampled_from((1, 5, most))), data.draw(st.sampled_from(("cold", "warm")))
    found = predict(replace(row(op, shapes, kind, f"cores={cores} l2={l2}"), product=product))
    assert math.isfinite(found.value)
    assert 1.0 < found.value < 1e4
    assert found.roofline > 0


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(OPS), st.sampled_from(("fp32", "bf16")))
def test_sixteen_times_the_first_axis_takes_longer(op_axes, kind):
    op, axes = op_axes
    shapes = [256, 64, 64][:axes]
    tall = [16 * 256, *shapes[1:]]
    tiling = "cores=1"
    assert predict(row(op, tall, kind, tiling)).value > predict(row(op, shapes, kind, tiling)).value


@pytest.mark.exhaustive
def test_every_expression_of_one_two_or_three_operands_is_predicted():
    for operands, ops in enumerate((UNARY, BINARY, TERNARY), start=1):
        for op in ops:
            dtypes = ",".join(["fp16"] * operands) + "->fp16"
            assert predict(row(op, (1000,), dtypes, "cores=2 block=512")).value > 1.0


@pytest.mark.drawn(2)
@pytest.mark.parametrize("op", ["softmax", "layernorm", "softmax_grad", "rmsnorm"])
def test_rows_that_do_not_fit_in_ub_are_read_more_than_once(op):
    """A row of 4 MB takes longer than as many elements in rows that fit: at least what one core reads once more."""
    whole, cut = (
        predict(row(op, (1024, 1024), tiling="cores=1")),
        predict(row(op, (1, 1 << 20), tiling="cores=1")),
    )
    assert cut.value > 1.05 * whole.value


def test_several_cores_share_a_sum_where_there_are_fewer_results_than_cores():
    """A column of a million is not left to one core, and its parts are added up."""
    alone = predict(row("reduce_sum columns", (1 << 20, 8), tiling="cores=1"))
    shared = predict(row("reduce_sum columns", (1 << 20, 8), tiling="cores=48"))
    assert "48 cores to a strip" in shared.note
    assert shared.value < alone.value / 10


def test_the_last_stage_of_a_norm_takes_time():
    """Parts of cores go to a workspace, all cores wait for each other, the first one reads them."""
    small = predict(row("reduce_lpnorm", (4096,), tiling="cores=40"))
    copied = predict(row("memcpy", (4096,), tiling="cores=40"))
    assert small.value > copied.value + 0.3


def test_kernels_with_a_long_start_take_it_on_as_many_cores_as_they_have():
    """A sum of 64 numbers starts later than a copy of 64, and by more on more cores."""
    late = later_us("reduce_sum", "memcpy")
    assert 0.5 < late[0] < late[1] < late[2]


def test_kernels_with_more_code_wait_for_it_by_the_cores_that_fetch_it():
    """A range of 64 numbers has more code than a fill of 64."""
    late = later_us("range", "fill")
    each = (starts.LARGER_CODE - 1.0) * load_product("ascend910b2").number("launch.cold_code_us_per_core")
    assert late[1] - late[0] == pytest.approx(7 * each, abs=0.05)
    assert late[2] - late[0] == pytest.approx(47 * each, abs=0.05)


def later_us(op, other):
    """What an operator on 64 numbers takes more than another one, on 1, 8 and 48 cores."""
    tilings = [f"cores={n}" for n in (1, 8, 48)]
    both = [[predict(row(x, (64,), tiling=t)).value for x in (op, other)] for t in tilings]
    return [one - two for one, two in both]


def test_one_tensor_is_no_concatenation():
    with pytest.raises(UsageError, match="concat needs rows x columns of two tensors or more, got '7x5'"):
        predict(row("concat", (7, 5)))


def test_a_row_that_states_its_buffers_keeps_them():
    images = replace(ROWS["msi-alexnet-reduce_sum-8"], tiling="cores=32 l2=warm buffers=2")
    assert predict(images).value < predict(ROWS["msi-alexnet-reduce_sum-8"]).value


@pytest.mark.parametrize("gradient", [False, True])
@given(places=st.integers(1, 7), heads=st.integers(1, 3))
def test_rotary_embeddings_turn_the_halves_of_each_head(gradient, places, heads):
    rng = np.random.default_rng(places * 8 + heads)
    x = rng.standard_normal((places, heads, 16)).astype(np.float32)
    cos, sin = rng.standard_normal((2, places, 1, 16)).astype(np.float32)
    y, (left, right) = np.empty_like(x), np.split(x, 2, axis=-1)
    rotated[(2,)](x, cos, sin, y, places, heads, LESS=8 * gradient, HALF=8, ROWS=2)
    turned = np.concatenate([right, -left] if gradient else [-right, left], axis=-1)
    np.testing.assert_allclose(y, x * cos + turned * sin, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("two", [False, True])
@given(images=st.integers(1, 5), channels=st.integers(1, 4), n=st.integers(1, 20), each=st.integers(1, 5))
def test_moments_of_channels_are_summed_over_images_and_places(two, images, channels, n, each):
    rng = np.random.default_rng(n)
    x, g = rng.standard_normal((2, images, channels, n)).astype(np.float32)
    out, g = np.zeros((2, channels), np.float32), g if two else x
    shared = each < images
    channel_moments[(3,)](x, g, out, images, channels, n, each, TWO=two, SHARED=shared, IMAGES=2, WIDE=8)
    np.testing.assert_allclose(out, [g.sum((0, 2)), (g * x).sum((0, 2))], rtol=1e-4, atol=1e-4)


@sim.jit
def first_and_last(found_ptr, n, each):
    start, end = own_elements(n, each)
    two = tl.arange(0, 2)
    tl.store(found_ptr + 2 * tl.program_id(0) + two, tl.where(two == 0, start + two, end - two))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 8), st.integers(1, 2**31 - 1) | st.integers(2**30, 2**31 - 1), st.integers(0, 9))
def test_ranges_of_cores_follow_each_other_however_many_elements_there_are(cores, each, less):
    found, n = np.zeros(2 * cores, np.int64), max(1, cores * each - less)
    first_and_last[(cores,)](found, n, each)
    assert found.tolist() == [x for k in range(cores) for x in (k * each, min((k + 1) * each, n) - 1)]

"""matmul of FP32 operands in slices: its bits, its exact values, its range, its time, what is refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.kernels import get_operator, run_op
from ascendtile.kernels.operator.plan import PlanContext
from ascendtile.simulator.device import device
from ascendtile.simulator.errors import RefusedError
from ascendtile.simulator.precision.splits import SPLITS
from ascendtile.simulator.products import load_product

A2, TRAINING = "ascend910b3", "ascend910a"
BITS = {
    "FP16X2": 12,
    "FP16X3": 22,
    "BF16X2": 9,
    "BF16X3": 17.5,
    "BF16X6": 21.8,
    "INT8X2": 11,
    "INT8X3": 17.6,
    "INT8X4": 24,
}


def operands(m, n, k, seed=0):
    g = np.random.default_rng(seed)
    return np.float32(g.standard_normal((m, k))), np.float32(g.standard_normal((k, n)))


def product(a, b, mode, device=A2, **more):
    with np.errstate(all="ignore"):
        found = run_op(
            "matmul",
            inputs={"a": a, "b": b},
            product=device,
            cube_math_type=mode,
            time=False,
            errors=False,
            **more,
        )
    return found.outputs["out"]


def bits(y, golden):
    return -np.log2(np.abs(np.float64(y) - golden).mean() / np.abs(golden).mean())


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("mode", "expected"), BITS.items())
def test_bits_are_those_of_the_slices(mode, expected):
    a, b = operands(30, 26, 800)
    found = bits(product(a, b, mode), np.float64(a) @ np.float64(b))
    assert expected - 0.5 < found < expected + 0.9


def test_three_products_of_fp16_slices_are_as_exact_as_fp32_on_the_cube():
    a, b = operands(30, 26, 800)
    golden = np.float64(a) @ np.float64(b)
    native = bits(product(a, b, "KEEP_DTYPE"), golden)
    assert bits(product(a, b, "FP16X3", TRAINING), golden) > native - 0.2
    assert bits(product(a, b, "USE_FP16", TRAINING), golden) < 12


def test_a_second_operand_that_fp16_holds_loses_nothing_with_two_products():
    a, b = operands(40, 30, 200)
    half = b.astype(np.float16)
    golden = np.float64(a) @ np.float64(half)
    assert bits(product(a, half, "FP16X2"), golden) > 21.5
    assert (product(a, half, "FP16X2") == product(a, half, "FP16X3")).all()


# -- exact values ------------------------------------------------------------------------------------------------------


def power(x, axis, top):
    return np.exp2(top - np.floor(np.log2(np.abs(np.float64(x)).max(axis=axis, keepdims=True))))


def in_order(left, right, pairs, depth, k0=16):
    """FP32 sums of what the Cube adds: blocks of k0 products, exact, of each pair in a step of `depth`."""
    total = np.zeros((left[0].shape[0], right[0].shape[1]), np.float32)
    for start in range(0, left[0].shape[1], depth):
        for i, j in pairs:
            for at in range(start, min(start + depth, left[0].shape[1]), k0):
                stop = min(at + k0, start + depth)
                total = np.float32(total + np.float64(left[i][:, at:stop]) @ np.float64(right[j][at:stop]))
    return total


@pytest.mark.drawn(2)
@pytest.mark.parametrize("device", [A2, TRAINING])
@pytest.mark.parametrize("depth", [32, 64])
def test_fp16_values_are_those_of_two_casts_and_three_sums(device, depth):
    a, b = operands(20, 24, 100)
    x, y = power(a, 1, 14), power(b, 0, 14)
    left, right = [np.float32(a * x).astype(np.float16)], [np.float32(b * y).astype(np.float16)]
    left.append((np.float32(a * x) - np.float32(left[0])).astype(np.float16))
    right.append((np.float32(b * y) - np.float32(right[0])).astype(np.float16))
    expected = in_order(left, right, ((1, 0), (0, 1), (0, 0)), depth) / x / y
    found = product(a, b, "FP16X3", device, tiling={"block_k": depth})
    assert (found == np.float32(expected)).all()


def test_bf16_values_are_those_of_casts_without_scales():
    a, b = operands(20, 24, 90)
    left, right = ([x.astype(ml_dtypes.bfloat16)] for x in (a, b))
    left.append((a - np.float32(left[0])).astype(ml_dtypes.bfloat16))
    right.append((b - np.float32(right[0])).astype(ml_dtypes.bfloat16))
    expected = in_order(left, right, ((1, 0), (0, 1), (0, 0)), 48)
    assert (product(a, b, "BF16X3", tiling={"block_k": 48}) == expected).all()


def digits(x, axis, count):
    rest, out = np.float64(x) * power(x, axis, 5), []
    for _ in range(count):
        out.append(np.rint(rest))
        rest = (rest - out[-1]) * 128
    return out


@pytest.mark.drawn(1)
@pytest.mark.parametrize("count", [2, 3])
def test_int8_values_are_those_of_exact_sums_of_digits(count):
    a, b = operands(20, 24, 300)
    left, right = digits(a, 1, count), digits(b, 0, count)
    total = np.float32(0)
    for level in reversed(range(count)):
        exact = sum(left[i] @ right[level - i] for i in range(level + 1))
        total = np.float32(total * np.float32(2.0**-7)) + np.float32(exact)
    expected = np.float64(total) / power(a, 1, 5) / power(b, 0, 5)
    assert (product(a, b, f"INT8X{count}") == np.float32(expected)).all()


@pytest.mark.drawn(2)
@pytest.mark.parametrize("mode", ["FP16X3", "BF16X6", "INT8X3"])
def test_values_do_not_depend_on_the_product_or_on_who_takes_which_tile(mode):
    a, b = operands(36, 20, 50)
    first = product(a, b, mode)
    for tiling in ({"block_m": 16, "group": 1}, {"schedule": "per_tile", "block_n": 32}, {"cores": 3}):
        assert (product(a, b, mode, tiling=tiling) == first).all()
    assert (product(a, b, mode, "ascend910b1") == first).all()


@given(
    st.integers(1, 20),
    st.integers(1, 20),
    st.integers(1, 40),
    st.sampled_from(sorted(SPLITS)),
    st.integers(0, 9),
)
def test_errors_of_any_shape_are_those_that_the_slices_explain(m, n, k, mode, seed):
    a, b = operands(m, n, k, seed)
    split = SPLITS[mode]
    golden, sizes = np.float64(a) @ np.float64(b), np.float64(np.abs(a)) @ np.float64(np.abs(b))
    if split.top is not None:  # fixed point below the largest of a row and of a column
        sizes = np.abs(np.float64(a)).max(1, keepdims=True) * k * np.abs(np.float64(b)).max(0, keepdims=True)
    terms = sum(1 for i, j in split.products)
    room = sizes * (terms * 2.0 ** -(split.bits - 1) + (terms * k + 4) * 2.0**-24)
    assert (np.abs(np.float64(product(a, b, mode)) - golden) <= room).all()


# -- range -------------------------------------------------------------------------------------------------------------


@pytest.mark.drawn(3)
@pytest.mark.parametrize("size", [1e-34, 1e-20, 1e-8, 1e5, 1e18, 1e30])
@pytest.mark.parametrize("mode", ["FP16X3", "BF16X3", "INT8X3"])
def test_large_and_small_operands_keep_their_bits(mode, size):
    a, b = operands(20, 30, 64)
    a, b = np.float32(a * size), np.float32(b / (4 * size))
    golden = np.float64(a) @ np.float64(b)
    found = product(a, b, mode)
    assert np.isfinite(found).all()
    low = (
        8 if mode == "BF16X3" and size == 1e-34 else 15
    )  # the low slice is below FP32's smallest normal number
    assert bits(found, golden) > low


def test_rows_and_columns_of_any_size_keep_their_bits_beside_each_other():
    a, b = operands(40, 40, 64)
    exponents = np.linspace(-60, 60, 40)
    a, b = np.float32(a * np.exp2(exponents)[:, None]), np.float32(b * np.exp2(-exponents))
    golden = np.float64(a) @ np.float64(b)
    for mode in ("FP16X3", "INT8X3"):
        found = np.float64(product(a, b, mode))
        assert (np.abs(found - golden) <= 2.0**-14 * np.float64(np.abs(a)) @ np.float64(np.abs(b))).all()


def test_zeros_are_zeros_and_subnormal_operands_too_as_the_vector_unit_reads_them():
    a, b = operands(20, 20, 32)
    a[3] = 0
    b[:, 4] = 0
    a[5] *= np.float32(1e-42)
    found = product(a, b * np.float32(1e30), "FP16X3")
    assert (found[3] == 0).all()
    assert (found[:, 4] == 0).all()
    assert np.isfinite(found).all()
    assert (found[5] == 0).all()


@pytest.mark.drawn(2)
@pytest.mark.parametrize("mode", ["FP16X3", "BF16X3", "INT8X3"])
@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
def test_rows_with_infinities_or_nan_are_nan_and_told(mode, odd):
    a, b = operands(20, 20, 32)
    a[7, 3] = odd
    found = run_op(
        "matmul", inputs={"a": a, "b": b}, cube_math_type=mode, time=False, errors=False, product=A2
    )
    out = found.outputs["out"]
    assert np.isnan(out[7]).all()
    assert np.isfinite(np.delete(out, 7, 0)).all()
    assert any("no slices hold" in str(w) and "a with" in str(w) for w in found.warnings)


def test_results_beyond_fp32_are_infinite_as_in_fp32():
    a = np.full((16, 16), 1e20, np.float32)
    assert np.isinf(product(a, a, "FP16X3")).all()
    assert np.isinf(product(a, a, "INT8X3")).all()


# -- time --------------------------------------------------------------------------------------------------------------


def timed(mode, size=512, device=A2, **tiling):
    inputs = {n: sim.shape((size, size), "float32") for n in "ab"}
    return run_op("matmul", inputs=inputs, product=device, cube_math_type=mode, values=False, tiling=tiling)


@pytest.mark.exhaustive
def test_time_is_that_of_the_products_and_of_what_cuts_and_combines():
    found, plain = timed("FP16X3", 4096), timed("USE_FP16", 4096)
    kernels = [x.kernel for x in found.launches]
    assert kernels == ["largest", "largest", "cut_slices", "cut_slices", "matmul_tiles", "combine"]
    one = next(x.time_us for x in plain.launches if x.kernel == "matmul_tiles")
    three = next(x.time_us for x in found.launches if x.kernel == "matmul_tiles")
    assert 2.5 * one < three < 3.1 * one  # slices are loaded once for all of their products
    assert three < found.time_us < 3.6 * one
    assert [x.kernel for x in timed("BF16X3").launches] == ["cut_slices", "cut_slices", "matmul_tiles"]


@pytest.mark.exhaustive
def test_more_products_take_longer():
    for modes in (
        ("FP16X2", "FP16X3"),
        ("BF16X2", "BF16X3", "BF16X6", "BF16X9"),
        ("INT8X2", "INT8X3", "INT8X4"),
    ):
        times = [timed(mode).time_us for mode in modes]
        assert times == sorted(set(times))


@pytest.mark.parametrize(
    ("size", "rate", "alone"), [(4096, 53, 70), pytest.param(8192, 65.3, 75.7, marks=pytest.mark.exhaustive)]
)
def test_three_fp16_products_on_the_910a_are_as_fast_as_was_measured(size, rate, alone):
    """arXiv 2507.23387: up to 65.3 TFLOP/s, 77 % of a third of FP16's peak. rate: of all launches; alone: of the product."""
    found = timed("FP16X3", size, TRAINING)
    assert found.tiling["schedule"] == "per_tile"
    product = next(x.time_us for x in found.launches if x.kernel == "matmul_tiles")
    assert 2 * size**3 / found.time_us / 1e6 == pytest.approx(rate, rel=0.02)
    assert 2 * size**3 / product / 1e6 == pytest.approx(alone, rel=0.02)


def test_programs_for_each_tile_are_chosen_where_l2_does_not_hold_a_round_of_slices():
    """Not for whole operands, few rounds or several launches."""
    op, context = get_operator("matmul"), PlanContext(load_product(TRAINING), False)
    knobs = {p.name: p.default for p in op.parameters}
    for mode, size, chosen in (
        ("FP16X3", 3072, "per_tile"),
        ("FP16X3", 2048, "persistent"),
        ("INT8X3", 8192, "persistent"),
        ("USE_FP16", 8192, "persistent"),
    ):
        tensors = {n: sim.shape((size, size), "float32") for n in "ab"}
        with device(TRAINING, values=False, cube_math_type=mode):
            assert op.plan(tensors, {"out_dtype": "auto"}, knobs, context).tiling["schedule"] == chosen


@pytest.mark.exhaustive
def test_they_are_faster_there_and_a_schedule_that_is_given_stays():
    given = timed("FP16X3", 3072, TRAINING, schedule="persistent")
    assert given.tiling["schedule"] == "persistent"
    assert timed("FP16X3", 3072, TRAINING).time_us < given.time_us


def test_long_sums_are_split_over_cores_too():
    a, b = operands(8, 8, 8192)
    found = run_op("matmul", inputs={"a": a, "b": b}, product=A2, cube_math_type="FP16X3", time=False)
    assert found.tiling["split_k"] > 1
    assert found.tiling["keep"] == "none"
    assert bits(found.outputs["out"], np.float64(a) @ np.float64(b)) > 21


def test_int8_sums_are_whole_and_no_slices_stay_in_l1_which_is_told():
    asked = {"split_k": 4, "keep": "a"}
    whole = run_op("matmul", "decode", "float32", A2, "INT8X3", tiling=asked, values=False)
    assert whole.tiling["split_k"] == 1
    assert whole.tiling["keep"] == "none"
    for told in ("split_k=4", "keep=a"):
        assert any(f"{told} was asked for" in str(w) for w in whole.warnings)


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "mode", "device", "told"),
    [
        (
            "float32",
            "BF16X3",
            TRAINING,
            "slices are bf16.*fp16, int8, uint8 only.*split FP32 operands by FP16X2, FP16X3, INT8X2",
        ),
        ("float16", "FP16X3", A2, "a split is of FP32 operands.*take KEEP_DTYPE"),
        ("float32", "KEEP_DTYPE", TRAINING, "or split FP32 operands by FP16X2, FP16X3"),
    ],
)
def test_what_cannot_be_split_is_refused_with_a_way_out(dtype, mode, device, told):
    with pytest.raises(RefusedError, match=told):
        run_op("matmul", "tiny", dtype=dtype, product=device, cube_math_type=mode)


def test_names_of_splits_are_taken_in_any_case_and_told():
    a, b = operands(4, 4, 8)
    assert (product(a, b, "fp16x3") == product(a, b, "FP16X3")).all()
    with pytest.raises(
        RefusedError, match=r"'FP16X7'; it must be 0 KEEP_DTYPE.*splits of FP32 operands are FP16X2"
    ):
        product(a, b, "FP16X7")


@pytest.mark.parametrize("name", ["flash_attention", "group_norm_backward"])
def test_other_operators_of_the_cube_refuse_splits(name):
    op = get_operator(name)
    knobs = {op.on_cube.knob: op.on_cube.value} if op.on_cube else {}
    with pytest.raises(RefusedError, match="for matmul, convolution"):
        run_op(op, cube_math_type="FP16X3", values=False, product=A2, dtype="float32", tiling=knobs)


def test_a_kernel_of_the_users_own_is_told_that_a_split_has_no_effect():
    from ascendtile.kernels.matmul.tiles import matmul_tiles

    a = np.ones((1, 16, 16), np.float16)
    c = np.zeros((1, 16, 16), np.float32)
    with sim.device(A2, cube_math_type="FP16X3"):
        run = matmul_tiles[(1,)](
            a, a, c, 16, 16, 16, items=1, part=16, group=1, BM=16, BN=16, BK=16, EVEN=True
        )
    assert any("FP16X3 has no effect on a kernel of your own" in str(w) for w in run.warnings)

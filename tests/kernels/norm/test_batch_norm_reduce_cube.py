"""BatchNormReduceBackward on the Cube: values in every cubeMathType, what it launches, when it is chosen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.kernels import get_operator, run_op

OP = get_operator("batch_norm_reduce_backward")
WIDE = {"out_dtype": "float32"}  # without the rounding to the type of x
CUBE = {"strategy": "cube"}
# Type, cubeMathType, half an ulp of one of what the Cube multiplies; inputs of 16 bits are multiplied as they are.
MODES = [
    ("float16", "KEEP_DTYPE", 0.0),
    ("bfloat16", "KEEP_DTYPE", 0.0),
    ("float32", "KEEP_DTYPE", 0.0),
    ("float32", "ALLOW_FP32_DOWN_PRECISION", 2.0**-12),
    ("float32", "USE_HF32", 2.0**-12),
    ("float32", "USE_FP16", 2.0**-11),
]


def assert_within_the_bound(inputs, outputs, rounding):
    """Each factor is rounded once, products are exact, and every addition rounds to FP32 at most: n additions of values
    whose magnitudes add up to `size` are off by n * 2**-24 * size."""
    dy, x = (inputs[n].astype(np.float64).reshape(*inputs["x"].shape[:2], -1) for n in ("grad_out", "x"))
    mean, invstd = (np.abs(inputs[n].astype(np.float64)) for n in ("mean", "invstd"))
    count = dy.shape[0] * dy.shape[2] + 4
    first, both = np.abs(dy).sum(axis=(0, 2)), np.abs(dy * x).sum(axis=(0, 2))
    of_dy = (rounding + count * 2.0**-24) * first + 1e-7
    of_xmu = (2.01 * rounding + count * 2.0**-24) * both + mean * of_dy + 2.0**-23 * mean * first + 1e-7
    golden = OP.reference(inputs)
    bounds = {"sum_dy": of_dy, "grad_bias": of_dy, "sum_dy_xmu": of_xmu}
    bounds["grad_weight"] = of_xmu * invstd + 2.0**-23 * np.abs(golden["grad_weight"])
    for name, bound in bounds.items():
        assert (np.abs(outputs[name] - golden[name]) <= bound).all(), name


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("dtype", "mode", "rounding"), MODES)
@pytest.mark.parametrize("shape", [(3, 21, 100), (2, 32, 64), (5, 7, 1000)], ids=str)
def test_values_in_every_mode(shape, dtype, mode, rounding):
    sizes = dict(zip(("n", "c", "space"), shape, strict=True))
    inputs = OP.inputs(sizes, dtype)
    result = run_op(OP, inputs=inputs, tiling=CUBE, options=WIDE, cube_math_type=mode, time=False)
    assert_within_the_bound(inputs, result.outputs, rounding)
    assert not any("no effect" in n for n in result.notes)


def test_a_narrower_mode_is_less_exact():
    """So that the bounds above are not met by FP32 everywhere."""
    inputs = OP.inputs({"n": 3, "c": 21, "space": 100}, "float32")
    worst = [
        run_op(OP, inputs=inputs, tiling=CUBE, cube_math_type=m, time=False).errors["sum_dy_xmu"].max_abs
        for m in ("KEEP_DTYPE", "USE_HF32")
    ]
    assert worst[1] > 100 * worst[0]


@given(
    st.tuples(st.integers(1, 9), st.integers(1, 50), st.integers(2, 300)),
    st.integers(1, 9),
    st.integers(16, 200),
    st.sampled_from(("ascend910b3", "ascend910a")),
)
def test_any_shape_and_tiling(shape, parts, cols, product):
    sizes = dict(zip(("n", "c", "space"), shape, strict=True))
    inputs = OP.inputs(sizes, "float16")
    tiling = {**CUBE, "parts": parts, "cols": cols}
    result = run_op(OP, inputs=inputs, options=WIDE, tiling=tiling, product=product)
    assert_within_the_bound(inputs, result.outputs, 0.0)
    assert result.tiling["parts"] <= min(parts, shape[0])


def test_one_sum_alone_needs_no_x():
    inputs = OP.inputs({"n": 3, "c": 21, "space": 100}, "float16")
    options = {"input_g": 0, "weight_g": 0, **WIDE}
    result = run_op(OP, inputs=inputs, tiling=CUBE, options=options)
    assert list(result.outputs) == ["grad_bias"]
    golden = OP.reference(inputs, **options)["grad_bias"]
    np.testing.assert_allclose(result.outputs["grad_bias"], golden, atol=1e-4)


def test_launches_and_the_note_of_other_strategies():
    sizes = {"n": 3, "c": 21, "space": 100}
    result = run_op(OP, sizes, "float32", tiling=CUBE, cube_math_type="USE_FP16", values=False)
    kernels = [x.kernel for x in result.launches]
    assert kernels == ["cast_flat", "cast_flat", "fill_ones", "diagonals", "finish_diagonals"]
    assert result.tiling["form"] == "uncentred"
    other = run_op(OP, sizes, "float32", cube_math_type="USE_FP16", values=False)
    assert any("has no effect" in x for x in other.notes)


def test_the_products_keep_memory_busy():
    with sim.device(l2="cold"):
        result = run_op(OP, "resnet50-stage1-out", "float16", tiling=CUBE, values=False)
    assert result.time_us < result.run.bounds["HBM"] / 0.75
    pipes = result.launches[1].pipes
    assert pipes["AIV.V"].share == 0 < pipes["AIC.M"].share


def test_the_choice_is_the_faster_one():
    """Memory holds up both, and the Cube starts later; with four times the memory each is held up by itself."""
    for overrides in ({}, {"memory.bandwidth_tb_per_s": 7.0}):
        common = {"values": False, "overrides": overrides}
        times = {
            s: run_op(
                OP, "resnet50-stem", "float16", tiling={"strategy": s, "form": "uncentred"}, **common
            ).time_us
            for s in ("cube", "hybrid")
        }
        auto = run_op(OP, "resnet50-stem", "float16", tiling={"form": "uncentred"}, **common)
        assert auto.time_us <= 1.05 * min(times.values())
    centred = run_op(OP, "resnet50-stem", "float16", values=False)
    assert centred.tiling["strategy"] != "cube"


def test_a_mode_that_the_cube_has_not_is_refused():
    with pytest.raises(
        sim.RefusedError, match="sums on the Cube with cube_math_type KEEP_DTYPE are refused on ascend910a"
    ):
        run_op(OP, {"n": 2, "c": 16, "space": 50}, "float32", product="ascend910a", tiling=CUBE, values=False)
    with pytest.raises(sim.UsageError, match="'cores' is 40, ascend910b3 has 20 cube cores"):
        run_op(OP, {"n": 2, "c": 16, "space": 50}, tiling={**CUBE, "cores": 40}, values=False)

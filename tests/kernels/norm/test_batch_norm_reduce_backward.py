"""BatchNormReduceBackward against worked examples, torch, and its own float64 reference; every rule of its page."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.kernels import batch_norm_reduce_backward, get_operator, run_op

OP = get_operator("batch_norm_reduce_backward")
SPLITS = ("channel_split", "batch_split", "hybrid")
OUTPUTS = ("sum_dy", "sum_dy_xmu", "grad_weight", "grad_bias")
F16, BF16, F32 = "float16", "bfloat16", "float32"
WIDE = {"out_dtype": F32}  # without the rounding to the type of x
STORAGE = {F16: np.float16, BF16: ml_dtypes.bfloat16, F32: np.float32}
HALF_ULP = {F16: 2.0**-11, BF16: 2.0**-8, F32: 2.0**-24}


def allowed(inputs, out=F32, uncentred=False):
    """Largest errors: 2^-20 of the summed sizes (the bound of the page), the subtraction of the uncentred form, and the
    rounding of the output."""
    x, dy = (np.array(inputs[n], np.float64) for n in ("x", "grad_out"))
    ax = (0, *range(2, x.ndim))
    ch = (1, -1) + (1,) * (x.ndim - 2)
    mean, invstd = (np.array(inputs[n], np.float64) for n in ("mean", "invstd"))
    dys = np.abs(dy).sum(ax)
    xmu = np.abs(dy * (x - mean.reshape(ch))).sum(ax)
    if uncentred:
        xmu = xmu + np.abs(dy * x).sum(ax) + np.abs(mean) * dys
    bounds = {"sum_dy": dys, "sum_dy_xmu": xmu, "grad_weight": xmu * invstd, "grad_bias": dys}
    golden = OP.reference(inputs)
    tiny = 2.0**-24 if out == F16 else 0.0
    return {n: 2.0**-20 * b + HALF_ULP[out] * np.abs(golden[n]) + tiny for n, b in bounds.items()}


def assert_close(result, inputs, out=F32, uncentred=False):
    golden, bounds = OP.reference(inputs), allowed(inputs, out, uncentred)
    for n, found in result.outputs.items():
        assert found.dtype == STORAGE[out]
        assert (np.abs(np.array(found, np.float64) - golden[n]) <= bounds[n]).all(), n


# -- worked examples and the reference -------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["auto", *SPLITS, "columns", "vendor"])
def test_official_sample(values, strategy):
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    dy = np.float32([1, 1, 1, 2, 2, 2, 3, 3]).reshape(4, 2)
    ones = np.ones(2, np.float32)
    out = batch_norm_reduce_backward(dy, x, ones, ones, tiling={"strategy": strategy}).outputs
    expected = {"sum_dy": [7, 8], "sum_dy_xmu": [21, 30], "grad_weight": [21, 30], "grad_bias": [7, 8]}
    for n, numbers in expected.items():
        np.testing.assert_array_equal(out[n], numbers)


def second_example():
    i = np.arange(24)
    x = ((7 * i % 11) - 5.0).reshape(2, 3, 2, 2)
    dy = (((5 * i % 13) - 6) / 2).reshape(2, 3, 2, 2)
    return x, dy, x.mean((0, 2, 3)), 1 / np.sqrt(x.var((0, 2, 3)) + 1e-5)


@pytest.mark.parametrize("strategy", ["auto", *SPLITS, "vendor"])
def test_second_example(strategy):
    x, dy, mean, invstd = (np.float32(a) for a in second_example())
    np.testing.assert_allclose(mean, [0.75, -0.125, -1], atol=1e-7)
    np.testing.assert_allclose(invstd, [0.302371, 0.345870, 0.312347], atol=1e-6)
    out = batch_norm_reduce_backward(dy, x, mean, invstd, tiling={"strategy": strategy}, time=False).outputs
    np.testing.assert_array_equal(out["sum_dy"], [-4, 4.5, 0])
    np.testing.assert_array_equal(out["sum_dy_xmu"], [10.5, 0.0625, 27])
    np.testing.assert_allclose(out["grad_weight"], [3.174900, 0.021617, 8.433379], atol=1e-6)


@pytest.mark.extra("torch")
@pytest.mark.parametrize(
    "shape", [(32, 64, 14, 14), (8, 256, 7, 7), (16, 12), (2, 3, 4, 5, 2), (1, 2, 1, 3, 1, 2, 1, 2)]
)
def test_reference_against_torch(shape):
    """gradWeight and gradBias of torch's batch norm; dx rebuilt from the sums must be torch's."""
    import torch

    rng = np.random.default_rng(1)
    x, dy = rng.normal(size=(2, *shape))
    ax, ch = (0, *range(2, x.ndim)), (1, -1) + (1,) * (x.ndim - 2)
    eps = 1e-5
    mean, invstd = x.mean(ax), 1 / np.sqrt(x.var(ax) + eps)
    weight = rng.normal(size=shape[1])
    tensors = [torch.tensor(a) for a in (dy, x, weight, mean, invstd)]
    backward = torch.ops.aten.native_batch_norm_backward
    dx, dw, db = backward(*tensors[:3], None, None, *tensors[3:], True, eps, [True] * 3)
    golden = OP.reference({"x": x, "grad_out": dy, "mean": mean, "invstd": invstd})
    np.testing.assert_allclose(golden["grad_weight"], dw, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(golden["grad_bias"], db, rtol=1e-12, atol=1e-12)
    count = x.size / shape[1]
    means = {n: golden[n].reshape(ch) / count for n in ("sum_dy", "sum_dy_xmu")}
    inv = invstd.reshape(ch)
    rebuilt = (dy - means["sum_dy"] - (x - mean.reshape(ch)) * inv**2 * means["sum_dy_xmu"]) * inv
    np.testing.assert_allclose(rebuilt * weight.reshape(ch), dx, rtol=1e-12, atol=1e-12)


def test_the_forward_statistics_of_a_case_belong_to_x():
    inputs = OP.inputs({"n": 5, "c": 3, "space": (7, 2)}, F32)
    x = np.float64(inputs["x"])
    np.testing.assert_allclose(inputs["mean"], x.mean((0, 2, 3)), rtol=1e-6)
    np.testing.assert_allclose(inputs["invstd"], 1 / np.sqrt(x.var((0, 2, 3)) + 1e-5), rtol=1e-6)


# -- every strategy and knob -----------------------------------------------------------------------------------------


@given(
    shape=st.tuples(st.integers(1, 9), st.integers(1, 70), st.integers(1, 60)),
    strategy=st.sampled_from(["auto", *SPLITS, "vendor"]),
    sums=st.sampled_from(["lanes", "tile", "kahan"]),
    combine=st.sampled_from(["two_phase", "atomic"]),
    form=st.sampled_from(["centred", "uncentred"]),
    tile=st.tuples(st.integers(1, 4), st.integers(1, 9), st.integers(1, 70)),
    dtype=st.sampled_from([F16, BF16, F32]),
)
def test_any_shape_and_tiling(shape, strategy, sums, combine, form, tile, dtype):
    n, c, space = shape
    inputs = OP.inputs({"n": n, "c": c, "space": space}, dtype)
    knobs = {"strategy": strategy, "sums": sums, "combine": combine, "form": form}
    knobs |= dict(zip(("samples", "rows", "cols"), tile, strict=True))
    result = run_op(OP, inputs=inputs, options=WIDE, tiling=knobs, time=False, errors=False)
    assert_close(result, inputs, uncentred=form == "uncentred" or strategy == "vendor")


@given(
    n=st.integers(1, 90),
    c=st.integers(1, 200),
    rows=st.integers(1, 20),
    parts=st.integers(1, 12),
    sums=st.sampled_from(["lanes", "tile", "kahan"]),
    combine=st.sampled_from(["two_phase", "atomic"]),
)
def test_columns_for_inputs_without_space(n, c, rows, parts, sums, combine):
    inputs = OP.inputs({"n": n, "c": c}, F32)
    knobs = {"strategy": "columns", "rows": rows, "parts": parts, "sums": sums, "combine": combine}
    assert_close(run_op(OP, inputs=inputs, tiling=knobs, time=False, errors=False), inputs)


def test_columns_need_a_space_of_one():
    with pytest.raises(sim.UsageError, match=r"strategy columns is for inputs .* here S is 25"):
        run_op(OP, "tiny", tiling={"strategy": "columns"})


@pytest.mark.parametrize(("form", "least", "most"), [("centred", 0.0, 2e-6), ("uncentred", 1e-5, 1e-2)])
def test_the_uncentred_form_cancels_where_the_mean_is_large(values, form, least, most):
    """|mean| / sigma = 1000: the page's emulation has 2e-4 for the shipped form and 1.6e-7 for the centred one."""
    rng = np.random.default_rng(3)
    x = np.float32(rng.normal(size=(8, 4, 28, 28)) + 1000)
    dy = np.float32(rng.normal(size=x.shape))
    mean = np.float32(np.float64(x).mean((0, 2, 3)))
    inputs = {"x": x, "grad_out": dy, "mean": mean, "invstd": np.ones(4, np.float32)}
    found = values(OP, inputs=inputs, tiling={"form": form}).outputs["sum_dy_xmu"]
    golden = OP.reference(inputs)["sum_dy_xmu"]
    error = np.abs(found - golden).max() / np.abs(golden).max()
    assert least <= error <= most


def test_compensated_sums_lose_less():
    """A large and then many small numbers in one lane: plain FP32 drops the small ones, compensation keeps them."""
    dy = np.full((513, 1, 8), 2.0**-26, np.float32)
    dy[0] = 1
    inputs = {
        "x": np.ones_like(dy),
        "grad_out": dy,
        "mean": np.zeros(1, np.float32),
        "invstd": np.ones(1, np.float32),
    }
    golden = 8 + 8 * 512 * 2.0**-26
    found = {
        s: run_op(
            OP, inputs=inputs, tiling={"sums": s, "strategy": "channel_split", "samples": 1}, time=False
        ).outputs["sum_dy"][0]
        for s in ("lanes", "kahan")
    }
    assert found["lanes"] == 8
    assert found["kahan"] == np.float32(golden)


@pytest.mark.drawn(3)
@pytest.mark.parametrize("dtype", [F16, BF16, F32])
@pytest.mark.parametrize("vector", [F16, BF16, F32])
@pytest.mark.parametrize("out", [F16, BF16, F32])
def test_every_mixture_of_types(values, dtype, vector, out):
    inputs = OP.inputs("tiny", dtype)
    for n in ("mean", "invstd"):
        inputs[n] = inputs[n].astype(STORAGE[vector])
    assert_close(values(OP, inputs=inputs, options={"out_dtype": out}), inputs, out)


@pytest.mark.parametrize(("x", "vector"), [(F16, F16), (F16, F32), (BF16, F32), (F32, F16)])
def test_outputs_are_of_the_type_of_the_input(values, x, vector):
    """The document's words; another type is asked for, and the notes say that it is beyond the document."""
    inputs = OP.inputs("tiny", x)
    for n in ("mean", "invstd"):
        inputs[n] = inputs[n].astype(STORAGE[vector])
    assert_close(values(OP, inputs=inputs), inputs, x)
    said = [
        any(f"outputs of type {F32}" in n for n in values(OP, inputs=inputs, options=o).notes)
        for o in ({}, WIDE)
    ]
    assert said == [False, x != F32]


@pytest.mark.drawn(3)
@pytest.mark.parametrize("strategy", ["auto", "batch_split", "vendor"])
@pytest.mark.parametrize("flags", list(np.ndindex(2, 2, 2)), ids=str)
def test_flags_choose_the_outputs(flags, strategy):
    inputs = OP.inputs("tiny", F16)
    arrays = [inputs[n] for n in ("grad_out", "x", "mean", "invstd")]
    result = batch_norm_reduce_backward(
        *arrays, None, *map(bool, flags), tiling={"strategy": strategy}, out_dtype=F32
    )
    wanted = (flags[0], flags[0], flags[1], flags[2])
    assert set(result.outputs) == {n for n, w in zip(OUTPUTS, wanted, strict=True) if w}
    assert bool(result.launches) == any(flags)
    assert_close(result, inputs, uncentred=strategy == "vendor")


def test_only_sums_of_dy_do_not_read_x():
    with sim.device(l2="cold"):
        whole = run_op(OP, "resnet50-stage1", F16, values=False)
        less = run_op(OP, "resnet50-stage1", F16, values=False, options={"input_g": 0, "weight_g": 0})
    assert less.launches[0].resources["HBM"] < 0.51 * whole.launches[0].resources["HBM"]


def test_weight_has_no_influence(values):
    inputs = OP.inputs("tiny", F32)
    a = values(OP, inputs=inputs)
    b = values(OP, inputs={**inputs, "weight": np.full(6, 7, np.float32)})
    assert all(a.outputs[n].tobytes() == b.outputs[n].tobytes() for n in OUTPUTS)


@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 3, 0), (2, 3, 0, 5)])
def test_empty_inputs_give_zeros_and_a_warning(shape):
    x, c = np.empty(shape, np.float16), np.ones(3, np.float16)
    result = batch_norm_reduce_backward(x, x, c, c)
    assert all((out == 0).all() and out.dtype == np.float16 for out in result.outputs.values())
    assert len(result.outputs) == 4
    assert "the vendor's library leaves its outputs as they were" in result.warnings[0]


@pytest.mark.parametrize(
    "shape",
    [
        (1, 1, 1),
        (1, 5),
        (7, 1),
        (2, 3, 1, 4),
        (2, 3, 1, 2, 2, 1, 2, 2),
        (40, 21, 25),
        (45, 42, 8),
        (36, 9, 11, 3, 2),
    ],
)
def test_shapes_of_the_vendors_tests(values, shape):
    n, c, *space = shape
    inputs = OP.inputs({"n": n, "c": c, "space": tuple(space)}, F32)
    assert_close(values(OP, inputs=inputs), inputs)


def test_a_channels_last_view_is_copied_first():
    x = np.random.default_rng(0).normal(size=(2, 5, 5, 6)).astype(np.float16).transpose(0, 3, 1, 2)
    c = np.ones(6, np.float32)
    result = batch_norm_reduce_backward(x, x, c, c, out_dtype=F32)
    assert [launch.kernel for launch in result.launches[:2]] == ["copy_strided", "copy_strided"]
    assert_close(result, {"x": x, "grad_out": x, "mean": c, "invstd": c})


# -- the vendor's chain ----------------------------------------------------------------------------------------------


def test_the_vendors_chain_of_launches():
    """Casts of both inputs, the product in FP32, two reductions, the kernel on vectors, casts of the outputs."""
    result = run_op(OP, "resnet50-stage4", F16, values=False, tiling={"strategy": "vendor"})
    kernels = [launch.kernel for launch in result.launches]
    assert kernels == ["cast_flat", "cast_flat", "multiply", "planes", "planes", "finish", *["cast_flat"] * 4]


@pytest.mark.parametrize(("dtype", "bytes_each"), [(F16, 32), (F32, 20)])
def test_the_vendors_chain_moves_what_the_page_counts(dtype, bytes_each):
    """16-bit: two casts 2 * (2 + 4), the product 8 + 4, two reductions 8; fp32: without the casts."""
    sizes = {"n": 8, "c": 64, "space": (64, 64)}
    result = run_op(OP, sizes, dtype, values=False, tiling={"strategy": "vendor"})
    moved = sum(x.resources["L2"] for x in result.launches)  # all traffic passes there
    elements = 8 * 64 * 64 * 64
    assert moved / elements == pytest.approx(bytes_each, rel=0.02)
    ours = run_op(OP, sizes, dtype, values=False)
    assert ours.time_us < 0.5 * result.time_us


# -- tiling ----------------------------------------------------------------------------------------------------------


@pytest.mark.drawn(3)
@pytest.mark.parametrize("dtype", [F16, F32])
@pytest.mark.parametrize("case", OP.cases)
def test_default_tilings_of_the_cases_fit(case, dtype):
    result = run_op(OP, case, dtype, values=False)
    assert result.run.buffers["UB"].peak_bytes <= result.run.buffers["UB"].capacity_bytes
    assert not result.warnings


@pytest.mark.drawn(2)
@pytest.mark.parametrize("dtype", [F16, F32])
@pytest.mark.parametrize(
    "case", ["resnet50-stem", "resnet50-stage1-out", "yolov5s-stem", "resnet3d", "segmentation"]
)
def test_large_aligned_cases_come_near_the_bound_of_memory(case, dtype):
    with sim.device(l2="cold"):
        result = run_op(OP, case, dtype, values=False)
    assert result.time_us < result.run.bounds["HBM"] / 0.8


@pytest.mark.drawn(1)
@pytest.mark.parametrize("case", ["resnet50-stage1", "resnet50-stage4-out", "yolov5s-neck", "segmentation"])
def test_the_choice_is_within_five_percent_of_the_best_strategy(case):
    chosen = run_op(OP, case, F16, values=False).time_us
    others = [
        run_op(OP, case, F16, values=False, tiling={"strategy": s}).time_us for s in (*SPLITS, "vendor")
    ]
    assert chosen <= 1.05 * min(others)


@pytest.mark.drawn(3)
@pytest.mark.parametrize("dtype", [F16, F32])
@pytest.mark.parametrize("copies", [1, 2, 3])
@pytest.mark.parametrize("sums", ["lanes", "tile", "kahan"])
@pytest.mark.parametrize("tile", [(1, 1, 4096), (2, 8, 256), (4, 16, 49)])
def test_ub_need_is_never_less_than_what_is_placed(dtype, copies, sums, tile):
    from ascendtile.kernels.norm.batch.choice import element_bytes

    for form in ("centred", "uncentred"):
        knobs = {"strategy": "channel_split", "sums": sums, "buffers": copies, "form": form, "cores": 1}
        knobs |= {"banks": "packed"} | dict(zip(("samples", "rows", "cols"), tile, strict=True))
        sizes = {"n": 2 * tile[0], "c": tile[1], "space": tile[2]}
        result = run_op(OP, sizes, dtype, values=False, tiling=knobs, overrides={"buffers.ub": "16MiB"})
        each = element_bytes(2 if dtype == F16 else 4, copies, sums, True, form == "centred")
        elements = tile[0] * tile[1] * -(-tile[2] // 16) * 16
        assert result.run.buffers["UB"].peak_bytes <= each * elements + 4096


# -- refusals --------------------------------------------------------------------------------------------------------

GOOD = {"grad_out": ((4, 6, 5), F16), "x": ((4, 6, 5), F16), "mean": ((6,), F32), "invstd": ((6,), F32)}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"grad_out": ((4, 6, 5), F32)}, "grad_out is float32, x is float16; they must be of one type"),
        ({"grad_out": ((6,), F16)}, "grad_out has rank 1; it must be from 2 to 8"),
        ({"x": ((1,) * 9, F16)}, "x has rank 9; it must be from 2 to 8"),
        ({"x": ((4, 0, 5), F16)}, "x has shape (4, 0, 5); axis 1, the channels, is 0 and must be at least 1"),
        ({"grad_out": ((4, 6, 1), F16)}, "grad_out has shape (4, 6, 1), x has (4, 6, 5); they must be equal"),
        ({"mean": ((5,), F32)}, "mean has shape (5,); it must be (6,), one element for each channel of x"),
        ({"invstd": ((1, 6), F32)}, "invstd has shape (1, 6); it must be (6,)"),
        ({"weight": ((7,), F32)}, "weight has shape (7,); it must be (6,)"),
        ({"mean": ((6,), "float64")}, "mean is fp64; on ascend910b3 it must be float16, bfloat16 or float32"),
    ],
)
def test_refusals_have_the_status_and_name_both_values(change, text):
    shapes = {n: sim.shape(*s) for n, s in {**GOOD, **change}.items()}
    with pytest.raises(sim.RefusedError) as error:
        batch_norm_reduce_backward(**shapes, values=False)
    assert text in str(error.value)
    assert error.value.status == 161002


def test_bfloat16_is_refused_on_910a():
    shapes = {n: sim.shape(s[0], BF16 if s[1] == F16 else F32) for n, s in GOOD.items()}
    with pytest.raises(
        sim.RefusedError, match="grad_out is bfloat16; on ascend910a it must be float16 or float32"
    ):
        batch_norm_reduce_backward(**shapes, values=False, product="ascend910a")
    halves = {n: sim.shape(*s) for n, s in GOOD.items()}
    assert batch_norm_reduce_backward(**halves, values=False, product="ascend910a").time_us > 0


@pytest.mark.parametrize("product", ["ascend310p", "ascend310b"])
def test_products_without_the_operator(product):
    with pytest.raises(sim.UsageError, match=f"batch_norm_reduce_backward is not available on {product}"):
        run_op(OP, "tiny", product=product)

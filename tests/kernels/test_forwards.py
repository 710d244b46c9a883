"""The forward partners: statistics and outputs against torch and float64, and what the gradients take from them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.kernels import (
    batch_norm_reduce_backward,
    batch_norm_statistics,
    bce_with_logits,
    get_operator,
    group_norm,
    group_norm_backward,
    rms_norm,
    rms_norm_grad,
    run_op,
)

F16, BF16, F32 = "float16", "bfloat16", "float32"
ROUNDING = {F16: 2.0**-11, BF16: 2.0**-8, F32: 2.0**-24}
DTYPES = st.sampled_from([F16, BF16, F32])


def assert_near(result, golden, relative=4e-6):
    """FP32 arithmetic: a few ulp of the largest value, and the rounding of the output's own type."""
    for name, found in result.outputs.items():
        kind = str(found.dtype)
        want = golden[name]
        limit = relative * max(1.0, np.abs(want).max()) + ROUNDING[kind] * np.abs(want) + 2.0**-25
        assert (np.abs(np.array(found, np.float64) - want) <= limit).all(), name


# -- against torch ---------------------------------------------------------------------------------------------------


@pytest.mark.extra("torch")
def test_references_against_torch():
    import torch

    rng = np.random.default_rng(4)
    x, gamma, beta = rng.normal(size=(3, 8, 5)) + 2, rng.normal(size=8), rng.normal(size=8)
    t = {n: torch.tensor(a) for n, a in (("x", x), ("gamma", gamma), ("beta", beta))}
    y, mean, rstd = torch.ops.aten.native_group_norm(t["x"], t["gamma"], t["beta"], 3, 8, 5, 2, 1e-5)
    golden = get_operator("group_norm").reference({"x": x, "gamma": gamma, "beta": beta}, group=2)
    for name, theirs in (("y", y), ("mean", mean), ("rstd", rstd)):
        np.testing.assert_allclose(golden[name], theirs, rtol=1e-12, atol=1e-12)
    _, mean, invstd = torch.ops.aten.native_batch_norm(t["x"], None, None, None, None, True, 0.1, 1e-5)
    golden = get_operator("batch_norm_statistics").reference({"x": x})
    np.testing.assert_allclose(golden["mean"], mean, rtol=1e-12)
    np.testing.assert_allclose(golden["invstd"], invstd, rtol=1e-12)
    rows, weight = rng.normal(size=(6, 20)), rng.normal(size=20)
    y = torch.nn.functional.rms_norm(torch.tensor(rows), (20,), torch.tensor(weight), 1e-6)
    golden = get_operator("rms_norm").reference({"x": rows, "gamma": weight})
    np.testing.assert_allclose(golden["y"], y, rtol=1e-12, atol=1e-12)


# -- values ----------------------------------------------------------------------------------------------------------


@given(st.integers(1, 50), st.integers(1, 200), st.integers(1, 6), st.integers(1, 210), DTYPES)
def test_rms_norm_of_any_shape_and_tiling(rows, cols, tile, chunk, dtype):
    op = get_operator("rms_norm")
    inputs = op.inputs({"rows": rows, "cols": cols}, dtype)
    result = run_op(op, inputs=inputs, tiling={"rows": tile, "cols": chunk}, time=False, errors=False)
    assert_near(result, op.reference(inputs))


@given(
    st.integers(1, 6), st.integers(1, 20), st.integers(1, 60), st.integers(1, 9), st.integers(1, 70), DTYPES
)
def test_batch_norm_statistics_of_any_shape_and_tiling(n, c, space, rows, cols, dtype):
    op = get_operator("batch_norm_statistics")
    inputs = op.inputs({"n": n, "c": c, "space": space}, dtype)
    result = run_op(op, inputs=inputs, tiling={"rows": rows, "cols": cols}, time=False, errors=False)
    golden = op.reference(inputs)
    np.testing.assert_allclose(result.outputs["mean"], golden["mean"], atol=2e-6)
    # of one element, or of equal ones, the variance is eps and its root 316: relative to that it is exact
    np.testing.assert_allclose(result.outputs["invstd"], golden["invstd"], rtol=1e-5)


@given(
    st.integers(1, 4),
    st.integers(1, 5),
    st.integers(1, 5),
    st.integers(1, 40),
    st.integers(1, 6),
    st.integers(1, 50),
    st.sampled_from([F16, F32]),
)
def test_group_norm_of_any_shape_and_tiling(n, group, depth, space, rows, cols, dtype):
    op = get_operator("group_norm")
    inputs = op.inputs({"n": n, "c": group * depth, "space": space + 8}, dtype)
    tiling = {"rows": rows, "cols": cols}
    result = run_op(op, inputs=inputs, options={"group": group}, tiling=tiling, time=False, errors=False)
    assert_near(result, op.reference(inputs, group=group), 2e-5)


@pytest.mark.parametrize("shape", [(5, 40), (64, 3), (1, 7), (300, 130)])
def test_statistics_without_space(values, shape):
    op = get_operator("batch_norm_statistics")
    inputs = op.inputs({"n": shape[0], "c": shape[1]}, F32)
    result = values(op, inputs=inputs, tiling={"rows": 7})
    golden = op.reference(inputs)
    np.testing.assert_allclose(result.outputs["mean"], golden["mean"], atol=2e-6)
    np.testing.assert_allclose(result.outputs["invstd"], golden["invstd"], rtol=1e-5)


@pytest.mark.parametrize("shape", [(4, 6, 500), (2000, 6)])
def test_statistics_keep_their_digits_where_the_mean_is_large(shape):
    """|mean| / sigma = 3000: a sum of squares less the squared mean would have no digit left in FP32."""
    x = np.float32(np.random.default_rng(0).normal(size=shape) + 3000)
    result = batch_norm_statistics(x, time=False)
    wide = np.float64(x)
    ax = (0, *range(2, x.ndim))
    np.testing.assert_allclose(result.outputs["invstd"], 1 / np.sqrt(wide.var(ax) + 1e-5), rtol=1e-3)
    np.testing.assert_allclose(result.outputs["mean"], wide.mean(ax), rtol=1e-6)


@pytest.mark.drawn(3)
@pytest.mark.parametrize("dtype", [F16, BF16, F32])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize(
    "sizes",
    [
        {"shape": (3, 4, 50)},
        {"shape": (70, 33), "weight": 33},
        {"shape": (5, 7, 6, 9), "pos_weight": (7, 1, 1)},
        {"shape": (9, 40), "weight": (9, 1), "pos_weight": 1},
        {"shape": ()},
    ],
)
def test_binary_cross_entropy(values, sizes, reduction, dtype):
    op = get_operator("bce_with_logits")
    inputs = op.inputs(sizes, dtype)
    for tiling in ({}, {"block": 16, "cores": 3}):
        result = values(op, inputs=inputs, options={"reduction": reduction}, tiling=tiling)
        assert result.outputs["out"].dtype == inputs["x"].dtype
        assert_near(result, op.reference(inputs, reduction=reduction))


@pytest.mark.extra("torch")
def test_binary_cross_entropy_against_torch():
    import torch

    rng = np.random.default_rng(2)
    x, t, w, p = rng.normal(size=(6, 5)) * 5, rng.random((6, 5)), rng.random(5), rng.random((6, 1))
    loss = torch.nn.functional.binary_cross_entropy_with_logits
    for reduction in ("none", "mean", "sum"):
        a, b, c, d = (torch.tensor(v) for v in (x, t, w, p))
        expected = loss(a, b, c, reduction=reduction, pos_weight=d)
        inputs = {"x": x, "target": t, "weight": w, "pos_weight": p}
        golden = get_operator("bce_with_logits").reference(inputs, reduction=reduction)["out"]
        np.testing.assert_allclose(golden, expected, rtol=1e-12, atol=1e-13)


def test_the_loss_of_nothing():
    x = np.empty((0, 3), np.float32)
    assert bce_with_logits(x, x, reduction="sum").outputs["out"] == 0
    mean = bce_with_logits(x, x)
    assert np.isnan(mean.outputs["out"])
    assert mean.warnings == ("x is empty: its mean is NaN",)
    assert bce_with_logits(x, x, reduction="none").outputs["out"].shape == (0, 3)


# -- what the gradients take from them -------------------------------------------------------------------------------


@pytest.mark.extra("torch")
def test_gradients_take_what_the_forwards_give():
    """Whole chains against torch's autograd."""
    import torch

    rng = np.random.default_rng(7)
    x, dy = np.float32(rng.normal(size=(2, 3, 8, 6)))
    gamma, beta = np.float32(rng.normal(size=(2, 8)))
    t = {n: torch.tensor(np.float64(a), requires_grad=True) for n, a in (("x", x), ("gamma", gamma))}

    forward = group_norm(x, gamma, beta, 4, time=False).outputs
    result = group_norm_backward(dy, x, forward["mean"], forward["rstd"], gamma, time=False).outputs
    y = torch.nn.functional.group_norm(t["x"], 4, t["gamma"], torch.tensor(np.float64(beta)), 1e-5)
    np.testing.assert_allclose(forward["y"], y.detach(), atol=2e-6)
    y.backward(torch.tensor(np.float64(dy)))
    np.testing.assert_allclose(result["grad_input"], t["x"].grad, atol=1e-5)
    np.testing.assert_allclose(result["grad_gamma"], t["gamma"].grad, atol=1e-5)

    stats = batch_norm_statistics(x, time=False).outputs
    sums = batch_norm_reduce_backward(dy, x, stats["mean"], stats["invstd"], time=False).outputs
    t["gamma"].grad = None
    bn = torch.nn.functional.batch_norm(t["x"].detach(), None, None, t["gamma"], None, True, 0.1, 1e-5)
    bn.backward(torch.tensor(np.float64(dy)))
    np.testing.assert_allclose(sums["grad_weight"], t["gamma"].grad, atol=1e-5)

    rows = x.reshape(24, 6)
    weight = np.float32(rng.normal(size=6))
    normed = rms_norm(rows, weight, time=False).outputs
    result = rms_norm_grad(dy.reshape(24, 6), rows, normed["rstd"], weight, time=False).outputs
    leaf = torch.tensor(np.float64(rows), requires_grad=True)
    torch.nn.functional.rms_norm(leaf, (6,), torch.tensor(np.float64(weight)), 1e-6).backward(
        torch.tensor(np.float64(dy.reshape(24, 6)))
    )
    np.testing.assert_allclose(result["dx"], leaf.grad, atol=1e-5)


# -- tilings and refusals --------------------------------------------------------------------------------------------


@pytest.mark.drawn(3)
@pytest.mark.parametrize("dtype", [F16, F32])
@pytest.mark.parametrize(
    ("name", "case"),
    [
        ("rms_norm", "llama3-8b"),
        ("rms_norm", "llama3-70b"),
        ("rms_norm", "query-norm"),
        ("batch_norm_statistics", "resnet50-stage2"),
        ("batch_norm_statistics", "resnet50-stage4-out"),
        ("batch_norm_statistics", "projector"),
        ("group_norm", "sd-unet-640"),
        ("group_norm", "sd-unet-mid"),
        ("group_norm", "small-maps"),
        ("bce_with_logits", "yolo"),
        ("bce_with_logits", "segmentation"),
        ("bce_with_logits", "imagenet-labels"),
    ],
)
def test_default_tilings_fit(name, case, dtype):
    run = run_op(name, case, dtype, values=False).run
    assert run.buffers["UB"].peak_bytes <= run.buffers["UB"].capacity_bytes
    assert run.time_us > 0


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda s: rms_norm(s((4, 8)), s((4,)), values=False),
            "gamma has shape (4,); it must be the last axes of x",
        ),
        (lambda s: rms_norm(s((0, 8)), s((8,)), values=False), "x has shape (0, 8) and no elements"),
        (lambda s: rms_norm(s((4, 8)), sim.shape((8,), F32), values=False), "gamma is float32, x is float16"),
        (lambda s: batch_norm_statistics(s((4,)), values=False), "x has rank 1; it must be from 2 to 8"),
        (lambda s: batch_norm_statistics(s((4, 0)), values=False), "x has shape (4, 0) and no elements"),
        (
            lambda s: group_norm(s((2, 6)), s((6,)), s((6,)), 4, values=False),
            "C is 6, group is 4; group must divide C",
        ),
        (
            lambda s: group_norm(s((2, 6)), s((6,)), s((5,)), 3, values=False),
            "beta has shape (5,); it must be (6,)",
        ),
    ],
)
def test_refusals(call, text):
    with pytest.raises(sim.RefusedError) as error:
        call(lambda dims: sim.shape(dims, F16))
    assert text in str(error.value)

"""GroupNormBackward as the vendor's library composes it on the 910A: its launches, its values, what they cost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.kernels import get_operator, run_op

OP = get_operator("group_norm_backward")
HERE = {"product": "ascend910a", "tiling": {"strategy": "vendor"}}
OF_DX = ["times_channel", "recovered_variance", "bn_training_update_grad", "bn_training_reduce_grad"]
OF_DGAMMA = ["stretch", "combined", "stretch", "combined", "combined", "reduce_last", "reduce_first"]
OF_DBETA = ["reduce_last", "reduce_first"]


def kernels(result):
    return [x.kernel for x in result.launches]


@pytest.mark.parametrize("masks", [(1, 1, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1)], ids=str)
def test_launches_in_their_order(masks):
    sizes = {"n": 2, "c": 8, "space": 30, "group": 2}
    options = dict(zip(("input_mask", "gamma_mask", "beta_mask"), masks, strict=True))
    expected = [k for part, m in zip((OF_DX, OF_DGAMMA, OF_DBETA), masks, strict=True) if m for k in part]
    assert kernels(run_op(OP, sizes, "float32", options=options, values=False, **HERE)) == expected


def test_statistics_are_float32_and_gamma_may_be_absent():
    shapes = OP.shapes({"n": 2, "c": 8, "space": 30, "group": 2}, "float16")
    found = kernels(
        run_op(OP, inputs=shapes, options={"gamma_mask": 0, "beta_mask": 0}, values=False, **HERE)
    )
    assert found == [OF_DX[0], "cast_flat", "cast_flat", *OF_DX[1:]]
    del shapes["gamma"]
    assert OF_DX[0] not in kernels(run_op(OP, inputs=shapes, values=False, **HERE))


@given(
    st.tuples(st.integers(1, 4), st.integers(1, 12), st.integers(1, 300), st.integers(1, 5)),
    st.sampled_from(("float16", "float32")),
)
def test_values_of_any_shape(shape, dtype):
    """dx within what the rounding of dy * gamma and of dx explains; the sums within those of every step's type."""
    n, depth, space, group = shape
    inputs = OP.inputs({"n": n, "c": depth * group, "space": space, "group": group}, dtype)
    found, golden = run_op(OP, inputs=inputs, **HERE).outputs, OP.reference(inputs)
    unit = 2.0**-11 if dtype == "float16" else 2.0**-20
    dy, x, rstd = (np.abs(inputs[k].astype(np.float64)) for k in ("grad_out", "x", "rstd"))
    mean = np.abs(inputs["mean"].astype(np.float64))
    dy, x = (a.reshape(n, depth * group, space) for a in (dy, x))
    wide = [np.repeat(a, depth, axis=1)[:, :, None] for a in (mean, rstd)]
    xh = (x + wide[0]) * wide[1]
    sums = {"grad_gamma": (dy * xh).sum(axis=(0, 2)), "grad_beta": dy.sum(axis=(0, 2))}
    for name, size in sums.items():
        assert (np.abs(found[name] - golden[name]) <= 6 * unit * size + 1e-6).all(), name
    weighted = dy * np.abs(inputs["gamma"].astype(np.float64))[:, None]
    size = wide[1] * (weighted + weighted.mean() + xh * (weighted * xh).max())
    assert (
        np.abs(found["grad_input"] - golden["grad_input"]).reshape(size.shape) <= 6 * unit * size + 1e-6
    ).all()


def test_dgamma_of_float16_is_rounded_at_every_step():
    """The chain in numpy: Sub, Mul, Mul and the first sum in float16; the fused kernel keeps FP32 and is nearer."""
    inputs = OP.inputs({"n": 3, "c": 8, "space": 500, "group": 2}, "float16")
    dy, x, mean, rstd = (inputs[k] for k in ("grad_out", "x", "mean", "rstd"))
    dy, x = (a.reshape(3, 2, -1) for a in (dy, x))
    product = dy * ((x - mean[:, :, None]) * rstd[:, :, None])
    assert product.dtype == np.float16
    planes = product.reshape(3, 8, 500).astype(np.float64).sum(axis=2).astype(np.float16)
    expected = planes.astype(np.float64).sum(axis=0)
    found = run_op(OP, inputs=inputs, **HERE).outputs["grad_gamma"].astype(np.float64)
    assert (np.abs(found - expected) <= 4 * 2.0**-11 * np.abs(planes.astype(np.float64)).sum(axis=0)).all()
    golden = OP.reference(inputs)["grad_gamma"]
    fused = run_op(OP, inputs=inputs, product="ascend910a").outputs["grad_gamma"]
    assert np.square(found - golden).sum() > np.square(fused - golden).sum()


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("case", ["sd-unet-320", "maskrcnn-box", "sdxl-320"])
def test_the_chain_moves_and_takes_more_than_the_fused_kernels(case, dtype):
    chain = run_op(OP, case, dtype, values=False, **HERE)
    ours = run_op(OP, case, dtype, values=False, product="ascend910a")
    size = OP.shapes(case, dtype)["x"].size * (2 if dtype == "float16" else 4)
    # dy gamma: 2; update 2, reduce 3; Expand 2, Sub 3, Mul 3 and 3; sums of dgamma and dbeta 2: twenty passes and more.
    assert sum(x.resources["L2"] for x in chain.launches) >= 19 * size
    assert ours.time_us < chain.time_us / 3


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_group_that_hardly_varies_keeps_its_gradient(dtype):
    """The variance comes back from rstd as a difference with 1e-5, and 1e-5 is added again: rstd is what it was."""
    inputs = OP.inputs({"n": 1, "c": 4, "space": 64, "group": 2}, dtype)
    inputs["x"] = (
        (inputs["mean"].reshape(1, 2, 1, 1) + np.zeros((1, 2, 2, 64)))
        .reshape(1, 4, 64)
        .astype(inputs["x"].dtype)
    )
    inputs["rstd"] = np.full_like(inputs["rstd"], 300.0)  # 1 / sqrt(1e-5) is 316
    found, golden = (
        run_op(OP, inputs=inputs, **HERE).outputs["grad_input"],
        OP.reference(inputs)["grad_input"],
    )
    unit = 2.0**-10 if dtype == "float16" else 2.0**-18
    assert (np.abs(found - golden) <= 4 * unit * np.abs(golden).max()).all()

"""LayerNorm against float64 and torch, its tilings, its refusals, and the bound of a tiling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.kernels import get_operator, layer_norm, run_op

OP = get_operator("layer_norm")
# Half an ulp of one, the rounding of y at the end.
HALF_ULP = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24}


def assert_close(result, inputs, dtype):
    """y: a few FP32 roundings of values of about 4 at most, then one in its type; statistics: FP32."""
    golden = OP.reference(inputs)
    for name, half in (("y", HALF_ULP[dtype]), ("mean", 2.0**-22), ("rstd", 2.0**-22)):
        bound = (half + 2.0**-19) * (np.abs(golden[name]) + 1)
        assert (np.abs(np.array(result.outputs[name], np.float64) - golden[name]) <= bound).all(), name


@given(
    st.integers(1, 50),
    st.integers(2, 300),
    st.integers(1, 6),
    st.integers(1, 310),
    st.sampled_from(list(HALF_ULP)),
    st.booleans(),
)
def test_any_shape_and_tiling(rows, cols, tile, chunk, dtype, with_beta):
    inputs = OP.inputs({"rows": rows, "cols": cols}, dtype)
    if not with_beta:
        del inputs["beta"]
    result = run_op(OP, inputs=inputs, tiling={"rows": tile, "cols": chunk}, time=False, errors=False)
    assert_close(result, inputs, dtype)


@pytest.mark.extra("torch")
def test_against_torch():
    import torch

    rng = np.random.default_rng(4)
    x, gamma, beta = rng.normal(size=(6, 3, 20)) + 2, rng.normal(size=(3, 20)), rng.normal(size=(3, 20))
    theirs = torch.ops.aten.native_layer_norm(
        torch.tensor(x), (3, 20), torch.tensor(gamma), torch.tensor(beta), 1e-5
    )
    golden = OP.reference({"x": x, "gamma": gamma, "beta": beta})
    for name, t in zip(("y", "mean", "rstd"), theirs, strict=True):
        np.testing.assert_allclose(golden[name], t.reshape(golden[name].shape), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("chunk", [1000, 128])
def test_digits_stay_where_the_mean_is_large(chunk):
    x = np.random.default_rng(0).normal(size=(4, 1000)).astype(np.float32) + np.float32(1000)
    one = np.ones(1000, np.float32)
    result = layer_norm(x, one, 0 * one, tiling={"cols": chunk}, time=False)
    rstd = 1 / np.sqrt(np.float64(x).var(axis=1) + 1e-5)
    np.testing.assert_allclose(result.outputs["rstd"], rstd, rtol=1e-5)


@pytest.mark.drawn(3)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("case", OP.cases)
def test_default_tilings_of_the_cases_fit(case, dtype):
    run = run_op(OP, case, dtype, values=False).run
    assert run.buffers["UB"].peak_bytes <= run.buffers["UB"].capacity_bytes
    assert not run.warnings


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (((4, 8), (4,), (4,)), "gamma has shape (4,); it must be the last axes of x"),
        (((4, 8), (8,), (4,)), "beta has shape (4,), gamma has (8,); they must be equal"),
        (((0, 8), (8,), (8,)), "x has shape (0, 8) and no elements"),
    ],
)
def test_refusals(shapes, text):
    with pytest.raises(sim.RefusedError) as error:
        layer_norm(*(sim.shape(s, "float16") for s in shapes), values=False)
    assert text in str(error.value)

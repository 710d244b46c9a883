"""RmsNormGrad on a grid of rows x groups of columns: values, launches, and that a single long row takes it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.kernels import get_operator, run_op

OP = get_operator("rms_norm_grad")


@given(
    st.integers(1, 60), st.integers(1, 700), st.integers(1, 5), st.integers(1, 4), st.sampled_from(("atomic", "two_phase"))
)  # fmt: skip
def test_values_of_any_grid(rows, cols, groups, tile_rows, combine):
    """FP32: a few roundings of each element, and of the sums of rows and columns."""
    inputs = OP.inputs({"rows": rows, "cols": cols}, "float32")
    tiling = {"strategy": "grid", "groups": groups, "rows": tile_rows, "cols": 128, "combine": combine}
    found, golden = run_op(OP, inputs=inputs, tiling=tiling, time=False).outputs, OP.reference(inputs)
    x, dy = (np.abs(inputs[n].astype(np.float64)) for n in ("x", "dy"))
    rstd = inputs["rstd"].reshape(-1, 1)
    t, xh = dy * np.abs(inputs["gamma"]), x * rstd
    size = rstd * (t + xh * (t * xh).mean(axis=1, keepdims=True))
    assert (np.abs(found["dx"] - golden["dx"]) <= 2.0**-19 * size + 1e-12).all()
    assert (np.abs(found["dgamma"] - golden["dgamma"]) <= 2.0**-18 * (dy * xh).sum(axis=0) + 1e-12).all()


def test_launches():
    def kernels(rows, **tiling):
        tiling = {"strategy": "grid", **tiling}
        return [
            x.kernel for x in run_op(OP, {"rows": rows, "cols": 5000}, tiling=tiling, values=False).launches
        ]

    assert kernels(1) == ["grid_sums", "grid_dx"]
    assert kernels(3) == ["zero_fill", "grid_sums", "grid_dx"]
    assert kernels(3, combine="two_phase") == ["grid_sums", "grid_dx", "sum_partials"]
    with pytest.raises(sim.UsageError, match="combine cube is for full_row, kept_row and split_row"):
        kernels(3, combine="cube")


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_single_long_row_is_cut(dtype):
    """65536 columns on one core took 31 and 26 us."""
    found = run_op(OP, {"rows": 1, "cols": 65536}, dtype, values=False)
    assert found.tiling["strategy"] == "grid"
    assert found.tiling["groups"] == found.tiling["cores"] > 1
    other = run_op(OP, {"rows": 1, "cols": 65536}, dtype, tiling={"strategy": "split_row"}, values=False)
    assert found.time_us < 0.6 * other.time_us

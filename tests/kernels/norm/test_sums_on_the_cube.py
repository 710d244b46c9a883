"""Column sums on the Cube in RmsNormGrad and GroupNormBackward: values in every cubeMathType, launches, limits, spaces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.kernels import get_operator, run_op
from ascendtile.kernels.norm.column_products import L1_KEPT, choose_tile, tile_bytes
from ascendtile.simulator.products import load_product
from ascendtile.tiling import explore

RMS, GN = get_operator("rms_norm_grad"), get_operator("group_norm_backward")
ON_CUBE, BY_CUBE = {"combine": "cube"}, {"strategy": "cube"}
# Type, cubeMathType, half an ulp of one of what the Cube multiplies. RmsNormGrad multiplies products, which are FP32.
OF_PRODUCTS = [
    (dtype, mode, rounding)
    for dtype in ("float16", "bfloat16", "float32")
    for mode, rounding in (
        ("KEEP_DTYPE", 0.0),
        ("ALLOW_FP32_DOWN_PRECISION", 2.0**-12),
        ("USE_FP16", 2.0**-11),
        ("USE_HF32", 2.0**-12),
    )
]
MODES = [
    ("float16", "KEEP_DTYPE", 2.0**-11),
    ("bfloat16", "KEEP_DTYPE", 2.0**-8),
    ("float32", "KEEP_DTYPE", 0.0),
    ("float32", "ALLOW_FP32_DOWN_PRECISION", 2.0**-12),
    ("float32", "USE_HF32", 2.0**-12),
    ("float32", "USE_FP16", 2.0**-11),
]
HALF_ULP = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24}
TINY = 2.0**-25  # half of the smallest step of float16


def within(found, golden, bound):
    return (np.abs(found.astype(np.float64) - golden) <= bound).all()


# -- RmsNormGrad -----------------------------------------------------------------------------------------------------


def assert_dgamma(inputs, outputs, rounding):
    """An addend is a product of three in FP32, rounded once for the Cube; every addition rounds to FP32 at most."""
    x, dy = (inputs[n].astype(np.float64) for n in ("x", "dy"))
    rows = len(x)
    size = np.abs(dy * x * inputs["rstd"].reshape(rows, 1)).sum(axis=0)
    bound = (1.01 * rounding + (rows + 8) * 2.0**-24) * size + rows * TINY
    assert within(outputs["dgamma"], RMS.reference(inputs)["dgamma"], bound)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("dtype", "mode", "rounding"), OF_PRODUCTS)
@pytest.mark.parametrize("strategy", ["full_row", "kept_row", "split_row"])
def test_dgamma_in_every_mode(strategy, dtype, mode, rounding):
    """dx has nothing to do with the Cube: its bits are those of atomic adds. The notes say what the Cube multiplies."""
    inputs = RMS.inputs({"rows": 90, "cols": 1100}, dtype)
    common = {"strategy": strategy, "rows": 2, "buffers": 2} | (
        {"cols": 576} if strategy != "full_row" else {}
    )
    found = run_op(RMS, inputs=inputs, tiling={**common, **ON_CUBE}, cube_math_type=mode, time=False)
    assert_dgamma(inputs, found.outputs, rounding)
    other = run_op(RMS, inputs=inputs, tiling=common, time=False)
    np.testing.assert_array_equal(found.outputs["dx"], other.outputs["dx"])
    operand = {0.0: "fp32", 2.0**-12: "hf32", 2.0**-11: "fp16"}[rounding]
    assert found.notes == (f"combine=cube: the Cube multiplies in {operand} (cube_math_type {mode})",)


@given(
    st.integers(1, 120), st.integers(1, 700), st.sampled_from((16, 48, 512)), st.sampled_from((16, 64, 512)),
    st.sampled_from(("ascend910b3", "ascend310p")),
)  # fmt: skip
def test_any_rows_columns_and_tile_of_the_products(rows, cols, deep, wide, product):
    if product == "ascend310p":
        cols += 16
    inputs = RMS.inputs({"rows": rows, "cols": cols}, "float16")
    tiling = {**ON_CUBE, "cube_rows": deep, "cube_cols": wide}
    mode = "USE_FP16" if product == "ascend310p" else "KEEP_DTYPE"  # the Cube of 310P takes no FP32
    need = tile_bytes(min(rows, deep), min(cols, wide), 2 if mode == "USE_FP16" else 4)
    if need > load_product(product).l1_bytes - L1_KEPT:
        with pytest.raises(sim.UsageError, match=f"need {need} bytes of L1"):
            run_op(RMS, inputs=inputs, tiling=tiling, product=product, cube_math_type=mode)
        return
    found = run_op(RMS, inputs=inputs, tiling=tiling, product=product, cube_math_type=mode)
    assert_dgamma(inputs, found.outputs, 2.0**-11 if mode == "USE_FP16" else 0.0)
    assert found.tiling["cube_rows"] <= deep
    assert found.tiling["cube_cols"] <= wide


def test_a_narrower_mode_is_less_exact():
    inputs = RMS.inputs({"rows": 90, "cols": 300}, "float32")
    worst = [
        run_op(RMS, inputs=inputs, tiling=ON_CUBE, cube_math_type=m, time=False).errors["dgamma"].max_abs
        for m in ("KEEP_DTYPE", "USE_HF32")
    ]
    assert worst[1] > 100 * worst[0]


def test_launches_and_what_they_move():
    """What is added up goes to memory and back: rows x columns in FP32, beside dy, x and dx."""
    sizes = {"rows": 2048, "cols": 4096}
    found, other = (run_op(RMS, sizes, "float16", tiling=t, values=False) for t in (ON_CUBE, {}))
    assert [x.kernel for x in found.launches] == ["kept_row", "fill_ones", "column_products", "sum_partials"]
    assert "AIV.V" not in found.launches[2].pipes
    assert found.launches[2].pipes["AIC.M"].share > 0
    more = sum(x.resources["L2"] for x in found.launches) - sum(x.resources["L2"] for x in other.launches)
    assert more >= 1.9 * 2048 * 4096 * 4  # two passes, less what atomic adds move
    wide = run_op(RMS, sizes, "float32", tiling=ON_CUBE, cube_math_type="USE_FP16", values=False)
    assert (
        wide.launches[0].resources["L2"]
        < run_op(RMS, sizes, "float32", tiling=ON_CUBE, values=False).launches[0].resources["L2"]
    )


def test_the_tile_of_the_products_fits_in_l1_and_parts_busy_the_cores():
    product = load_product("ascend910b3")
    free = {"cube_rows": None, "cube_cols": None}
    for rows, cols, size in ((2048, 4096, 2), (2048, 4096, 4), (65536, 64, 4), (3, 20000, 2)):
        tile = choose_tile(rows, cols, size, free, product)
        assert tile_bytes(tile.rows, tile.cols, size) <= product.l1_bytes
        assert tile.cores * 1.3 >= min(product.cube_cores, -(-cols // tile.cols) * -(-rows // tile.rows))
    with pytest.raises(
        sim.UsageError, match=r"cube_rows 4096 x cube_cols 512 .* bytes of L1, ascend910b3 has"
    ):
        choose_tile(5000, 4096, 2, {"cube_rows": 4096, "cube_cols": 512}, product)


def test_what_is_not_there_is_refused():
    sizes = {"rows": 8, "cols": 64}
    with pytest.raises(sim.UsageError, match="combine cube is not the vendor's"):
        run_op(RMS, sizes, tiling={"strategy": "vendor", **ON_CUBE}, values=False)
    for dtype in ("float16", "float32"):
        with pytest.raises(
            sim.RefusedError,
            match="sums on the Cube with cube_math_type KEEP_DTYPE are refused on ascend310p",
        ):
            run_op(RMS, sizes, dtype, product="ascend310p", tiling=ON_CUBE, values=False)


# -- GroupNormBackward -----------------------------------------------------------------------------------------------


def assert_gradients(inputs, outputs, rounding, dtype):
    """Factors are rounded once for the Cube (not at all in their own type), sums as in form sums; outputs in their type."""
    n, c = inputs["x"].shape[:2]
    group = inputs["mean"].shape[1]
    dy, x = (inputs[k].astype(np.float64).reshape(n, c, -1) for k in ("grad_out", "x"))
    mean, rstd = (
        np.repeat(np.abs(inputs[k].astype(np.float64)), c // group, axis=1) for k in ("mean", "rstd")
    )
    count = dy.shape[2] + 16
    first, both = np.abs(dy).sum(axis=2), np.abs(dy * x).sum(axis=2)
    of_db = (rounding + count * 2.0**-24) * first + 1e-7
    of_dg = rstd * ((2.01 * rounding + count * 2.0**-24) * both + mean * (of_db + 2.0**-22 * first) + 1e-7)
    gamma, m = np.abs(inputs["gamma"].astype(np.float64)), c // group * dy.shape[2]
    of_group = [
        np.repeat((a * gamma).reshape(n, group, -1).sum(2), c // group, axis=1) / m for a in (of_db, of_dg)
    ]
    xh = (np.abs(x) + mean[:, :, None]) * rstd[:, :, None]
    golden = GN.reference(inputs)
    size = rstd[:, :, None] * (np.abs(dy) * gamma[:, None] + np.abs(dy).mean() + xh)
    bounds = {
        "grad_beta": of_db.sum(axis=0) + n * 2.0**-23 * first.sum(axis=0),
        "grad_gamma": of_dg.sum(axis=0) + n * 2.0**-23 * (rstd * both).sum(axis=0),
        "grad_input": rstd[:, :, None] * (of_group[0][:, :, None] + xh * of_group[1][:, :, None])
        + 2.0**-20 * size,
    }
    for name, bound in bounds.items():
        allowed = bound.reshape(golden[name].shape) + HALF_ULP[dtype] * 1.01 * np.abs(golden[name]) + 1e-7
        assert within(outputs[name], golden[name], allowed), name


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("dtype", "mode", "rounding"), MODES)
@pytest.mark.parametrize("shape", [(3, 20, 100, 2), (2, 96, 64, 3), (1, 6, 1000, 3)], ids=str)
def test_gradients_in_every_mode(shape, dtype, mode, rounding):
    inputs = GN.inputs(dict(zip(("n", "c", "space", "group"), shape, strict=True)), dtype)
    found = run_op(GN, inputs=inputs, tiling=BY_CUBE, cube_math_type=mode, time=False)
    assert_gradients(inputs, found.outputs, rounding if dtype == "float32" else 0.0, dtype)
    assert found.tiling["form"] == "sums"
    assert not any("no effect" in x for x in found.notes)


@given(
    st.tuples(st.integers(1, 4), st.integers(1, 20), st.integers(2, 150), st.integers(1, 4)),
    st.integers(1, 6),
    st.sampled_from(("ascend910b3", "ascend910a")),
)
def test_any_groups_and_tile(shape, wide, product):
    n, depth, space, group = shape
    inputs = GN.inputs({"n": n, "c": depth * group, "space": space, "group": group}, "float16")
    found = run_op(GN, inputs=inputs, tiling={**BY_CUBE, "cube_cols": 16 * wide}, product=product)
    assert_gradients(inputs, found.outputs, 0.0, "float16")
    assert found.tiling["cube_cols"] <= 16 * wide


@pytest.mark.parametrize("masks", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 1)])
def test_outputs_that_are_not_wanted_are_left_out(masks):
    inputs = GN.inputs({"n": 2, "c": 40, "space": 60, "group": 2}, "float32")
    names = ("input_mask", "gamma_mask", "beta_mask")
    options = dict(zip(names, masks, strict=True))
    found = run_op(GN, inputs=inputs, tiling=BY_CUBE, options=options)
    golden = GN.reference(inputs, **options)
    assert list(found.outputs) == list(golden)
    for n, x in golden.items():
        np.testing.assert_allclose(found.outputs[n], x, atol=2e-5 * max(1, np.abs(x).max()))


def test_launches_of_group_norm():
    sizes = {"n": 2, "c": 40, "space": 60, "group": 2}
    found = run_op(GN, sizes, "float32", tiling=BY_CUBE, cube_math_type="USE_FP16", values=False)
    kernels = [x.kernel for x in found.launches]
    assert kernels == ["cast_flat"] * 2 + ["fill_ones", "diagonals", "channel_sums", "shared_dx", "sum_rows"]
    with pytest.raises(
        sim.UsageError, match=r"tiles of cube_cols 8192 x 16 channels need .* take fewer cube_cols"
    ):
        run_op(GN, {**sizes, "space": 9000}, "float32", tiling={**BY_CUBE, "cube_cols": 8192}, values=False)
    with pytest.raises(sim.RefusedError, match="are refused on ascend910a"):
        run_op(GN, sizes, "float32", product="ascend910a", tiling=BY_CUBE, values=False)


# -- spaces ----------------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_the_cube_can_be_an_axis_and_the_proof_holds():
    modes = ("KEEP_DTYPE", "USE_HF32")
    few = {"rows": (1, 2), "cols": 512, "cores": 40, "cube_rows": (64, 1024), "cube_cols": (256, 512)}
    space = {**few, "combine": ("atomic", "cube"), "buffers": 1, "cube_math_type": modes}
    found = explore("rms_norm_grad", case={"rows": 90, "cols": 640}, dtype="float32", space=space)
    assert found.optimal
    assert found.refused["the tiles of the products that combine cube sums with fit in L1"] > 0
    few = {"rows": 8, "cols": 300, "cores": 40, "combine": "two_phase", "buffers": 2}
    space = {**few, "strategy": ("shared", "cube"), "cube_cols": (64, 304), "cube_math_type": modes}
    found = explore(
        "group_norm_backward", case={"n": 2, "c": 64, "space": 300, "group": 4}, dtype="float32", space=space
    )
    assert found.optimal
    assert {x.point["strategy"] for x in found.found} == {"shared", "cube"}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(
    ("op", "sizes", "axes"),
    [
        ("rms_norm_grad", {"rows": 77, "cols": 1000}, {"combine": "cube", "rows": (1, 2), "cols": (256, 512)}),
        ("group_norm_backward", {"n": 2, "c": 48, "space": 500, "group": 2}, {"strategy": "cube", "rows": (4, 8)}),
    ],
)  # fmt: skip
def test_bounds_stay_below_the_time(op, sizes, axes, dtype):
    from ...tiling.test_bounds import check, points_of

    points, problem = points_of(op, sizes, "ascend910b3", dtype, given=axes)
    legal, _ = points.space.legal()
    assert len(legal)
    check(points, problem, legal)

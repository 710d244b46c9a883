"""Studies over number formats: operands stored and multiplied in a format that the product lacks, as a what-if."""

from __future__ import annotations

import numpy as np
import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import get_operator, precision_study, precision_sweep, run_op
from ascendtile.kernels.operator.formats import other_formats
from ascendtile.kernels.study.results import EXACT, ROUNDED
from ascendtile.kernels.study.rows import rows_wanted
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.precision.block_formats import BLOCK_FORMATS, get_block_format
from ascendtile.simulator.precision.formats import get_format
from ascendtile.simulator.precision.rounding import encode, round_to
from ascendtile.tiling import explore

SIZES = {"m": 32, "n": 16, "k": 64}


def row_of(dtype, **more):
    (row,) = precision_study("matmul", sizes=SIZES, dtypes=dtype, **more).rows
    return row


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", other_formats())
def test_a_row_is_the_product_of_the_numbers_on_the_grid_of_its_format(name):
    draw = np.random.default_rng(1)
    a, b = (draw.standard_normal(dims).astype(np.float32) for dims in ((8, 40), (40, 8)))
    (row,) = precision_study("matmul", inputs={"a": a, "b": b}, dtypes=name, time=False).rows
    x, y = (round_to(v, name).astype(np.float64) for v in (a, b))
    out = run_op("matmul", inputs={"a": encode(a, name), "b": encode(b, name)}, time=False).outputs["out"]
    assert row.what_if
    assert (row.dtype, row.compute_dtype, row.output_dtypes) == (name, name, {"out": "fp32"})
    np.testing.assert_allclose(out, x @ y, rtol=1e-5, atol=1e-5)
    assert row.errors["out"][EXACT].max_abs == np.max(np.abs(out - a.astype(np.float64) @ b))
    assert row.errors["out"][ROUNDED].max_abs == np.max(np.abs(out - x @ y))


def test_a_format_has_one_row_whatever_the_modes():
    """What is stored is what is multiplied; a cubeMathType is for the vendor's types."""
    plan = rows_wanted(get_operator("matmul"), "all", "float16,hif8", {})
    assert [mode for mode, dtype in plan if dtype == "hif8"] == ["KEEP_DTYPE"]
    assert len([mode for mode, dtype in plan if dtype == "float16"]) > 1


def test_more_bits_of_mantissa_are_more_bits_of_the_result():
    rows = precision_study(
        "matmul", sizes=SIZES, dtypes="e5m2,e4m3,e3m4,float16", time=False, modes="KEEP_DTYPE"
    ).rows
    bits = [r.bits("out") for r in rows]
    assert sorted(bits) == bits
    assert bits[0] + 1.8 < bits[2] < bits[3] - 4


def test_eight_bits_take_half_of_the_cube_and_of_the_traffic():
    """On large products the what-if is bound as an INT8 product is: about twice as fast as FP16, never more."""
    big = {"m": 4096, "n": 4096, "k": 4096}
    half, eight = (run_op("matmul", big, d, values=False).time_us for d in ("float16", "e4m3"))
    assert half / 2.1 < eight < half / 1.5


def test_the_stated_rate_decides_the_time():
    slower = {"cube.what_if_k_bytes_per_cycle": 8}
    with sim.device(overrides=slower):
        slow = row_of("hif8")
    assert "8 of k a cycle" in slow.reason
    assert "cube.what_if_k_bytes_per_cycle = 8, assumed" in slow.reason
    assert slow.time_us > row_of("hif8").time_us


def test_a_run_in_a_format_says_what_if_and_counts_it_as_a_fault():
    run = run_op("matmul", SIZES, "hif8").run
    assert run.dtype == "hif8"
    assert any(text.startswith("what-if:") for text in run.faults)
    assert run.errors["out"].effective_bits > 20  # against the operands as they are stored


@pytest.mark.parametrize("text", ["e3m3", "e4m3:bias=9,nan=none,infinities=no", "e2m4:subnormals=no"])
def test_a_format_of_the_users_own_is_a_row(text):
    assert row_of(text, time=False).dtype == get_format(text).name


def test_a_format_from_a_file_is_a_row(tmp_path):
    path = tmp_path / "study_own.toml"
    path.write_text('name = "study_own"\nexponent = 3\nmantissa = 2\n')
    assert row_of(str(path), time=False).compute_dtype == "study_own"


def test_descriptions_may_have_commas_between_names():
    rows = precision_study(
        "matmul",
        sizes=SIZES,
        dtypes="e4m3:bias=9, nan=none,infinities=no,hif8, float32",
        time=False,
        modes="KEEP_DTYPE",
    ).rows
    assert [r.dtype for r in rows] == [
        "float32",
        get_format("e4m3:bias=9,nan=none,infinities=no").name,
        "hif8",
    ]


def test_formats_are_all_of_the_catalogue_that_are_no_element_types():
    rows = precision_study("matmul", sizes=SIZES, dtypes="formats", time=False).rows
    assert tuple(r.dtype for r in rows) == (*other_formats(), *BLOCK_FORMATS)
    assert {"e4m3", "e5m2", "hif8", "e2m1"} <= set(other_formats())
    assert not {"fp16", "bf16", "fp32", "e8m0", "int8", "tf32"} & set(other_formats())


def test_a_need_is_answered_by_a_format_where_that_is_fastest():
    study = precision_study(
        "matmul",
        sizes={"m": 256, "n": 256, "k": 512},
        dtypes="float32,float16,e3m4",
        modes="KEEP_DTYPE",
        need={"bits": 5},
    )
    assert study.cheapest.dtype == "e3m4"
    with pytest.raises(UsageError, match="no rule has thresholds for hif8; say those of which type"):
        precision_study("matmul", sizes=SIZES, dtypes="hif8", need={"rule": "torch"})


def test_a_sweep_shows_where_a_format_ends():
    def lost(exponent):
        (study,) = precision_sweep("matmul", "scale", SIZES, dtypes="e4m3", values=[exponent], time=False)
        return study.rows[0].operands["a"]

    assert lost(12).overflow > 900 > lost(8).overflow > 0
    assert lost(0).overflow == 0
    assert lost(-12).underflow > 1500 > lost(0).underflow


@pytest.mark.parametrize(
    ("dtypes", "message"),
    [
        ("hif9", "no data type 'hif9'; did you mean .*hif8"),
        ("e4m3:bias=900", "bias"),
        ("e4m3+e5m2", "operands in the number format e4m3 are all in that one"),
        ("float16+e5m2", "operands in the number format e5m2 are all in that one"),
        ("missing.toml", "missing.toml"),
        ("e0m0", "0 exponent and 0 mantissa bits: there must be at least one bit"),
        ("float16,e9m3", "9 exponent and 3 mantissa bits; values are held in float32"),
    ],
)
def test_what_is_no_format_is_refused(dtypes, message):
    with pytest.raises(UsageError, match=message):
        precision_study("matmul", sizes=SIZES, dtypes=dtypes)


def test_a_mode_is_refused_for_a_format():
    with pytest.raises(
        UsageError, match="USE_HF32 is for FP32, FP16 and BF16: e4m3 operands are multiplied as they are"
    ):
        run_op("matmul", SIZES, "e4m3", cube_math_type="USE_HF32")


def test_a_refusal_names_the_format_of_codes_two_a_byte_and_what_a_split_is_for():
    with pytest.raises(
        UsageError, match=r"FP16X3 with a e2m1 and b e2m1 is refused.*FP16X3 is for FP32: e2m1"
    ):
        run_op("matmul", SIZES, "mxfp4", cube_math_type="FP16X3")


@pytest.mark.parametrize(("modes", "told"), [("USE_HF32", 1), ("KEEP_DTYPE", 0), ("all", 0)])
def test_a_mode_that_no_row_has_is_told(modes, told):
    notes = precision_study("matmul", sizes=SIZES, dtypes="e4m3", modes=modes, time=False).notes
    words = "no row has USE_HF32: operands in a number format are multiplied as they are (KEEP_DTYPE)"
    assert notes.count(words) == told


def test_an_operator_without_formats_names_its_types():
    with pytest.raises(
        UsageError, match="bce_with_logits_backward has no data type 'hif8'; known are float16"
    ):
        precision_study("bce_with_logits_backward", dtypes="hif8")


# -- operands in blocks ----------------------------------------------------------------------------------------------


@pytest.mark.drawn(2)
@pytest.mark.parametrize("k", [64, 71, 300])
@pytest.mark.parametrize("name", [*BLOCK_FORMATS, "e3m2/e8m0/32", "e4m3/e4m3/16"])
def test_a_product_in_blocks_is_that_of_what_the_blocks_stand_for(name, k):
    draw = np.random.default_rng(2)
    a, b = (draw.standard_normal(dims).astype(np.float32) for dims in ((8, k), (k, 12)))
    a[3] *= 2.0**-20
    a[5, : k // 2] = 0
    fmt = get_block_format(name)
    x, y = (fmt.quantise(v, axis=axis).values().astype(np.float64) for v, axis in ((a, 1), (b, 0)))
    (row,) = precision_study("matmul", inputs={"a": a, "b": b}, dtypes=name).rows
    assert (row.dtype, row.compute_dtype, row.what_if) == (fmt.name, fmt.name, True)
    assert row.time_us > 0
    assert row.bits("out", ROUNDED) > 20
    right = np.abs(x @ y - a.astype(np.float64) @ b)
    assert row.errors["out"][EXACT].mean_abs == pytest.approx(right.mean(), rel=1e-3)
    assert row.operands["a"].bits == pytest.approx(_bits(a, x))


def _bits(exact, seen):
    return np.log2(np.abs(exact).sum(dtype=np.float64) / np.abs(seen - exact).sum())


def test_a_run_in_blocks_draws_the_numbers_of_the_case_and_stores_codes_and_scales():
    op = get_operator("matmul")
    plain, made = op.inputs(SIZES, "float32"), op.inputs(SIZES, "nvfp4")
    assert {n: (x.shape, str(x.dtype)) for n, x in made.items()} == {
        "a": ((32, 32), "uint8"), "a_scale": ((4, 32), "float8_e4m3fn"),
        "b": ((32, 16), "uint8"), "b_scale": ((4, 16), "float8_e4m3fn"),
        "factor": ((1,), "float32"),
    }  # fmt: skip
    shapes = {n: (x.shape, x.dtype.storage) for n, x in op.shapes(SIZES, "nvfp4").items()}
    assert shapes == {n: (x.shape, x.dtype) for n, x in made.items()}
    values = op.formula(made, {"out_dtype": "auto"})["out"]
    assert _bits(plain["a"].astype(np.float64) @ plain["b"], values) > 1.5
    run = run_op("matmul", SIZES, "nvfp4").run
    assert run.errors["out"].effective_bits > 20
    assert any("scales apply to elements without rounding" in text for text in run.faults)


def test_blocks_keep_what_a_format_alone_loses():
    """Rows of very different size: one scale for each group follows them."""
    draw = np.random.default_rng(0)
    a = (draw.standard_normal((16, 64)) * 2.0 ** np.arange(-40, 24, 4)[:, None]).astype(np.float32)
    inputs = {"a": a, "b": draw.standard_normal((64, 8)).astype(np.float32)}
    alone, blocks = (
        precision_study("matmul", inputs=inputs, dtypes=d, time=False).rows[0] for d in ("e4m3", "mxfp8")
    )
    assert alone.operands["a"].underflow > 300 > 50 > blocks.operands["a"].underflow
    assert alone.operands["a"].overflow > 0


def test_scales_are_traffic_and_codes_of_four_bits_are_half():
    big = {"m": 1024, "n": 1024, "k": 1024}

    def loaded(dtype):
        run = run_op(
            "matmul", big, dtype, values=False, tiling={"block_m": 128, "block_n": 128, "block_k": 256}
        ).run
        return sum(run.launches[0].core_bytes["AIC.GM to L1"])

    eight, scaled, four = map(loaded, ("e4m3", "mxfp8", "mxfp4"))
    assert scaled == pytest.approx(eight * (1 + 1 / 32), rel=1e-3)
    assert four == pytest.approx(eight * (1 / 2 + 1 / 32), rel=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a_scale": None}, "a_scale is missing; operands in blocks have scales both"),
        ({"a_scale": np.ones((3, 8), np.uint8)}, r"a_scale has shape \(3, 8\).*needs \(2, 8\)"),
        ({"b_scale": np.ones((4, 2), np.uint8)}, r"b_scale has shape \(4, 2\).*needs \(2, 4\)"),
        ({"b_scale": np.ones((4, 2), np.float32)}, "scales are uint8 and float32; both are uint8"),
        ({"factor": np.ones(2, np.float32)}, r"factor has shape \(2,\); it must be \(1,\)"),
        ({"a_scale": np.ones((2, 8))}, "'a_scale' holds float64; it must hold uint8, fp8e4nv or float32"),
    ],
)
def test_scales_that_do_not_fit_are_refused(change, message):
    tensors = get_operator("matmul").inputs({"m": 8, "n": 4, "k": 64}, "mxfp8") | change
    with pytest.raises(UsageError, match=message):
        run_op("matmul", inputs=tensors)


def test_a_nan_scale_gives_nan_and_nothing_else_is_lost():
    tensors = get_operator("matmul").inputs({"m": 8, "n": 4, "k": 64}, "mxfp8")
    tensors["a_scale"][1, 3] = 255
    out = run_op("matmul", inputs=tensors, time=False).outputs["out"]
    assert np.isnan(out[3]).all()
    assert np.isfinite(np.delete(out, 3, 0)).all()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "int4/fp16/64",
            "a product reads scales of groups of 16 with e4m3 or 32 with e8m0; these are 64 with fp16",
        ),
        ("mxfp9", "no data type 'mxfp9'; did you mean .*mxfp"),
        ("e4m3/e8m0/none", "block 'none'"),
    ],
)
def test_block_formats_that_no_product_reads_are_refused(name, message):
    with pytest.raises(UsageError, match=message):
        precision_study("matmul", sizes=SIZES, dtypes=name)


@pytest.mark.parametrize("tiling", [{"split_k": 2}, {"keep": "a"}])
def test_knobs_that_a_product_in_blocks_lacks_are_refused(tiling):
    with pytest.raises(UsageError, match="operands in blocks are multiplied with"):
        run_op("matmul", SIZES, "mxfp8", tiling=tiling)


@pytest.mark.parametrize(("asked", "used"), [(64, 64), (96, 96), (40, 64)])
@pytest.mark.parametrize("name", ["mxfp4", "mxfp8", "nvfp4"])
def test_a_depth_counts_elements_of_the_sum_however_many_a_byte_holds(name, asked, used):
    """Of a tile whole groups of 32 lie along the sum: other depths are rounded up."""
    sizes = {"m": 16, "n": 16, "k": 128}
    found = run_op("matmul", sizes, name, tiling={"block_k": asked}, values=False).run
    assert found.tiling["block_k"] == used


def test_rows_in_blocks_have_the_tiling_of_the_others():
    types = "float16,mxfp8,mxfp4,nvfp4"
    study = precision_study("matmul", sizes={**SIZES, "k": 128}, dtypes=types, modes="KEEP_DTYPE")
    assert not [n for n in study.notes if "another tiling" in n]
    assert {r.tiling["block_k"] for r in study.rows} == {128}


def test_best_tilings_leave_those_of_blocks_to_the_operator():
    best = {"modes": "KEEP_DTYPE", "tiling": lambda *_: {"block_m": 16, "block_k": 32}}
    study = precision_study("matmul", sizes={**SIZES, "k": 128}, dtypes="float16,mxfp4", **best)
    assert [r.tiling["block_k"] for r in study.rows] == [32, 128]
    assert "not searched, as operands are in blocks; the operator chooses: mxfp4 (what-if)" in study.notes


def test_tilings_of_blocks_are_not_searched():
    with pytest.raises(UsageError, match="tilings are not searched for operands in blocks"):
        explore("matmul", case=SIZES, dtype="mxfp8")


def test_bounds_of_tilings_hold_in_a_format():
    space = {"block_m": (64, 128), "block_n": (64, 128), "block_k": 256, "buffers": (1, 2), "group": 1}
    found = explore("matmul", case={"m": 256, "n": 512, "k": 512}, dtype="hif8", space=space).found
    assert len(found) >= 4
    assert all(0 < x.evaluation.bound_us <= x.time_us for x in found)


# -- rounding of what is stored ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["e4m3", "mxfp8"])
@pytest.mark.parametrize("mode", ["TRUNC", "ODD", "stochastic"])
def test_inputs_are_stored_with_the_rounding_that_is_asked_for(name, mode):
    study = precision_study("matmul", sizes=SIZES, dtypes=name, time=False, rounding=mode, seed=3)
    nearest = precision_study("matmul", sizes=SIZES, dtypes=name, time=False, seed=3)
    assert study.rows[0].operands["a"].bits < nearest.rows[0].operands["a"].bits - 0.3
    assert study.rows[0].bits("out", ROUNDED) > 20
    assert f"inputs are stored with the rounding {mode.upper()}" in study.notes


def test_random_bits_follow_the_seed():
    def bits(seed):
        (row,) = precision_study(
            "matmul", sizes=SIZES, dtypes="hif8", time=False, rounding="STOCHASTIC", seed=seed
        ).rows
        return row.operands["a"].bits, row.operands["b"].bits

    assert bits(1) == bits(1) != bits(2)


def test_an_unknown_rounding_is_refused():
    with pytest.raises(UsageError, match="rounding mode 'UP'"):
        precision_study("matmul", sizes=SIZES, dtypes="hif8", rounding="up")

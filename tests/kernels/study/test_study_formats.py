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
from ascendtile.simulator.precision.formats import get_format
from ascendtile.simulator.precision.rounding import encode, round_to

SIZES = {"m": 32, "n": 16, "k": 64}


def row_of(dtype, **more):
    (row,) = precision_study("matmul", sizes=SIZES, dtypes=dtype, **more).rows
    return row


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
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\nexponent = 3\nmantissa = 2\n')
    assert row_of(str(path), time=False).compute_dtype == "mine"


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
    assert tuple(r.dtype for r in rows) == other_formats()
    assert {"e4m3", "e5m2", "hif8", "e2m1"} <= set(other_formats())
    assert not {"fp16", "bf16", "fp32", "e8m0", "int8", "tf32"} & set(other_formats())


def test_a_need_is_answered_by_a_format_where_that_is_fastest():
    study = precision_study(
        "matmul",
        sizes={"m": 512, "n": 512, "k": 512},
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


def test_an_operator_without_formats_names_its_types():
    with pytest.raises(
        UsageError, match="bce_with_logits_backward has no data type 'hif8'; known are float16"
    ):
        precision_study("bce_with_logits_backward", dtypes="hif8")

"""Choices of the units: each changes what it says, is named in the run, and a wrong one is refused."""

import json

import numpy as np
import pytest

from ascendtile import simulator as sim
from ascendtile.simulator import language as tl
from ascendtile.simulator.language.extra.cann import extension as al
from ascendtile.simulator.numerics import options
from ascendtile.simulator.precision.numeric_switches import SWITCHES


@sim.jit
def product_of(a_ptr, b_ptr, out_ptr, N: tl.constexpr, K: tl.constexpr, MODE: tl.constexpr):
    row, inner = tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + row[:, None] * K + inner)
    b = tl.load(b_ptr + inner[:, None] * N + row)
    tl.store(out_ptr + row[:, None] * N + row, tl.dot(a, b, input_precision=MODE))


@sim.jit
def coarse(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, al.reciprocal_estimate(tl.load(x_ptr + i)))


def dot(rows, dtype=np.float32, mode="ieee", product=None, **numerics):
    """rows of a times a column of ones, and the run."""
    a = np.zeros((16, len(rows)), dtype)
    a[0] = rows
    out = np.zeros((16, 16), np.float32)
    with sim.device(product, numerics=numerics):
        run = product_of[(1,)](a, np.ones((len(rows), 16), dtype), out, 16, len(rows), mode)
    return out[0, 0], run


BIG = 2.0**24


@pytest.mark.parametrize(
    ("rows", "block_k", "expected"),
    [
        ([2.0**30, 1, -(2.0**30), 1], None, 2.0),  # T2 of the specification: four products, one rounding
        ([2.0**30, 1, -(2.0**30), 1], 1, 1.0),
        ([BIG, 0, 0, 0, *[0.5] * 4], None, BIG + 2),
        ([BIG, 0, 0, 0, *[0.5] * 4], 1, BIG),
    ],
)
def test_products_between_two_roundings(rows, block_k, expected):
    numerics = {} if block_k is None else {"cube_block_k": block_k}
    assert dot(rows, **numerics)[0] == expected


def test_rounding_of_the_accumulator():
    rows = [1, 0, 0, 0, 2.0**-24, 2.0**-25, 0, 0]  # T3: to nearest goes up, truncated it stays
    assert dot(rows)[0] == 1 + 2.0**-23
    assert dot(rows, cube_block_round="TRUNC")[0] == 1


@pytest.mark.parametrize(("mode", "expected"), [("RNE", 1.0), ("RNA", 1 + 2.0**-11), ("RNZ", 1.0)])
def test_rounding_of_hf32_operands(mode, expected):
    assert dot([1 + 2.0**-12], mode="hf32", hf32_round=mode)[0] == expected


def test_subnormal_hf32_operands():
    rows = [2.0**-127] * 4
    keep = {"hf32_flush_subnormal_inputs": False, "fp32_subnormals": "keep"}
    assert dot(rows, mode="hf32")[0] == 0
    assert dot(rows, mode="hf32", **keep)[0] == 2.0**-125


def test_fp16_accumulator():
    rows = [2048] + [0] * 15 + [0.5] + [0] * 15  # 2048.5 is no FP16 number
    assert dot(rows, np.float16, product="ascend910a")[0] == 2048.5
    assert dot(rows, np.float16, product="ascend910a", fp16_accumulator="on")[0] == 2048
    with pytest.raises(sim.UsageError, match="the Cube of ascend910b3 accumulates FP16 products in FP32"):
        dot(rows, np.float16, fp16_accumulator="on")


def test_coarse_instructions_have_nine_bits_or_are_correctly_rounded_and_are_reported():
    x = np.array([3.0, 1.2017815], np.float32)
    out = np.zeros_like(x)
    run = coarse[(1,)](x, out, 2)
    assert list(out) == [341 / 1024, 0.83203125]
    assert any("coarse Reciprocal instruction: about 9 bits" in w for w in run.warnings)
    with sim.device(numerics={"recip_rsqrt_model": "correctly_rounded"}):
        coarse[(1,)](x, out, 2)
    assert np.array_equal(out, (1 / x.astype(np.float64)).astype(np.float32))


def test_switches_of_the_product():
    rows = [3e38, 3e38]
    assert dot(rows)[0] == np.inf
    assert dot(rows, overflow_mode="saturate")[0] == np.finfo(np.float32).max


def test_a_run_states_every_choice_and_who_made_it():
    options = dot([1.0], cube_block_k=4)[1].options
    assert set(SWITCHES) <= set(options)
    assert options["cube_block_k"] == "4 (chosen)"
    assert options["fp32_subnormals"] == "flush (assumed)"
    assert dot([1.0])[1].options["cube_block_k"] == "per_format (assumed)"
    with sim.device(overrides={"numerics.overflow_mode": "saturate"}):
        assert dot([1.0])[1].options["overflow_mode"] == "saturate (chosen)"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"block_k": 4}, "unknown choice of numerics 'block_k'; there are overflow_mode"),
        ({"cube_block_k": 0}, "cube_block_k is 0; one Mmad adds 1 to 4095 products"),
        ({"cube_block_k": 2.5}, "cube_block_k is 2.5; allowed are per_format, or a number from 1 to 4095"),
        ({"overflow_mode": "wrap"}, "overflow_mode is 'wrap'; allowed are inf_nan, saturate"),
        ({"hf32_round": True}, "hf32_round is True; allowed are RNE, RNA, RNZ"),
    ],
)
def test_wrong_choices(given, text):
    with pytest.raises(sim.UsageError, match=text), sim.device(numerics=given):
        pass


def test_modes_that_only_the_host_library_carries_out_are_reported():
    with sim.device(cube_math_type="USE_FP16"):
        run = dot([1.0])[1]
    assert any("USE_FP16 has no effect on a kernel of your own" in w for w in run.warnings)
    assert not any("cube_math_type" in w for w in dot([1.0])[1].warnings)


OTHER = {
    "cube_math_type": "USE_HF32", "compiler": "ascendc", "compiler_version": "8.5", "bind_sub_block": False,
    "multibuffer": 1, "multibuffer_l0c": True, "mixed_copies": "no-limit", "single_in": ("UB", "L1"),
    "l0_tile": (64, 64, 64), "l2": "cold", "banks_apart": True, "cold_code": True, "unit_flag": True,
    "workspace_copies": 3, "local_copies_only": True, "tile_mix_vector_loop": 2, "tile_mix_cube_loop": 2,
    "accumulate": "blas", "hf32_round": "ROUND", "atomic_seed": 7, "numerics": {"cube_block_k": 1},
    "check": True, "masked": "poison", "out_of_bounds": "warn",
}  # fmt: skip
ONLY_TOLD = {
    "product",
    "values",
    "time",
    "explain",
    "details",
    "timeline",
    "step_limit",
    "errors",
    "reference",
    "float64",
}


def test_each_choice_of_a_device_that_numbers_depend_on_is_an_option_of_the_run():
    usual = options(sim.current_device())
    assert set(OTHER) | ONLY_TOLD == set(sim.Device.__dataclass_fields__)
    for name, value in OTHER.items():
        with sim.device(**{name: value}) as changed:
            found = options(changed)
        assert found != usual, name
        assert json.loads(json.dumps(found)) == found


def test_choices_that_seldom_are_made_are_told_by_their_names_and_read_back(tmp_path):
    x = sim.shape(64, "float32")
    with sim.device(values=False, tile_mix_cube_loop=2, single_in=("UB",)):
        run = coarse.time((1,), x, x, 64)
    assert (run.options["tile_mix_cube_loop"], run.options["single_in"]) == (2, ["UB"])
    run.save(tmp_path / "x.run")
    assert sim.load_run(tmp_path / "x.run").options == run.options
    assert "single_in" not in coarse.time((1,), x, x, 64).options

"""Choices of the units: each changes what it says, is named in the run, and a wrong one is refused."""

import json

import numpy as np
import pytest

from ascendtile import simulator as sim
from ascendtile.simulator import language as tl
from ascendtile.simulator.language.extra.cann import extension as al
from ascendtile.simulator.numerics import options
from ascendtile.simulator.precision.numeric_switches import SWITCHES, check_numerics
from ascendtile.simulator.precision.numerics_file import numerics_text, read_numerics
from ascendtile.simulator.precision.rounding import round_to


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


@sim.jit
def casts(x_ptr, half_ptr, zero_ptr, brain_ptr, whole_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(half_ptr + i, x.to(tl.float16))
    tl.store(zero_ptr + i, x.to(tl.float16, fp_downcast_rounding="rtz"))
    tl.store(brain_ptr + i, x.to(tl.bfloat16))
    tl.store(whole_ptr + i, x.to(tl.int32))


@sim.jit
def sums(x_ptr, y_ptr, z_ptr, sum_ptr, fused_ptr, plain_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y, z = tl.load(x_ptr + i), tl.load(y_ptr + i), tl.load(z_ptr + i)
    tl.store(sum_ptr, tl.sum(x, 0))
    tl.store(fused_ptr + i, tl.fma(x, y, z))
    tl.store(plain_ptr + i, x - z)


def cast(values, **numerics):
    """x as FP16, as FP16 toward zero, as BF16 and as INT32."""
    x = np.array(values, np.float32)
    outs = [np.zeros(len(x), d) for d in (np.float16, np.float16, "bfloat16", np.int32)]
    with sim.device(numerics=numerics, time=False):
        casts[(1,)](x, *outs, len(x))
    return [list(map(float, out)) for out in outs]


TIES = [1 + 2.0**-11, 1 + 3 * 2.0**-11, -1 - 2.0**-11, 1 + 2.0**-9 - 2.0**-20]


@pytest.mark.parametrize("mode", ["RNE", "RNA", "RNZ", "TRUNC", "FLOOR", "CEIL", "ODD"])
def test_casts_that_name_no_rounding_round_as_chosen(mode):
    half, _, brain, _ = cast(TIES, cast_round=mode)
    register = {"RNE": "RINT", "RNA": "ROUND"}.get(mode, mode)
    for found, fmt in ((half, "fp16"), (brain, "bf16")):
        assert found == list(round_to(np.float32(TIES), fmt, register))


def test_overflow_of_casts():
    big = [7e4, -7e4, 65519, 65535]
    assert cast(big)[1] == [65504, -65504, 65504, 65504]
    assert cast(big, directed_overflow="infinity")[1] == [np.inf, -np.inf, 65504, 65504]
    assert cast(big, directed_overflow="infinity", overflow_mode="saturate")[1] == [
        65504,
        -65504,
        65504,
        65504,
    ]
    assert cast([4e9, -4e9])[3] == [2**31 - 1, -(2**31)]
    assert cast([2.0**32 + 512], float_to_int_overflow="wrap")[3] == [512]


def summed(x, y=None, z=None, **numerics):
    x = np.array(x, np.float32)
    y, z = (np.zeros_like(x) if v is None else np.array(v, np.float32) for v in (y, z))
    total, fused, plain = np.zeros(1, np.float32), np.zeros_like(x), np.zeros_like(x)
    with sim.device(numerics=numerics, time=False):
        sums[(1,)](x, y, z, total, fused, plain, len(x))
    return total[0], fused, plain


def test_order_of_sums():
    x = np.zeros(64)
    x[[0, 32]], x[1:32], x[33:] = (2.0**24, -(2.0**24)), 1, 1
    assert summed(x)[0] == 61  # of the specification, section 5.6
    assert summed(x, sum_tree="halves")[0] == 62
    assert summed(x, sum_tree="sequential")[0] == 31
    repeats = [2.0**24, *[0] * 7, 1, *[0] * 7, 1, *[0] * 7, 1, *[0] * 7]  # of eight lanes
    assert summed(repeats, sum_repeat_bytes=32)[0] == 2.0**24
    assert summed(repeats, sum_repeat_bytes=32, sum_order="tree_tree")[0] == 2.0**24 + 2
    assert summed(repeats, sum_repeat_bytes=512)[0] == 2.0**24 + 2


def test_products_and_sums_are_rounded_once_or_twice():
    x, y, z = [1 + 2.0**-12], [1 + 2.0**-12], [-1 - 2.0**-11]
    assert summed(x, y, z)[1] == 2.0**-24
    assert summed(x, y, z, fma_round="twice")[1] == 0


@pytest.mark.parametrize(
    ("rule", "operand", "result"),
    [
        ("flush", 0, 0),
        ("keep", 2.0**-127, 2.0**-127),
        ("flush_operands", 0, 2.0**-127),
        ("flush_results", 2.0**-126, 0),
    ],
)
def test_operands_and_results_of_the_vector_unit_are_flushed_apart(rule, operand, result):
    _, fused, plain = summed([2.0**-127, 1.5 * 2.0**-126], [2, 0], [0, 2.0**-126], fp32_subnormals=rule)
    assert plain[1] == result
    assert fused[0] == (2.0**-126 if operand else 0)


def test_hf32_with_ten_bits_or_cut_off():
    x = [1 + 2.0**-11 + 2.0**-13]
    assert dot(x, mode="hf32")[0] == 1 + 2.0**-11
    assert dot(x, mode="hf32", hf32_bits=10)[0] == 1 + 2.0**-10
    assert dot(x, mode="hf32", hf32_bits="10", hf32_round="TRUNC")[0] == 1


def test_block_sizes_by_format():
    rows = [2.0**24, 0, 0, 0, *[0.5] * 4]
    assert dot(rows, cube_block_k="fp16=8, fp32=2")[0] == 2.0**24
    assert dot(rows, mode="hf32", cube_block_k="fp16=8, fp32=2")[0] == 2.0**24 + 2
    assert dot([1.0], cube_block_k="fp16=8, fp32=2")[1].options["cube_block_k"] == "fp16=8,fp32=2 (chosen)"


def test_subnormal_operands_of_bf16_and_of_the_cube_have_rules_of_their_own():
    small = [2.0**-127] * 4
    assert dot(small, np.dtype("bfloat16"), bf16_subnormals="keep")[0] == 2.0**-125
    assert dot(small, np.dtype("bfloat16"))[0] == 0
    assert dot(small, cube_subnormals="keep")[0] == 2.0**-125
    assert dot(small, cube_subnormals="flush", fp32_subnormals="keep")[0] == 0


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"cube_block_k": "fp16=8,fp16=4"}, "'fp16=4' is not FORMAT=NUMBER"),
        ({"cube_block_k": "int8=8"}, "with each of fp16, bf16, hf32, fp32 at most once"),
        ({"cube_block_k": "fp16=0"}, "cube_block_k is 0; one Mmad adds 1 to 4095"),
        ({"cube_block_sum": "aligned=17"}, "allowed are exact, tree, or aligned=N with N from 0 to 16"),
        ({"sum_repeat_bytes": 100}, "sum_repeat_bytes is 100; allowed are 32, 64"),
    ],
)
def test_wrong_choices_of_several_parts(given, text):
    with pytest.raises(sim.UsageError, match=text), sim.device(numerics=given):
        pass


HEAD = 'product = "ascend910b3"\nsource = "by hand"\n[numerics]\n'


def test_a_file_of_choices_is_named_in_the_run_and_choices_beside_it_go_first(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(HEAD + 'cube_block_k = "fp32=1"\ncube_block_round = "TRUNC"\n')
    with sim.device(numerics=str(path)) as device:
        assert options(device)["cube_block_k"] == "fp32=1 (file mine.toml)"
    options_of = dot([2.0**30, 1, -(2.0**30), 1], file=path, cube_block_round="RNE")[1].options
    assert options_of["cube_block_k"] == "fp32=1 (file mine.toml)"
    assert options_of["cube_block_round"] == "RNE (chosen)"
    assert dot([2.0**30, 1, -(2.0**30), 1], file=path)[0] == 1


def test_what_is_written_as_a_file_is_read_back(tmp_path):
    choices = check_numerics({"cube_block_k": 7, "hf32_bits": "10", "cube_block_sum": "aligned=3"})
    path = tmp_path / "x.toml"
    path.write_text(numerics_text(choices, source='a "board" \\ of\nmine'))
    assert read_numerics(path) == choices


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[numerics]\nspeed = 1\n", "x.toml: unknown choice of numerics 'speed'"),
        ('[numerics]\nhf32_round = "UP"\n', "x.toml: numerics hf32_round is 'UP'; allowed are"),
        ("hf32_round = 'RNE'\n", "'hf32_round' is not known; a file of numerics has product"),
        ("source = 1\n[numerics]\n", "x.toml: source is 1; it must be text"),
        ("", "it has no table"),
        ("[numerics", "x.toml is no TOML file"),
        ("[numerics]\noverflow_mode = ['a']\n", r"numerics overflow_mode is \['a'\]"),
    ],
)
def test_files_that_are_no_numerics_are_refused(tmp_path, text, message):
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(sim.UsageError, match=message), sim.device(numerics=tmp_path / "x.toml"):
        pass


def test_a_file_that_is_not_there_is_named():
    with (
        pytest.raises(sim.UsageError, match=r"cannot read nowhere\.toml"),
        sim.device(numerics="nowhere.toml"),
    ):
        pass

"""matmul: errors that rounding explains in every mode, statistics of the numerics specification, refusals."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.kernels.running.problem as memory
import ascendtile.simulator as sim
from ascendtile.kernels import get_operator, run_op
from ascendtile.kernels.matmul.op import matmul
from ascendtile.kernels.matmul.strips import strips
from ascendtile.simulator.device import CUBE_MATH_TYPES
from ascendtile.simulator.errors import RefusedError, UsageError
from ascendtile.simulator.precision.cube_math import resolve_matmul
from ascendtile.simulator.precision.rounding import encode, round_to
from ascendtile.simulator.products import load_product
from ascendtile.tiling.space.axes import OperatorPoints

OP = get_operator("matmul")
DTYPES = ("float16", "bfloat16", "float32")
SHAPES = [(1, 1, 1), (3, 5, 7), (17, 33, 65), (16, 300, 130), (130, 20, 1)]
UNIT = {"fp16": 2.0**-11, "bf16": 2.0**-8, "fp32": 2.0**-24, "hf32": 2.0**-12}
A2, TRAINING = "ascend910b3", "ascend910a"


def arrays(m, n, k, left="fp32", right="fp32", seed=0):
    g = np.random.default_rng(seed)
    return encode(g.standard_normal((m, k)), left), encode(g.standard_normal((k, n)), right)


def bits(y, golden):
    return -np.log2(np.abs(np.float64(y) - golden).mean() / np.abs(golden).mean())


# -- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.drawn(8)
@pytest.mark.parametrize("mode", CUBE_MATH_TYPES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_errors_are_those_that_rounding_explains(values, shape, dtype, mode):
    m, n, k = shape
    kind = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}[dtype]
    a, b = arrays(m, n, k, kind, kind)
    resolved = resolve_matmul(load_product(A2), (kind, kind), mode, k)
    out = values(OP, inputs={"a": a, "b": b}, product=A2, cube_math_type=mode).outputs["out"]
    x, y = (round_to(np.float32(v), resolved.operand, resolved.hf32_round) for v in (a, b))
    golden = np.array(x, np.float64) @ np.array(y, np.float64)
    room = (k + 1) * UNIT["fp32"] * (np.abs(np.array(x, np.float64)) @ np.abs(np.array(y, np.float64)))
    room += UNIT[resolved.output()] * np.abs(golden) * 1.001 + 2.0**-25
    assert out.shape == (m, n)
    assert np.all(np.abs(np.float64(out) - golden) <= room)


@pytest.mark.parametrize(
    ("left", "right", "mode", "expected"),
    [
        ("fp32", "fp16", "KEEP_DTYPE", "fp32"),
        ("fp32", "bf16", "USE_HF32", "hf32"),
        ("fp16", "bf16", "KEEP_DTYPE", "fp32"),
        ("fp16", "bf16", "USE_FP16", "fp16"),
        ("fp32", "bf16", "USE_FP16", "fp16"),
    ],
)
def test_mixed_types_are_converted_by_launches_first(left, right, mode, expected):
    a, b = arrays(20, 30, 40, left, right)
    result = matmul(a, b, product=A2, cube_math_type=mode)
    casts = sum(x.kernel == "cast_flat" for x in result.launches)
    wide = "fp32" if expected == "hf32" else expected
    assert casts == (left != wide) + (right != wide)
    x, y = (np.float64(round_to(np.float32(v), expected, "ROUND")) for v in (a, b))
    unit = UNIT["fp16" if expected == "fp16" else "fp32"]
    assert bits(result.outputs["out"], x @ y) > -np.log2(unit) - 2
    warned = (left, right, mode) == ("fp32", "bf16", "USE_FP16")
    assert result.warnings == (("cubeMathType: BF16 operand converted to FP16",) if warned else ())


@pytest.mark.drawn(2)
@pytest.mark.parametrize("k", [64, 512])
@pytest.mark.parametrize(
    ("dtype", "mode", "expected"),
    [
        ("float32", "KEEP_DTYPE", {64: 23.9, 512: 22.4}),
        ("float32", "USE_HF32", {64: 12.75, 512: 12.74}),
        ("float32", "USE_FP16", {64: 11.47, 512: 11.47}),
        ("float16", "USE_FP32_ADD", {64: 11.75, 512: 11.74}),
        ("float16", "KEEP_DTYPE", {64: 11.47, 512: 11.47}),
        ("bfloat16", "USE_FP32_ADD", {64: 8.75, 512: 8.74}),
        ("bfloat16", "KEEP_DTYPE", {64: 8.48, 512: 8.47}),
    ],
)
def test_effective_bits_of_the_specification(values, dtype, mode, expected, k):
    """256 x k by k x 256, normal data, against float64 of the exact inputs: within 0.1 bits."""
    a, b = arrays(256, 256, k)
    out = values(OP, inputs={"a": a, "b": b}, dtype=dtype, product=A2, cube_math_type=mode).outputs["out"]
    assert abs(bits(out, np.float64(a) @ np.float64(b)) - expected[k]) < 0.1


@pytest.mark.exhaustive
def test_long_sums_are_added_in_parts_where_cores_have_nothing_else_to_do():
    a, b = arrays(32, 32, 4096)
    one = matmul(a, b, tiling={"split_k": 1})
    golden = np.float64(a) @ np.float64(b)
    for mode in ("KEEP_DTYPE", "USE_FP32_ADD"):
        parts = matmul(a, b, cube_math_type=mode)
        assert [x.kernel for x in parts.launches] == ["matmul_tiles", "sum_partials"]
        assert parts.tiling["split_k"] == 4
        assert bits(parts.outputs["out"], golden) > bits(one.outputs["out"], golden)
        assert matmul(a[:, :2000], b[:2000], cube_math_type=mode).tiling["split_k"] == 1


def test_use_fp32_add_adds_long_sums_in_parts_also_where_tiles_occupy_the_cores():
    wide = {"m": 1024, "n": 1024, "k": 4096}
    for mode, parts in (("KEEP_DTYPE", 1), ("USE_FP32_ADD", 2)):
        run = run_op("matmul", wide, "float32", cube_math_type=mode, product=A2, values=False)
        assert run.tiling["split_k"] == parts


@pytest.mark.drawn(7)
@pytest.mark.parametrize("k", [1024, 2048, 4096, 16384])
@pytest.mark.parametrize("edge", [1, 64, 128, 192, 256])
def test_adding_in_parts_by_rule_takes_no_longer_than_adding_at_once(edge, k):
    for dtype in ("float16", "float32"):
        sizes = {"m": edge, "n": 64, "k": k}
        by_rule, whole = (
            run_op("matmul", sizes, dtype, product=A2, values=False, tiling=t) for t in ({}, {"split_k": 1})
        )
        assert by_rule.time_us <= 1.001 * whole.time_us


def test_a_cube_without_fp32_writes_the_type_of_a():
    a, b = arrays(20, 30, 40)
    result = matmul(a, b, product=TRAINING, cube_math_type="ALLOW_FP32_DOWN_PRECISION")
    assert result.outputs["out"].dtype == np.float32
    assert [x.kernel for x in result.launches] == ["cast_flat", "cast_flat", "matmul_tiles"]


# -- knobs and options -----------------------------------------------------------------------------------------------


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    "tiling",
    [
        {"block_m": 16, "block_n": 32, "block_k": 16},
        {"cores": 3, "group": 1},
        {"schedule": "per_tile", "block_m": 16},
        {"base_m": 16, "base_n": 16, "base_k": 16},
        {"keep": "a", "block_m": 32, "block_n": 16, "block_k": 32, "cores": 2},
        {"keep": "b", "block_m": 16, "block_n": 32, "block_k": 48, "buffers": 1},
        {"keep": "b", "block_m": 16, "block_n": 16, "schedule": "per_tile"},
    ],
)
def test_a_tiling_changes_time_and_not_values(tiling):
    inputs = OP.inputs({"m": 100, "n": 90, "k": 70}, "float16")
    plain, tiled = (run_op(OP, inputs=inputs, tiling=t, errors=False) for t in ({}, tiling))
    np.testing.assert_array_equal(plain.outputs["out"], tiled.outputs["out"])
    assert plain.time_us != tiled.time_us
    assert {**tiled.tiling, **tiling} == tiled.tiling


def test_numpy_order_of_additions_has_other_last_bits():
    inputs = OP.inputs({"m": 64, "n": 64, "k": 999}, "float32")
    exact, blas = (run_op(OP, inputs=inputs, tiling={"accumulate": x}, time=False) for x in ("exact", "blas"))
    assert not np.array_equal(exact.outputs["out"], blas.outputs["out"])
    assert "numpy's order" in " ".join(blas.notes)


def test_out_dtype_is_one_more_launch():
    a, b = arrays(20, 30, 40, "fp16", "fp16")
    result = matmul(a, b, out_dtype="float32")
    assert [x.kernel for x in result.launches] == ["matmul_tiles", "cast_flat"]
    np.testing.assert_array_equal(result.outputs["out"], np.float32(matmul(a, b).outputs["out"]))


def test_every_case_has_a_time():
    for name in OP.cases:
        if name != "8192":
            assert run_op(OP, name, "float16", values=False).time_us > 0


# -- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["KEEP_DTYPE", "USE_HF32", "USE_FP32_ADD"])
@pytest.mark.parametrize("product", [TRAINING, "ascend310p"])
def test_refused_modes_carry_the_status(product, mode):
    with pytest.raises(
        RefusedError, match=r"status 161002.*take ALLOW_FP32_DOWN_PRECISION or USE_FP16"
    ) as error:
        run_op(OP, "tiny", "float32", product, mode)
    assert error.value.status == 161002
    assert "FP32 operands" in error.value.reason


def test_bfloat16_is_refused_without_bfloat16_cube():
    a, b = arrays(4, 4, 4, "bf16", "fp16")
    with pytest.raises(
        RefusedError, match=r"bf16 is an unsupported type.*take a and b of float16 or float32"
    ):
        matmul(a, b, product=TRAINING)


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        ((3, 0), (0, 4), "K is empty"),
        ((0, 3), (3, 4), "no elements"),
        ((3, 4), (5, 6), "a is (3, 4), b is (5, 6)"),
        ((3,), (3, 4), "a has shape (3,); it must have 2 axes"),
    ],
)
def test_wrong_shapes(a, b, text):
    with pytest.raises(sim.UsageError) as error:
        matmul(np.zeros(a, np.float16), np.zeros(b, np.float16))
    assert text in str(error.value)


def test_wrong_tilings():
    with pytest.raises(sim.UsageError, match="base_m, base_n and base_k together"):
        run_op(OP, "tiny", tiling={"base_m": 16})
    with pytest.raises(sim.UsageError, match=r"'cores' is 99, .* has 20 cube cores"):
        run_op(OP, "tiny", tiling={"cores": 99})
    with pytest.raises(sim.UsageError, match="size 'm' must be one number"):
        run_op(OP, {"m": (2, 3), "n": 4, "k": 5})


def test_what_does_not_fit_memory_is_refused_with_the_figure(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 2**20)
    with pytest.raises(sim.UsageError, match=r"need about 0.0\d+ GiB of memory, 0.000977 GiB are available"):
        run_op(OP, "1024")
    a, b = arrays(600, 600, 600)
    with pytest.raises(sim.UsageError, match="GiB of memory"):
        matmul(a, b)
    assert run_op(OP, "1024", values=False).time_us > 0


def test_infinities_and_nan_go_through():
    a = np.array([[np.inf, 1.0], [np.nan, 1.0], [1.0, 2.0]], ml_dtypes.bfloat16)
    out = np.float32(matmul(a, np.ones((2, 1), ml_dtypes.bfloat16)).outputs["out"][:, 0])
    np.testing.assert_array_equal(out, np.float32([np.inf, np.nan, 3.0]))


# -- an operand that stays in L1 ---------------------------------------------------------------------------------------


def kept(sizes, keep, product=A2, **tiling):
    return run_op(OP, sizes, "float16", product, values=False, tiling={"keep": keep, **tiling})


def test_sums_in_parts_of_an_operand_that_stays_are_those_of_parts_without():
    inputs = OP.inputs({"m": 40, "n": 50, "k": 700}, "float16")
    tilings = ({"keep": keep, "split_k": 3, "block_m": 16, "block_n": 16} for keep in ("none", "a", "b"))
    plain, *others = (run_op(OP, inputs=inputs, tiling=t, time=False).outputs["out"] for t in tilings)
    for out in others:
        np.testing.assert_array_equal(plain, out)


@pytest.mark.parametrize(("keep", "cores"), [("a", 1), ("a", 4), ("b", 3), ("b", 20)])
@given(st.integers(1, 4), st.integers(2, 9), st.integers(1, 5))
def test_what_stays_is_loaded_once_for_each_line_and_core_and_the_other_for_each_tile(
    keep, cores, lines, along, deep
):
    block, k = 64, 64 * deep
    down, across = (lines, along) if keep == "a" else (along, lines)
    sizes = {"m": block * down, "n": block * across, "k": k}
    launch = kept(sizes, keep, block_m=block, block_n=block, block_k=64, cores=cores).launches[0]
    stored, tile = 2 * sizes["m"] * sizes["n"], 2 * block * k
    cut = strips((sizes["m"], sizes["n"]), (block, block), keep == "a", 1, cores)
    assert launch.resources["L2"] == stored + tile * (lines * along + int(cut.count))
    most = -(-int(cut.count) // cores)  # strips of a core, which load no more than whole lines would
    assert most * (1 + int(cut.wide)) <= -(-lines // cores) * (1 + along)
    assert int(cut.stretches * cut.wide) >= along > int((cut.stretches - 1) * cut.wide)


def test_an_operand_that_stays_saves_what_its_loads_take():
    sizes = {"m": 128, "n": 16384, "k": 1024}
    assert kept(sizes, "a").time_us < 0.8 * kept(sizes, "none").time_us


@pytest.mark.parametrize("keep", ["a", "b"])
def test_an_operand_that_does_not_fit_is_refused_with_both_numbers(keep):
    sizes = {"m": 512, "n": 512, "k": 8192}
    with pytest.raises(
        UsageError,
        match=f"keep={keep}: {keep} for sums of 8192 terms .* take 1179648 bytes at least.* has 520192",
    ):
        kept(sizes, keep)
    with pytest.raises(UsageError, match=r"1024 terms in tiles of 32 are 32 pieces, .* 16 pieces at most"):
        kept({**sizes, "k": 1024}, keep, block_k=32)


@pytest.mark.parametrize("keep", ["a", "b"])
def test_an_operand_stays_in_as_many_pieces_as_the_refusal_says(keep):
    sizes = {"m": 300, "n": 520, "k": 256}
    assert kept(sizes, keep, block_k=16).time_us > 0
    with pytest.raises(UsageError, match=r"260 terms in tiles of 16 are 17 pieces, .* 16 pieces at most"):
        kept({**sizes, "k": 260}, keep, block_k=16)


@given(
    st.integers(1, 400), st.integers(1, 400), st.integers(1, 3000), st.sampled_from(("float16", "float32"))
)
def test_the_rules_keep_only_tilings_that_fit(m, n, k, dtype):
    axes = {"block_m": (16, 128), "block_n": (64, 256), "block_k": (64, 256), "keep": ("none", "a", "b")}
    axes |= {"group": 1, "split_k": (1, 2), "schedule": "persistent", "buffers": 2}
    points = OperatorPoints(
        OP, OP.case({"m": m, "n": n, "k": k}), load_product(A2), dtype, "KEEP_DTYPE", {}, axes
    )
    legal, _ = points.space.legal()
    for number in legal[:: max(1, len(legal) // 3)]:
        tiling = points.space.point(int(number))
        run = run_op(OP, {"m": m, "n": n, "k": k}, dtype, A2, values=False, tiling=tiling)
        assert run.launches[0].buffers["L1"].peak_bytes <= load_product(A2).l1_bytes

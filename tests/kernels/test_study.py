"""Precision study: rows, the two goldens, sweeps, refusals, and the distributions and example that feed it."""

from __future__ import annotations

import numpy as np
import pytest

import ascendtile.kernels.running.problem as memory
import ascendtile.simulator as sim
from ascendtile.kernels import get_operator
from ascendtile.kernels.examples.train_tiny import train
from ascendtile.kernels.operator.draw import DISTRIBUTIONS
from ascendtile.kernels.running.run_op import run_op
from ascendtile.kernels.study.data import drawn
from ascendtile.kernels.study.results import EXACT, ROUNDED
from ascendtile.kernels.study.study import precision_study, precision_sweep
from ascendtile.simulator.device import CUBE_MATH_TYPES
from ascendtile.simulator.precision.cube_math import resolve_matmul
from ascendtile.simulator.precision.metrics import compare
from ascendtile.simulator.products import load_product

SIZES = {"m": 64, "n": 48, "k": 128}
DTYPES = ("float32", "float16", "bfloat16")


def rows_of(study):
    return {(r.dtype, r.cube_math_type): r for r in study.rows}


def passed(row, output, golden, rule):
    return next(v.passed for v in row.verdicts[output][golden] if v.rule == rule)


# -- rows ------------------------------------------------------------------------------------------------------------


@pytest.mark.drawn(1)
@pytest.mark.parametrize("product", ["ascend910b3", "ascend910a", "ascend310p"])
def test_every_mode_and_type_has_a_row_that_follows_the_table(product):
    rows = rows_of(precision_study("matmul", sizes=SIZES, product=product))
    assert set(rows) == {(d, m) for d in DTYPES for m in CUBE_MATH_TYPES}
    kinds = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
    for (dtype, mode), row in rows.items():
        known = resolve_matmul(load_product(product), (kinds[dtype],) * 2, mode, SIZES["k"])
        assert (row.status, row.compute_dtype) == (known.status, known.operand or None)
        assert row.reason == (known.warning or "" if known.ok else known.reason)
        assert bool(row.errors) == bool(row.verdicts) == (row.time_us is not None) == known.ok


def test_speedup_is_over_float32_as_it_is():
    rows = rows_of(precision_study("matmul", "1024", sample=16))
    base = rows["float32", "KEEP_DTYPE"]
    assert base.speedup == 1
    assert all(r.speedup == base.time_us / r.time_us for r in rows.values())
    assert rows["float16", "KEEP_DTYPE"].speedup > 2
    assert 1 < rows["float32", "USE_HF32"].speedup < 2


def test_speedup_is_over_float32_also_where_that_is_not_a_row():
    whole = rows_of(precision_study("matmul", sizes=SIZES))
    part = rows_of(precision_study("matmul", sizes=SIZES, modes="USE_HF32", dtypes="float16"))
    assert part["float16", "USE_HF32"].speedup == whole["float16", "USE_HF32"].speedup is not None


@pytest.mark.parametrize("product", ["ascend910b3", "ascend910a"])
def test_mixtures_follow_the_table(product):
    rows = rows_of(precision_study("matmul", sizes=SIZES, product=product, dtypes="mixed", time=False))
    kinds = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
    pairs = {f"{a}+{b}" for a in DTYPES for b in DTYPES if a != b}
    assert set(rows) == {(d, m) for d in pairs for m in CUBE_MATH_TYPES}
    for (dtype, mode), row in rows.items():
        known = resolve_matmul(load_product(product), [kinds[d] for d in dtype.split("+")], mode, SIZES["k"])
        assert (row.status, row.compute_dtype) == (known.status, known.operand or None)
        assert row.reason == (known.warning or "" if known.ok else known.reason)


def test_a_mixture_is_as_exact_as_its_coarser_input():
    wanted = "float32,float32+bfloat16,bfloat16+float32,bfloat16"
    rows = rows_of(precision_study("matmul", sizes=SIZES, modes="KEEP_DTYPE", dtypes=wanted, time=False))
    bits = {d: rows[d, "KEEP_DTYPE"].bits("out") for d in wanted.split(",")}
    assert bits["bfloat16"] < bits["float32+bfloat16"] < bits["float32"] - 10
    assert abs(bits["float32+bfloat16"] - bits["bfloat16+float32"]) < 0.2


def test_without_a_legal_float32_there_is_no_speedup():
    rows = precision_study("matmul", sizes=SIZES, product="ascend910a").rows
    assert all(r.speedup is None for r in rows)


def test_two_goldens_tell_the_loss_of_the_mode_from_that_of_the_kernel():
    rows = rows_of(precision_study("matmul", sizes=SIZES))
    plain, hf32 = (rows["float32", m] for m in ("KEEP_DTYPE", "USE_HF32"))
    assert plain.bits("out", EXACT) == plain.bits("out", ROUNDED)
    assert abs(hf32.bits("out", EXACT) - 12.75) < 0.15
    assert hf32.bits("out", ROUNDED) > 22
    wide = rows["float16", "USE_FP32_ADD"]
    assert abs(wide.bits("out", EXACT) - 11.75) < 0.15
    assert wide.bits("out", ROUNDED) > 22
    assert hf32.errors["out"][EXACT].compute == "hf32"
    assert not passed(rows["bfloat16", "KEEP_DTYPE"], "out", EXACT, "mixed-tolerance")
    assert all(
        passed(rows[d, "KEEP_DTYPE"], "out", ROUNDED, "mixed-tolerance") for d in ("float16", "bfloat16")
    )


@pytest.mark.exhaustive
def test_what_never_passes_the_cube_is_judged_by_the_inputs_as_they_are_stored():
    """The sum of the bias knows no cubeMathType: it is as exact in USE_FP16 as in KEEP_DTYPE, and keeps the same rules."""
    rows = rows_of(precision_study("convolution_backward", "tiny", time=False))
    for (dtype, mode), row in rows.items():
        if row.status:
            continue
        kept = rows[dtype, "KEEP_DTYPE"]
        assert row.bits("grad_bias", ROUNDED) == kept.bits("grad_bias", ROUNDED)
        assert row.verdicts["grad_bias"] == kept.verdicts["grad_bias"]
        assert row.errors["grad_bias"][ROUNDED].compute != "hf32"
        assert dtype != "float32" or row.bits("grad_bias", ROUNDED) > 23
        assert row.bits("grad_weight", ROUNDED) >= (24 if dtype == "float32" else 9), mode


@pytest.mark.parametrize("op", ["rms_norm_grad", "bce_with_logits_backward"])
def test_vector_operators_have_a_row_for_each_type(op):
    study = precision_study(op, "tiny")
    assert [(r.dtype, r.compute_dtype) for r in study.rows] == [(d, "fp32") for d in DTYPES]
    for row in study.rows:
        assert set(row.errors) == set(get_operator(op).outputs)
        assert all(row.bits(n, ROUNDED) >= row.bits(n, EXACT) for n in row.errors)
    refused = precision_study(op, "tiny", product="ascend310p", modes="USE_HF32").rows
    assert [r.dtype for r in refused if r.status == 161002] == ["bfloat16"]
    idle = precision_study(op, "tiny", modes="USE_HF32", time=False).notes
    assert idle[0].startswith(f"cube_math_type USE_HF32 has no effect: {op} does not use the Cube")


ON_CUBE = {
    "rms_norm_grad": {"combine": "cube"},
    "group_norm_backward": {"strategy": "cube"},
    "batch_norm_reduce_backward": {"strategy": "cube"},
}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("op", ON_CUBE)
def test_strategies_of_the_cube_have_a_row_for_each_mode(op):
    """What is multiplied: the inputs as a matmul would take them; of RmsNormGrad FP32 products, whatever the inputs are."""
    study = precision_study(op, "tiny", tiling=ON_CUBE[op])
    rows, product = rows_of(study), load_product("ascend910b3")
    assert set(rows) == {(d, m) for d in DTYPES for m in CUBE_MATH_TYPES}
    short = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
    for (dtype, mode), row in rows.items():
        kind = "fp32" if op == "rms_norm_grad" else short[dtype]
        assert row.compute_dtype == resolve_matmul(product, (kind, kind), mode).operand
        assert row.time_us
        for n in row.errors:
            unit = {"float32": 22, "float16": 9, "bfloat16": 7}[get_dtype(row.output_dtypes[n])]
            assert row.bits(n, ROUNDED) >= unit, (n, mode, dtype)
    beside = ["dx never passes the Cube: fp32 in every mode"] if op == "rms_norm_grad" else []
    assert list(study.notes) == beside
    plain, coarse = (rows["float32", m] for m in ("KEEP_DTYPE", "USE_FP16"))
    summed = "dgamma" if op == "rms_norm_grad" else get_operator(op).outputs[-1]
    assert coarse.bits(summed, EXACT) < plain.bits(summed, EXACT) - 8


def get_dtype(name):
    return {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}[name]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_dgamma_of_the_cube_is_as_exact_as_its_type(dtype):
    """FLOAT32 by the document: of narrow inputs the products stay FP32, unless a mode says otherwise."""
    ask = {"dtypes": dtype, "modes": "KEEP_DTYPE,USE_FP16", "time": False}
    keep, coarse = precision_study("rms_norm_grad", "tiny", tiling=ON_CUBE["rms_norm_grad"], **ask).rows
    stored = run_op("rms_norm_grad", "tiny", dtype, time=False).errors["dgamma"]
    on_cube = run_op("rms_norm_grad", "tiny", dtype, tiling={"combine": "cube"}, time=False).errors["dgamma"]
    assert keep.compute_dtype == "fp32"
    assert coarse.compute_dtype == "fp16"
    assert on_cube.effective_bits > stored.effective_bits - 1 > 21


@pytest.mark.parametrize("op", [*ON_CUBE, "bce_with_logits_backward"])
def test_modes_without_effect_are_a_note(op):
    """In a run and in a study; where a tiling of the operator uses the Cube the note names it."""
    way = " with this tiling ({}={} does)".format(*next(iter(ON_CUBE[op].items()))) if op in ON_CUBE else ""
    ask = {"dtypes": "float32", "modes": "USE_HF32,USE_FP16", "time": False}
    words = f"have no effect: {op} does not use the Cube{way}"
    assert precision_study(op, "tiny", **ask).notes == (f"cube_math_type USE_HF32 and USE_FP16 {words}",)
    found = run_op(op, "tiny", "float32", cube_math_type="USE_HF32", values=False)
    assert found.notes == (f"cube_math_type USE_HF32 {words.replace('have', 'has', 1)}",)


@pytest.mark.parametrize("op", [*ON_CUBE, "bce_with_logits_backward", "convolution_backward"])
def test_a_sample_of_what_has_no_blocks_is_refused_with_the_reason(op):
    why = get_operator(op).whole
    with pytest.raises(sim.UsageError) as error:
        precision_study(op, "tiny", sample=4)
    assert why
    assert f"{op} has no sample: its values are computed whole ({why})" in str(error.value)


def test_the_same_numbers_in_every_row_and_run():
    one, two = (precision_study("matmul", sizes=SIZES, seed=3, time=False) for _ in range(2))
    assert one == two
    assert one != precision_study("matmul", sizes=SIZES, seed=4, time=False)
    assert all(r.time_us is None and r.speedup is None for r in one.rows)


@pytest.mark.exhaustive
def test_a_large_case_is_sampled_and_says_so():
    study = precision_study("matmul", "llama3-8b-qkv", modes="KEEP_DTYPE", dtypes="float16", sample=32)
    assert study.sample == "values of a block only (a 32x4096 and b 4096x32), time of the whole case"
    assert study.rows[0].errors["out"][EXACT].shape == (32, 32)
    op = get_operator("matmul")
    automatic = op.cut(op.shapes("8192", "float32"), None)
    assert automatic["a"][0].stop * automatic["b"][1].stop * 8192 <= 2**30
    assert op.cut(op.shapes("1024", "float32"), None) == {}
    whole = precision_study("matmul", "llama3-8b-qkv", "ascend910b3", "KEEP_DTYPE", "float16", sample=16)
    assert whole.rows[0].time_us == study.rows[0].time_us


# -- inputs and distributions ----------------------------------------------------------------------------------------


def test_inputs_in_float64_are_rounded_once_for_each_type():
    g = np.random.default_rng(0)
    a, b = g.standard_normal((20, 30)), g.standard_normal((30, 10))
    study = precision_study("matmul", inputs={"a": a, "b": b}, time=False)
    assert study.case == "a 20x30, b 30x10"
    row = rows_of(study)["float32", "KEEP_DTYPE"]
    assert 22 < row.bits("out", EXACT) < row.bits("out", ROUNDED)


@pytest.mark.exhaustive
def test_gradients_of_a_really_trained_network():
    inputs, losses = train(steps=8)
    assert losses[-1] < 0.8 * losses[0]
    assert {n: x.dtype for n, x in inputs.items()} == {"a": np.float32, "b": np.float32}
    rows = rows_of(precision_study("matmul", inputs=inputs, time=False))
    assert 12.5 < rows["float32", "USE_HF32"].bits("out") < 15
    assert 8 < rows["bfloat16", "KEEP_DTYPE"].bits("out") < 10.5


def test_distributions_have_their_properties():
    op, sizes = get_operator("matmul"), {"m": 300, "n": 200, "k": 301}
    drawn = {d: op.inputs(sizes, "float32", 0, d) for d in DISTRIBUTIONS}
    assert 0 <= drawn["uniform"]["a"].min() < 0.01 < 0.99 < drawn["uniform"]["a"].max() < 1
    sizes_of = np.log(np.abs(drawn["lognormal"]["a"]))
    assert abs(sizes_of.std() - 2) < 0.05
    assert abs((drawn["lognormal"]["a"] < 0).mean() - 0.5) < 0.02
    c = drawn["cancel"]
    assert {n: x.shape for n, x in c.items()} == {"a": (300, 301), "b": (301, 200)}
    wide = np.abs(c["a"]) @ np.abs(c["b"])
    assert np.median(np.abs(c["a"][:, :300] @ c["b"][:300]) / wide[:, :200]) < 1e-3


# -- sweeps ----------------------------------------------------------------------------------------------------------


def test_sweep_over_the_length_of_the_sums():
    found = precision_sweep("matmul", "k", SIZES, dtypes="float32", modes="KEEP_DTYPE,USE_HF32", time=False)
    assert [s.value for s in found] == [64, 256, 1024, 4096]
    plain, hf32 = ([s.rows[i].bits("out") for s in found] for i in (0, 1))
    assert plain == sorted(plain, reverse=True)
    assert plain[0] - plain[-1] > 2
    assert max(hf32) - min(hf32) < 0.1


def test_sweep_over_scale_shows_where_float16_ends():
    found = precision_sweep("matmul", "scale", SIZES, modes="KEEP_DTYPE", time=False)
    lost = {
        (s.value, r.dtype): r.errors["out"][EXACT].overflow + r.errors["out"][EXACT].nan_mismatch
        for s in found
        for r in s.rows
    }
    assert lost["2^0", "float16"] == 0 < lost["2^12", "float16"] <= lost["2^20", "float16"]
    assert all(n == 0 for (_, dtype), n in lost.items() if dtype != "float16")


def test_sweep_over_distributions():
    found = precision_sweep("matmul", "distribution", SIZES, modes="USE_HF32", dtypes="fp32", time=False)
    bits = {s.value: s.rows[0].bits("out") for s in found}
    assert set(bits) == set(DISTRIBUTIONS)
    assert bits["cancel"] < bits["normal"] - 4
    assert bits["uniform"] > bits["cancel"]


# -- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"modes": "USE_HF16"}, "unknown cube_math_type 'USE_HF16'; known are KEEP_DTYPE"),
        ({"dtypes": "int8"}, "matmul has no data type 'int8'"),
        ({"dtypes": "float32+int8"}, "matmul has no data type 'int8'"),
        ({"dtypes": "float32+float16+float32"}, "is 3 data types; it takes 2 types, of a and b"),
        ({"inputs": [1]}, "inputs must be arrays by name, got list"),
        ({"inputs": {"a": np.float32(1), "b": np.ones((2, 2))}}, "a has shape (); it must have 2 axes"),
        ({"modes": None}, 'must be "all" or names, got None'),
        ({"modes": ""}, "no cube_math_type given"),
        ({"modes": "5"}, "unknown cube_math_type '5'"),
        ({"distribution": "norml"}, "unknown distribution 'norml'; did you mean normal"),
        ({"sample": 0}, "sample must be a number of rows from 1, got 0"),
        ({"product": "ascend310b"}, "matmul is not available on ascend310b"),
        ({"sizes": {"m": 4, "n": 4, "k": 0}}, "size 'k' is 0: a case needs at least one element"),
        ({"sizes": SIZES, "case": "tiny"}, "each say what to study"),
        ({"inputs": {"a": np.zeros((2, 2), np.int32), "b": np.zeros((2, 2))}}, "'a' holds int32"),
        ({"inputs": {"a": np.zeros((2, 2))}}, "input b missing"),
        ({"inputs": {"a": np.zeros((2, 3)), "b": np.zeros((2, 3))}}, "a is (2, 3), b is (2, 3)"),
    ],
)
def test_wrong_arguments(arguments, text):
    with pytest.raises(sim.UsageError) as error:
        precision_study("matmul", **arguments)
    assert text in str(error.value)


@pytest.mark.parametrize(
    ("op", "arguments", "text"),
    [
        ("matmul", {"parameter": "K"}, "unknown sweep 'K'"),
        ("bce_with_logits_backward", {"parameter": "k"}, "bce_with_logits_backward has no single k"),
        ("convolution", {"parameter": "k"}, "convolution has no single k"),
        (
            "convolution_backward",
            {"parameter": "input", "values": [(1, 16, 8, 8)]},
            "cannot be swept alone to 1x16x8x8",
        ),
        ("convolution_backward", {"parameter": "weigth", "values": [1]}, "known are scale and distribution"),
        ("matmul", {"parameter": "scale", "values": [2000]}, "exponents of two from -126 to 127, got 2000"),
        ("matmul", {"parameter": "scale", "values": ["a"]}, "exponents of two from -126 to 127, got 'a'"),
        ("matmul", {"parameter": "scale", "values": [127]}, "does not fit float32; sweep smaller exponents"),
        ("matmul", {"parameter": "k", "inputs": {"a": 1}}, "a sweep over k draws its own data"),
    ],
)
def test_wrong_sweeps(op, arguments, text):
    with pytest.raises(sim.UsageError) as error:
        precision_sweep(op, **arguments)
    assert text in str(error.value)


def test_a_sample_that_does_not_fit_memory_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 2**20)
    with pytest.raises(sim.UsageError, match="GiB of memory"):
        precision_study("matmul", "4096", sample=1000)


def test_operators_of_the_vector_unit_take_no_mixtures():
    for dtypes, text in (("mixed", "takes no mixtures"), ("float16+float32", "it takes one type")):
        with pytest.raises(sim.UsageError, match=text):
            precision_study("rms_norm_grad", "tiny", dtypes=dtypes)


# -- what the table says of itself -----------------------------------------------------------------------------------


def test_modes_by_number_and_in_any_case():
    rows = precision_study("matmul", sizes=SIZES, modes="3,keep_dtype,all", dtypes="float32", time=False).rows
    assert {r.cube_math_type for r in rows} == set(CUBE_MATH_TYPES)
    rows = precision_study("matmul", sizes=SIZES, modes="3,keep_dtype", dtypes="float32", time=False).rows
    assert [r.cube_math_type for r in rows] == ["USE_HF32", "KEEP_DTYPE"]


def test_subnormal_operands_are_zero_for_the_kernel_and_a_loss_of_the_mode():
    inputs = {"a": np.full((8, 8), 1e-39, np.float32), "b": np.ones((8, 8), np.float32)}
    for row in precision_study("matmul", inputs=inputs, dtypes="float32,bfloat16", time=False).rows:
        if row.compute_dtype != "fp16":
            assert row.errors["out"][EXACT].underflow == 64
            assert row.errors["out"][ROUNDED].exact == 64
    with sim.device(numerics={"fp32_subnormals": "keep"}):
        row = precision_study("matmul", inputs=inputs, dtypes="float32", modes="KEEP_DTYPE", time=False).rows[
            0
        ]
    assert row.errors["out"][EXACT].underflow == 0


def test_a_sample_adds_in_the_order_of_the_whole_case():
    case = {"m": 2048, "n": 2048, "k": 4096}
    ask = {"modes": "USE_FP32_ADD", "dtypes": "float32", "time": False}
    few = precision_study("matmul", sizes=case, sample=16, **ask).rows[0]
    with sim.device(cube_math_type="USE_FP32_ADD"):
        whole = run_op("matmul", case, "float32", cube_math_type="USE_FP32_ADD", values=False).tiling[
            "split_k"
        ]
    data = drawn(get_operator("matmul"), get_operator("matmul").case(case), 0, "normal", 16)
    out = run_op(
        "matmul",
        inputs=data.stored(get_operator("matmul"), "float32"),
        cube_math_type="USE_FP32_ADD",
        tiling={"split_k": whole},
        time=False,
    ).outputs["out"]
    golden = data.exact["a"].astype(np.float64) @ data.exact["b"]
    assert few.errors["out"][EXACT] == compare(out, golden, "fp32")


def test_notes_name_inputs_that_are_no_numbers_and_inputs_of_two_types():
    a, b = np.ones((8, 8), np.float32), np.ones((8, 8), np.float16)
    a[0, 0], a[0, 1] = np.nan, np.inf
    notes = precision_study("matmul", inputs={"a": a, "b": b}, modes="KEEP_DTYPE", time=False).notes
    assert any("a has 1 NaN and 1 infinite elements" in n for n in notes)
    assert any("the inputs were a float32 and b float16" in n for n in notes)


def test_big_endian_inputs_are_the_same_numbers():
    inputs = {n: np.random.default_rng(1).standard_normal((16, 16)).astype("f4") for n in "ab"}
    swapped = {n: x.astype(">f4") for n, x in inputs.items()}
    ask = {"dtypes": "float16", "modes": "KEEP_DTYPE", "time": False}
    assert (
        precision_study("matmul", inputs=swapped, **ask).rows
        == precision_study("matmul", inputs=inputs, **ask).rows
    )


def test_an_overflowed_row_passes_no_rule():
    row = precision_sweep(
        "matmul", "scale", SIZES, values=[20], dtypes="float16", modes="KEEP_DTYPE", time=False
    )[0].rows[0]
    report = row.errors["out"][EXACT]
    assert report.overflow > 0.9 * SIZES["m"] * SIZES["n"]
    assert {v.passed for v in row.verdicts["out"][ROUNDED]} == {None}


def test_the_study_states_its_numerics():
    with sim.device(numerics={"cube_block_k": 1}):
        study = precision_study("matmul", sizes=SIZES, dtypes="float32", modes="KEEP_DTYPE", time=False)
    assert study.numerics["cube_block_k"] == "1 (chosen)"
    assert "(assumed)" in study.numerics["fp32_subnormals"]
    usual = precision_study("matmul", sizes=SIZES, dtypes="float32", modes="KEEP_DTYPE", time=False)
    assert study.rows[0].bits("out") < usual.rows[0].bits("out") - 0.3


def test_a_reference_device_adds_the_dual_benchmark_rule():
    generator = np.random.default_rng(2)
    inputs = {n: generator.standard_normal((32, 32)).astype(np.float32) for n in "ab"}
    exact = inputs["a"].astype(np.float64) @ inputs["b"]
    good, bad = exact.astype(np.float32), (exact + 0.5).astype(np.float32)
    ask = {"inputs": inputs, "modes": "USE_HF32", "dtypes": "float32", "time": False}
    for reference, expected in ((good, False), (bad, True)):
        row = precision_study("matmul", **ask, reference={"out": reference}).rows[0]
        assert passed(row, "out", EXACT, "dual-benchmark L0") is expected
    with pytest.raises(
        sim.UsageError, match=r"the reference 'out' has shape \(2, 2\), the output has \(32, 32\)"
    ):
        precision_study("matmul", **ask, reference={"out": good[:2, :2]})
    with pytest.raises(sim.UsageError, match="matmul has no output 'c' to compare with"):
        precision_study("matmul", **ask, reference={"c": good})


def test_cancel_is_a_note_where_sums_do_not_cancel():
    ask = {"values": ["normal", "cancel"], "modes": "KEEP_DTYPE", "dtypes": "float16", "time": False}
    notes = precision_sweep("convolution", "distribution", "tiny", **ask)[0].notes
    assert any(n.startswith("at cancel: the distribution cancel") for n in notes)
    assert precision_sweep("matmul", "distribution", SIZES, **ask)[0].notes == ()


def test_a_point_given_twice_is_computed_once():
    assert len(precision_sweep("matmul", "k", SIZES, values=[32, 32], dtypes="float16", time=False)) == 1

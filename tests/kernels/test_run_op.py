"""`run_op`: what it takes, what it gives, what it refuses."""

from __future__ import annotations

import re
import tracemalloc
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import bce_with_logits_backward, get_operator, operators, rms_norm_grad, run_op
from ascendtile.simulator.precision.cube_math import MODES
from ascendtile.simulator.products import load_product

ALL = list(operators().values())
RMS = get_operator("rms_norm_grad")


@pytest.fixture
def tiny():
    return RMS.inputs("tiny", "float32")


# -- what it gives ---------------------------------------------------------------------------------------------------


def test_the_record_says_what_was_run():
    result = run_op("rms_norm_grad", "tiny", "float16", "ascend910b1", cube_math_type="USE_HF32")
    run = result.run
    assert (run.name, run.op, run.case, run.dtype) == ("rms_norm_grad", "rms_norm_grad", "tiny", "float16")
    assert (run.product["name"], run.cube_math_type) == ("ascend910b1", "USE_HF32")
    assert run.inputs == {
        "dy": "float16 [8, 64]",
        "x": "float16 [8, 64]",
        "rstd": "float32 [8]",
        "gamma": "float16 [64]",
    }
    assert [x.kernel for x in result.launches] == ["zero_fill", "kept_row"]
    assert result.launches is run.launches
    assert result.time_us == sum(x.time_us for x in run.launches)
    assert result.cycles == run.cycles > 0
    assert run.values_seconds > 0
    assert run.time_seconds > 0
    assert {n: e.fmt for n, e in result.errors.items()} == {"dx": "fp16", "dgamma": "fp32"}
    assert result.errors["dx"].max_ulp < 0.6


def test_options_are_in_the_record():
    run = run_op("bce_with_logits_backward", "tiny", values=False, options={"reduction": "sum"}).run
    assert run.options["reduction"] == "sum"
    assert run_op("bce_with_logits_backward", "tiny", values=False).run.options["reduction"] == "mean"


def test_a_precision_mode_of_the_cube_is_answered_with_a_note():
    result = run_op(RMS, "tiny", cube_math_type="USE_HF32", values=False)
    assert result.notes == (
        "cube_math_type USE_HF32 has no effect: rms_norm_grad does not use the Cube with this tiling (combine=cube does)",
    )
    assert result.notes[0] in result.run.notes
    assert run_op(RMS, "tiny", values=False).notes == ()


def test_what_the_inputs_were_made_from_is_in_the_record():
    options = run_op(RMS, "tiny", seed=5, distribution="heavy", time=False).run.options
    assert (options["seed"], options["distribution"]) == (5, "heavy")
    with pytest.raises(sim.UsageError, match="seed must be an integer from 0, got -1"):
        run_op(RMS, "tiny", seed=-1, values=False)


def test_values_only_and_time_only():
    values = run_op(RMS, "tiny", time=False)
    assert values.launches == ()
    assert set(values.outputs) == set(values.errors) == {"dx", "dgamma"}
    time = run_op(RMS, "tiny", values=False)
    assert time.outputs == time.errors == {}
    assert time.time_us == run_op(RMS, "tiny").time_us
    assert run_op(RMS, "tiny", time=False, errors=False).errors == {}
    with pytest.raises(sim.UsageError, match="nothing to do, values and time are both off"):
        run_op(RMS, "tiny", values=False, time=False)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("op", ALL, ids=lambda op: op.name)
def test_time_only_needs_no_memory(op):
    """16 million elements, 32 MB for each of the large tensors; and 2**40, more than the kernels' offsets reach."""
    large = {
        "rms_norm_grad": ({"rows": 1 << 11, "cols": 1 << 13}, {"rows": 1 << 20, "cols": 1 << 20}),
        "batch_norm_reduce_backward": ({"n": 16, "c": 64, "space": (128, 128)}, {"n": 1 << 20, "c": 1 << 20}),
        "group_norm_backward": (
            {"n": 16, "c": 64, "space": (128, 128), "group": 8},
            {"n": 1 << 20, "c": 1 << 10, "space": 1 << 10, "group": 8},
        ),
        "quant_matmul": ({"m": 1 << 12, "n": 1 << 12, "k": 1 << 12}, {"m": 1 << 20, "n": 64, "k": 1 << 20}),
        "grouped_matmul": (
            {"m": 1 << 12, "n": 1 << 10, "k": 1 << 12, "experts": 4},
            {"m": 1 << 20, "n": 64, "k": 1 << 20, "experts": 4},
        ),
        "convolution_backward": (
            {"input": (16, 64, 128, 128), "weight": (64, 64, 3, 3), "grad_output": (16, 64, 126, 126)},
            {
                "input": (1 << 20, 1, 1, 1),
                "weight": (1 << 20, 1, 1, 1),
                "grad_output": (1 << 20, 1 << 20, 1, 1),
            },
        ),
        "convolution": (
            {"input": (16, 64, 128, 128), "weight": (64, 64, 3, 3), "bias": (64,)},
            {"input": (1 << 20, 1 << 20, 1, 1), "weight": (1, 1 << 20, 1, 1), "bias": (1,)},
        ),
        "batch_norm_statistics": ({"n": 16, "c": 64, "space": (128, 128)}, {"n": 1 << 20, "c": 1 << 20}),
        "group_norm": ({"n": 16, "c": 64, "space": (128, 128)}, {"n": 1 << 20, "c": 1 << 20}),
        "layer_norm": ({"rows": 1 << 11, "cols": 1 << 13}, {"rows": 1 << 20, "cols": 1 << 20}),
        "rms_norm": ({"rows": 1 << 11, "cols": 1 << 13}, {"rows": 1 << 20, "cols": 1 << 20}),
        **dict.fromkeys(
            ("flash_attention", "flash_attention_grad"),
            ({"b": 64, "n": 32, "s": 64, "d": 128}, {"b": 1 << 10, "n": 1 << 10, "s": 1 << 13, "d": 128}),
        ),
        "matmul": ({"m": 1 << 11, "n": 16, "k": 1 << 13}, {"m": 1 << 20, "n": 16, "k": 1 << 20}),
    }
    sizes, larger = large.get(op.name, ({"shape": 1 << 24}, {"shape": 1 << 40}))
    tracemalloc.start()
    run_op(op, sizes, "float16", values=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 24e6
    with pytest.raises(
        sim.UsageError, match="has 1099511627776 elements; the kernels reach at most 2147483647"
    ):
        run_op(op, larger, values=False)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("op", ALL, ids=lambda op: op.name)
def test_same_input_same_bits_same_cycles(op):
    a, b = (run_op(op, "tiny", "bfloat16") for _ in range(2))
    assert all(a.outputs[n].tobytes() == b.outputs[n].tobytes() for n in a.outputs)
    assert (a.cycles, a.time_us) == (b.cycles, b.time_us)


def test_progress_counts_programs_over_all_launches():
    seen = []
    run_op(RMS, "tiny", time=False, errors=False, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (9, 9)  # one program fills dgamma with zero, eight compute
    assert [s[0] for s in seen] == sorted(s[0] for s in seen)


def test_the_current_device_is_used_and_may_be_overridden():
    with sim.device("ascend910b1"):
        assert run_op(RMS, "tiny", values=False).run.product["name"] == "ascend910b1"
        assert run_op(RMS, "tiny", values=False, product="ascend910b4").run.product["name"] == "ascend910b4"
    with sim.device(l2="cold"):
        slow = run_op(RMS, "llama3-8b", values=False, overrides={"memory.bandwidth_tb_per_s": 0.2})
        assert slow.time_us > 2 * run_op(RMS, "llama3-8b", values=False).time_us


def test_the_first_type_that_the_product_has():
    assert run_op(RMS, "tiny", values=False).run.dtype == "float16"


# -- inputs of the user ----------------------------------------------------------------------------------------------


def test_inputs_instead_of_a_case(tiny):
    result = run_op(RMS, inputs=tiny)
    assert (result.run.case, result.run.dtype) == (None, "float32")
    ours = run_op(RMS, "tiny", "float32")
    np.testing.assert_array_equal(result.outputs["dx"], ours.outputs["dx"])


def test_inputs_from_an_npz_file(tiny, tmp_path):
    np.savez(tmp_path / "in.npz", **tiny)
    with np.load(tmp_path / "in.npz") as file:
        result = run_op(RMS, inputs=dict(file), time=False)
    assert result.errors["dx"].max_abs < 1e-5


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_inputs_are_converted_if_a_type_is_given(tiny, dtype):
    result = run_op(RMS, inputs={n: np.float64(a) for n, a in tiny.items()}, dtype=dtype, time=False)
    types = {n: text.split()[0] for n, text in result.run.inputs.items()}
    assert types == {"dy": dtype, "x": dtype, "rstd": "float32", "gamma": dtype}
    assert str(result.outputs["dx"].dtype) == dtype


def test_other_byte_orders_are_read(tiny):
    result = run_op(RMS, inputs={n: a.astype(">f4") for n, a in tiny.items()}, time=False)
    np.testing.assert_array_equal(result.outputs["dx"], run_op(RMS, inputs=tiny, time=False).outputs["dx"])


def test_inputs_are_left_as_they_are(tiny):
    before = {n: a.copy() for n, a in tiny.items()}
    for a in tiny.values():
        a.flags.writeable = False
    run_op(RMS, inputs=tiny)
    assert all(np.array_equal(a, before[n]) for n, a in tiny.items())


def test_optional_inputs_may_be_none():
    x = np.zeros(4, np.float32)
    inputs = {"grad_output": 2.0, "x": x, "target": x, "weight": None}
    result = run_op("bce_with_logits_backward", inputs=inputs, options={"reduction": "sum"})
    np.testing.assert_array_equal(result.outputs["out"], np.ones(4))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"rtsd": "rstd"}, "rms_norm_grad has no input 'rtsd'; did you mean rstd?"),
        ({"x": None}, "rms_norm_grad: input x missing; it takes dy, x, rstd and gamma"),
    ],
)
def test_missing_and_unknown_inputs_are_named(tiny, change, text):
    (new, old), *_ = change.items()
    if old is None:
        del tiny[new]
    else:
        tiny[new] = tiny[old]
    with pytest.raises(sim.UsageError) as error:
        run_op(RMS, inputs=tiny)
    assert text in str(error.value)


@pytest.mark.parametrize(
    ("x", "text"),
    [
        ([[1.0]], "'x' is a list; give a numpy array or a torch CPU tensor"),
        (
            np.zeros((8, 64)),
            "'x' holds float64; it must hold float16, bfloat16 or float32; cast the array first",
        ),
        (np.zeros((8, 64), int), "'x' holds int64; it must hold"),
        (np.zeros((8, 64), complex), "'x' holds complex128; it must hold"),
        (np.full((8, 64), "a"), "'x' holds <U1; it must hold"),
        (np.full((8, 64), None), "'x' holds object; it must hold"),
    ],
)
def test_inputs_that_are_no_tensors(tiny, x, text):
    with pytest.raises(sim.UsageError) as error:
        run_op(RMS, inputs={**tiny, "x": x})
    assert text in str(error.value)


def test_a_case_and_inputs_exclude_each_other(tiny):
    with pytest.raises(sim.UsageError, match="rms_norm_grad: give a case or inputs, not both"):
        run_op(RMS, "tiny", inputs=tiny)


def test_shapes_give_time_but_no_values():
    shapes = RMS.shapes("tiny", "float16")
    assert (
        run_op(RMS, inputs=shapes, values=False).time_us
        == run_op(RMS, "tiny", "float16", values=False).time_us
    )
    with pytest.raises(
        sim.UsageError, match="'dy' is a shape without data; give arrays, or ask for time only"
    ):
        run_op(RMS, inputs=shapes)


# -- strided inputs --------------------------------------------------------------------------------------------------

VIEWS = {
    "every second column": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "window": lambda a: np.pad(a, [(1, 2)] * a.ndim)[tuple(slice(1, n + 1) for n in a.shape)],
    "reversed": lambda a: np.ascontiguousarray(a[::-1, ..., ::-1])[::-1, ..., ::-1],
    "fortran": np.asfortranarray,
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_strided_inputs_are_copied_by_a_launch(view, dtype):
    inputs = RMS.inputs({"rows": (3, 5), "cols": (2, 17)}, dtype)
    strided = {**inputs, "x": VIEWS[view](inputs["x"]), "dy": VIEWS[view](inputs["dy"])}
    assert not strided["x"].flags.c_contiguous
    result = run_op(RMS, inputs=strided)
    expected = run_op(RMS, inputs=inputs)
    kernels = [x.kernel for x in expected.launches]
    names = {"copy_strided", "copy_apart"}
    assert not names & set(kernels)
    copies, rest = result.launches[:2], result.launches[2:]
    assert names >= {x.kernel for x in copies}
    assert [x.kernel for x in rest] == kernels
    copied = tuple(f"{n} is strided: a launch of its own makes it contiguous first" for n in ("dy", "x"))
    beyond = "rms_norm_grad: dy and x with strides: its document does not have it, newer ones do"
    assert result.notes == (*copied, beyond)
    assert all(result.outputs[n].tobytes() == expected.outputs[n].tobytes() for n in expected.outputs)
    assert result.errors == expected.errors


def test_a_broadcast_view_is_an_input_like_any_other():
    x = np.float32(np.random.default_rng(0).normal(size=(4, 6)))
    view = np.broadcast_to(np.float32([1, 2, 3, 4, 5, 6]), (4, 6))
    a, b = (
        bce_with_logits_backward(np.float32(1), x, abs(x), w, reduction="sum") for w in (view, view.copy())
    )
    np.testing.assert_array_equal(a.outputs["out"], b.outputs["out"])
    assert len(a.launches) == 2


def test_large_transposes_are_copied_in_tiles():
    x = np.float32(np.random.default_rng(0).normal(size=(300, 200))).T
    result = bce_with_logits_backward(np.float32(1), x, np.zeros(x.shape, np.float32), reduction="sum")
    np.testing.assert_allclose(result.outputs["out"], 1 / (1 + np.exp(-np.float64(x))), rtol=1e-6)


@pytest.mark.extra("torch")
def test_torch_tensors_of_any_strides():
    import torch

    inputs = RMS.inputs("tiny", "bfloat16")
    tensors = {n: torch.tensor(np.float32(a)) for n, a in inputs.items()}
    tensors = {n: t if n == "rstd" else t.to(torch.bfloat16) for n, t in tensors.items()}
    tensors["x"] = tensors["x"].T.contiguous().T.requires_grad_()
    result = rms_norm_grad(*(tensors[n] for n in ("dy", "x", "rstd", "gamma")))
    assert result.outputs["dx"].dtype == ml_dtypes.bfloat16
    assert result.outputs["dx"].tobytes() == run_op(RMS, inputs=inputs).outputs["dx"].tobytes()


def test_an_overflow_says_which_knob_to_iteration_and_the_advice_holds():
    with pytest.raises(sim.RunError, match="ub overflow") as e:
        run_op("rms_norm_grad", "llama3-8b", tiling={"strategy": "full_row", "rows": 4}, values=False)
    knobs = dict(re.findall(r"(\w+)=(\d+) \(now", str(e.value).splitlines()[-1]))
    assert "rows" in knobs
    for name, value in knobs.items():
        tiling = {"strategy": "full_row", "rows": 4, name: int(value)}
        assert run_op("rms_norm_grad", "llama3-8b", tiling=tiling, values=False).tiling[name] == int(value)


@pytest.mark.exhaustive
def test_values_alone_refuse_a_tiling_that_does_not_fit():
    with pytest.raises(sim.RunError, match="ub overflow"):
        run_op("rms_norm_grad", "llama3-8b", tiling={"strategy": "full_row", "rows": 4}, time=False)


def test_a_knob_that_is_used_otherwise_than_asked_is_named():
    result = run_op("rms_norm_grad", "tiny", tiling={"rows": 7}, values=False)
    assert any("rows=7 was asked for, rows=1 is used" in w for w in result.run.warnings)


def test_a_run_without_time_keeps_its_warnings():
    result = run_op("rms_norm_grad", "tiny", tiling={"rows": 7}, time=False)
    assert result.run.launches == ()
    assert any("rows=7 was asked for" in w for w in result.warnings)
    assert result.run.warnings == result.warnings


def test_a_size_of_zero_is_refused():
    with pytest.raises(sim.UsageError, match="size 'rows' is 0: a case needs at least one element"):
        run_op("rms_norm", {"rows": 0, "cols": 5})


EMPTY = [
    ("bce_with_logits_backward", {"shape": (0, 80)}, {}),
    ("group_norm_backward", {"n": 0, "c": 4, "group": 2, "space": (3, 3)}, {}),
    ("group_norm_backward", {"n": 2, "c": 4, "group": 2, "space": 0}, {}),
    ("group_norm_backward", {"n": 2, "c": 0, "group": 2}, {}),
    ("batch_norm_reduce_backward", {"n": 0, "c": 5}, {}),
    ("convolution_backward", {"input": (0, 8, 5, 5), "weight": (4, 8, 3, 3), "grad_output": (0, 4, 3, 3)},
     {"bias_sizes": 4}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "sizes", "options"), EMPTY, ids=range(len(EMPTY)))
def test_sizes_of_operators_whose_pages_have_empty_tensors_may_be_0(name, sizes, options):
    """Sums over nothing are zero; where nothing is to be written no kernel runs."""
    result = run_op(name, sizes, options=options)
    for found in result.outputs.values():
        assert not np.asarray(found, np.float64).any()
    assert (result.time_us > 0) == bool(result.launches)


@pytest.mark.parametrize(
    ("name", "sizes", "words"),
    [
        ("rms_norm_grad", {"rows": 0, "cols": 16}, "the operator refuses empty tensors"),
        ("batch_norm_reduce_backward", {"n": 2, "c": 0}, "axis 1, the channels, is 0"),
        ("convolution_backward", {"input": (2, 8, 5, 5), "weight": (4, 8, 0, 3), "grad_output": (2, 4, 3, 3)}, "of empty"),
        ("matmul", {"m": 0, "n": 2, "k": 2}, "a case needs at least one element"),
    ],
)  # fmt: skip
def test_empty_sizes_that_are_refused(name, sizes, words):
    with pytest.raises(sim.UsageError, match=words):
        run_op(name, sizes)


@pytest.mark.parametrize("given", [3, "rows=1", [("rows", 1)], np.zeros((8, 64), np.float32)])
@pytest.mark.parametrize("name", ["tiling", "options", "out", "inputs"])
def test_what_goes_by_name_must_be_a_mapping(name, given):
    with pytest.raises(
        sim.UsageError, match=rf"^rms_norm_grad: {name} must be a mapping of \w+ to \w+, got "
    ):
        run_op("rms_norm_grad", values=False, **{name: given})


def test_why_a_knob_is_not_used_as_asked():
    def words(tiling):
        return " ".join(run_op("rms_norm_grad", "tiny", tiling=tiling, values=False).warnings)

    assert words({"rows": 7}).endswith("rows=1 is used: rms_norm_grad takes no more here, or rounds it down")
    assert words({"strategy": "auto"}).endswith("strategy=full_row is used: rms_norm_grad chose it")
    rounded = words({"strategy": "split_row", "cols": 33})
    assert rounded.endswith("cols=64 is used: rms_norm_grad takes no less here, or rounds it up")


def test_a_knob_that_only_other_strategies_have_is_told():
    def plan(*given):
        found = RMS.plan(*given)
        return replace(found, tiling={**found.tiling, "groups": None})

    found = run_op(replace(RMS, plan=plan), "tiny", tiling={"groups": 2}, values=False)
    words = "tiling groups=2 was asked for and is not used: rms_norm_grad needs no such knob with this tiling"
    assert found.warnings == (words,)


def test_an_option_of_none_is_refused_with_the_values_that_it_may_have():
    with pytest.raises(sim.UsageError, match="'reduction' must be one of none, mean or sum, got None"):
        run_op("bce_with_logits_backward", "tiny", options={"reduction": None}, values=False)


def test_outputs_are_left_as_they_are_without_values(tiny):
    dx = np.full((8, 64), 7, np.float32)
    found = run_op(RMS, inputs=tiny, out={"dx": dx}, values=False)
    assert "out dx is left as it is: values are off" in found.notes
    assert (dx == 7).all()
    assert not any("left as it is" in n for n in run_op(RMS, inputs=tiny, out={"dx": dx}).notes)


@pytest.mark.parametrize("name", ["weight", "x"])
def test_nan_in_an_input_without_influence_is_no_warning(name):
    op = get_operator("batch_norm_reduce_backward")
    inputs = {
        **op.inputs("tiny", "float32"),
        "weight": np.ones(op.shapes("tiny", "float32")["mean"].shape, np.float32),
    }
    inputs[name].flat[0] = np.nan
    found = run_op(op, inputs=inputs, product="ascend910a", errors=False, time=False)
    assert any("with infinities or NaN" in w for w in found.warnings) == (name == "x")


@pytest.mark.drawn(3)
@pytest.mark.parametrize("op", [op.name for op in ALL if op.resolve])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_mode_that_changes_nothing_is_said(op, dtype):
    """One that changes what the Cube multiplies is no such note."""
    tensors, product = get_operator(op).shapes("tiny", dtype), load_product("ascend910b3")
    operands = [get_operator(op).resolve(tensors, product, m).operand for m in list(MODES)[:4]]
    for mode, operand in enumerate(operands):
        found = run_op(op, "tiny", dtype, cube_math_type=mode, values=False)
        told = [w for w in (*found.notes, *found.warnings) if "has no effect" in w or "mode ignored" in w]
        assert len(told) == (mode > 0 and operand == operands[0])

"""Laws of runs of a chain: values are those of its operators one after another, time is the sum of theirs, errors are
against float64 of the numbers before any rounding; and what cannot run is refused."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import bce_with_logits, matmul, rms_norm
from ascendtile.kernels.chains import Chain, ChainInput, ChainStep, get_chain, run_chain
from ascendtile.kernels.chains.bench import ChainBench
from ascendtile.kernels.chains.glue import GLUE
from ascendtile.kernels.examples import train_tiny
from ascendtile.kernels.running.run_op import run_op
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.precision.block_formats import get_block_format
from ascendtile.simulator.precision.metrics import compare
from ascendtile.simulator.precision.rounding import encode, round_to

from .small import PARTS, ROUND_TRIP, small

PRODUCT = "ascend910b3"


@pytest.mark.parametrize(
    ("short", "dtype"), [("fp32", np.float32), ("fp16", np.float16), ("bf16", ml_dtypes.bfloat16)]
)
def test_a_chain_is_its_operators_one_after_another(short, dtype):
    run = run_chain(small(), formats={"all": short}, product=PRODUCT, blame=False)
    with sim.device(PRODUCT):
        x, gamma, w, target = (encode(a, short) for a in ChainBench(small()).exact.values())
        first = rms_norm(x, gamma)
        second = matmul(first.outputs["y"], w)
        third = bce_with_logits(second.outputs["out"], target)
    assert run.values["loss"].dtype == dtype
    for n, by_hand in (("logits", second), ("loss", third)):
        assert run.values[n].tobytes() == by_hand.outputs["out"].tobytes()
    assert [s.time_us for s in run.steps] == [r.time_us for r in (first, second, third)]
    assert run.time_us == sum(r.time_us for r in (first, second, third))


def test_errors_are_against_float64_of_the_numbers_before_any_rounding():
    run = run_chain(small(), formats={"all": "fp16"}, product=PRODUCT, blame=False)
    with sim.device(PRODUCT):
        exact = ChainBench(small()).exact
    x, gamma, w = (exact[n].astype(np.float64) for n in ("x", "gamma", "w"))
    y = x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + 1e-6) * gamma
    assert run.tensors["logits"].error == compare(run.values["logits"], run.exact["logits"], "fp16")
    np.testing.assert_allclose(run.exact["logits"], y @ w, rtol=1e-12)


def test_a_narrower_format_in_between_costs_casts_that_are_counted():
    plain, narrow = (
        run_chain(small(), formats=f, product=PRODUCT, values=False) for f in ({}, {"y": "fp16"})
    )
    norm, head = narrow.steps[:2]
    assert [(c.cast.source, c.cast.target, c.cast.reads) for c in norm.casts] == [
        ("float32", "float16", False)
    ]
    assert [(c.cast.source, c.cast.target, c.cast.reads) for c in head.casts] == [
        ("float16", "float32", True)
    ]
    casts = [c.time_us for s in narrow.steps for c in s.casts]
    assert min(casts) > 0
    assert narrow.time_us == pytest.approx(plain.time_us + sum(casts))


def test_half_the_bytes_take_half_the_traffic_where_the_operator_has_the_type():
    sizes = {"rows": 16384, "cols": 4096}  # more than L2 holds
    chain = Chain(
        "double", "a sum with itself", sizes, (ChainInput("x", ("rows", "cols")),),
        (ChainStep("twice", "scaled_add", {"a": "x", "b": "x"}, {"out": "y"}),), ("y",),
    )  # fmt: skip
    wide, half = (
        run_chain(chain, formats={"all": f}, product=PRODUCT, values=False) for f in ("fp32", "fp16")
    )
    assert not half.steps[0].casts
    assert half.time_us == pytest.approx(wide.time_us / 2, rel=0.02)


def test_a_format_that_memory_does_not_have_is_a_what_if_and_says_so():
    run = run_chain(small(), formats={"y": "tf32"}, product=PRODUCT, blame=False)
    assert np.array_equal(run.values["y"], round_to(run.values["y"], "tf32"))
    plain = run_chain(small(), product=PRODUCT, blame=False)
    assert np.array_equal(run.values["y"], round_to(plain.values["y"], "tf32"))
    assert run.notes[0].startswith("what-if: ascend910b3 does not store tf32 (y)")
    assert [len(s.casts) for s in run.steps] == [1, 1, 0]
    assert all(c.cast.what_if and c.time_us > 0 for s in run.steps for c in s.casts)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("fmt", ["e4m3", "hif8", "e2m1", "e3m3:nan=one,infinities=no"])
def test_casts_to_other_formats_round_as_encode_does_and_state_their_rate(fmt):
    run, plain = (run_chain(small(), formats=f, product=PRODUCT, blame=False) for f in ({"y": fmt}, {}))
    assert run.values["y"].tobytes() == encode(plain.values["y"], fmt).tobytes()
    assert any("casts take the time of those between fp16 and int8" in note for note in run.notes)


def test_a_product_of_operands_in_one_other_format_reads_them_as_they_are():
    formats = {"y": "e4m3", "w": "e4m3"}
    run = run_chain(small(), formats=formats, product=PRODUCT, blame=False)
    head = run.steps[1]
    assert head.dtype == "e4m3"
    assert not any(c.cast.reads for c in head.casts)
    mixed = run_chain(small(), formats={"y": "e4m3", "w": "hif8"}, product=PRODUCT, blame=False).steps[1]
    assert sum(c.cast.reads for c in mixed.casts) == 2
    assert mixed.dtype == "float32"  # so that logits are not rounded to what a product in float16 writes


@pytest.mark.drawn(2)
@pytest.mark.parametrize("fmt", ["mxfp8", "nvfp4", "int4/fp16/16", "mxfp6@0"])
def test_blocks_are_those_of_the_format_and_have_casts_of_elements_and_scales(fmt):
    run, plain = (run_chain(small(), formats=f, product=PRODUCT, blame=False) for f in ({"y": fmt}, {}))
    name, _, axis = fmt.partition("@")
    blocks = get_block_format(name).quantise(plain.values["y"], int(axis or -1))
    assert np.array_equal(run.values["y"], blocks.values())
    for step in run.steps[:2]:
        assert [c.cast.shape for c in step.casts] == [blocks.codes.shape, blocks.scales.shape]
        assert all(c.time_us > 0 for c in step.casts)


def test_what_the_elements_of_blocks_lose_is_counted():
    numbers = np.full((6, 40), 3.0, np.float32)
    numbers[0, 0], numbers[1] = 7.9, 1e-3
    numbers[1, ::8] = 6.0
    lost = (
        run_chain(ROUND_TRIP, formats={"x": "mxfp4"}, product=PRODUCT, inputs={"x": numbers})
        .tensors["x"]
        .lost
    )
    assert lost == {"overflow": 1 / 240, "underflow": 35 / 240, "subnormal": 0.0}


def test_shares_of_what_a_format_loses_are_counted():
    numbers = np.zeros((6, 40), np.float32)
    numbers[0], numbers[1], numbers[2] = 1e6, 1e-9, 1e-6  # too large for FP16, zero there, subnormal there
    run = run_chain(ROUND_TRIP, formats={"x": "fp16"}, product=PRODUCT, inputs={"x": numbers})
    sixth = pytest.approx(1 / 6)
    assert run.tensors["x"].lost == {"overflow": sixth, "underflow": sixth, "subnormal": sixth}


def test_views_and_moved_axes_bring_every_element_home():
    run = run_chain(ROUND_TRIP, product=PRODUCT)
    assert np.array_equal(run.values["y"], 2 * run.values["x"])


def test_the_training_step_is_that_of_the_example():
    chain = get_chain("train_step")
    with sim.device(PRODUCT):
        bench = ChainBench(chain, {"batch": 32})
    x, labels, *weights = (bench.exact[n].astype(np.float64) for n in ("x", "labels", "w1", "w2", "w3"))
    classes = labels.argmax(axis=1)
    inputs, odds = train_tiny.forward(x, weights)
    gradients = train_tiny.backward(inputs, odds, classes, weights)
    loss = -np.log(odds[np.arange(32), classes]).mean()
    assert bench.reference["loss"] == pytest.approx(loss, rel=1e-12)
    for k, (w, entering, gradient) in enumerate(zip(weights, inputs, gradients, strict=True), 1):
        right = w - float(train_tiny.RATE) * (entering.T @ gradient)
        np.testing.assert_allclose(bench.reference[f"new_w{k}"], right, rtol=1e-6, atol=1e-9)


def test_a_need_is_one_of_every_output():
    some = {"all": "bf16"}
    assert run_chain(small(), formats=some, product=PRODUCT, need={"bits": 5}, blame=False).passed
    failed = run_chain(small(), formats=some, product=PRODUCT, need={"bits": 9}, blame=False)
    assert not failed.passed
    assert failed.factor == max(k.factor for k in failed.kept.values()) > 1


def test_an_operator_of_the_users_own_is_a_step_as_any_other():
    steps = (*PARTS["steps"][:2], ChainStep("clip", GLUE["relu"], {"x": "logits"}, {"out": "clipped"}))
    chain = small(inputs=PARTS["inputs"][:3], steps=steps, outputs=("clipped",))
    run = run_chain(chain, product=PRODUCT)
    alone = run_op(GLUE["relu"], inputs={"x": run.values["logits"]}, product=PRODUCT)
    assert np.array_equal(run.values["clipped"], alone.outputs["out"])


def test_the_json_of_a_run_is_plain_data_without_nan():
    run = run_chain(small(), {"rows": 1}, {"all": "fp16"}, product=PRODUCT, need={"rtol": 1e-2, "atol": 1e-3})
    data = json.loads(json.dumps(run.to_dict(), allow_nan=False))
    assert data["chosen"] == {"all": "fp16"}
    assert [t["name"] for t in data["tensors"]] == ["x", "gamma", "w", "target", "y", "logits", "loss"]
    assert data["time_us"] == run.time_us


def test_a_run_prints_its_page():
    page = str(run_chain(small(), product=PRODUCT))
    assert page.startswith("small  a norm, a product and a loss")
    assert "blame of loss" in page


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"sizes": {"row": 3}}, "no size 'row'; did you mean rows"),
        ({"sizes": {"rows": 0}}, "size 'rows' must be a whole number from 1, got 0"),
        ({"formats": {"y": "int8"}}, "a tensor is stored in a floating-point format"),
        ({"formats": {"y": "fp99"}}, "fp99"),
        ({"formats": {"y": "e8m0"}}, "a floating-point format with a zero"),
        (
            {"formats": {"y": "mxfp8@2"}, "values": False},
            "axis 2 of a tensor of shape \\(32, 64\\); it has 2 axes",
        ),
        ({"formats": {"loss": "mxfp8"}}, "axis -1 of a tensor of shape \\(\\); it has 0 axes"),
        ({"formats": {"y": "mxfp8@x"}}, "the axis of the blocks is a number"),
        ({"formats": {"y": "int4/fp16/no"}}, "elements that share a scale, or axis"),
        ({"product": "ascend910a"}, "step 'norm': rms_norm is not available on ascend910a"),
        ({"inputs": {"x": np.zeros((32, 64))}}, "needs the input 'gamma'"),
        ({"inputs": {"z": np.zeros(3)}}, "no input 'z'"),
        (
            {"inputs": {n: np.zeros(3) for n in ("x", "gamma", "w", "target")}},
            "has shape \\(3,\\), these sizes make it",
        ),
        (
            {"inputs": {n: [1] for n in ("x", "gamma", "w", "target")}},
            "give an array of floating-point numbers",
        ),
        ({"values": False, "need": {"bits": 3}}, "a need and lines are about values"),
        ({"values": False, "time": False}, "values and time are both off"),
        ({"need": {"bytes": 3}}, "a need has no 'bytes'"),
        ({"lines": ["tail"]}, "no step 'tail'"),
    ],
)
def test_what_cannot_run_is_refused_with_the_reason(how, words):
    with pytest.raises(UsageError, match=words):
        run_chain(small(), **{"product": PRODUCT, **how})


def test_shapes_that_do_not_fit_name_the_step():
    steps = (
        PARTS["steps"][0],
        ChainStep("head", "matmul", {"a": "w", "b": "y"}, {"out": "logits"}),
        PARTS["steps"][2],
    )
    with pytest.raises(UsageError, match="step 'head': matmul: a is \\(64, 48\\), b is \\(32, 64\\)"):
        run_chain(small(steps=steps), product=PRODUCT)


@pytest.mark.parametrize(
    ("formats", "words"),
    [
        ({}, "step 'make_gate': matmul: KEEP_DTYPE .* is refused on ascend910a"),
        ({"all": "bf16"}, "ascend910a does not store bf16; it stores fp16, fp32"),
    ],
)
def test_what_a_product_refuses_of_an_operator_it_refuses_of_a_chain(formats, words):
    with pytest.raises(UsageError, match=words):
        run_chain("mlp", formats=formats, product="ascend910a")

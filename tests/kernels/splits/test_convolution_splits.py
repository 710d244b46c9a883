"""Convolutions of FP32 operands in slices: bits, the equal matrix product, range, bias, strategies, bounds, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import get_operator, run_op
from ascendtile.kernels.convolution.checks import resolve_mode
from ascendtile.kernels.study.results import ROUNDED
from ascendtile.kernels.study.study import precision_study
from ascendtile.simulator.device import device as on_device
from ascendtile.simulator.errors import RefusedError
from ascendtile.simulator.precision.splits import SPLITS
from ascendtile.simulator.precision.splits.slices import scales, slices_of
from ascendtile.simulator.products import load_product

A2, TRAINING = "ascend910b3", "ascend910a"
BACKWARD, FORWARD = get_operator("convolution_backward"), get_operator("convolution")


def tensors(groups=1, transposed=False, seed=0, scale=1.0):
    g = np.random.default_rng(seed)
    weight = (8, 12 // groups, 3, 3) if transposed else (12, 8 // groups, 3, 3)
    shapes = {"grad_output": (1, 12, 5, 6), "input": (1, 8, 5, 6), "weight": weight}
    return {n: np.float32(g.standard_normal(s) * scale) for n, s in shapes.items()}


def options(groups=1, transposed=False, **more):
    return {"padding": (1, 1), "groups": groups, "transposed": str(transposed).lower(), **more}


def run(op, inputs, mode, device=A2, given=None, **more):
    return run_op(
        op,
        inputs=inputs,
        options=given or options(),
        product=device,
        cube_math_type=mode,
        errors=False,
        **more,
    )


def bits(y, golden):
    return -np.log2(np.abs(np.float64(y) - golden).mean() / np.abs(golden).mean())


LEAST = {"FP16X2": 11.5, "FP16X3": 22, "BF16X3": 17, "BF16X6": 23, "INT8X3": 17}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("mode", LEAST)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("device", [A2, TRAINING])
def test_gradients_have_the_bits_of_the_slices(device, groups, transposed, mode):
    inputs, given = tensors(groups, transposed), options(groups, transposed)
    if mode.startswith("BF16") and device == TRAINING:
        with pytest.raises(RefusedError, match=r"slices are bf16.*FP16X2, FP16X3, INT8X2"):
            run(BACKWARD, inputs, mode, device, given, time=False)
        return
    found = run(BACKWARD, inputs, mode, device, given, time=False).outputs
    golden = BACKWARD.reference(inputs, **given)
    for name in ("grad_input", "grad_weight"):
        assert found[name].dtype == np.float32
        assert LEAST[mode] < bits(found[name], golden[name]) < LEAST[mode] + 2.5
    assert bits(found["grad_bias"], golden["grad_bias"]) > 22


@pytest.mark.drawn(2)
@pytest.mark.parametrize("mode", ["FP16X3", "BF16X3"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_the_forward_has_them_too_with_its_bias_added_in_fp32(bias, transposed, mode):
    inputs = {n: x for n, x in tensors(2, transposed).items() if n != "grad_output"}
    if bias:
        inputs["bias"] = np.float32(np.arange(12) * 100)
    given = options(2, transposed)
    found = run(FORWARD, inputs, mode, given=given, time=False).outputs["y"]
    assert found.dtype == np.float32
    assert bits(found, FORWARD.reference(inputs, **given)["y"]) > LEAST[mode]


def test_large_and_small_tensors_keep_their_bits():
    for scale in (1e-25, 1e15):
        inputs = tensors()
        factors = {"grad_output": scale, "input": 1.0, "weight": 1 / scale}
        inputs = {n: np.float32(x * np.float64(factors[n])) for n, x in inputs.items()}
        golden = BACKWARD.reference(inputs, **options())
        found = run(BACKWARD, inputs, "FP16X3", time=False).outputs
        for name in ("grad_input", "grad_weight"):
            assert bits(found[name], golden[name]) > 21


@pytest.mark.exhaustive
def test_results_may_be_asked_for_one_by_one_of_any_type_and_into_arrays():
    inputs = tensors()
    every = run(BACKWARD, inputs, "FP16X3", time=False).outputs
    for k, name in enumerate(("grad_input", "grad_weight", "grad_bias")):
        mask = tuple(int(i == k) for i in range(3))
        (one,) = run(BACKWARD, inputs, "FP16X3", given=options(output_mask=mask), time=False).outputs.items()
        assert one[0] == name
        assert (one[1] == every[name]).all()
    for mode in ("FP16X3", "BF16X3"):
        into = np.zeros_like(inputs["input"])
        found = run(BACKWARD, inputs, mode, time=False, out={"grad_input": into})
        assert found.outputs["grad_input"] is into
        half = run(BACKWARD, inputs, mode, given=options(grad_weight_dtype="float16"), time=False).outputs
        assert half["grad_weight"].dtype == np.float16
        assert (into == run(BACKWARD, inputs, mode, time=False).outputs["grad_input"]).all()


def test_an_empty_batch_gives_zeros():
    empty = {n: x[:0] if n != "weight" else x for n, x in tensors().items()}
    found = run(BACKWARD, empty, "FP16X3", given=options(bias_sizes=(12,)), time=False).outputs
    assert (found["grad_weight"] == 0).all()


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    "tiling", [{"taps": "reload"}, {"strategy": "vendor"}, {"image_layout": "NHWC"}, {"launches": "apart"}]
)
def test_every_strategy_takes_slices(tiling):
    inputs = tensors()
    found = run(BACKWARD, inputs, "FP16X3", time=False, tiling=tiling).outputs
    golden = BACKWARD.reference(inputs, **options())
    assert all(bits(found[n], golden[n]) > 22 for n in ("grad_input", "grad_weight"))


def test_time_has_what_cuts_and_combines_and_as_many_products():
    case = BACKWARD.case({n: x.shape for n, x in tensors().items()})
    inputs, given = BACKWARD.shapes(case, "float32"), options()
    plain, split = (run(BACKWARD, inputs, mode, given=given, values=False) for mode in ("USE_FP16", "FP16X3"))
    assert split.time_us > 1.5 * plain.time_us
    kernels = [x.kernel for x in split.launches]
    assert kernels.count("largest") == 3
    assert kernels.count("cut_slices") == 4
    assert kernels.count("combine") == 2


def test_studies_have_both_references():
    found = precision_study(
        BACKWARD,
        inputs=tensors(),
        options=options(),
        dtypes="float32",
        modes="FP16X2,FP16X3,BF16X3",
        time=False,
    )
    rows = {r.cube_math_type: r for r in found.rows}
    for name in ("grad_input", "grad_weight"):
        assert rows["FP16X2"].bits(name, ROUNDED) > 21 > 13 > rows["FP16X2"].bits(name)
        assert rows["FP16X3"].bits(name) > 22


# -- INT8: sums of digits in INT32 --------------------------------------------------------------------------------------


def exact(op, inputs, split, given, names):
    """Results by name: exact sums of digits, one for each power of two, put together in FP32 as `combine` does."""
    digits = {
        n: slices_of(inputs[n], split, split.counts[k], None) for k, pair in enumerate(names) for n in pair
    }
    found = {}
    for result, (first, second) in OPERANDS[op.name].items():
        power = scales(inputs[first], split, None), scales(inputs[second], split, None)
        low, high = sorted(np.float32(1) / p.item() for p in power)
        total = None
        for products in split.groups:
            pairs = [{**inputs, first: digits[first][i], second: digits[second][j]} for i, j in products]
            sums = np.float32(sum(op.reference(x, **given)[result] for x in pairs))
            total = sums if total is None else total * np.float32(2.0**-7) + sums
        found[result] = total * low * high
    return found


OPERANDS = {
    "convolution": {"y": ("input", "weight")},
    "convolution_backward": {
        "grad_input": ("grad_output", "weight"),
        "grad_weight": ("grad_output", "input"),
    },
}
PLACES = {
    "convolution": (("input",), ("weight",)),
    "convolution_backward": (("grad_output",), ("weight", "input")),
}
TILINGS = (
    {},
    {"taps": "reload"},
    {"strategy": "vendor"},
    {"image_layout": "NHWC", "filter_layout": "ND"},
    {"launches": "apart", "weight_parts": 2},
    {"combine": "two_phase", "weight_parts": 2, "block_k": 16, "weight_m": 16, "weight_n": 16},
    {"accumulate": "blas"},
)


def equals_the_exact_sums(op, mode, device, groups=1, transposed=False, tiling=None, **more):
    inputs = {n: x for n, x in tensors(groups, transposed, scale=3e4).items() if n in op.required}
    given = options(groups, transposed, **more)
    found = run(op, inputs, mode, device, given, time=False, tiling=tiling).outputs
    for name, wanted in exact(op, inputs, SPLITS[mode], given, PLACES[op.name]).items():
        assert (found[name] == wanted).all(), (name, tiling)


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("groups", "transposed", "device"), [(1, False, A2), (2, True, TRAINING)])
def test_int8_results_are_those_of_exact_sums_of_digits(groups, transposed, device):
    for op in (BACKWARD, FORWARD):
        equals_the_exact_sums(op, "INT8X2", device, groups, transposed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("device", [A2, TRAINING])
@pytest.mark.parametrize("mode", ["INT8X2", "INT8X3", "INT8X4"])
@pytest.mark.parametrize("tiling", TILINGS, ids=str)
def test_they_are_so_with_every_strategy(tiling, mode, device):
    for groups, transposed in ((1, False), (2, True)):
        equals_the_exact_sums(BACKWARD, mode, device, groups, transposed, tiling)
    image = {n: x for n, x in tiling.items() if not n.startswith(("weight", "combine"))}
    equals_the_exact_sums(FORWARD, mode, device, 2, False, image)


@pytest.mark.exhaustive
def test_int8_sums_that_int32_may_not_hold_are_refused():
    """A gradient of the weight sums over all samples and positions; without it the same call is taken."""
    shapes = {"grad_output": (16, 1, 128, 128), "input": (16, 1, 128, 128), "weight": (1, 1, 3, 3)}
    inputs = {n: sim.shape(s, "float32") for n, s in shapes.items()}
    told = r"sums of 786432 products of INT8 slices, and INT32 holds 524287.*FP16X3"
    with pytest.raises(RefusedError, match=told):
        run(BACKWARD, inputs, "INT8X3", values=False)
    run(BACKWARD, inputs, "INT8X3", given=options(output_mask=(1, 0, 1)), values=False)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("device", [A2, TRAINING])
@pytest.mark.parametrize("op", [FORWARD, BACKWARD], ids=lambda op: op.name)
def test_the_space_of_int8_slices_has_bounds_below_the_time_and_rules_for_every_sum(op, device):
    inputs = {n: sim.shape(x.shape, "float32") for n, x in tensors().items() if n in op.required}
    product, mode = load_product(device), "INT8X3"
    given = {p.name: p.default for p in op.options} | options()
    with on_device(device, values=False, cube_math_type=mode):
        axes = op.explored(inputs, product, given)
        points = {n: np.array([x[0], x[-1]]) for n, x in axes.items()}
        rules = op.fits(inputs, product, mode, points, given)
        bounds = op.bound_us(inputs, product, mode, points, given)
    assert all(kept.all() for kept in rules.values())
    for k, bound in enumerate(bounds):
        tiling = {n: x[k].item() for n, x in points.items()}
        found = run(op, inputs, mode, device, tiling=tiling, values=False)
        assert 0.5 * found.time_us < bound <= found.time_us


@pytest.mark.exhaustive
def test_parts_of_int32_sums_are_added_by_a_launch_where_memory_cannot():
    """The 910A adds FP32 atomically and no INT32; a knob that asks for it is told."""
    asked = {"combine": "atomic", "weight_parts": 2}
    for device, combine in ((A2, "atomic"), (TRAINING, "two_phase")):
        found = run(BACKWARD, tensors(), "INT8X2", device, tiling=asked, values=False)
        assert found.tiling["combine"] == combine
        told = any("combine=atomic was asked for" in str(w) for w in found.warnings)
        assert told == (combine != "atomic")


def test_products_without_int8_refuse_int8_slices():
    found = resolve_mode(("fp16", "fp32"), ["fp32"] * 3, "INT8X3")
    assert not found.ok
    assert "slices are int8" in found.reason

"""Convolutions of FP32 operands in slices: bits, the equal matrix product, range, bias, strategies, bounds, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from ascendtile.kernels import get_operator, run_op
from ascendtile.kernels.study.results import ROUNDED
from ascendtile.kernels.study.study import precision_study
from ascendtile.simulator.errors import RefusedError, UsageError

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


LEAST = {"FP16X2": 11.5, "FP16X3": 22, "BF16X3": 17, "BF16X6": 22.5}


@pytest.mark.drawn(3)
@pytest.mark.parametrize("mode", LEAST)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("device", [A2, TRAINING])
def test_gradients_have_the_bits_of_the_slices(device, groups, transposed, mode):
    inputs, given = tensors(groups, transposed), options(groups, transposed)
    if mode.startswith("BF16") and device == TRAINING:
        with pytest.raises(RefusedError, match=r"slices are bf16.*FP16X2 or FP16X3"):
            run(BACKWARD, inputs, mode, device, given, time=False)
        return
    found = run(BACKWARD, inputs, mode, device, given, time=False).outputs
    golden = BACKWARD.reference(inputs, **given)
    for name in ("grad_input", "grad_weight"):
        assert found[name].dtype == np.float32
        assert LEAST[mode] < bits(found[name], golden[name]) < LEAST[mode] + 2.5
    assert bits(found["grad_bias"], golden["grad_bias"]) > 22


@pytest.mark.drawn(3)
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


def test_int8_slices_are_for_matrix_products():
    with pytest.raises(RefusedError, match=r"no INT32 sums: of splits they take FP16X2"):
        run(BACKWARD, tensors(), "INT8X3", time=False)
    with pytest.raises((RefusedError, UsageError), match=r"no INT32 sums"):
        run(FORWARD, {n: x for n, x in tensors().items() if n != "grad_output"}, "INT8X3", time=False)

"""Every named case of the gradients of convolution, with its images cut down: the reference, and every mode's error."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from ascendtile.kernels import get_operator, run_op

OP = get_operator("convolution_backward")
RESULTS = ("grad_input", "grad_weight", "grad_bias")
MOST = 4  # positions of the smaller image along an axis, half of it for large weights


def cut_down(case):
    """Sizes of the layer with one image (two of small layers) of few positions; channels and the kernel stay whole."""
    o = case.options
    x, w, dy = (case.sizes[n] for n in ("input", "weight", "grad_output"))
    axes = range(len(x) - 2)
    stride, padding = o["stride"], o["padding"]
    dilation = o.get("dilation", (1,) * len(axes))
    transposed = o.get("transposed") == "true"
    wide, narrow = (dy, x) if transposed else (x, dy)
    few, many = [], []
    for k in axes:
        reach = dilation[k] * (w[k + 2] - 1) + 1
        rest = (wide[k + 2] + 2 * padding[k] - reach) % stride[k]
        most = MOST // 2 if prod(w) > 1 << 20 else MOST if len(axes) < 3 else 3
        least = -(-(1 - reach + 2 * padding[k] - rest) // stride[k]) + 1
        n = max(min(most, narrow[k + 2]), least)
        few.append(n)
        many.append((n - 1) * stride[k] + reach - 2 * padding[k] + rest)
    batch = min(2 if prod(w) < 1 << 18 else 1, x[0])
    sizes = {"input": (batch, x[1], *(few if transposed else many)), "weight": w}
    return {**sizes, "grad_output": (batch, dy[1], *(many if transposed else few))}


def by_torch(inputs, o):
    import torch

    axes = inputs["input"].ndim - 2
    tensors = [torch.tensor(np.float64(inputs[n])) for n in ("grad_output", "input", "weight")]
    found = torch.ops.aten.convolution_backward(
        *tensors, [inputs["grad_output"].shape[1]], o["stride"], o["padding"], o.get("dilation", (1,) * axes),
        o.get("transposed") == "true", (0,) * axes, o.get("groups", 1), [True] * 3,
    )  # fmt: skip
    return dict(zip(RESULTS, (x.numpy() for x in found), strict=True))


def relative(x, golden):
    return np.linalg.norm(np.float64(x) - golden) / np.linalg.norm(golden)


@pytest.mark.extra("torch")
@pytest.mark.parametrize("name", OP.cases)
def test_the_reference_of_every_case_is_that_of_torch(name):
    case = OP.cases[name]
    options = {**case.options, "output_mask": (1, 1, 1)}
    inputs = OP.inputs(cut_down(case), "float32")
    expected = by_torch(inputs, options)
    for n, x in OP.reference(inputs, **options).items():
        assert relative(x, expected[n]) <= 1e-12


# Relative error of rounding both operands, by mode: 1.47e-4 and 2.9e-4 on normal data (hicann/ops-nn); sums add to it.
BOUNDS = {"KEEP_DTYPE": 1e-5, "USE_HF32": 1.8e-4, "USE_FP16": 4e-4}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("mode", BOUNDS)
@pytest.mark.parametrize(
    "name", ["resnet50-l2-3x3", "mobilenetv2-dw", "resnext50-g32", "dcgan-up", "whisper-stem"]
)
def test_fp32_inputs_in_every_mode_stay_within_its_bound(name, mode):
    case = OP.cases[name]
    options = {**case.options, "output_mask": (1, 1, 1)}
    inputs = OP.inputs(cut_down(case), "float32")
    found = run_op(OP, inputs=inputs, cube_math_type=mode, options=options, time=False, errors=False).outputs
    for n, golden in OP.reference(inputs, **options).items():
        through = 5e-4 if n == "grad_weight" and mode == "USE_FP16" and options.get("groups", 1) > 1 else 0.0
        assert relative(found[n], golden) <= BOUNDS[mode] + through
        if mode != "KEEP_DTYPE" and n != "grad_bias":
            assert relative(found[n], golden) > 1e-5


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("dtype", "unit"), [("float16", 2.0**-11), ("bfloat16", 2.0**-8)])
@pytest.mark.parametrize("name", ["resnet50-l3-3x3", "convnext-dw7", "c3d"])
def test_16_bit_results_are_rounded_once(name, dtype, unit):
    """Products of 16-bit numbers are exact in the Cube: what is left is one rounding of the result, and FP32 sums."""
    case = OP.cases[name]
    inputs = OP.inputs(cut_down(case), dtype)
    found = run_op(OP, inputs=inputs, options=dict(case.options), time=False, errors=False).outputs
    for n, golden in OP.reference(inputs, **case.options).items():
        twice = (
            2.0 if n == "grad_weight" and case.options.get("groups", 1) > 1 and dtype == "bfloat16" else 1.0
        )
        assert relative(found[n], golden) <= twice * unit

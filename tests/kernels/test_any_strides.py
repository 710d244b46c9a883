"""Tensors of any strides (channels last, transposed, cut, repeated, backwards), through both faces, against float64.

Inputs have strides of their own each, and so have outputs. What is asked of a tensor is only what the documents ask: an
output has one place for each element.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.kernels import aclnn, get_operator, run_op

from .strided_views import View, channels_last, turned, views_of

ND = aclnn.aclFormat.ACL_FORMAT_ND
IMAGES = {
    3: aclnn.aclFormat.ACL_FORMAT_NCL, 4: aclnn.aclFormat.ACL_FORMAT_NCHW, 5: aclnn.aclFormat.ACL_FORMAT_NCDHW,
}  # fmt: skip
TYPES = {"float16": aclnn.aclDataType.ACL_FLOAT16, "float32": aclnn.aclDataType.ACL_FLOAT}
TOLERANCE = {"float16": 4e-3, "float32": 4e-5}  # of the largest element
A2, TRAINING, INFERENCE = "ascend910b3", "ascend910a", "ascend310p"
Tensors = Mapping[str, Any]


@dataclass(frozen=True)
class Call:
    """An operator with the shapes of its inputs and outputs, and the arguments of its phase 1 from both."""

    operator: str
    api: str
    inputs: Mapping[str, tuple[int, ...]]
    outputs: Mapping[str, tuple[int, ...]]
    arguments: Callable[[Tensors, Tensors], tuple[Any, ...]]
    options: Mapping[str, Any] = field(default_factory=dict)
    products: tuple[str, ...] = (A2,)
    full_precision: tuple[str, ...] = ()

    def dtype_of(self, name: str, dtype: str) -> str:
        return "float32" if name in self.full_precision else dtype


def batch_norm(n: int, c: int, *space: int) -> Call:
    x, channels = (n, c, *space), (c,)
    outputs = ("sum_dy", "sum_dy_xmu", "grad_weight", "grad_bias")
    return Call(
        "batch_norm_reduce_backward",
        "aclnnBatchNormReduceBackward",
        {"grad_out": x, "x": x, "mean": channels, "invstd": channels},
        dict.fromkeys(outputs, channels),
        lambda t, o: (*t.values(), None, True, True, True, *o.values()),
        products=(A2, TRAINING),
        full_precision=("mean", "invstd"),
    )


def rms_norm(rows: tuple[int, ...], cols: tuple[int, ...]) -> Call:
    return Call(
        "rms_norm_grad",
        "aclnnRmsNormGrad",
        {"dy": rows + cols, "x": rows + cols, "rstd": rows + (1,) * len(cols), "gamma": cols},
        {"dx": rows + cols, "dgamma": cols},
        lambda t, o: (*t.values(), *o.values()),
        products=(A2, INFERENCE),
        full_precision=("rstd", "dgamma"),
    )


def loss(shape: tuple[int, ...], weight: tuple[int, ...], reduction: str) -> Call:
    number = {"none": 0, "mean": 1, "sum": 2}[reduction]
    return Call(
        "bce_with_logits_backward",
        "aclnnBinaryCrossEntropyWithLogitsBackward",
        {"grad_output": shape, "x": shape, "target": shape, "weight": weight, "pos_weight": shape[-1:]},
        {"out": shape},
        lambda t, o: (*t.values(), number, *o.values()),
        {"reduction": reduction},
        (A2, TRAINING, INFERENCE),
    )


def group_norm(n: int, group: int, depth: int, *space: int) -> Call:
    c, hxw = group * depth, int(np.prod(space))
    x = (n, c, *space)
    return Call(
        "group_norm_backward",
        "aclnnGroupNormBackward",
        {"grad_out": x, "x": x, "mean": (n, group), "rstd": (n, group), "gamma": (c,)},
        {"grad_input": x, "grad_gamma": (c,), "grad_beta": (c,)},
        lambda t, o: (*t.values(), n, c, hxw, group, aclnn.aclCreateBoolArray([True] * 3, 3), *o.values()),
        {"group": group},
        (A2, TRAINING),
    )


def convolution(x: tuple[int, ...], weight: tuple[int, ...], stride: int, padding: int) -> Call:
    rank = len(x) - 2
    space = tuple((n + 2 * padding - k) // stride + 1 for n, k in zip(x[2:], weight[2:], strict=True))
    dy = (x[0], weight[0], *space)

    def arguments(t: Tensors, o: Tensors) -> tuple[Any, ...]:
        bias, *steps, zero = (
            aclnn.aclCreateIntArray(v, len(v))
            for v in ([weight[0]], [stride] * rank, [padding] * rank, [1] * rank, [0] * rank)
        )
        wanted = aclnn.aclCreateBoolArray([True] * 3, 3)
        return (*t.values(), bias, *steps, False, zero, 1, wanted, 0, *o.values())

    return Call(
        "convolution_backward",
        "aclnnConvolutionBackward",
        {"grad_output": dy, "input": x, "weight": weight},
        {"grad_input": x, "grad_weight": weight, "grad_bias": (weight[0],)},
        arguments,
        {"stride": (stride,) * rank, "padding": (padding,) * rank},
    )


CALLS = {
    "batch_norm": (batch_norm(2, 3, 5, 7), batch_norm(3, 17, 4), batch_norm(1, 2, 3, 3, 3), batch_norm(9, 4)),
    "rms_norm": (rms_norm((3, 5), (17,)), rms_norm((4,), (3, 16)), rms_norm((2, 3, 2), (40,))),
    "bce": (
        loss((3, 4, 5), (4, 1), "none"),
        loss((2, 3, 6, 5), (2, 1, 1, 5), "mean"),
        loss((33,), (33,), "sum"),
        loss((7, 19), (19,), "none"),
    ),
    "group_norm": (group_norm(2, 2, 3, 5, 3), group_norm(1, 1, 4, 3, 2, 3), group_norm(3, 2, 5)),
    "convolution": (
        convolution((2, 3, 5, 6), (4, 3, 3, 3), 1, 1),
        convolution((1, 2, 9), (3, 2, 3), 2, 0),
        convolution((1, 2, 3, 4, 4), (2, 2, 2, 2, 2), 1, 0),
    ),
}  # fmt: skip


@st.composite
def strided_calls(draw: st.DrawFn, name: str) -> tuple[Any, ...]:
    """A call, its product and data type, views of inputs and outputs, and a seed for what they hold."""
    call = draw(st.sampled_from(CALLS[name]))

    def of(shape: tuple[int, ...], repeated: bool) -> View:
        usual = [turned(shape), *([channels_last(shape)] if len(shape) > 1 else [])]
        return draw(views_of(shape, repeated) | st.sampled_from(usual))

    views = {n: of(s, True) for n, s in call.inputs.items()} | {
        n: of(s, False) for n, s in call.outputs.items()
    }
    product = draw(st.sampled_from(call.products))
    dtype = draw(st.sampled_from(sorted(TYPES) if product == A2 else ["float16"]))
    return call, product, dtype, views, draw(st.integers(0, 99))


def held(call: Call, views: Mapping[str, View], dtype: str, seed: int) -> dict[str, np.ndarray]:
    """Inputs in memory of these strides; where elements are the same, they hold the same."""
    rng = np.random.default_rng(seed)
    return {
        n: views[n].holding(rng.uniform(0.25, 2, shape).astype(call.dtype_of(n, dtype)))
        for n, shape in call.inputs.items()
    }


def through_python(
    call: Call, inputs: Tensors, views: Mapping[str, View], dtype: str
) -> dict[str, np.ndarray]:
    out = {n: views[n].holding(np.zeros(s, call.dtype_of(n, dtype))) for n, s in call.outputs.items()}
    if call.operator == "convolution_backward":
        return run_op(call.operator, inputs=inputs, options=call.options, time=False, errors=False).outputs
    run_op(call.operator, inputs=inputs, options=call.options, time=False, errors=False, out=out)
    return out


def tensor(array: np.ndarray, view: View, form: aclnn.aclFormat = ND) -> aclnn.aclTensor:
    """The elements in device memory, with the strides of the view."""
    memory = aclnn.DeviceMemory(view.elements * array.itemsize)
    dtype = TYPES[str(array.dtype)]
    made = aclnn.aclCreateTensor(
        view.shape, len(view.shape), dtype, view.strides, -view.low, form, [view.elements], 1, memory
    )
    kept = tuple(slice(1) if s == 0 else slice(None) for s in view.strides)
    made.array()[kept] = array[kept]
    return made


def through_c(call: Call, inputs: Tensors, views: Mapping[str, View], dtype: str) -> dict[str, np.ndarray]:
    forms = IMAGES if call.operator == "convolution_backward" else {}
    given = {n: tensor(x, views[n], forms.get(x.ndim, ND)) for n, x in inputs.items()}
    empty = {n: np.zeros(s, call.dtype_of(n, dtype)) for n, s in call.outputs.items()}
    out = {n: tensor(x, views[n], forms.get(x.ndim, ND)) for n, x in empty.items()}
    status, size, executor = getattr(aclnn, f"{call.api}GetWorkspaceSize")(*call.arguments(given, out))
    assert status == 0, aclnn.aclGetRecentErrMsg()
    assert getattr(aclnn, call.api)(aclnn.DeviceMemory(size), size, executor, None) == 0
    assert aclnn.aclrtSynchronizeStream(None) == 0, aclnn.aclGetRecentErrMsg()
    return {n: t.array() for n, t in out.items()}


FACES = {"python": through_python, "c": through_c}


def check_strides(name: str, face: str, examples: int, part: int = 0) -> None:
    @hypothesis.seed(part)
    @settings(max_examples=examples)
    @given(strided_calls(name))
    def agrees_with_float64(drawn):
        call, product, dtype, views, seed = drawn
        inputs = held(call, views, dtype, seed)
        expected = get_operator(call.operator).reference(inputs, **call.options)
        with sim.device(product):
            found = FACES[face](call, inputs, views, dtype)
        for n in call.outputs:
            worst = np.abs(np.float64(found[n]) - expected[n]).max() / np.abs(expected[n]).max()
            assert worst < TOLERANCE[call.dtype_of(n, dtype)], n

    agrees_with_float64()


@pytest.mark.drawn(3)
@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("name", CALLS)
def test_tensors_of_any_strides_agree_with_float64(name, face):
    check_strides(name, face, 10)


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(5))
@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("name", CALLS)
def test_many_tensors_of_any_strides_agree_with_float64(name, face, part):
    check_strides(name, face, 100, part + 1)


LARGE = {
    **{f"image of {c}": (lambda c=c: (batch_norm(1, c, 800, 1216), channels_last)) for c in (2, 3, 16)},
    "loss of an image": lambda: (loss((2, 3, 224, 224), (3, 1, 1), "mean"), channels_last),
    "transposed 20000": lambda: (loss((20000, 64), (64,), "none"), turned),
    "transposed 6000": lambda: (rms_norm((6000,), (512,)), turned),
    "image in groups": lambda: (group_norm(1, 2, 4, 800, 1216), channels_last),
    "batch innermost": lambda: (group_norm(8, 4, 16, 56, 56), lambda s: View(s, (1, *turned_back(s)))),
    "image convolved": lambda: (convolution((1, 3, 224, 224), (8, 3, 3, 3), 1, 1), channels_last),
}


def turned_back(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of all axes but the first, which is innermost in memory."""
    strides, width = [], shape[0]
    for n in reversed(shape[1:]):
        strides.insert(0, width)
        width *= n
    return tuple(strides)


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", LARGE)
def test_large_tensors_of_any_strides_are_timed_by_both_faces(name):
    """No memory is taken: an array over one element, tensors without memory."""
    call, strides_of = LARGE[name]()
    views = {
        n: strides_of(s) if len(s) > 1 and np.prod(s) > 64 else View(s, turned(s).strides)
        for n, s in (*call.inputs.items(), *call.outputs.items())
    }
    types = {n: np.dtype(call.dtype_of(n, "float16")) for n in views}
    inputs = {n: strided(views[n], types[n]) for n in call.inputs}
    forms = IMAGES if call.operator == "convolution_backward" else {}
    empty = {n: bare(views[n], types[n], forms.get(len(views[n].shape), ND)) for n in views}
    for product in call.products:
        with sim.device(product, values=False):
            result = run_op(call.operator, inputs=inputs, options=call.options, product=product, values=False)
            given, out = ({n: empty[n] for n in names} for names in (call.inputs, call.outputs))
            status, _, executor = getattr(aclnn, f"{call.api}GetWorkspaceSize")(*call.arguments(given, out))
        assert status == 0, aclnn.aclGetRecentErrMsg()
        copies = [x for x in result.launches if x.kernel.startswith("copy_")]
        assert len(copies) == len([k for k in executor.kernels if k.role == "contiguous"]) >= 2
        words = " ".join(w for x in copies for w in x.warnings)
        assert not re.search("discrete|is strided", words), "nothing moves element by element"


def strided(view: View, dtype: np.dtype) -> np.ndarray:
    """The view over one element."""
    steps = [s * dtype.itemsize for s in view.strides]
    return np.lib.stride_tricks.as_strided(np.empty(1, dtype), view.shape, steps)


def bare(view: View, dtype: np.dtype, form: aclnn.aclFormat) -> aclnn.aclTensor:
    """A tensor without memory."""
    rank, storage = len(view.shape), [view.elements]
    return aclnn.aclCreateTensor(
        view.shape, rank, TYPES[dtype.name], view.strides, -view.low, form, storage, 1, None
    )

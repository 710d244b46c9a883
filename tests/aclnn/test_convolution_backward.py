"""aclnnConvolutionBackward in both phases: modes, masks, strided and mixed tensors; its checks are in pages/."""

from __future__ import annotations

import numpy as np
import pytest

from ascendtile.kernels import aclnn, convolution_backward

from .calls import STORAGE, blank, run, strided, tensor

F16, BF16, F32 = "float16", "bfloat16", "float32"
NCHW, ND = aclnn.aclFormat.ACL_FORMAT_NCHW, aclnn.aclFormat.ACL_FORMAT_ND
PHASES = (aclnn.aclnnConvolutionBackwardGetWorkspaceSize, aclnn.aclnnConvolutionBackward)
RESULTS = ("gradInput", "gradWeight", "gradBias")


def ints(*values):
    return aclnn.aclCreateIntArray(values, len(values))


def flags(*values):
    return aclnn.aclCreateBoolArray(values, len(values))


def good(**changes):
    given = {
        "gradOutput": blank((2, 4, 5, 5), F16, NCHW),
        "input": blank((2, 8, 5, 5), F16, NCHW),
        "weight": blank((4, 8, 3, 3), F16, NCHW),
        "biasSizes": ints(4),
        "stride": ints(1, 1),
        "padding": ints(1, 1),
        "dilation": ints(1, 1),
        "transposed": False,
        "outputPadding": ints(0, 0),
        "groups": 1,
        "outputMask": flags(True, True, True),
        "cubeMathType": 0,
        "gradInput": blank((2, 8, 5, 5), F16, NCHW),
        "gradWeight": blank((4, 8, 3, 3), F16, NCHW),
        "gradBias": blank((4,)),
    }
    return {**given, **changes}


@pytest.fixture
def stream():
    return aclnn.aclrtCreateStream()[1]


def drawn(dtype=F16):
    g = np.random.default_rng(5)
    shapes = (2, 4, 5, 5), (2, 8, 5, 5), (4, 8, 3, 3)
    return [g.integers(-3, 4, s).astype(STORAGE.get(dtype, dtype)) for s in shapes]


def placed(make, values):
    """Tensors of rank 4 say that they are NCHW."""
    made = make(values)
    made.format = NCHW if values.ndim == 4 else ND
    return made


@pytest.mark.drawn(2)
@pytest.mark.parametrize("make", [tensor, strided], ids=["contiguous", "strided"])
@pytest.mark.parametrize(("dtype", "mode"), [(F16, 0), (BF16, 0), (F32, 0), (F32, 3), (F32, 2)])
def test_values_are_those_of_the_python_face(stream, make, dtype, mode):
    dy, x, w = drawn(dtype)
    expected = convolution_backward(dy, x, w, padding=1, time=False, errors=False).outputs
    outputs = [placed(make, np.zeros(s, dy.dtype)) for s in (x.shape, w.shape, (4,))]
    named = dict(zip(RESULTS, outputs, strict=True))
    inputs = {n: placed(make, v) for n, v in zip(("gradOutput", "input", "weight"), (dy, x, w), strict=True)}
    executor = run(*PHASES, stream, *good(**inputs, **named, cubeMathType=mode).values())
    for t, n in zip(outputs, ("grad_input", "grad_weight", "grad_bias"), strict=True):
        np.testing.assert_array_equal(t.array(), expected[n])  # small integers are exact in every mode
    copies = [(k.role, k.parameter) for k in executor.kernels if k.role in ("contiguous", "view copy")]
    assert len(copies) == (6 if make is strided else 0)
    assert executor.workspace_size > 0
    assert executor.time_us == pytest.approx(sum(k.time_us for k in executor.kernels))


def test_modes_differ_where_they_round(stream):
    g = np.random.default_rng(1)
    dy, x, w = (g.standard_normal(v.shape).astype(F32) for v in drawn(F32))
    found = []
    for mode in range(4):
        outputs = {
            n: placed(tensor, np.zeros(s, F32))
            for n, s in zip(RESULTS, (x.shape, w.shape, (4,)), strict=True)
        }
        inputs = {
            n: placed(tensor, v) for n, v in zip(("gradOutput", "input", "weight"), (dy, x, w), strict=True)
        }
        run(*PHASES, stream, *good(**inputs, **outputs, cubeMathType=mode).values())
        found.append(outputs["gradInput"].array().copy())
    exact, fast, half, hf32 = found
    np.testing.assert_array_equal(fast, hf32)
    errors = [np.linalg.norm(v - exact) / np.linalg.norm(exact) for v in (hf32, half)]
    assert 1e-5 < errors[0] < errors[1] < 1e-3


def test_only_what_the_mask_asks_for_is_written(stream):
    dy, x, w = drawn()
    outputs = {
        n: placed(tensor, np.full(s, 7, F16)) for n, s in zip(RESULTS, (x.shape, w.shape, (4,)), strict=True)
    }
    inputs = {
        n: placed(tensor, v) for n, v in zip(("gradOutput", "input", "weight"), (dy, x, w), strict=True)
    }
    run(*PHASES, stream, *good(**inputs, **outputs, outputMask=flags(False, True, False)).values())
    assert np.all(outputs["gradInput"].array() == 7) and np.all(outputs["gradBias"].array() == 7)  # noqa: PT018
    expected = convolution_backward(dy, x, w, padding=1, time=False, errors=False).outputs
    np.testing.assert_array_equal(outputs["gradWeight"].array(), expected["grad_weight"])
    nothing = {**good(outputMask=flags(False, False, False)), **dict.fromkeys(RESULTS)}
    status, size, executor = PHASES[0](*nothing.values())
    assert (status, size, executor.kernels) == (0, 0, ())


def test_outputs_of_mixed_inputs_are_of_the_higher_type(stream):
    """grad_bias stays of grad_output's type; the values are those of the Python face, cast once."""
    dy, x, w = drawn()
    wide = {
        n: v.astype(k)
        for n, v, k in zip(("gradOutput", "input", "weight"), (dy, x, w), (F16, F32, F16), strict=True)
    }
    expected = convolution_backward(*wide.values(), padding=1, time=False, errors=False).outputs
    kinds = dict(zip(RESULTS, (F32, F16, F16), strict=True))
    shapes = dict(zip(RESULTS, (x.shape, w.shape, (4,)), strict=True))
    outputs = {n: placed(tensor, np.zeros(shapes[n], STORAGE.get(k, k))) for n, k in kinds.items()}
    inputs = {n: placed(tensor, v) for n, v in wide.items()}
    run(*PHASES, stream, *good(**inputs, **outputs).values())
    for n, m in zip(RESULTS, ("grad_input", "grad_weight", "grad_bias"), strict=True):
        wanted = np.float64(expected[m]).astype(outputs[n].array().dtype)
        np.testing.assert_array_equal(outputs[n].array(), wanted)


def test_merged_groups_that_are_no_whole_blocks_are_refused_in_phase_one():
    shapes = {"gradOutput": (1, 4, 3, 3), "input": (1, 4, 5, 5), "weight": (4, 2, 3, 3)}
    shapes |= {"gradInput": shapes["input"], "gradWeight": shapes["weight"]}
    given = good(**{n: blank(s, F16, NCHW) for n, s in shapes.items()}, padding=ints(0, 0), groups=2)
    with aclnn.tiling(convolution_backward={"merged_groups": 1}):
        assert PHASES[0](*given.values())[0] == 161002
    assert "'merged_groups' is 1; groups of 2 and 2 channels" in aclnn.aclGetRecentErrMsg()
    with aclnn.tiling(convolution_backward={"merged_groups": 2}):
        assert PHASES[0](*given.values())[0] == 0


@pytest.mark.parametrize("kind", [F32, F16])
def test_a_mode_that_changes_nothing_is_noted(kind):
    given = good()
    tensors = {n: blank(x.shape, kind, x.format) for n, x in given.items() if isinstance(x, aclnn.aclTensor)}
    for mode in range(4):
        status, _, executor = PHASES[0](*{**given, **tensors, "cubeMathType": mode}.values())
        assert status == 0, aclnn.aclGetRecentErrMsg()
        told = [n for n in executor.notes if n.startswith("cubeMathType") and "has no effect" in n]
        assert bool(told) == (kind == F16 and mode > 0)

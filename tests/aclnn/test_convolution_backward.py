"""aclnnConvolutionBackward: the page's table of checks in order, both phases, modes, masks, strided and mixed tensors."""

from __future__ import annotations

import numpy as np
import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import aclnn, convolution_backward

from .calls import STORAGE, blank, refused, run, strided, tensor
from .test_tables import ordered

F16, BF16, F32, F64 = "float16", "bfloat16", "float32", "float64"
NCHW, NHWC, NCL, ND, NCDHW, NC = (
    getattr(aclnn.aclFormat, f"ACL_FORMAT_{n}") for n in ("NCHW", "NHWC", "NCL", "ND", "NCDHW", "NC")
)
NC1HWC0 = aclnn.aclFormat.ACL_FORMAT_NC1HWC0
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


def phase_one(arguments):
    return refused(PHASES[0], *arguments.values())


def of(*shape, dtype=F16, format=NCHW):
    return blank(shape, dtype, format)


IN_ORDER = [
    *(
        ({n: None}, 161001, f"{n} is null")
        for n in ("gradOutput", "input", "weight", "stride", "padding", "dilation")
    ),
    ({"outputPadding": None}, 161001, "outputPadding is null"),
    ({"outputMask": None}, 161001, "outputMask is null"),
    ({"outputMask": flags(True)}, 161001, "outputMask has 1 elements, it must have 3"),
    *(({n: None}, 161001, f"{n} is null, but outputMask") for n in RESULTS),
    (
        {"gradOutput": of(2, 4, 5, 5, dtype=F64)},
        161002,
        "gradOutput is fp64, on ascend910b3 it must be of float32",
    ),
    ({"input": of(2, 8, 5, 5, dtype=F64)}, 161002, "input is fp64"),
    ({"gradBias": of(4, dtype=F64, format=ND)}, 161002, "gradBias is fp64"),
    ({"weight": of(4, 8, 3, 3, format=NHWC)}, 161002, "weight has format NHWC, at rank 4 it must be NCHW"),
    ({"gradInput": of(2, 8, 5, 5, format=NC1HWC0)}, 161002, "gradInput has format NC1HWC0"),
    ({"stride": ints(0, 1)}, 161002, "stride is (0, 1), every value of it must be at least 1, 0 is not"),
    ({"padding": ints(1, -1)}, 161002, "padding is (1, -1)"),
    ({"dilation": ints(1, 0)}, 161002, "dilation is (1, 0)"),
    ({"outputPadding": ints(1, 0)}, 161002, "outputPadding is (1, 0), without transposed it must be 0"),
    ({"groups": 0}, 161002, "groups is 0"),
    ({"cubeMathType": 4}, 161002, "cubeMathType 4"),
]
ALONE = [
    ({"input": of(2, 8, format=ND)}, "input has rank 2, it must be 3 (N, C, L), 4 (N, C, H, W) or 5"),
    ({"gradBias": of(4, format=NC)}, "gradBias has format NC, it must be ND"),
    ({"input": of(2, 8, 5, format=NCL)}, "gradOutput, input and weight have ranks [4, 3, 4]"),
    ({"gradOutput": of(2, 0, 5, 5)}, "gradOutput has shape (2, 0, 5, 5) and no elements"),
    ({"gradInput": of(2, 8, 5, 4)}, "gradInput has shape (2, 8, 5, 4), it must be input's, (2, 8, 5, 5)"),
    ({"gradWeight": of(4, 8, 3, 1)}, "gradWeight has shape (4, 8, 3, 1)"),
    ({"gradBias": of(8, format=ND)}, "gradBias has shape (8,), it must be the channels of gradOutput, (4,)"),
    ({"stride": ints(1)}, "stride has 1 values (1,), for 2 spatial axes it must have 2"),
    ({"padding": ints(1, 1, 1)}, "padding has 3 values (1, 1, 1), for 2 spatial axes it must have 2 or 4"),
    ({"groups": 2}, "input has 8 channels, weight has 8 on its second axis: that is 1 groups, groups is 2"),
]


def test_checks_come_in_the_order_of_the_page():
    ordered(phase_one, good(), IN_ORDER)


@pytest.mark.parametrize(("change", "text"), ALONE, ids=[t[:40] for _, t in ALONE])
def test_shapes_that_do_not_belong_together(change, text):
    status, message = phase_one(good(**change))
    assert (status, text in message) == (161002, True), message
    assert message.startswith("aclnnConvolutionBackward: ")


def test_sizes_of_2d_are_found_by_an_inner_step():
    status, message = phase_one(good(gradOutput=of(2, 4, 5, 4)))
    assert (status, "spatial sizes (5, 4), the forward convolution gives (5, 5)" in message) == (561103, True)


def three_axes(**changes):
    x, w, one = of(1, 4, 5, 5, 5, format=NCDHW), of(4, 4, 3, 3, 3, format=NCDHW), ints(1, 1, 1)
    return good(
        gradOutput=x, input=x, weight=w, gradInput=x, gradWeight=w, stride=one, padding=one, dilation=one,
        outputPadding=ints(0, 0, 0), **changes,
    )  # fmt: skip


def test_three_axes_only_where_they_are():
    assert PHASES[0](*three_axes().values())[0] == 0
    wrong = of(1, 4, 5, 5, 4, format=NCDHW)
    assert phase_one({**three_axes(), "gradOutput": wrong})[0] == 161002
    for product in ("ascend910a", "ascend310p"):
        with sim.device(product):
            status, message = phase_one(three_axes())
        assert (status, f"{product} takes 1 or 2" in message) == (161002, True)


@pytest.mark.parametrize(
    ("product", "allowed"), [("ascend910b3", {0, 1, 2, 3}), ("ascend910a", {1, 2}), ("ascend310p", {1, 2})]
)
def test_modes_of_float32_by_product(product, allowed):
    wide = {n: blank(t.shape, F32, t.format) for n, t in good().items() if isinstance(t, aclnn.aclTensor)}
    with sim.device(product):
        for mode in range(4):
            status = PHASES[0](*good(**wide, cubeMathType=mode).values())[0]
            assert status == (0 if mode in allowed else 161002)
        aclnn.aclGetRecentErrMsg()


def test_310b_refuses_it_and_so_does_910a_with_bfloat16():
    with sim.device("ascend310b"):
        status, message = phase_one(good())
        assert (status, "is not available on ascend310b" in message) == (161002, True)
        assert phase_one(good(input=None))[0] == 161001
    low = {n: blank(t.shape, BF16, t.format) for n, t in good().items() if isinstance(t, aclnn.aclTensor)}
    with sim.device("ascend910a"):
        status, message = phase_one(good(**low))
    assert (status, "gradOutput is bfloat16, on ascend910a it must be of" in message) == (161002, True)


def test_outputs_must_not_overlap_themselves():
    memory = aclnn.DeviceMemory(64)
    stretched = aclnn.aclCreateTensor((4,), 1, aclnn.aclDataType.ACL_FLOAT16, [0], 0, ND, [1], 1, memory)
    status, message = phase_one(good(gradBias=stretched))
    assert (status, "a stride of 0 is for inputs only" in message) == (161002, True)


# -- both phases -----------------------------------------------------------------------------------------------------


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


def test_types_of_outputs_are_free(stream):
    dy, x, w = drawn()
    expected = convolution_backward(dy, x, w, padding=1, time=False, errors=False).outputs
    kinds = dict(zip(RESULTS, (BF16, F32, F32), strict=True))
    shapes = dict(zip(RESULTS, (x.shape, w.shape, (4,)), strict=True))
    outputs = {n: placed(tensor, np.zeros(shapes[n], STORAGE.get(k, k))) for n, k in kinds.items()}
    inputs = {
        n: placed(tensor, v) for n, v in zip(("gradOutput", "input", "weight"), (dy, x, w), strict=True)
    }
    run(*PHASES, stream, *good(**inputs, **outputs).values())
    for n, m in zip(RESULTS, ("grad_input", "grad_weight", "grad_bias"), strict=True):
        wanted = np.float64(expected[m]).astype(outputs[n].array().dtype)
        np.testing.assert_array_equal(outputs[n].array(), wanted)


def test_an_empty_batch_fills_weight_and_bias_with_zeros(stream):
    outputs = {
        "gradInput": of(0, 8, 5, 5),
        "gradWeight": placed(tensor, np.ones((4, 8, 3, 3), F16)),
        "gradBias": placed(tensor, np.ones(4, F16)),
    }
    empty = good(gradOutput=of(0, 4, 5, 5), input=of(0, 8, 5, 5), **outputs)
    run(*PHASES, stream, *empty.values())
    assert not np.any(outputs["gradWeight"].array())
    assert not np.any(outputs["gradBias"].array())
    status, message = phase_one({**empty, "biasSizes": None})
    assert (status, "biasSizes is null" in message) == (161002, True)
    with sim.device("ascend910a"):
        assert phase_one(empty)[0] == 161002


def test_the_deterministic_switch_sums_in_two_phases():
    many = good(
        gradOutput=of(8, 16, 32, 32), input=of(8, 16, 32, 32), weight=of(16, 16, 3, 3), gradInput=of(8, 16, 32, 32),
        gradWeight=of(16, 16, 3, 3), gradBias=of(16, format=ND),
    )  # fmt: skip
    found = []
    for level in (0, 1):
        aclnn.aclrtCtxSetSysParamOpt(aclnn.ACL_OPT_DETERMINISTIC, level)
        try:
            found.append(PHASES[0](*many.values())[2].tiling)
        finally:
            aclnn.aclrtCtxSetSysParamOpt(aclnn.ACL_OPT_DETERMINISTIC, 0)
    assert [t["combine"] for t in found] == ["atomic", "two_phase"]
    assert found[0]["weight_parts"] > 1

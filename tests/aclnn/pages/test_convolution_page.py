"""The page of aclnnConvolutionBackward: checks, types, modes and ranges by product, formats, empty tensors, examples.

Values by strategy and mode are in tests/kernels/convolution/test_convolution_backward.py, the checks behind the
Python face in tests/kernels/convolution/test_convolution_checks.py, both phases of mixed tensors in
tests/aclnn/test_convolution_backward.py.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import aclnn

from ..calls import STORAGE, blank, run, tensor
from .rows import (
    A2,
    A3,
    BF16,
    F16,
    F32,
    F64,
    FLOATS,
    FORMATS,
    I32,
    INFERENCE,
    LAYOUTS,
    OTHER,
    PRIVATE,
    PRODUCTS,
    TRAINING,
    Row,
    check_order,
    check_row,
    row_names,
    status_on,
    stretched,
    typed,
)

PHASE_ONE = aclnn.aclnnConvolutionBackwardGetWorkspaceSize
PHASES = (PHASE_ONE, aclnn.aclnnConvolutionBackward)
INPUTS, RESULTS = ("gradOutput", "input", "weight"), ("gradInput", "gradWeight", "gradBias")
WIDE = (*A2, A3)
TYPES = {TRAINING: (F32, F16), INFERENCE: (F32, F16), **dict.fromkeys(WIDE, (F32, F16, BF16))}
FORMAT = {3: "NCL", 4: "NCHW", 5: "NCDHW"}
ON = "on ascend910b3 it must be of float32, float16 or bfloat16"


def ints(*values):
    return aclnn.aclCreateIntArray(values, len(values))


def flags(*values):
    return aclnn.aclCreateBoolArray(values, len(values))


def of(*shape, dtype=F16, fmt=None):
    return blank(shape, dtype, FORMATS[fmt or FORMAT.get(len(shape), "ND")])


def conv(dy, x, w, dtype=F16, mode=0, stride=1, padding=0, dilation=1, transposed=False, extra=0, groups=1):
    """A call of these shapes."""
    n = len(x) - 2
    each = lambda v: ints(*v) if isinstance(v, tuple) else ints(*(v,) * n)  # noqa: E731
    return {
        "gradOutput": of(*dy, dtype=dtype),
        "input": of(*x, dtype=dtype),
        "weight": of(*w, dtype=dtype),
        "biasSizes": ints(w[1] * groups if transposed else w[0]),
        "stride": each(stride),
        "padding": each(padding),
        "dilation": each(dilation),
        "transposed": transposed,
        "outputPadding": each(extra),
        "groups": groups,
        "outputMask": flags(True, True, True),
        "cubeMathType": mode,
        "gradInput": of(*x, dtype=dtype),
        "gradWeight": of(*w, dtype=dtype),
        "gradBias": of(dy[1], dtype=dtype),
    }


def good(**changes):
    return {**conv((2, 4, 5, 5), (2, 8, 5, 5), (4, 8, 3, 3), padding=1), **changes}


def volume(**changes):
    return {**conv((1, 4, 5, 5, 5), (1, 4, 5, 5, 5), (4, 4, 3, 3, 3), padding=1), **changes}


def turned(**changes):
    return {**conv((2, 8, 9, 9), (2, 4, 5, 5), (4, 8, 3, 3), stride=2, padding=1, transposed=True), **changes}


ROWS = (
    *(Row("1", {n: None}, 161001, f"{n} is null, it must be given")
      for n in ("gradOutput", "input", "weight", "stride", "padding", "dilation", "outputPadding", "outputMask")),
    Row("2", {"outputMask": flags(True)}, 161001, "outputMask has 1 elements, it must have 3"),
    Row("2", {"outputMask": flags(*(True,) * 4)}, 161001, "outputMask has 4 elements, it must have 3"),
    *(Row("3", {n: None}, 161001, f"{n} is null, but outputMask (True, True, True) asks for it") for n in RESULTS),
    *(Row("4a", {n: of(*good()[n].shape, dtype=F64)}, 161002, f"{n} is fp64, {ON}") for n in INPUTS),
    *(Row("4b", {n: of(*good()[n].shape, dtype=I32)}, 161002, f"{n} is int32, {ON}") for n in RESULTS),
    Row("4c", {"gradInput": of(2, 8, 5, 5, dtype=F32)}, 161002,
        "gradInput is float32, its type must be the higher of input and gradOutput, here float16"),
    Row("4c", {"gradWeight": of(4, 8, 3, 3, dtype=BF16)}, 161002,
        "gradWeight is bfloat16, its type must be the higher of weight and gradOutput, here float16"),
    Row("4c", {"gradBias": of(4, dtype=F32)}, 161002,
        "gradBias is float32, its type must be that of gradOutput, here float16"),
    Row("5", {"gradOutput": of(2, 4, 5, 5, fmt="NHWC")}, 161002, "gradOutput has format NHWC, at rank 4 it must be NCHW"),
    Row("5", {"input": of(2, 8, fmt="ND")}, 161002, "input has rank 2, it must be 3 (N, C, L), 4 (N, C, H, W) or 5"),
    Row("5", {"weight": of(4, 8, 3, 3, fmt="ND")}, 161002, "weight has format ND, at rank 4 it must be NCHW"),
    Row("5", {"gradInput": of(2, 8, 5, 5, fmt="NC1HWC0")}, 161002, "gradInput has format NC1HWC0, at rank 4 it must be"),
    Row("5", {"gradWeight": of(4, 8, 3, 3, fmt="FRACTAL_Z")}, 161002, "gradWeight has format FRACTAL_Z, at rank 4"),
    Row("5b", {"gradBias": of(4, fmt="NC")}, 161002, "gradBias has format NC, it must be ND"),
    Row("6a", {"stride": ints(0, 1)}, 161002, "stride is (0, 1), every value of it must be at least 1, 0 is not"),
    Row("6b", {"padding": ints(1, -1)}, 161002, "padding is (1, -1), every value of it must be at least 0, -1 is not"),
    Row("6c", {"dilation": ints(1, 0)}, 161002, "dilation is (1, 0), every value of it must be at least 1, 0 is not"),
    Row("6e", {"groups": 0}, 161002, "groups is 0, it must be at least 1"),
    Row("7", {"cubeMathType": 4}, 161002, "cubeMathType 4 with gradOutput float16"),
    Row("7", {"cubeMathType": -1}, 161002, "cubeMathType -1 is outside 0 to 3; take cubeMathType 0, 1, 2 or 3"),
    Row("9", {"input": of(2, 8, 5)}, 161002, "gradOutput, input and weight have ranks [4, 3, 4], which must be equal"),
    Row("9", {"gradOutput": of(2, 0, 5, 5)}, 161002, "gradOutput has shape (2, 0, 5, 5) and no elements, it must have some"),
    Row("10", {"gradInput": of(2, 8, 5, 4)}, 161002, "gradInput has shape (2, 8, 5, 4), it must be input's, (2, 8, 5, 5)"),
    Row("10", {"gradWeight": of(4, 8, 3, 1)}, 161002, "gradWeight has shape (4, 8, 3, 1), it must be weight's, (4, 8"),
    Row("10", {"gradBias": of(8)}, 161002, "gradBias has shape (8,), it must be the channels of gradOutput, (4,)"),
    Row("11", {"stride": ints(1)}, 161002, "stride has 1 values (1,), for 2 spatial axes it must have 2"),
    Row("11", {"dilation": ints(1, 1, 1)}, 161002, "dilation has 3 values (1, 1, 1), for 2 spatial axes it must have 2"),
    Row("11", {"padding": ints(1, 1, 1)}, 161002, "padding has 3 values (1, 1, 1), for 2 spatial axes it must have 2 or 4"),
    Row("11", {"outputPadding": ints(0)}, 161002, "outputPadding has 1 values (0,), for 2 spatial axes it must have 2 or 4"),
    Row("12", {"weight": of(5, 8, 3, 3), "gradWeight": of(5, 8, 3, 3)}, 161002,
        "gradOutput's channels are 4, weight's first axis is 5; they must be equal"),
    Row("12", {"weight": of(4, 3, 3, 3), "gradWeight": of(4, 3, 3, 3)}, 161002,
        "input has 8 channels, weight has 3 on its second axis, which does not divide them"),
    Row("12", {"groups": 2}, 161002, "weight has 8 on its second axis: groups must be 1, it is 2"),
    Row("12b", {"biasSizes": ints(5)}, 161002, "biasSizes is (5,), it must be (4,), weight's first axis"),
    Row("12b", {"biasSizes": ints(4, 1)}, 161002, "biasSizes is (4, 1), it must be (4,), weight's first axis"),
    Row("12b", {"biasSizes": ints()}, 161002, "biasSizes is (), it must be (4,), weight's first axis"),
    Row("13", {"gradOutput": of(2, 4, 5, 4)}, 161002, "the forward convolution gives (5, 5); the vendor's library finds it"),
    Row("13", {"input": of(3, 8, 5, 5), "gradInput": of(3, 8, 5, 5)}, 161002, "gradOutput has batch 2, input has 3; they"),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=row_names(ROWS))
def test_row_of_checks(row):
    check_row(PHASE_ONE, good(), row)


def test_order_of_checks():
    check_order(PHASE_ONE, good(), ROWS)


ROWS_OF_OTHER_CALLS = (
    (good, Row("1-3", {"outputMask": flags(False, False, False), **dict.fromkeys(RESULTS)}, 0, "")),
    (turned, Row("6d", {"outputPadding": ints(0, -1)}, 161002, "outputPadding is (0, -1), every value of it must be")),
    (turned, Row("12b", {"biasSizes": ints(4)}, 161002,
     "biasSizes is (4,), it must be (8,), weight's second axis times groups")),
    (lambda: conv((1, 6, 7, 7), (1, 4, 4, 4), (4, 3, 1, 1), stride=2, transposed=True, groups=2),
     Row("12b", {"biasSizes": ints(3)}, 161002, "biasSizes is (3,), it must be (6,), weight's second axis times groups")),
    (turned, Row("12", {"input": of(2, 3, 5, 5), "gradInput": of(2, 3, 5, 5)}, 161002,
     "input's channels are 3, weight's first axis is 4; they must be equal")),
    (turned, Row("12", {"groups": 2}, 161002, "gradOutput has 8 channels, weight has 8 on its second axis: groups")),
    (lambda: conv((1, 3, 5, 5), (1, 4, 5, 5), (3, 1, 3, 3), padding=1, groups=4),
     Row("12", {}, 161002, "gradOutput has 3 channels, which groups 4 must divide")),
    (lambda: conv((1, 6, 5, 5), (1, 4, 5, 5), (6, 1, 3, 3), padding=1, groups=4),
     Row("12", {}, 161002, "gradOutput has 6 channels, which groups 4 must divide")),
    (volume, Row("13", {"dilation": ints(1, 1, 4)}, 161002,
     "the kernel reaches over 9 elements on axis W, input with its padding has 7; it must not reach further")),
    (volume, Row("13", {"gradOutput": of(1, 4, 5, 5, 4)}, 161002,
     "gradOutput has spatial sizes (5, 5, 4), the forward convolution gives (5, 5, 5)")),
    (lambda: conv((1, 4, 6, 5, 5), (1, 4, 3, 5, 5), (4, 4, 3, 3, 3), stride=(2, 1, 1), padding=1, transposed=True),
     Row("13", {}, 161002, "gradOutput has spatial sizes (6, 5, 5), the forward convolution gives (5, 5, 5)")),
    (lambda: conv((1, 2, 4, 4), (1, 2, 5, 5), (2, 2, 3, 3)), Row("13", {}, 161002,
     "spatial sizes (4, 4), the forward convolution gives (3, 3); the vendor's library finds it in an")),
    (volume, Row("13", {"input": of(2, 4, 5, 5, 5), "gradInput": of(2, 4, 5, 5, 5)}, 161002, "gradOutput has batch 1")),
    (good, Row("13", {"dilation": ints(1, 4)}, 161002, "the kernel reaches over 9 elements on axis W, input with")),
    (lambda: conv((1, 4, 4), (1, 4, 5), (4, 4, 3), padding=1), Row("13", {}, 161002, "gradOutput has spatial sizes (4,)")),
)  # fmt: skip


@pytest.mark.parametrize(
    ("call", "row"),
    ROWS_OF_OTHER_CALLS,
    ids=[f"check {r.number}-{k}" for k, (_, r) in enumerate(ROWS_OF_OTHER_CALLS)],
)
def test_row_of_checks_of_volumes_and_transposed(call, row):
    if row.status:
        check_row(PHASE_ONE, call(), row)
    else:
        assert status_on("ascend910b3", PHASE_ONE, {**call(), **row.change}) == (0, "")


@pytest.mark.extra("torch")
@pytest.mark.parametrize("mode", range(4))
def test_grouped_volumes_in_float32_take_every_cube_math_type(mode):
    """Also USE_FP16, of which the document knows no exception: FLOAT is converted to FLOAT16."""
    values = integers((1, 4, 3, 3, 3), (1, 4, 3, 3, 3), (4, 2, 3, 3, 3), dtype=np.float32)
    call = call_with(tensor, values, mode=mode, padding=1, groups=2)
    run(*PHASES, None, *call.values())
    for n, expected in by_torch(values, padding=1, groups=2).items():
        np.testing.assert_array_equal(call[n].array(), expected)


@pytest.mark.extra("torch")
@pytest.mark.parametrize("extra", [(1, 0), (7, 9), (-1, 0)], ids=str)
def test_output_padding_has_no_effect_unless_transposed(extra):
    values = integers((1, 4, 3, 3), (1, 3, 5, 5), (4, 3, 3, 3))
    call = call_with(tensor, values)
    run(*PHASES, None, *{**call, "outputPadding": ints(*extra)}.values())
    for n, expected in by_torch(values).items():
        np.testing.assert_array_equal(call[n].array(), expected)


@pytest.mark.extra("torch")
@pytest.mark.parametrize(
    ("stride", "dilation", "extra"), [(1, 2, 1), (2, 1, 1), (2, 3, 2), (1, 1, 3)], ids=str
)
def test_output_padding_of_transposed_is_0_or_more(stride, dilation, extra):
    """Also beyond stride and dilation, where torch refuses: positions that no tap reaches add nothing but to the bias."""
    size = 2 * stride + 2 * dilation + extra + 1
    dy, x, w = integers((1, 3, size), (1, 2, 3), (2, 3, 3), dtype=np.float32)
    call = call_with(tensor, (dy, x, w), stride=stride, dilation=dilation, transposed=True, extra=extra)
    run(*PHASES, None, *call.values())
    reached = by_torch((dy[..., : size - extra], x, w), stride=stride, dilation=dilation, transposed=True)
    for n in ("gradInput", "gradWeight"):
        np.testing.assert_array_equal(call[n].array(), reached[n])
    np.testing.assert_array_equal(call["gradBias"].array(), dy.sum((0, 2)))


@pytest.mark.exhaustive
def test_an_inner_step_that_fails(timed):
    with aclnn.tiling(convolution_backward={"block_m": 4096, "block_p": 4096, "block_k": 4096}):
        big = conv((1, 512, 16, 16), (1, 512, 16, 16), (512, 512, 1, 1))
        check_row(PHASE_ONE, big, Row("17", {}, 561103, "overflow"))


def test_bias_may_be_of_any_format_where_the_page_asks_for_nd_on_a2_and_a3_only():
    odd = {"gradBias": of(4, fmt="NC")}
    assert status_on(A3, PHASE_ONE, good(**odd))[0] == 161002
    assert status_on(TRAINING, PHASE_ONE, good(**odd)) == (0, "")
    assert status_on("ascend910b3", PHASE_ONE, turned(gradBias=of(8, fmt="NC"))) == (0, "")


# -- support tables ----------------------------------------------------------------------------------------------------

LINE = conv((2, 4, 5), (2, 8, 5), (4, 8, 3), padding=1)
CALLS = {"1D": LINE, "2D": good(), "3D": volume()}


@pytest.mark.drawn(15)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axes", CALLS)
@pytest.mark.parametrize("product", PRODUCTS)
def test_types_and_axes_by_product(product, axes, dtype):
    """1D and 2D on 310P, 910A, A2 and A3, 3D on A2 and A3; F32 asks for a mode where the Cube has no FP32."""
    given = typed(CALLS[axes], dtype)
    given["cubeMathType"] = 1
    status, message = status_on(product, PHASE_ONE, given)
    if product == OTHER:
        assert (status, f"is not available on {product}" in message) == (161002, True)
    elif dtype not in TYPES[product]:
        assert (status, f"gradOutput is {dtype}, on {product} it must be of" in message) == (161002, True)
    elif axes == "3D" and product not in WIDE:
        assert (status, f"input has 3 spatial axes, {product} takes 1 or 2" in message) == (161002, True)
    else:
        assert (status, message) == (0, "")


# Promoted type -> kind of product -> what the Cube multiplies in modes 0 to 3; None: 161002.
MODES = {
    F32: {False: (None, "fp16", "fp16", None), True: ("fp32", "hf32", "fp16", "hf32")},
    F16: {False: ("fp16",) * 4, True: ("fp16",) * 4},
    BF16: {False: (None,) * 4, True: ("bf16", "bf16", "fp16", "bf16")},
}


@pytest.mark.drawn(8)
@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("product", [TRAINING, INFERENCE, *WIDE])
def test_cube_math_type(product, dtype, mode):
    """The type that the Cube multiplies, by the results of numbers that each of them rounds in its own way."""
    expected = MODES[dtype][product in WIDE][mode]
    given = typed(conv((1, 1, 1, 2), (1, 1, 1, 2), (1, 1, 1, 1)), dtype)
    given |= {
        "cubeMathType": mode,
        "outputMask": flags(True, False, False),
    }
    status, message = status_on(product, PHASE_ONE, given)
    if expected is None:
        assert status == 161002
        assert f"cubeMathType {mode} with" in message or f"is {dtype}, on {product} it must be of" in message
        return
    assert (status, message) == (0, "")
    if product in (TRAINING, INFERENCE, "ascend910b3"):
        with sim.device(product):
            assert seen(given, dtype) == expected


def seen(given, dtype):
    """What the Cube multiplied: from the bits of a product by 1 that arrive, and from whether 2**17 does."""
    bits, large = 1 + 2.0**-8 + 2.0**-11 + 2.0**-15, min(2.0**17, 2.0**15 if dtype == F16 else np.inf)
    given["gradOutput"].array()[...] = np.reshape([bits, large], (1, 1, 1, 2)).astype(
        given["input"].array().dtype
    )
    given["weight"].array()[...] = 1
    run(*PHASES, None, *given.values())
    fine, wide = (float(v) for v in given["gradInput"].array().reshape(2))
    if dtype == F16 or wide != large:  # infinite, or the largest number where a product saturates
        return "fp16"
    return {1 + 2.0**-7: "bf16", 1 + 2.0**-8 + 2.0**-11: "hf32", bits: "fp32"}[fine]


def test_bfloat16_with_use_fp16_is_converted_and_warned_of():
    executor = PHASE_ONE(*typed(good(cubeMathType=2), BF16).values())[2]
    assert executor.notes == ("cubeMathType: BF16 inputs converted to FP16: the range shrinks to 65504",)
    assert PHASE_ONE(*typed(good(cubeMathType=0), BF16).values())[2].notes == ()


@pytest.mark.drawn(4)
@pytest.mark.parametrize("kinds", list(itertools.product(FLOATS, repeat=3)), ids=" ".join)
@pytest.mark.parametrize("product", ["ascend910b3", TRAINING])
def test_three_inputs_are_promoted_together(product, kinds):
    """float16 with bfloat16 is float32: then the modes are those of float32."""
    common = kinds[0] if len(set(kinds)) == 1 else F32
    given = good(
        **{n: of(*good()[n].shape, dtype=k) for n, k in zip(INPUTS, kinds, strict=True)}, **results_of(kinds)
    )
    for mode in range(4):
        expected = None if product == TRAINING and BF16 in kinds else MODES[common][product in WIDE][mode]
        status, _ = status_on(product, PHASE_ONE, {**given, "cubeMathType": mode})
        assert status == (161002 if expected is None else 0)


def higher(*kinds):
    return kinds[0] if len(set(kinds)) == 1 else F32


def results_of(kinds):
    """The results in the types of the document, for types of gradOutput, input and weight."""
    dy, x, w = kinds
    types = dict(zip(RESULTS, (higher(x, dy), higher(w, dy), dy), strict=True))
    return {n: of(*good()[n].shape, dtype=k) for n, k in types.items()}


@pytest.mark.drawn(3)
@pytest.mark.parametrize("kinds", list(itertools.product(FLOATS, repeat=3)), ids=" ".join)
def test_results_are_of_the_higher_type_of_what_makes_them(kinds):
    given = good(**{n: of(*good()[n].shape, dtype=k) for n, k in zip(INPUTS, kinds, strict=True)})
    wanted = results_of(kinds)
    for n, other in itertools.product(RESULTS, FLOATS):
        call = {**given, **wanted, n: of(*good()[n].shape, dtype=other)}
        status, message = status_on("ascend910b3", PHASE_ONE, call)
        if call[n].dtype == wanted[n].dtype:
            assert (status, message) == (0, "")
        else:
            assert (status, f"{n} is {other}, its type must be" in message) == (161002, True)
            unwanted = flags(*(m != n for m in RESULTS))
            assert status_on("ascend910b3", PHASE_ONE, {**call, "outputMask": unwanted}) == (0, "")


@pytest.mark.drawn(5)
@pytest.mark.parametrize("name", [*INPUTS, "gradInput", "gradWeight"])
@pytest.mark.parametrize("axes", CALLS)
def test_formats_by_rank(axes, name):
    call, rank = CALLS[axes], {"1D": 3, "2D": 4, "3D": 5}[axes]
    legal = {3: {"NCL", "ND"}, 4: {"NCHW"}, 5: {"NCDHW"}}[rank]
    for fmt in (*PRIVATE, "ND", "NC", "NCL", "NCHW", "NHWC", "HWCN", "NCDHW", "NDHWC"):
        given = {**call, name: of(*call[name].shape, fmt=fmt)}
        status, message = status_on("ascend910b3", PHASE_ONE, given)
        assert status == (0 if fmt in legal else 161002)
        assert fmt in legal or f"{name} has format {fmt}, at rank {rank} it must be" in message


# -- documented ranges -------------------------------------------------------------------------------------------------

INNER = 561103


def ranged(**change):
    """A plain 2D convolution whose sizes fit its attributes; time only, nothing is allocated."""
    o = {
        "k": (1, 1),
        "stride": (1, 1),
        "padding": (0, 0),
        "dilation": (1, 1),
        "groups": 1,
        "x": (300, 300),
        **change,
    }
    axes = range(len(o["x"]))
    reach = [o["dilation"][k] * (o["k"][k] - 1) for k in axes]
    out = [(o["x"][k] + 2 * o["padding"][k] - reach[k] - 1) // o["stride"][k] + 1 for k in axes]
    g = o["groups"]
    call = conv((1, g, *out), (1, g, *o["x"]), (g, 1, *o["k"]), stride=o["stride"], padding=o["padding"],
                dilation=o["dilation"], groups=g)  # fmt: skip
    return call


CUBE = {"x": (70, 70, 70), "k": (1, 1, 1), "stride": (1, 1, 1), "padding": (0, 0, 0), "dilation": (1, 1, 1)}
LINE_OF_ONE = {"x": (300,), "k": (1,), "stride": (1,), "padding": (0,), "dilation": (1,)}
# Attribute at the end of its range, and the first value beyond it with the words of the refusal; None: there is no end.
RANGES = (
    ("2D weight", {"k": (255, 1)}, {"k": (256, 1)}, "weight on its last axes is (256, 1), every value must be from 1 to"),
    ("1D weight", {"k": (255,), "x": (300,), "stride": (1,), "padding": (0,), "dilation": (1,)},
     {"k": (256,), "x": (300,), "stride": (1,), "padding": (0,), "dilation": (1,)}, "weight on its last axes is (256,)"),
    ("2D stride", {"stride": (64, 2**31 - 2)}, {"stride": (1, 2**31 - 1)}, "stride is (1, 2147483647), every value must be"),
    ("1D stride", {**LINE_OF_ONE, "stride": (2**31 - 2,)}, {**LINE_OF_ONE, "stride": (2**31 - 1,)}, "from 1 to 2147483646"),
    ("2D padding", {"padding": (255, 0)}, {"padding": (256, 0)}, "padding is (256, 0), every value must be from 0 to 255"),
    ("2D dilation", {"dilation": (255, 1), "k": (2, 1)}, {"dilation": (256, 1), "k": (2, 1)}, "dilation is (256, 1)"),
    ("3D depth of weight", {**CUBE, "x": (300, 3, 3), "k": (256, 1, 1)}, None, ""),
    ("3D depth of weight and its plane", {**CUBE, "x": (260, 3, 3), "k": (256, 3, 3)}, None, ""),
    ("3D weight", {**CUBE, "x": (3, 300, 3), "k": (1, 255, 1)}, {**CUBE, "x": (3, 300, 3), "k": (1, 256, 1)},
     "weight on its last axes is (256, 1)"),
    ("3D strideD", {**CUBE, "stride": (64, 1, 1)}, None, ""),
    ("3D strideH", {**CUBE, "stride": (1, 63, 1)}, {**CUBE, "stride": (1, 64, 1)}, "stride on H and W is (64, 1)"),
    ("3D strideW", {**CUBE, "stride": (1, 1, 63)}, {**CUBE, "stride": (1, 1, 64)}, "must be from 1 to 63, 64 is not"),
    ("3D padD", {**CUBE, "x": (3, 3, 3), "padding": (256, 0, 0)}, None, ""),
    ("3D padH", {**CUBE, "x": (3, 3, 3), "padding": (0, 255, 0)}, {**CUBE, "x": (3, 3, 3), "padding": (0, 256, 0)},
     "padding is (256, 0), every value must be from 0 to 255, 256 is not"),
    ("3D dilationD", {**CUBE, "x": (300, 3, 3), "k": (2, 1, 1), "dilation": (255, 1, 1)},
     {**CUBE, "x": (300, 3, 3), "k": (2, 1, 1), "dilation": (256, 1, 1)}, "dilation is (256, 1, 1)"),
    ("groups", {"groups": 65535, "x": (1, 1)}, {"groups": 65536, "x": (1, 1)}, "groups is 65536, it must be from 1 to"),
)  # fmt: skip


@pytest.mark.drawn(4)
@pytest.mark.parametrize(("inside", "beyond", "words"), [r[1:] for r in RANGES], ids=[r[0] for r in RANGES])
def test_documented_ranges_are_those_of_a2_and_a3(inside, beyond, words):
    assert status_on("ascend910b3", PHASE_ONE, ranged(**inside)) == (0, "")
    if beyond is None:
        return
    for product in ("ascend910b3", A3):
        status, message = status_on(product, PHASE_ONE, ranged(**beyond))
        assert (status, words in message) == (INNER, True), message
    if len(beyond.get("x", (1, 1))) < 3:
        assert status_on(TRAINING, PHASE_ONE, ranged(**beyond)) == (0, "")


def unallocated(*shape):
    kind, rank = aclnn.aclDataType.ACL_FLOAT16, len(shape)
    return aclnn.aclCreateTensor(shape, rank, kind, None, 0, FORMATS["ND"], shape, rank, None)


def test_the_longest_axis():
    for length, status in ((2**31 - 2, 0), (2**31 - 1, INNER)):
        call = conv((1, 1, 1), (1, 1, 1), (1, 1, 1))
        call |= {n: unallocated(1, 1, length) for n in ("gradOutput", "input", "gradInput")}
        found, message = status_on("ascend910b3", PHASE_ONE, call)
        assert found == status, message
        assert (
            not status
            or f"gradOutput is (1, 1, {length}), every value must be from 1 to {2**31 - 2}" in message
        )


TRANSPOSED = {
    "weight": conv((1, 1, 1, 556), (1, 1, 1, 300), (1, 1, 1, 257), transposed=True),
    "3D stride": conv((1, 1, 65, 65, 65), (1, 1, 2, 2, 2), (1, 1, 1, 1, 1), stride=64, transposed=True),
    "padding": conv((1, 1, 488), (1, 1, 1000), (1, 1, 1), padding=256, transposed=True),
    "dilation": conv((1, 1, 258), (1, 1, 2), (1, 1, 2), dilation=256, transposed=True),
    "groups": conv((1, 65536, 1), (1, 65536, 1), (65536, 1, 1), groups=65536, transposed=True),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", TRANSPOSED)
def test_transposed_has_no_upper_ends(name):
    assert status_on("ascend910b3", PHASE_ONE, TRANSPOSED[name]) == (0, "")


@pytest.mark.parametrize("axes", ["2D", "1D"])
def test_a_stride_at_the_end_of_its_range_costs_what_one_window_costs(axes):
    """Phase 1 answers, and time follows the output: as with a stride of the size of the input."""
    sizes = {"2D": ((1, 2, 1, 1), (1, 2, 9, 9), (2, 2, 3, 3)), "1D": ((1, 2, 1), (1, 2, 9), (2, 2, 3))}[axes]
    launches = []
    for stride in (9, 200, 2**31 - 2):
        status, _, executor = PHASE_ONE(*conv(*sizes, stride=stride).values())
        assert status == 0
        launches.append([k.name for k in executor.kernels])
    assert launches[0] == launches[1] == launches[2]


def test_bias_sizes_may_be_null_where_input_has_elements():
    assert status_on("ascend910b3", PHASE_ONE, good(biasSizes=None)) == (0, "")


def test_four_values_of_output_padding_are_tolerated_in_2d():
    assert status_on("ascend910b3", PHASE_ONE, good(outputPadding=ints(0, 0, 0, 0))) == (0, "")


def test_rows_longer_than_4096_are_taken():
    assert status_on("ascend910b3", PHASE_ONE, conv((1, 16, 1, 5000), (1, 16, 1, 5000), (16, 16, 1, 1))) == (
        0,
        "",
    )


@pytest.mark.parametrize(("dtype", "expected"), [(F32, 2049), (F16, 2048)])
def test_grouped_weight_gradients_of_16_bit_products_pass_float16_in_2d(dtype, expected):
    """The vendor's known oddity: rounded to FLOAT16 on the way out even where gradWeight is FLOAT."""
    dy, x, w = np.ones((1, 2, 1, 2)), np.tile([2048, 1], (1, 2, 1, 1)), np.ones((2, 1, 1, 1))
    call = call_with(tensor, [v.astype(np.float32) for v in (dy, x, w)], groups=2)
    call["cubeMathType"] = 2 if dtype == F16 else 0
    run(*PHASES, None, *call.values())
    np.testing.assert_array_equal(call["gradWeight"].array().ravel(), [expected] * 2)


# -- empty tensors -----------------------------------------------------------------------------------------------------


def hollow(x, w, dy, **more):
    return conv(dy, x, w, **more)


EMPTY = (
    ("no batch", hollow((0, 8, 5, 5), (4, 8, 3, 3), (0, 4, 3, 3)), ""),
    ("no batch, transposed", hollow((0, 4, 5, 5), (4, 8, 3, 3), (0, 8, 7, 7), transposed=True), ""),
    ("no channels", hollow((2, 0, 5, 5), (4, 0, 3, 3), (2, 4, 3, 3)), ""),
    ("no batch, no height", hollow((0, 8, 0, 5), (4, 8, 1, 3), (0, 4, 2, 5), padding=1), ""),
    ("no channels, no height", hollow((2, 0, 0, 5), (4, 0, 2, 3), (2, 4, 1, 5), padding=1), ""),
    ("no batch, no height, out of reach", hollow((0, 8, 0, 5), (4, 8, 3, 3), (0, 4, 0, 3)),
     "the kernel reaches over 3 elements on axis H, input with its padding has 0"),
    ("no height", hollow((2, 8, 0, 5), (4, 8, 3, 3), (2, 4, 3, 3)), "of empty tensors only an empty batch, or no channels"),
    ("no taps", hollow((2, 8, 5, 5), (4, 8, 0, 3), (2, 4, 3, 3)), "of empty tensors only an empty batch, or no channels"),
    ("no batch, no taps", hollow((0, 8, 5, 5), (4, 8, 0, 3), (0, 4, 3, 3)), "weight has shape (4, 8, 0, 3) and no elements"),
    ("no channels, transposed", hollow((2, 0, 5, 5), (0, 8, 3, 3), (2, 8, 7, 7), transposed=True),
     "of empty tensors only an empty batch is taken"),
    ("no batch, transposed, other channels", hollow((0, 3, 5, 5), (4, 8, 3, 3), (0, 8, 7, 7), transposed=True),
     "input's channels are 3, weight's first axis is 4; they must be equal"),
    ("no batch, other rank", hollow((0, 8, 5, 5), (4, 8, 3), (0, 4, 3, 3)), "weight has rank 3, input has 4"),
    ("no batch, no biasSizes", {**hollow((0, 8, 5, 5), (4, 8, 3, 3), (0, 4, 3, 3)), "biasSizes": None},
     "biasSizes is null, an empty input with outputMask[2] needs it"),
    ("no batch, wrong biasSizes", {**hollow((0, 8, 5, 5), (4, 8, 3, 3), (0, 4, 3, 3)), "biasSizes": ints(7)},
     "biasSizes is (7,), it must be (4,), weight's first axis"),
    ("no batch, two biasSizes", {**hollow((0, 8, 5, 5), (4, 8, 3, 3), (0, 4, 3, 3)), "biasSizes": ints(4, 4)},
     "biasSizes is (4, 4), it must be (4,)"),
)  # fmt: skip


@pytest.mark.parametrize(("given", "words"), [r[1:] for r in EMPTY], ids=[r[0] for r in EMPTY])
def test_empty_tensors(given, words):
    """On A2 and A3 gradWeight and gradBias are zeros, gradInput has nothing to hold; 310P and 910A refuse all of them."""
    outputs = {n: given[n] for n in RESULTS}
    for t in outputs.values():
        t.array()[...] = 7
    if words:
        check_row(PHASE_ONE, given, Row("14", {}, 161002, words))
    else:
        run(*PHASES, None, *given.values())
        assert not any(t.array().any() for n, t in outputs.items() if n != "gradInput")
        assert outputs["gradInput"].size == 0
    for product in (TRAINING, INFERENCE):
        assert status_on(product, PHASE_ONE, given)[0] == 161002


# -- values ------------------------------------------------------------------------------------------------------------


def with_format(t):
    t.format = FORMATS[FORMAT.get(len(t.shape), "ND")]
    return t


def call_with(make, values, **more):
    dy, x, w = (np.asarray(v) for v in values)
    call = conv(dy.shape, x.shape, w.shape, str(x.dtype), **more)
    call |= {n: with_format(make(v)) for n, v in zip(INPUTS, (dy, x, w), strict=True)}
    return call | {n: with_format(make(np.zeros(call[n].shape, x.dtype))) for n in RESULTS}


EXAMPLES = {
    "1": (dict(stride=2, padding=1), np.arange(1, 17).reshape(1, 1, 4, 4), [[[[1, 0, -1], [2, 0, -2], [1, 0, -1]]]],
          [[[[1, 2], [3, 4]]]], [[0, 2, 0, -4], [0, 2, 0, -6], [0, 2, 0, -8], [0, 1, 0, -4]],
          [[24, 43, 50], [44, 78, 88], [68, 118, 128]], [10]),
    "2": (dict(groups=2), [[[1, 2, 3, 4], [5, 6, 7, 8]]], [[[1, 2]], [[3, -1]]], [[[1, 2, 3], [4, 5, 6]]],
          [[1, 4, 7, 6], [12, 11, 13, -6]], [[14, 20], [92, 107]], [6, 15]),
    "3": (dict(stride=2, padding=1, transposed=True, extra=1), [[[1, 2, 3]]], [[[1, 2, 3]]], [[[1, 2, 3, 4, 5, 6]]],
          [8, 20, 32], [16, 22, 28], [21]),
}  # fmt: skip


@pytest.mark.parametrize(("dtype", "mode"), [(F16, 0), (BF16, 2), (F32, 3)])
@pytest.mark.parametrize("name", EXAMPLES)
def test_worked_examples_are_exact(name, dtype, mode):
    """In every other mode too: tests/kernels."""
    more, x, w, dy, *expected = EXAMPLES[name]
    call = call_with(
        tensor, [np.asarray(v).astype(STORAGE.get(dtype, dtype)) for v in (dy, x, w)], mode=mode, **more
    )
    run(*PHASES, None, *call.values())
    for n, want in zip(RESULTS, expected, strict=True):
        np.testing.assert_array_equal(call[n].array().astype(np.float64).reshape(np.shape(want)), want)


def integers(*shapes, dtype=np.float16, seed=3):
    g = np.random.default_rng(seed)
    return [g.integers(-2, 3, s).astype(dtype) for s in shapes]


def by_torch(values, **more):
    import torch

    dy, x, w = (torch.tensor(np.asarray(v, np.float64)) for v in values)
    n = x.dim() - 2
    each = lambda v: list(v) if isinstance(v, tuple) else [v] * n  # noqa: E731
    found = torch.ops.aten.convolution_backward(
        dy, x, w, [dy.shape[1]], each(more.get("stride", 1)), each(more.get("padding", 0)), each(more.get("dilation", 1)),
        more.get("transposed", False), each(more.get("extra", 0)), more.get("groups", 1), [True] * 3,
    )  # fmt: skip
    return dict(zip(RESULTS, (v.numpy() for v in found), strict=True))


# dy, x, w, attributes: edge cases of the page; tests/kernels/convolution/test_convolution_backward.py draws any others.
SHAPES = {
    "official 1D": ((4, 3, 7), (4, 2, 9), (3, 2, 3), {}),
    "channels that fill no block": ((1, 30, 4, 4), (1, 3, 4, 4), (30, 3, 3, 3), {"padding": 1}),
    "kernel as large as the map": ((2, 5, 1, 1), (2, 3, 4, 4), (5, 3, 4, 4), {}),
    "patches": ((2, 5, 2, 2), (2, 3, 8, 8), (5, 3, 4, 4), {"stride": 4}),
    "padding beyond the kernel": ((1, 2, 8, 8), (1, 3, 4, 4), (2, 3, 3, 3), {"padding": 3}),
    "stride beyond the kernel": ((1, 2, 3, 3), (1, 3, 9, 9), (2, 3, 2, 2), {"stride": 3}),
    "floor remainder": ((1, 2, 3, 3), (1, 3, 8, 8), (2, 3, 3, 3), {"stride": 2}),
    "dilation and stride": ((1, 2, 3, 2), (1, 3, 9, 9), (2, 3, 2, 3), {"stride": 2, "dilation": (3, 3)}),
    "depthwise, multiplier 2": ((1, 12, 5, 5), (1, 6, 5, 5), (12, 1, 3, 3), {"padding": 1, "groups": 6}),
    "transposed, most outputPadding": ((1, 3, 10, 10), (1, 4, 5, 5), (4, 3, 3, 3),
                                       {"stride": 2, "padding": 1, "transposed": True, "extra": 1}),
    "transposed groups": ((1, 6, 7, 7), (1, 4, 4, 4), (4, 3, 1, 1), {"stride": 2, "transposed": True, "groups": 2}),
    "3D groups": ((1, 4, 3, 3, 3), (1, 4, 3, 3, 3), (4, 2, 3, 3, 3), {"padding": 1, "groups": 2}),
    "3D transposed": ((1, 3, 5, 5, 5), (1, 2, 3, 3, 3), (2, 3, 3, 3, 3), {"stride": 2, "padding": 1, "transposed": True}),
    "test of the repository": ((1, 8, 4, 1), (1, 12, 14, 21), (8, 3, 5, 5), {"stride": (1, 1), "dilation": (4, 7),
                               "padding": (3, 4), "groups": 4}),
}  # fmt: skip


@pytest.mark.drawn(2)
@pytest.mark.extra("torch")
@pytest.mark.parametrize("name", SHAPES)
def test_shapes_of_the_page(name):
    dy, x, w, more = SHAPES[name]
    values = integers(dy, x, w, dtype=np.float32)
    call = call_with(tensor, values, **more)
    run(*PHASES, None, *call.values())
    for n, expected in by_torch(values, **more).items():
        np.testing.assert_array_equal(call[n].array(), expected)


@pytest.mark.extra("torch")
def test_four_values_of_padding_are_top_bottom_left_right():
    values = integers((1, 4, 6, 7), (1, 3, 5, 5), (4, 3, 3, 3), dtype=np.float32)
    call = call_with(tensor, values, padding=(1, 2, 3, 1))
    run(*PHASES, None, *call.values())
    dy, x, w = values
    around = np.pad(x, ((0, 0), (0, 0), (1, 2), (3, 1)))
    expected = by_torch((dy, around, w))
    np.testing.assert_array_equal(call["gradInput"].array(), expected["gradInput"][:, :, 1:-2, 3:-1])
    for n in RESULTS[1:]:
        np.testing.assert_array_equal(call[n].array(), expected[n])


MASKS = list(itertools.product((False, True), repeat=3))


@pytest.mark.drawn(2)
@pytest.mark.extra("torch")
@pytest.mark.parametrize(
    ("wanted", "transposed"), [*((m, False) for m in MASKS), (MASKS[3], True), (MASKS[4], True)], ids=str
)
def test_masks(wanted, transposed):
    more = {"stride": 2, "transposed": True} if transposed else {}
    values = integers(
        *(
            ((1, 3, 9, 9), (1, 4, 4, 4), (4, 3, 3, 3))
            if transposed
            else ((1, 4, 3, 3), (1, 3, 5, 5), (4, 3, 3, 3))
        )
    )
    call = call_with(tensor, values, **more)
    for n in RESULTS:
        call[n].array()[...] = 7
    call["outputMask"] = flags(*wanted)
    executor = run(*PHASES, None, *call.values())
    for (n, expected), asked in zip(by_torch(values, **more).items(), wanted, strict=True):
        np.testing.assert_array_equal(call[n].array(), expected if asked else np.full(call[n].shape, 7))
    assert bool(executor.kernels) == any(wanted)
    nulls = {n: None for n, asked in zip(RESULTS, wanted, strict=True) if not asked}
    assert status_on("ascend910b3", PHASE_ONE, {**call, **nulls}) == (0, "")


@pytest.mark.extra("torch")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_inputs_and_outputs_of_any_strides(layout):
    values = integers((2, 4, 3, 3), (2, 3, 5, 5), (4, 3, 3, 3))
    call = call_with(LAYOUTS[layout], values)
    executor = run(*PHASES, None, *call.values())
    for n, expected in by_torch(values).items():
        np.testing.assert_array_equal(call[n].array(), expected)
    copies = [k.parameter for k in executor.kernels if k.role in ("contiguous", "view copy")]
    strides = {
        "contiguous": [],
        "offset": [],
        "strided": [*INPUTS, *RESULTS],
        "transposed": [*INPUTS, *RESULTS],
    }
    assert copies == strides[layout]


@pytest.mark.extra("torch")
def test_broadcast_views_are_inputs_and_no_outputs():
    values = integers((2, 4, 3, 3), (2, 3, 5, 5), (4, 3, 3, 3))
    call = call_with(tensor, (np.ones_like(values[0]), *values[1:]))
    one = with_format(stretched((2, 4, 3, 3)))
    one.array()[...] = 1
    run(*PHASES, None, *{**call, "gradOutput": one}.values())
    for n, expected in by_torch((np.ones((2, 4, 3, 3)), *values[1:])).items():
        np.testing.assert_array_equal(call[n].array(), expected)
    for n in RESULTS:
        shared = with_format(stretched(good()[n].shape))
        check_row(PHASE_ONE, good(), Row("-", {n: shared}, 161002, "a stride of 0 is for inputs only"))


def test_a_weight_gradient_beyond_float16_overflows_where_it_is_narrowed_only():
    """dW is summed in FP32: 65504 is passed there, and infinite in float16 only. A FLOAT weight makes it FLOAT."""
    dy, x = np.full((4, 1, 10, 10), 16, np.float16), np.full((4, 1, 10, 10), 16, np.float16)
    for dtype, expected in ((F16, np.inf), (F32, 102400)):
        call = call_with(tensor, (dy, x, np.ones((1, 1, 1, 1), np.float16)))
        call |= {n: of(1, 1, 1, 1, dtype=dtype) for n in ("weight", "gradWeight")}
        run(*PHASES, None, *call.values())
        assert float(call["gradWeight"].array().reshape(())) == expected


@pytest.mark.parametrize(("mode", "expected"), [(0, 70000), (1, 70016), (2, np.inf), (3, 70016)])
def test_float32_beyond_float16_by_mode(mode, expected):
    """USE_FP16 overflows; HF32 keeps the range of FP32 and 11 bits; the bias does not know the mode."""
    values = [np.full((1, 1, 1, 1), v, np.float32) for v in (70000, 1, 1)]
    call = call_with(tensor, values, mode=mode)
    run(*PHASES, None, *call.values())
    assert float(call["gradInput"].array().reshape(())) == expected
    assert float(call["gradBias"].array()[0]) == 70000


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_weight_gradients_are_added_atomically_unless_the_switch_is_on(level):
    many = conv((8, 16, 32, 32), (8, 16, 32, 32), (16, 16, 3, 3), padding=1)
    aclnn.aclrtCtxSetSysParamOpt(aclnn.ACL_OPT_DETERMINISTIC, level)
    try:
        tiling = PHASE_ONE(*many.values())[2].tiling
    finally:
        aclnn.aclrtCtxSetSysParamOpt(aclnn.ACL_OPT_DETERMINISTIC, 0)
    assert tiling["combine"] == ("two_phase" if level else "atomic")

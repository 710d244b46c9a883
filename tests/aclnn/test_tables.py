"""Every condition of the pages' tables of checks, in their order: its code, and a message with both values."""

from __future__ import annotations

import numpy as np
import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import aclnn

from .calls import blank, refused, strided

NHWC, NC1HWC0 = aclnn.aclFormat.ACL_FORMAT_NHWC, aclnn.aclFormat.ACL_FORMAT_NC1HWC0
F16, BF16, F32, F64, I32 = "float16", "bfloat16", "float32", "float64", "int32"


def ordered(check, good, table):
    """Each condition gives its code and text; of two that fail at once, the earlier one of the table is told."""
    for number, (change, status, text) in enumerate(table):
        found, message = check({**good, **change})
        assert found == status, message
        assert text in message, message
        for later, _, _ in table[number + 1 :]:
            if set(later).isdisjoint(change):
                both, words = check({**good, **later, **change})
                assert (both, text in words) == (status, True), (change, later, words)


# -- BatchNormReduceBackward -----------------------------------------------------------------------------------------


def bn_good():
    c = (3,)
    return {
        "gradOut": blank((2, 3, 4)),
        "input": blank((2, 3, 4)),
        "mean": blank(c, F32),
        "invstd": blank(c, F32),
        "weight": None,
        "inputG": True,
        "weightG": True,
        "biasG": True,
        "sumDy": blank(c, F32),
        "sumDyXmu": blank(c, F32),
        "gradWeight": blank(c),
        "gradBias": blank(c, BF16),
    }


def bn(arguments):
    return refused(aclnn.aclnnBatchNormReduceBackwardGetWorkspaceSize, *arguments.values())


BN = [
    ({"gradOut": None}, 161001, "gradOut is null; it is required"),
    ({"input": None}, 161001, "input is null; it is required"),
    ({"mean": None}, 161001, "mean is null"),
    ({"invstd": None}, 161001, "invstd is null"),
    ({"sumDy": None}, 161001, "sumDy is null; inputG asks for it"),
    ({"sumDyXmu": None}, 161001, "sumDyXmu is null; inputG asks for it"),
    ({"gradWeight": None}, 161001, "gradWeight is null; weightG asks for it"),
    ({"gradBias": None}, 161001, "gradBias is null; biasG asks for it"),
]
BN_ALONE = [
    (
        {"gradOut": blank((2, 3, 4), F64)},
        "gradOut is fp64; on ascend910b3 it must be float16, bfloat16 or float32",
    ),
    ({"mean": blank((3,), I32)}, "mean is int32; on ascend910b3 it must be"),
    ({"invstd": blank((3,), I32)}, "invstd is int32"),
    ({"gradOut": blank((2, 3, 4), F32)}, "gradOut is float32, input is float16; they must be of one type"),
    ({"sumDy": blank((3,), F64)}, "sumDy is fp64"),
    ({"gradBias": blank((3,), I32)}, "gradBias is int32"),
    (
        {"gradOut": blank((2, 3, 4), F16, NHWC)},
        "gradOut has format ACL_FORMAT_NHWC, input has ACL_FORMAT_ND; they must be equal",
    ),
    ({"mean": blank((3,), F32, NC1HWC0)}, "mean has format ACL_FORMAT_NC1HWC0, which is private"),
    ({"sumDy": blank((3,), F32, NC1HWC0)}, "sumDy has format ACL_FORMAT_NC1HWC0, which is private"),
    ({"gradOut": blank((3,)), "input": blank((3,))}, "gradOut has rank 1; it must be from 2 to 8"),
    ({"input": blank((1,) * 9)}, "input has rank 9; it must be from 2 to 8"),
    (
        {"gradOut": blank((2, 0, 4)), "input": blank((2, 0, 4))},
        "input has shape (2, 0, 4); axis 1, the channels, is 0",
    ),
    ({"gradOut": blank((2, 3, 1))}, "gradOut has shape (2, 3, 1), input has (2, 3, 4); they must be equal"),
    ({"mean": blank((4,), F32)}, "mean has shape (4,); it must be (3,)"),
    (
        {"sumDyXmu": blank((1, 3), F32)},
        "sumDyXmu has shape (1, 3); it must be (3,), one element for each channel",
    ),
]


def test_batch_norm_nulls_in_order():
    ordered(bn, bn_good(), BN)


@pytest.mark.parametrize(("change", "text"), BN_ALONE, ids=[text[:30] for _, text in BN_ALONE])
def test_batch_norm_refusals(change, text):
    status, message = bn({**bn_good(), **change})
    assert status == 161002
    assert text in message
    assert message.startswith("aclnnBatchNormReduceBackward: ")


def test_batch_norm_types_come_before_formats_before_shapes():
    wrong = [
        {"gradOut": blank((2, 3, 4), F32, NHWC), "sumDy": blank((5,), F32)},
        {"gradOut": blank((2, 3, 4), F16, NHWC), "sumDy": blank((5,), F32)},
        {"sumDy": blank((5,), F32)},
    ]
    for change, text in zip(wrong, ("one type", "has format", "sumDy has shape (5,)"), strict=True):
        assert text in bn({**bn_good(), **change})[1]


def test_batch_norm_outputs_that_no_flag_asks_for_may_be_null():
    given = {**bn_good(), "inputG": False, "sumDy": None, "sumDyXmu": None}
    assert aclnn.aclnnBatchNormReduceBackwardGetWorkspaceSize(*given.values())[0] == 0


# -- RmsNormGrad -----------------------------------------------------------------------------------------------------


def rms_good():
    return {
        "dy": blank((4, 5, 32)),
        "x": blank((4, 5, 32)),
        "rstd": blank((4, 5), F32),
        "gamma": blank((32,)),
        "dxOut": blank((4, 5, 32)),
        "dgammaOut": blank((32,), F32),
    }


def rms(arguments):
    return refused(aclnn.aclnnRmsNormGradGetWorkspaceSize, *arguments.values())


RMS = [
    *[
        ({n: None}, 161001, f"{n} is null; it is required")
        for n in ("dy", "x", "rstd", "gamma", "dxOut", "dgammaOut")
    ],
    ({"rstd": blank((4, 5))}, 161002, "rstd is float16; it must be float32"),
    ({"dy": blank((4, 5, 32), F32)}, 161002, "dy is float32, x is float16; they must be of one type"),
    ({"gamma": blank((32,), BF16)}, 161002, "x float16 with gamma bfloat16 is not supported on ascend910b3"),
    ({"dxOut": blank((4, 5, 32), F32)}, 161002, "dxOut is float32; it must be float16"),
    ({"dgammaOut": blank((32,))}, 161002, "dgammaOut is float16; it must be float32"),
]
RMS_TILING = [
    ({n: blank((1,) * 9, F16) for n in ("dy", "x", "dxOut")}, "x has rank 9; it must be from 1 to 8"),
    ({"gamma": blank((), F16)}, "gamma has rank 0; it must be from 1 to 8"),
    ({"gamma": blank((1, 1, 1, 32))}, "gamma has rank 4, x has 3; gamma cannot have more axes than x"),
    ({"dy": blank((20, 32))}, "dy has rank 2, x has 3; they must be equal"),
    ({"dxOut": blank((20, 32))}, "dxOut has rank 2, dy has 3; they must be equal"),
    ({"dgammaOut": blank((1, 32), F32)}, "dgammaOut has rank 2, gamma has 1; they must be equal"),
    ({"dy": blank((5, 4, 32))}, "dy has shape (5, 4, 32), x has (4, 5, 32); they must be equal"),
    ({"dxOut": blank((5, 4, 32))}, "dxOut has shape (5, 4, 32), x has (4, 5, 32); they must be equal"),
    ({n: blank((4, 5, 0)) for n in ("dy", "x", "dxOut")}, "x has shape (4, 5, 0) and no elements"),
    ({"rstd": blank((4,), F32)}, "rstd has shape (4,); it must have the row axes of x, (4, 5)"),
    ({"gamma": blank((16,))}, "gamma has shape (16,); it must be the last axes of x, (32,) of (4, 5, 32)"),
    ({"dgammaOut": blank((16,), F32)}, "dgammaOut has shape (16,); it must be the last axes of x, (32,)"),
    (
        {**{n: blank((0, 5, 32)) for n in ("dy", "x", "dxOut")}, "rstd": blank((0, 5), F32)},
        "x has shape (0, 5, 32) and no elements",
    ),
]


def test_rms_norm_nulls_and_types_in_order():
    ordered(rms, rms_good(), RMS)


@pytest.mark.parametrize(("change", "text"), RMS_TILING, ids=[text[:30] for _, text in RMS_TILING])
def test_rms_norm_shapes_are_refused_by_the_tiling(change, text):
    status, message = rms({**rms_good(), **change})
    assert status == 561002, message
    assert text in message


def test_rms_norm_of_the_inference_series_needs_rows_of_32_bytes():
    small = {**rms_good(), **{n: blank((4, 5, 8)) for n in ("dy", "x", "dxOut")}}
    small |= {"gamma": blank((8,)), "dgammaOut": blank((8,), F32)}
    with sim.device("ascend310p"):
        status, message = rms(small)
    assert (status, "the last axis of x has 16 bytes; it must have at least 32" in message) == (561002, True)


def test_rms_norm_takes_every_tuple_of_its_table():
    for dy, gamma in ((F16, F32), (BF16, F32), (F16, F16), (F32, F32), (BF16, BF16)):
        given = {
            **rms_good(),
            **{n: blank((4, 5, 32), dy) for n in ("dy", "x", "dxOut")},
            "gamma": blank((32,), gamma),
        }
        assert aclnn.aclnnRmsNormGradGetWorkspaceSize(*given.values())[0] == 0
    with sim.device("ascend310p"):
        mixed = {**rms_good(), "gamma": blank((32,), F32)}
        status, message = rms(mixed)
    assert status == 161002
    assert "x float16 with gamma float32 is not supported on ascend310p" in message


# -- BinaryCrossEntropyWithLogitsBackward ----------------------------------------------------------------------------


def bce_good():
    return {
        "gradOutput": blank((1,), F32),
        "self": blank((4, 6)),
        "target": blank((4, 6), BF16),
        "weightOptional": blank((6,)),
        "posWeightOptional": blank((4, 1), F32),
        "reduction": 1,
        "out": blank((4, 6), BF16),
    }


def bce(arguments):
    return refused(aclnn.aclnnBinaryCrossEntropyWithLogitsBackwardGetWorkspaceSize, *arguments.values())


BCE = [
    ({"gradOutput": None}, 161001, "gradOutput is null; it is required"),
    ({"self": None}, 161001, "self is null"),
    ({"target": None}, 161001, "target is null"),
    ({"out": None}, 161001, "out is null"),
    ({"out": blank((1,) * 9, BF16)}, 161002, "out has rank 9; it must be from 0 to 8"),
    ({"gradOutput": blank((1,), I32)}, 161002, "gradOutput is int32; on ascend910b3 it must be float16"),
    ({"self": blank((4, 6), F64)}, 161002, "self is fp64"),
    ({"weightOptional": blank((6,), I32)}, 161002, "weightOptional is int32"),
    ({"posWeightOptional": blank((6,), I32)}, 161002, "posWeightOptional is int32"),
    ({"out": blank((4, 6))}, 161002, "out is float16, target is bfloat16; they must be of one type"),
    (
        {"target": blank((4, 6), BF16, NHWC)},
        161002,
        "self has format ACL_FORMAT_ND, target has ACL_FORMAT_NHWC",
    ),
    ({"out": blank((4, 6), BF16, NHWC)}, 161002, "self has format ACL_FORMAT_ND, out has ACL_FORMAT_NHWC"),
    ({"target": blank((4, 5), BF16)}, 161002, "target has shape (4, 5), self has (4, 6); they must be equal"),
    (
        {"gradOutput": blank((1, 1, 1, 1))},
        161002,
        "gradOutput has shape (1, 1, 1, 1), which does not broadcast",
    ),
    (
        {"weightOptional": blank((4,))},
        161002,
        "weightOptional has shape (4,), which does not broadcast to that of self",
    ),
    (
        {"posWeightOptional": blank((5,))},
        161002,
        "posWeightOptional has shape (5,), which does not broadcast",
    ),
    ({"out": blank((6, 4), BF16)}, 161002, "out has shape (6, 4); it must be (4, 6), the shape of self"),
    ({"reduction": 3}, 161002, "reduction is 3; it must be 0 (none), 1 (mean) or 2 (sum)"),
    ({"reduction": -1}, 161002, "reduction is -1; it must be 0 (none)"),
]


def test_bce_in_order():
    ordered(bce, bce_good(), BCE)


def test_bce_of_nothing_skips_the_shapes_but_not_the_reduction():
    nothing = {**bce_good(), "self": blank((0, 6)), "weightOptional": blank((5,))}
    assert aclnn.aclnnBinaryCrossEntropyWithLogitsBackwardGetWorkspaceSize(*nothing.values())[:2] == (0, 0)
    status, message = bce({**nothing, "reduction": 7})
    assert (status, "reduction is 7" in message) == (161002, True)


# -- GroupNormBackward -----------------------------------------------------------------------------------------------


def gn_good():
    return {
        "gradOut": blank((2, 6, 5)),
        "input": blank((2, 6, 5)),
        "mean": blank((2, 3)),
        "rstd": blank((2, 3)),
        "gamma": blank((6,)),
        "N": 2,
        "C": 6,
        "HxW": 5,
        "group": 3,
        "outputMask": aclnn.aclCreateBoolArray([True] * 3, 3),
        "gradInput": blank((2, 6, 5)),
        "gradGammaOut": blank((6,)),
        "gradBetaOut": blank((6,)),
    }


def gn(arguments):
    return refused(aclnn.aclnnGroupNormBackwardGetWorkspaceSize, *arguments.values())


GN = [
    *[({n: None}, 161001, f"{n} is null; it is required") for n in ("gradOut", "input", "mean", "rstd")],
    ({"outputMask": None}, 161002, "outputMask is null; it must have 3 entries"),
    ({"outputMask": aclnn.aclCreateBoolArray([True], 1)}, 161002, "outputMask has 1 entries; it must have 3"),
    ({"gradInput": None}, 161001, "gradInput is null; outputMask[0] asks for it"),
    ({"gradGammaOut": None}, 161001, "gradGammaOut is null; outputMask[1] asks for it"),
    ({"gradBetaOut": None}, 161001, "gradBetaOut is null; outputMask[2] asks for it"),
    ({"gradOut": blank((2, 6, 5), F64)}, 161002, "gradOut is fp64; on ascend910b3 it must be float16"),
    (
        {"input": blank((2, 6, 5), F32)},
        161002,
        "input is float32, gradOut is float16; they must be of one type",
    ),
    ({"mean": blank((2, 3), F32)}, 161002, "mean is float32, gradOut is float16"),
    ({"rstd": blank((2, 3), F32)}, 161002, "rstd is float32, gradOut is float16"),
    ({"gamma": blank((6,), F32)}, 161002, "gamma is float32, gradOut is float16"),
    ({"gradInput": blank((2, 6, 5), F32)}, 161002, "gradInput is float32, gradOut is float16"),
    ({"gradGammaOut": blank((6,), F32)}, 161002, "gradGammaOut is float32, gradOut is float16"),
    ({"gradBetaOut": blank((6,), F32)}, 161002, "gradBetaOut is float32, gradOut is float16"),
    ({"group": 0}, 161002, "C is 6, group is 0; group must be at least 1 and divide C"),
    ({"group": 4}, 161002, "C is 6, group is 4; group must be at least 1 and divide C"),
    ({"gradOut": blank((1, 1, 1, 1, 1, 1, 2, 6, 5))}, 161002, "gradOut has rank 9; it must be from 0 to 8"),
    (
        {"gradOut": blank((2, 6, 4))},
        161002,
        "gradOut has 48 elements in shape (2, 6, 4); it must have N * C * HxW = 60",
    ),
    ({"input": blank((59,))}, 161002, "input has 59 elements in shape (59,); it must have N * C * HxW = 60"),
    ({"mean": blank((2, 2))}, 161002, "mean has 4 elements in shape (2, 2); it must have N * group = 6"),
    ({"rstd": blank((5,))}, 161002, "rstd has 5 elements in shape (5,); it must have N * group = 6"),
    ({"gamma": blank((7,))}, 161002, "gamma has 7 elements in shape (7,); it must have C = 6"),
    (
        {"gradInput": blank((60,))},
        161002,
        "gradInput has shape (60,); it must be (2, 6, 5), the shape of input",
    ),
    (
        {"gradGammaOut": blank((2, 3))},
        161002,
        "gradGammaOut has shape (2, 3); it must be (6,), the shape of gamma",
    ),
    (
        {"gradBetaOut": blank((3, 2))},
        161002,
        "gradBetaOut has shape (3, 2); it must be (6,), the shape of gamma",
    ),
]


def test_group_norm_in_order():
    ordered(gn, gn_good(), GN)


def test_group_norm_negative_sizes():
    status, message = gn({**gn_good(), "N": -2, "HxW": -5})
    assert (status, "N is -2; it must be at least 0" in message) == (161002, True)


def test_group_norm_limits_of_a2():
    given = {**gn_good(), "N": 1, "C": 8001, "HxW": 1, "group": 1, "mean": blank((1,)), "rstd": blank((1,))}
    given |= {n: blank((1, 8001, 1)) for n in ("gradOut", "input", "gradInput")}
    given |= {n: blank((8001,)) for n in ("gamma", "gradGammaOut", "gradBetaOut")}
    status, message = gn(given)
    assert (status, "C / group is 8001; on ascend910b3 it must be at most 8000" in message) == (161002, True)
    with sim.device("ascend910a"):
        assert aclnn.aclnnGroupNormBackwardGetWorkspaceSize(*given.values())[0] == 0


# -- products --------------------------------------------------------------------------------------------------------

CALLS = {
    "batch_norm": (aclnn.aclnnBatchNormReduceBackwardGetWorkspaceSize, bn_good, ("ascend310p", "ascend310b")),
    "rms_norm": (aclnn.aclnnRmsNormGradGetWorkspaceSize, rms_good, ("ascend910a", "ascend310b")),
    "bce": (aclnn.aclnnBinaryCrossEntropyWithLogitsBackwardGetWorkspaceSize, bce_good, ("ascend310b",)),
    "group_norm": (aclnn.aclnnGroupNormBackwardGetWorkspaceSize, gn_good, ("ascend310p", "ascend310b")),
}


@pytest.mark.parametrize("name", CALLS)
def test_products_without_an_operator_refuse_it(name):
    call, good, without = CALLS[name]
    for product in without:
        with sim.device(product):
            status, message = refused(call, *good().values())
        assert status == 161002
        assert f"is not available on {product}" in message
    for product in ("ascend910b3", "ascend910c"):
        with sim.device(product):
            assert call(*good().values())[0] == 0


@pytest.mark.parametrize("name", ["batch_norm", "bce", "group_norm"])
def test_bfloat16_is_refused_on_910a(name):
    call, good, _ = CALLS[name]
    given = {n: blank(t.shape, BF16) if isinstance(t, aclnn.aclTensor) else t for n, t in good().items()}
    with sim.device("ascend910a"):
        status, message = refused(call, *given.values())
    assert (status, "is bfloat16; on ascend910a it must be float16 or float32" in message) == (161002, True)
    assert call(*given.values())[0] == 0


@pytest.mark.parametrize("name", CALLS)
def test_outputs_must_not_overlap_themselves(name):
    call, good, _ = CALLS[name]
    given = good()
    last = [n for n, t in given.items() if isinstance(t, aclnn.aclTensor)][-1]
    shape, kind = given[last].shape, given[last].acl_dtype
    memory = aclnn.DeviceMemory(64)
    stretched = aclnn.aclCreateTensor(
        shape, len(shape), kind, [0] * len(shape), 0, given[last].format, [1], 1, memory
    )
    status, message = refused(call, *{**given, last: stretched}.values())
    assert (status, "a stride of 0 is for inputs only" in message) == (161002, True)


def test_the_recent_message_is_read_once_and_names_the_status():
    bn({**bn_good(), "gradOut": None})
    assert aclnn.aclGetRecentErrMsg() == ""
    aclnn.aclnnRmsNormGradGetWorkspaceSize(*{**rms_good(), "x": None}.values())
    assert aclnn.aclGetRecentErrMsg().endswith("[161001 ACLNN_ERR_PARAM_NULLPTR]")


def test_a_tiling_that_does_not_fit_is_an_internal_step_that_failed():
    given = {**rms_good(), **{n: blank((4, 8192)) for n in ("dy", "x", "dxOut")}}
    given |= {"rstd": blank((4,), F32), "gamma": blank((8192,)), "dgammaOut": blank((8192,), F32)}
    with aclnn.tiling(rms_norm_grad={"strategy": "full_row"}):
        status, message = rms(given)
    assert (status, "ub overflow" in message) == (561103, True)
    assert aclnn.aclnnRmsNormGradGetWorkspaceSize(*given.values())[0] == 0


def test_strided_inputs_are_no_reason_to_refuse():
    x = strided(np.zeros((4, 5, 32)), F16)
    assert aclnn.aclnnRmsNormGradGetWorkspaceSize(*{**rms_good(), "x": x}.values())[0] == 0

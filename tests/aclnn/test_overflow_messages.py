"""561103 for a tiling that does not fit: the message names the inner step and only what the caller can change."""

from __future__ import annotations

import re

import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import aclnn

ND, F16 = aclnn.aclFormat.ACL_FORMAT_ND, aclnn.aclDataType.ACL_FLOAT16
OUTER = "[561103 ACLNN_ERR_INNER_NULLPTR]"
INNER = "561002 ACLNN_ERR_INNER_TILING_ERROR"


def of(*shape):
    """A tensor without memory."""
    return aclnn.aclCreateTensor(shape, len(shape), F16, None, 0, ND, shape, len(shape), None)


def group_norm(n=2, c=64, hxw=20000, **knobs):
    """Status and message of phase 1 with these knobs in force."""
    data, one = of(n, c, hxw), of(n, 1)
    wanted = aclnn.aclCreateBoolArray([True] * 3, 3)
    aclnn.aclGetRecentErrMsg()
    with aclnn.tiling(group_norm_backward=knobs):
        status, _, _ = aclnn.aclnnGroupNormBackwardGetWorkspaceSize(
            data, data, one, of(n, 1), of(c), n, c, hxw, 1, wanted, of(n, c, hxw), of(c), of(c)
        )
    return status, aclnn.aclGetRecentErrMsg()


@pytest.mark.parametrize(
    ("knobs", "way_out"),
    [
        ({"strategy": "resident"}, "Without tiling strategy=resident it fits."),
        (
            {"strategy": "shared", "rows": 3, "cols": 20000},
            "Of aclnnGroupNormBackward's knobs, tried and fits: cols=",
        ),
    ],
)
def test_an_overflow_names_the_inner_step_both_numbers_and_the_knobs_that_were_given(knobs, way_out):
    status, message = group_norm(**knobs)
    assert status == 561103
    assert message.startswith(f"aclnnGroupNormBackward: the tiling failed ({INNER}): ")
    assert re.search(r"ub overflow, requires \d+ bits while 1572864 bits available", message)
    assert way_out in message
    assert message.endswith(OUTER)
    named = set(re.findall(r"(\w+) ?=", message))
    assert named <= set(knobs), "no knob that the caller did not give, no size of a kernel inside"


def test_the_way_out_of_the_message_holds():
    knobs = {"strategy": "shared", "rows": 3, "cols": 20000}
    _, message = group_norm(**knobs)
    cols = int(re.search(r"cols=(\d+)", message)[1])
    assert group_norm(**{**knobs, "cols": cols}) == (0, "")
    assert group_norm() == (0, "")


def test_without_knobs_the_sizes_are_what_the_caller_can_change():
    with sim.device("ascend910b3", overrides={"buffers.ub": 8448 + 512}):
        status, message = group_norm(c=2, hxw=5)
    assert status == 561103
    assert INNER in message
    assert "for gradOut [2, 2, 5], input [2, 2, 5]" in message
    assert "make the tensors smaller" in message
    assert "=" not in message.split("available")[1]


def test_a_knob_that_the_operator_lacks_is_named():
    status, message = group_norm(zzz=1)
    assert status == 161002
    assert message.startswith("aclnnGroupNormBackward: has no tiling parameter 'zzz'; known are strategy")

"""The page about what the five operators share: two phases, status codes, tensors, products, the determinism switch.

Streams, workspaces and executors are in tests/aclnn/test_phases.py; rows of each operator in the files beside this one.
"""

from __future__ import annotations

import numpy as np
import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import aclnn
from ascendtile.kernels.aclnn import status
from ascendtile.simulator.products import load_product

from ..calls import blank, run, strided, tensor
from . import test_batch_norm_page as bn
from . import test_bce_page as bce
from . import test_convolution_page as conv
from . import test_group_norm_page as gn
from . import test_rms_norm_page as rms
from .rows import A2, A3, BF16, F16, F32, FORMATS, OTHER, Row, check_row, status_on

PAGES = {"batch norm": bn, "rms norm": rms, "bce": bce, "convolution": conv, "group norm": gn}
every_operator = pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
FIRST = {
    "batch norm": "gradOut",
    "rms norm": "dy",
    "bce": "self",
    "convolution": "gradOutput",
    "group norm": "gradOut",
}


@pytest.fixture
def stream():
    return aclnn.aclrtCreateStream()[1]


def ready(page):
    """A call of an operator that is through phase 1: (tensors by name, workspace, its size, executor)."""
    given = page.good()
    found, size, executor = page.PHASE_ONE(*given.values())
    assert found == 0
    return given, aclnn.aclrtMalloc(size)[1], size, executor


# -- two phases --------------------------------------------------------------------------------------------------------


@every_operator
def test_a_call_from_beginning_to_end(page, stream):
    _, workspace, size, executor = ready(page)
    assert page.PHASES[1](workspace, size, executor, stream) == 0
    assert len(stream.pending) == 1
    assert aclnn.aclrtSynchronizeStream(stream) == 0
    assert page.PHASES[1](workspace, size, executor, stream) == 561000
    assert "executor was used before; one phase 1 is for one phase 2" in aclnn.aclGetRecentErrMsg()


@every_operator
def test_phase_two_without_an_executor_or_a_workspace(page, stream):
    _, workspace, size, executor = ready(page)
    assert page.PHASES[1](workspace, size, None, stream) == 161001
    assert page.PHASES[1](None, size, executor, stream) == 161001
    assert (
        f"workspace is null, workspaceSize is {size}; the executor is deleted" in aclnn.aclGetRecentErrMsg()
    )
    assert page.PHASES[1](workspace, size, executor, stream) == 561000
    assert not stream.pending


@every_operator
def test_none_is_the_default_stream(page):
    _, workspace, size, executor = ready(page)
    assert page.PHASES[1](workspace, size, executor, None) == 0
    assert aclnn.aclrtSynchronizeDevice() == 0


@every_operator
def test_failures_of_kernels_appear_at_synchronisation(page, stream, request):
    """Memory that was freed before the kernels ran, of a tensor and of the workspace."""
    name = FIRST[request.node.callspec.id]
    given, workspace, size, executor = ready(page)
    aclnn.aclrtFree(given[name].data)
    assert page.PHASES[1](workspace, size, executor, stream) == 0
    assert aclnn.aclrtSynchronizeStream(stream) == 361001
    words = f"{name} cannot be reached: its device memory was freed before the kernels ran"
    assert words in aclnn.aclGetRecentErrMsg()
    _, workspace, size, executor = ready(page)
    assert page.PHASES[1](workspace, size, executor, stream) == 0
    aclnn.aclrtFree(workspace)
    assert aclnn.aclrtSynchronizeStream(stream) == 361001
    assert "workspace was freed before the kernels ran" in aclnn.aclGetRecentErrMsg()
    assert not stream.pending


def test_a_tensor_without_memory_has_a_time_and_no_values(stream):
    given = {n: blank(t.shape, F32) for n, t in rms.good().items()}
    given["x"] = aclnn.aclCreateTensor(
        (4, 5, 32), 3, aclnn.aclDataType.ACL_FLOAT, None, 0, FORMATS["ND"], (4, 5, 32), 3, None
    )
    found, size, executor = rms.PHASE_ONE(*given.values())
    assert (found, rms.PHASES[1](aclnn.aclrtMalloc(size)[1], size, executor, stream)) == (0, 0)
    assert aclnn.aclrtSynchronizeStream(stream) == 361001
    assert "x cannot be reached: it has no device memory" in aclnn.aclGetRecentErrMsg()


def test_tensors_may_be_destroyed_once_the_kernels_are_enqueued(stream):
    x, dy, rstd, gamma = (tensor(v) for v in (np.ones((2, 32)), np.ones((2, 32)), np.ones(2), np.ones(32)))
    x, dy, rstd, gamma = (tensor(t.array(), F32) for t in (x, dy, rstd, gamma))
    dx, dgamma = blank((2, 32), F32), blank((32,), F32)
    found, size, executor = rms.PHASE_ONE(dy, x, rstd, gamma, dx, dgamma)
    assert (found, rms.PHASES[1](aclnn.aclrtMalloc(size)[1], size, executor, stream)) == (0, 0)
    memory = dgamma.data
    for t in (x, dy, rstd, gamma, dx, dgamma):
        aclnn.aclDestroyTensor(t)
    assert aclnn.aclrtSynchronizeStream(stream) == 0
    np.testing.assert_array_equal(memory.bytes.view(np.float32), 2)


@every_operator
def test_a_destroyed_tensor_is_no_tensor(page, request):
    name = FIRST[request.node.callspec.id]
    given = page.good()
    aclnn.aclDestroyTensor(given[name])
    check_row(page.PHASE_ONE, given, Row("-", {}, 161001, f"{name} was destroyed; it is required"))


def test_every_step_is_a_launch_with_traffic_of_its_own(timed):
    """A strided call and one of mixed types take longer than their arithmetic: a copy, a cast for each such tensor."""
    plain = {n: blank((512, 512), F16) for n in ("self", "target", "out")}
    common = {"gradOutput": blank((1,), F16), "weightOptional": None, "posWeightOptional": None}
    mixed = {"self": blank((512, 512), F32), "gradOutput": blank((1,), F32)}
    views = {n: strided(np.zeros((512, 512)), F16) for n in ("self", "target", "out")}
    executors = [
        bce.PHASE_ONE(*bce.good(**{**plain, **common, **more}).values())[2] for more in ({}, mixed, views)
    ]
    roles = [[(k.role, k.parameter) for k in e.kernels if k.role != "main"] for e in executors]
    copies = [("contiguous", "self"), ("contiguous", "target"), ("view copy", "out")]
    assert roles == [[], [("cast", "target"), ("cast", "out")], copies]
    assert executors[0].time_us < min(e.time_us for e in executors[1:])
    for e in executors:
        assert e.time_us == pytest.approx(sum(k.time_us for k in e.kernels))
        assert all(k.traffic["L2"] > 0 for k in e.kernels)
    copied = [k.traffic["L2"] for k in executors[2].kernels if k.role == "contiguous"]
    assert min(copied) >= 2 * 512 * 512 * 2  # each reads and writes its tensor


# -- status codes ------------------------------------------------------------------------------------------------------

CODES = {
    0: "ACLNN_SUCCESS", 161001: "ACLNN_ERR_PARAM_NULLPTR", 161002: "ACLNN_ERR_PARAM_INVALID",
    361001: "ACLNN_ERR_RUNTIME_ERROR", 561000: "ACLNN_ERR_INNER", 561002: "ACLNN_ERR_INNER_TILING_ERROR",
    561003: "ACLNN_ERR_INNER_FIND_KERNEL_ERROR", 561103: "ACLNN_ERR_INNER_NULLPTR",
}  # fmt: skip


def test_names_of_the_codes():
    assert status.NAMES == CODES


def test_the_recent_message_names_function_and_status_and_is_read_once():
    rms.PHASE_ONE(*rms.good(x=None).values())
    assert (
        aclnn.aclGetRecentErrMsg()
        == "aclnnRmsNormGrad: x is null; it is required [161001 ACLNN_ERR_PARAM_NULLPTR]"
    )
    assert aclnn.aclGetRecentErrMsg() == ""


# -- tensors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "strides", "offset"),
    [((6, 5), (10, 1), 22), ((4, 3), (20, 2), 22), ((3, 2), (1, 3), 0), ((4, 2), (0, 1), 5), ((), (), 7)],
    ids=["window", "every second", "transposed", "broadcast", "rank 0"],
)
def test_the_address_of_an_element(shape, strides, offset):
    """base + (offset + sum of index * stride) * size."""
    memory = aclnn.DeviceMemory(400)
    memory.bytes.view(np.float32)[:] = np.arange(100)
    kind, rank = aclnn.aclDataType.ACL_FLOAT, len(shape)
    made = aclnn.aclCreateTensor(shape, rank, kind, strides, offset, FORMATS["ND"], (10, 10), 2, memory)
    for at in np.ndindex(*shape):
        assert made.array()[at] == offset + sum(i * s for i, s in zip(at, strides, strict=True))
    assert made.contiguous() == (rank == 0)


def test_an_empty_tensor_needs_no_memory_and_is_not_null(stream):
    kind = aclnn.aclDataType.ACL_FLOAT16
    nothing = aclnn.aclCreateTensor((0, 6), 2, kind, None, 0, FORMATS["ND"], (0, 6), 2, None)
    given = bce.good(self=nothing, target=nothing, out=nothing, weightOptional=None, posWeightOptional=None)
    run(*bce.PHASES, stream, *given.values())
    check_row(bce.PHASE_ONE, given, Row("1", {"self": None}, 161001, "self is null"))


@pytest.mark.parametrize(
    ("dtype", "fmt", "words"),
    [(99, 2, "dataType is 99; known are 0 ACL_FLOAT"), (0, 77, "format is 77; known are 0 ACL_FORMAT_NCHW")],
)
def test_numbers_that_are_no_type_and_no_format(dtype, fmt, words):
    with pytest.raises(sim.UsageError, match=words):
        aclnn.aclCreateTensor((2,), 1, dtype, None, 0, fmt, (2,), 1, None)


def test_memory_that_was_freed_is_not_copied():
    memory = aclnn.aclrtMalloc(16)[1]
    aclnn.aclrtFree(memory)
    assert (
        aclnn.aclrtMemcpy(memory, 16, np.zeros(4, np.float32), 16, aclnn.ACL_MEMCPY_HOST_TO_DEVICE) == 361001
    )
    assert "the destination is 16 bytes that were freed before" in aclnn.aclGetRecentErrMsg()


def test_more_memory_than_there_is():
    assert aclnn.aclrtMalloc(2**62) == (361001, None)
    assert f"size is {2**62} bytes, which this machine cannot give" in aclnn.aclGetRecentErrMsg()


# -- products ----------------------------------------------------------------------------------------------------------


@every_operator
def test_310b_has_none_of_the_five(page, request):
    """Null pointers are looked at first, as everywhere."""
    found, message = status_on(OTHER, page.PHASE_ONE, page.good())
    assert (found, f"is not available on {OTHER}" in message) == (161002, True)
    assert (
        status_on(OTHER, page.PHASE_ONE, {**page.good(), FIRST[request.node.callspec.id]: None})[0] == 161001
    )


@every_operator
def test_a3_takes_what_a2_takes(page):
    """Types of the operators' own pages; and the same refusals in the same words but for the name."""
    for row in page.ROWS:
        given = {**page.good(), **row.change}
        here, there = (status_on(p, page.PHASE_ONE, given) for p in (A2[2], A3))
        assert here[0] == there[0] == row.status
        assert here[1].replace(A2[2], A3) == there[1]


@pytest.mark.parametrize("level", [0, 1])
@every_operator
def test_nothing_is_added_atomically_with_the_switch_on(page, level):
    aclnn.aclrtCtxSetSysParamOpt(aclnn.ACL_OPT_DETERMINISTIC, level)
    try:
        tiling = page.PHASE_ONE(*page.good().values())[2].tiling
    finally:
        aclnn.aclrtCtxSetSysParamOpt(aclnn.ACL_OPT_DETERMINISTIC, 0)
    assert not level or tiling.get("combine") != "atomic"


def test_the_switch_takes_levels_0_to_3():
    levels = [aclnn.aclrtCtxSetSysParamOpt(aclnn.ACL_OPT_DETERMINISTIC, k) for k in (0, 1, 2, 3, 4, -1)]
    aclnn.aclrtCtxSetSysParamOpt(aclnn.ACL_OPT_DETERMINISTIC, 0)
    assert levels == [0, 0, 0, 0, 361001, 361001]


# Bytes of each buffer of A2 and A3; Cube and Vector cores by product.
BUFFERS = {"ub": 196608, "l1": 524288, "l0a": 65536, "l0b": 65536, "l0c": 131072}
CORES = {"ascend910b2": (24, 48), "ascend910b3": (20, 40), "ascend910b4": (20, 40)}


@pytest.mark.parametrize("product", [*A2, A3])
def test_buffers_that_the_tilings_assume(product):
    found = load_product(product)
    assert {n: found.integer(f"buffers.{n}") for n in BUFFERS} == BUFFERS
    assert product not in CORES or (found.cube_cores, found.vector_cores) == CORES[product]


def test_kernels_have_the_workspace_of_the_system():
    assert rms.PHASE_ONE(*rms.good().values())[1] == 16 * 2**20


# C0 by type, and the workspace of a convolution whose images change their layout: channels padded to whole blocks.
@pytest.mark.parametrize(("dtype", "c0"), [(F16, 16), (BF16, 16), (F32, 8)])
def test_images_in_the_workspace_have_blocks_of_32_bytes(dtype, c0):
    given = conv.conv((2, 5, 6, 6), (2, 3, 6, 6), (5, 3, 3, 3), dtype, padding=1)
    executor = conv.PHASE_ONE(*given.values())[2]
    size = 2 if c0 == 16 else 4
    blocks = [2 * -(-c // c0) * 6 * 6 * c0 * size for c in (5, 3)]
    assert c0 * size == 32
    assert executor.own_bytes >= sum(blocks)

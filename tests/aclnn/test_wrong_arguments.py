"""What a C compiler or the runtime refuses: arguments of other types, copies of wrong direction, things destroyed before."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.kernels import aclnn
from ascendtile.kernels.aclnn.checks import overlap, overlaps_itself

from .calls import blank, tensor
from .pages import test_bce_page as bce
from .pages import test_convolution_page as conv
from .pages import test_group_norm_page as gn
from .pages import test_rms_norm_page as rms
from .pages.rows import Row, check_row

HOST_TO_DEVICE, DEVICE_TO_HOST = aclnn.ACL_MEMCPY_HOST_TO_DEVICE, aclnn.ACL_MEMCPY_DEVICE_TO_HOST
DEVICE_TO_DEVICE, HOST_TO_HOST = aclnn.ACL_MEMCPY_DEVICE_TO_DEVICE, aclnn.ACL_MEMCPY_HOST_TO_HOST


@pytest.fixture
def stream():
    return aclnn.aclrtCreateStream()[1]


def failed(status, words, code=361001):
    message = aclnn.aclGetRecentErrMsg()
    assert (status, words in message) == (code, True), message


# -- phase 1 -----------------------------------------------------------------------------------------------------------

WRONG = (
    (rms, {"x": np.ones((4, 5, 32))}, "x is of the Python type ndarray; it must be made by aclCreateTensor"),
    (gn, {"N": 2.0}, "N is 2.0; it must be a whole number"),
    (gn, {"outputMask": [True, True, True]}, "outputMask is of the Python type list; it must be made by aclCreateBoolArray"),
    (bce, {"reduction": 1.0}, "reduction is 1.0; it must be a whole number"),
    (bce, {"reduction": "mean"}, "reduction is 'mean'; it must be a whole number"),
    (conv, {"groups": "a"}, "groups is 'a'; it must be a whole number"),
    (conv, {"groups": 1.5}, "groups is 1.5; it must be a whole number"),
    (conv, {"cubeMathType": 1.5}, "cubeMathType is 1.5; it must be a whole number"),
    (conv, {"transposed": "false"}, "transposed is 'false'; it must be True or False"),
    (conv, {"stride": (1, 1)}, "stride is of the Python type tuple; it must be made by aclCreateIntArray"),
)  # fmt: skip


@pytest.mark.parametrize(("page", "change", "words"), WRONG, ids=range(len(WRONG)))
def test_arguments_of_another_type(page, change, words):
    check_row(page.PHASE_ONE, page.good(), Row("-", change, 161002, words))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: aclnn.aclCreateIntArray(None, 0), "value is null"),
        (lambda: aclnn.aclCreateIntArray([1, 2], 3), "size is 3; it must be from 0 to 2"),
        (lambda: aclnn.aclCreateIntArray([2.5], 1), "value holds 2.5; it must hold whole numbers"),
        (lambda: aclnn.aclCreateBoolArray([1, 7], 2), "it must hold True and False"),
        (lambda: aclnn.aclCreateTensor([2.5], 1, 0, None, 0, 2, [2], 1, None), "viewDims holds 2.5"),
        (lambda: aclnn.aclCreateTensor([2], 1, 0, [1.0], 0, 2, [2], 1, None), "stride holds 1.0"),
        (lambda: aclnn.aclCreateTensor([2], 1, 0, None, 0, 2, [2], 1, np.ones(2)), "tensorData is of the Python type"),
    ],
)  # fmt: skip
def test_arrays_and_tensors_of_what_is_no_number(make, words):
    with pytest.raises(sim.UsageError, match=words):
        make()


def test_null_cannot_be_destroyed():
    for destroy in (aclnn.aclDestroyTensor, aclnn.aclDestroyIntArray, aclnn.aclDestroyBoolArray):
        failed(destroy(None), f"{destroy.__name__}: null cannot be destroyed", 161001)
    failed(aclnn.aclDestroyTensor(5), "it is 5; it must be aclTensor", 161002)
    failed(aclnn.aclDestroyAclOpExecutor(None), "executor is null", 161001)
    failed(aclnn.aclrtFree(None), "memory is null; it must be of aclrtMalloc")
    failed(aclnn.aclrtMalloc(4.5)[0], "size is 4.5; it must be a whole number")


# -- phase 2 -----------------------------------------------------------------------------------------------------------


def test_phase_two_takes_what_the_interface_gives(stream):
    status, size, executor = rms.PHASE_ONE(*rms.good().values())
    phase, workspace = rms.PHASES[1], aclnn.aclrtMalloc(size)[1]
    assert status == 0
    failed(
        phase(np.zeros(size, np.uint8), size, executor, stream),
        "workspace is of the Python type ndarray",
        161002,
    )
    failed(phase(workspace, size, 7, stream), "executor is 7; it must be what phase 1 gives", 161002)
    failed(phase(workspace, 1.5, executor, stream), "workspaceSize is 1.5", 161002)
    failed(phase(workspace, size, executor, 5), "stream is 5; it must be of aclrtCreateStream", 161002)
    assert not stream.pending
    assert phase(workspace, size, executor, stream) == 0  # none of these used it up


def test_an_executor_says_whether_it_was_used_or_deleted(stream):
    """Only one that ran was used; one whose workspace is refused is deleted."""
    phase = rms.PHASES[1]
    for end in ("null", "small", "destroyed", "used"):
        _, size, executor = rms.PHASE_ONE(*rms.good().values())
        workspace = aclnn.aclrtMalloc(size)[1]
        if end == "null":
            failed(phase(None, size, executor, stream), "the executor is deleted", 161001)
        elif end == "small":
            failed(phase(workspace, 64, executor, stream), "the executor is deleted", 161002)
        elif end == "destroyed":
            assert aclnn.aclDestroyAclOpExecutor(executor) == 0
        else:
            assert phase(workspace, size, executor, stream) == 0
        words = f"executor was {'used' if end == 'used' else 'deleted'} before"
        failed(phase(workspace, size, executor, stream), words, 561000)
        failed(aclnn.aclSetAclOpExecutorRepeatable(executor), words, 561000)


def test_a_destroyed_stream_takes_nothing(stream):
    _, size, executor = rms.PHASE_ONE(*rms.good().values())
    workspace = aclnn.aclrtMalloc(size)[1]
    assert aclnn.aclrtDestroyStream(stream) == 0
    failed(rms.PHASES[1](workspace, size, executor, stream), "stream was destroyed before", 161002)
    assert not stream.pending
    failed(aclnn.aclrtSynchronizeStream(stream), "stream was destroyed before")
    failed(aclnn.aclrtDestroyStream(stream), "stream was destroyed before")
    failed(aclnn.aclrtDestroyStream(None), "stream is null; the default stream stays")
    failed(aclnn.aclrtSynchronizeStream("0"), "stream is '0'")


# -- copies ------------------------------------------------------------------------------------------------------------

VALUES = np.arange(12, dtype=np.float32)
HOSTS = {
    "rows": np.zeros((3, 4), np.float32),
    "columns": np.zeros((3, 4), np.float32).T,
    "a column of a matrix": np.zeros((12, 4), np.float32)[:, :1],
    "backwards": np.zeros(12, np.float32)[::-1],
}


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
def test_host_arrays_of_any_strides_are_their_elements_in_order(host):
    device = tensor(VALUES).data
    assert aclnn.aclrtMemcpy(host, 48, device, 48, DEVICE_TO_HOST) == 0
    np.testing.assert_array_equal(host.reshape(-1), VALUES)
    back = aclnn.aclrtMalloc(48)[1]
    assert aclnn.aclrtMemcpy(back, 48, host, 48, HOST_TO_DEVICE) == 0
    np.testing.assert_array_equal(back.bytes, device.bytes)
    host[...] = -1
    assert aclnn.aclrtMemcpy(host, 48, device, 20, DEVICE_TO_HOST) == 0
    np.testing.assert_array_equal(host.reshape(-1), [*VALUES[:5], *[-1] * 7])


@pytest.mark.extra("torch")
def test_torch_tensors_are_host_arrays():
    import torch

    host = torch.zeros(4, 3, dtype=torch.bfloat16).T
    device = blank((12,), "bfloat16").data
    device.bytes.view(np.uint16)[:] = 0x3F80  # 1.0
    assert aclnn.aclrtMemcpy(host, 24, device, 24, DEVICE_TO_HOST) == 0
    assert bool((host == 1).all())


def test_copies_that_the_runtime_refuses():
    device, host = blank((12,), "float32").data, np.zeros(12, np.float32)
    locked = np.zeros(12, np.float32)
    locked.flags.writeable = False
    for arguments, words in (
        ((device, 48, host, -4, HOST_TO_DEVICE), "count is -4; it must be a whole number, at least 0"),
        ((device, 48, host, 4.5, HOST_TO_DEVICE), "count is 4.5"),
        ((device, 48, host, 48, 99), "kind is 99; known are 0 HOST_TO_HOST"),
        ((device, 48, host, 48, DEVICE_TO_HOST), "kind is 2 DEVICE_TO_HOST, the source is memory of the host"),
        ((host, 48, device, 48, DEVICE_TO_DEVICE), "the destination is memory of the host; it must be of the device"),
        ((host, 48, device, 48, HOST_TO_HOST), "the source is memory of the device; it must be of the host"),
        (([0.0] * 12, 48, device, 48, DEVICE_TO_HOST), "the destination is of the Python type list"),
        ((locked, 48, device, 48, DEVICE_TO_HOST), "the destination is a read-only array"),
        ((device, 48, host.astype(object), 48, HOST_TO_DEVICE), "it must be device memory, or an array of numbers"),
    ):  # fmt: skip
        failed(aclnn.aclrtMemcpy(*arguments), words)
    assert not device.bytes.any()


# -- outputs -----------------------------------------------------------------------------------------------------------


def window(memory, shape, strides, offset=0, kind=aclnn.aclDataType.ACL_FLOAT):
    size = [len(memory) // (2 if kind == aclnn.aclDataType.ACL_FLOAT16 else 4)]
    return aclnn.aclCreateTensor(
        shape, len(shape), kind, strides, offset, aclnn.aclFormat.ACL_FORMAT_ND, size, 1, memory
    )


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(-7, 7)), max_size=4),
    st.lists(st.tuples(st.integers(1, 4), st.integers(-7, 7)), max_size=3),
    st.integers(0, 20),
    st.booleans(),
)
def test_places_that_meet_are_those_of_counted_addresses(first, second, shift, half):
    """Against the set of all bytes of all elements."""
    memory = aclnn.DeviceMemory(1024)
    kinds = (
        aclnn.aclDataType.ACL_FLOAT,
        aclnn.aclDataType.ACL_FLOAT16 if half else aclnn.aclDataType.ACL_FLOAT,
    )
    views, sets = [], []
    for axes, kind, offset in ((first, kinds[0], 100), (second, kinds[1], 100 + shift)):
        shape, strides = [n for n, _ in axes], [s for _, s in axes]
        views.append(window(memory, shape, strides, offset, kind))
        size = views[-1].dtype.itemsize
        at = [offset + sum(i * s for i, s in zip(k, strides, strict=True)) for k in np.ndindex(*shape)]
        sets.append({a * size + b for a in at for b in range(size)})
        assert overlaps_itself(views[-1]) == (len(set(at)) < len(at))
    assert overlap(*views) == bool(sets[0] & sets[1])


def test_outputs_have_a_place_for_each_element():
    memory = aclnn.DeviceMemory(400)
    overlapping = window(memory, (2, 6, 5), (30, 5, 1))
    twice = window(memory, (2, 6, 5), (30, 1, 1))
    x = {n: blank(t.shape, "float32") if isinstance(t, aclnn.aclTensor) else t for n, t in gn.good().items()}
    assert gn.PHASE_ONE(*{**x, "gradInput": overlapping}.values())[0] == 0
    words = "gradInput has strides (30, 1, 1) for shape (2, 6, 5): some of its elements share memory"
    check_row(gn.PHASE_ONE, x, Row("-", {"gradInput": twice}, 161002, words))
    both = {"gradBetaOut": x["gradGammaOut"]}
    check_row(gn.PHASE_ONE, x, Row("-", both, 161002, "gradBetaOut shares memory with gradGammaOut"))
    inside = {"gradInput": overlapping, "gradBetaOut": window(memory, (6,), (1,), 50)}
    check_row(gn.PHASE_ONE, x, Row("-", inside, 161002, "gradBetaOut shares memory with gradInput"))


def test_a_convolution_whose_outputs_share_memory():
    memory = aclnn.DeviceMemory(4000)
    given = conv.good()
    strides = (200, 25, 1, 1)
    image = aclnn.aclCreateTensor(
        (2, 8, 5, 5), 4, aclnn.aclDataType.ACL_FLOAT16, strides, 0, given["input"].format, (2000,), 1, memory
    )
    check_row(
        conv.PHASE_ONE, given, Row("-", {"gradInput": image}, 161002, f"gradInput has strides {strides}")
    )


def test_checks_that_an_empty_convolution_skips_are_told():
    """Also where shapes of results and lengths of attributes would be wrong."""
    given = conv.hollow((0, 8, 5, 5), (4, 8, 3, 3), (0, 4, 3, 3))
    for change in (
        {},
        {"gradBias": conv.of(9)},
        {"gradOutput": conv.of(0, 4, 7, 7)},
        {"stride": conv.ints(1)},
    ):
        status, _, executor = conv.PHASE_ONE(*{**given, **change}.values())
        assert status == 0
        assert any("checks 9 to 13" in note for note in executor.notes)
    assert not any("checks 9 to 13" in note for note in conv.PHASE_ONE(*conv.good().values())[2].notes)


def test_messages_tell_function_and_status_once():
    for call, words in (
        (conv.good(groups=0), "groups is 0, it must be at least 1"),
        (rms.good(), "is not available on"),
    ):
        with sim.device("ascend910b3" if "groups" in call else "ascend310b"):
            assert (conv if "groups" in call else rms).PHASE_ONE(*call.values())[0] == 161002
        message = aclnn.aclGetRecentErrMsg()
        assert words in message
        assert message.count("161002") == 1
        assert message.count("aclnn") == 1


def test_outputs_in_the_memory_of_inputs_are_noted():
    """The vendor's library does not look at it: status 0, and a note that names both."""
    x = {n: blank(t.shape, "float32") if isinstance(t, aclnn.aclTensor) else t for n, t in gn.good().items()}
    shape = x["gradOut"].shape
    steps = [int(np.prod(shape[k + 1 :])) for k in range(len(shape))]
    memory = aclnn.DeviceMemory(4 * int(np.prod(shape)) + 4)
    dy, shifted = window(memory, shape, steps), window(memory, shape, steps, 1)
    for out, words in (
        (x["gradInput"], ""),
        (window(memory, shape, steps), "gradInput is in place of gradOut, which is not checked"),
        (shifted, "gradInput shares memory with a part of gradOut, which is not checked"),
    ):
        status, _, executor = gn.PHASE_ONE(*{**x, "gradOut": dy, "gradInput": out}.values())
        assert status == 0
        found = [n for n in executor.notes if "gradInput" in n]
        assert [n.startswith(words) for n in found] == [True] * bool(words)

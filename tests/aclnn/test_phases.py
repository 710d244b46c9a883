"""Both phases: values of every operator against the Python face, strided and mixed tensors, workspaces, streams."""

from __future__ import annotations

import numpy as np
import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import (
    aclnn,
    batch_norm_reduce_backward,
    bce_with_logits_backward,
    get_operator,
    group_norm_backward,
    rms_norm_grad,
)

from .calls import STORAGE, blank, run, strided, tensor

F16, BF16, F32 = "float16", "bfloat16", "float32"
RMS = (aclnn.aclnnRmsNormGradGetWorkspaceSize, aclnn.aclnnRmsNormGrad)
BCE = (
    aclnn.aclnnBinaryCrossEntropyWithLogitsBackwardGetWorkspaceSize,
    aclnn.aclnnBinaryCrossEntropyWithLogitsBackward,
)
BN = (aclnn.aclnnBatchNormReduceBackwardGetWorkspaceSize, aclnn.aclnnBatchNormReduceBackward)
GN = (aclnn.aclnnGroupNormBackwardGetWorkspaceSize, aclnn.aclnnGroupNormBackward)


@pytest.fixture
def stream():
    return aclnn.aclrtCreateStream()[1]


def roles(executor):
    return [(k.role, k.parameter) for k in executor.kernels if k.role != "main"]


# -- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.drawn(2)
@pytest.mark.parametrize("make", [tensor, strided], ids=["contiguous", "strided"])
@pytest.mark.parametrize("dtype", [F16, BF16, F32])
def test_rms_norm_grad(stream, make, dtype):
    given = get_operator("rms_norm_grad").inputs({"rows": (3, 5), "cols": (2, 17)}, dtype)
    inputs = [make(given[n]) for n in ("dy", "x", "rstd", "gamma")]
    dx, dgamma = make(np.zeros((3, 5, 2, 17)), dtype), make(np.zeros((2, 17)), F32)
    executor = run(*RMS, stream, *inputs, dx, dgamma)
    expected = rms_norm_grad(**given, time=False).outputs
    np.testing.assert_array_equal(dx.array(), expected["dx"])
    np.testing.assert_array_equal(dgamma.array(), expected["dgamma"])
    copies = [("contiguous", n) for n in ("dy", "x", "rstd", "gamma")]
    copies += [("view copy", n) for n in ("dxOut", "dgammaOut")]
    assert roles(executor) == (copies if make is strided else [])


def test_view_copies_touch_nothing_else(stream):
    given = get_operator("rms_norm_grad").inputs({"rows": 4, "cols": 32}, F32)
    dx, dgamma = strided(np.zeros((4, 32)), F32), tensor(np.zeros(32), F32)
    run(*RMS, stream, *(tensor(given[n]) for n in ("dy", "x", "rstd", "gamma")), dx, dgamma)
    storage = dx.data.bytes.view(np.float32)
    between = np.ones(len(storage), bool)
    between[3:].reshape(8, 64)[::2, ::2] = False
    assert (storage[between] == -77).all()
    assert not (storage[~between] == -77).any()


@pytest.mark.drawn(2)
@pytest.mark.parametrize("make", [tensor, strided], ids=["contiguous", "strided"])
@pytest.mark.parametrize("dtype", [F16, BF16, F32])
def test_batch_norm_writes_outputs_of_the_type_of_the_input(stream, make, dtype):
    given = get_operator("batch_norm_reduce_backward").inputs({"n": 4, "c": 6, "space": (5, 3)}, dtype)
    inputs = [make(given[n]) for n in ("grad_out", "x", "mean", "invstd")]
    outputs = [make(np.zeros(6), dtype) for _ in range(4)]
    executor = run(*BN, stream, *inputs, None, True, True, True, *outputs)
    expected = batch_norm_reduce_backward(**given, time=False).outputs
    for out, name in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(out.array(), expected[name])
    assert not [p for r, p in roles(executor) if r == "cast"]


def test_batch_norm_by_the_vendors_chain(stream):
    given = get_operator("batch_norm_reduce_backward").inputs("tiny", F16)
    outputs = [blank((6,), F16) for _ in range(4)]
    with aclnn.tiling(batch_norm_reduce_backward={"strategy": "vendor"}):
        inputs = [tensor(given[n]) for n in ("grad_out", "x", "mean", "invstd")]
        status, size, executor = BN[0](*inputs, None, True, True, True, *outputs)
    assert status == 0
    assert [k.name for k in executor.kernels][:3] == ["cast_flat", "cast_flat", "multiply"]
    elements = given["x"].size
    assert executor.own_bytes >= 3 * 4 * elements  # both inputs and their product in FP32
    workspace = aclnn.aclrtMalloc(size)[1]
    assert BN[1](workspace, size, executor, stream) == 0
    aclnn.aclrtSynchronizeStream(stream)
    expected = batch_norm_reduce_backward(**given, tiling={"strategy": "vendor"}, time=False).outputs
    for out, name in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(out.array(), expected[name])


@pytest.mark.parametrize(
    ("x", "target", "casts"),
    [
        (F32, F32, []),
        (F16, F32, ["gradOutput", "self", "weightOptional"]),
        (F16, BF16, ["gradOutput", "self", "target", "weightOptional", "posWeightOptional", "out"]),
    ],
)
def test_bce_promotes_by_casts(stream, x, target, casts):
    """float16 with bfloat16 is computed in float32; out has the type of target."""
    op = get_operator("bce_with_logits_backward")
    given = op.inputs({"shape": (8, 20), "weight": 20, "pos_weight": (8, 1)}, F32)
    kinds = {"grad_output": x, "x": x, "target": target, "weight": x, "pos_weight": target}
    arrays = {n: a.astype(STORAGE.get(kinds[n], kinds[n])) for n, a in given.items()}
    out = blank((8, 20), target)
    order = ("grad_output", "x", "target", "weight", "pos_weight")
    executor = run(*BCE, stream, *(tensor(arrays[n]) for n in order), 1, out)
    assert [p for r, p in roles(executor) if r == "cast"] == casts
    wide = {n: a.astype(np.float32) for n, a in arrays.items()}
    expected = bce_with_logits_backward(**wide, reduction="mean", time=False).outputs["out"]
    np.testing.assert_array_equal(out.array(), expected.astype(STORAGE.get(target, target)))


def test_bce_worked_example(stream):
    """The official sample: all inputs [[0, 1], [2, 3]], target 0.1."""
    x = np.float32([[0, 1], [2, 3]])
    expected = {0: [[0, 0.631059], [3.075507, 7.587801]], 1: [[0, 0.157765], [0.768877, 1.896950]]}
    for reduction, numbers in (*expected.items(), (2, expected[0])):
        out = blank((2, 2), F32)
        target = tensor(np.full((2, 2), 0.1, np.float32))
        run(*BCE, stream, tensor(x), tensor(x), target, tensor(x), tensor(x), reduction, out)
        np.testing.assert_allclose(out.array(), numbers, atol=1e-6)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("make", [tensor, strided], ids=["contiguous", "strided"])
@pytest.mark.parametrize("strategy", ["auto", "vendor"])
def test_group_norm(stream, make, strategy):
    given = get_operator("group_norm_backward").inputs({"n": 3, "c": 8, "space": (5, 3), "group": 4}, F16)
    names = ("grad_out", "x", "mean", "rstd", "gamma")
    outputs = [make(np.zeros((3, 8, 5, 3)), F16), make(np.zeros(8), F16), make(np.zeros(8), F16)]
    mask = aclnn.aclCreateBoolArray([True] * 3, 3)
    with aclnn.tiling(group_norm_backward={"strategy": strategy}):
        run(*GN, stream, *(make(given[n]) for n in names), 3, 8, 15, 4, mask, *outputs)
    expected = group_norm_backward(**given, tiling={"strategy": strategy}, time=False).outputs
    for out, name in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(out.array(), expected[name])


def test_the_vendors_example_prints_what_its_page_says(capsys):
    from ascendtile.kernels.examples.group_norm_backward import main

    printed = main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 24 + 3 + 3
    assert lines[-3:] == [f"gradBetaResultData[{i}] is: {x:f}" for i, x in enumerate((68, 100, 132))]
    assert np.abs(printed["gradInput"]).max() < 1e-5  # rounding noise, never relative
    np.testing.assert_allclose(printed["gradGamma"], [-75.896867, 2.896827, 155.849293], atol=3e-5)


# -- workspaces and empty tensors ------------------------------------------------------------------------------------


@pytest.fixture
def small(stream):
    """A call of RmsNormGrad that is ready for phase 2."""
    given = get_operator("rms_norm_grad").inputs({"rows": 4, "cols": 32}, F16)
    tensors = [tensor(given[n]) for n in ("dy", "x", "rstd", "gamma")]
    dx, dgamma = blank((4, 32)), blank((32,), F32)
    return (*tensors, dx, dgamma)


def test_executors_are_used_once(stream, small):
    status, size, executor = RMS[0](*small)
    workspace = aclnn.aclrtMalloc(size)[1]
    assert (status, RMS[1](workspace, size, executor, stream)) == (0, 0)
    assert RMS[1](workspace, size, executor, stream) == 561000
    assert "executor was used before" in aclnn.aclGetRecentErrMsg()
    status, size, executor = RMS[0](*small)
    aclnn.aclSetAclOpExecutorRepeatable(executor)
    assert [RMS[1](workspace, size, executor, stream) for _ in range(2)] == [0, 0]
    aclnn.aclDestroyAclOpExecutor(executor)
    assert RMS[1](workspace, size, executor, stream) == 561000


def test_phase_two_refuses_what_is_missing(stream, small):
    _, size, executor = RMS[0](*small)
    assert RMS[1](None, 0, None, stream) == 161001
    assert "executor is null" in aclnn.aclGetRecentErrMsg()
    assert RMS[1](None, size, executor, stream) == 161001
    assert (
        f"workspace is null, workspaceSize is {size}; the executor is deleted" in aclnn.aclGetRecentErrMsg()
    )
    assert RMS[1](aclnn.aclrtMalloc(size)[1], size, executor, stream) == 561000  # it was deleted
    _, size, executor = RMS[0](*small)
    assert RMS[1](aclnn.aclrtMalloc(64)[1], 64, executor, stream) == 161002
    assert f"workspace has 64 bytes; phase 1 asked for {size}" in aclnn.aclGetRecentErrMsg()
    _, size, executor = RMS[0](*small)
    assert BCE[1](aclnn.aclrtMalloc(size)[1], size, executor, stream) == 161002
    assert "executor was made by aclnnRmsNormGradGetWorkspaceSize" in aclnn.aclGetRecentErrMsg()


def test_the_workspace_holds_copies_and_sums_over_cores(small):
    """Two strided inputs of 4 x 32 halves: 256 bytes each, on lines of 512; then the 16 MiB of the system."""
    _, plain, _ = RMS[0](*small)
    assert plain == 16 * 2**20
    views = [strided(t.array()) for t in small[:2]]
    _, size, executor = RMS[0](*views, *small[2:])
    assert (size, executor.own_bytes) == (plain + 1024, 1024)
    aclnn.aclrtCtxSetSysParamOpt(aclnn.ACL_OPT_DETERMINISTIC, 1)
    _, size, executor = RMS[0](*small)
    aclnn.aclrtCtxSetSysParamOpt(aclnn.ACL_OPT_DETERMINISTIC, 0)
    assert executor.tiling["combine"] == "two_phase"
    assert executor.own_bytes == 4 * 32 * 4  # a row of dgamma for each of four cores


def test_empty_tensors_need_no_kernels_and_leave_outputs_alone(stream):
    x, c = blank((0, 3, 4)), blank((3,), F32)
    outputs = [tensor(np.full(3, 5), F16) for _ in range(4)]
    executor = run(*BN, stream, x, x, c, c, None, True, True, True, *outputs)
    assert (executor.kernels, executor.workspace_size) == ((), 0)
    assert all((out.array() == 5).all() for out in outputs)
    mask = aclnn.aclCreateBoolArray([True] * 3, 3)
    nothing = blank((0, 2))
    gamma = tensor(np.full(3, 5), F16)
    beta = tensor(np.full(3, 5), F16)
    run(*GN, stream, x, x, blank((0, 1)), blank((0, 1)), gamma, 0, 3, 4, 1, mask, x, gamma, beta)
    assert (gamma.array() == 5).all()
    assert (beta.array() == 5).all()
    run(*BCE, stream, blank((1,)), nothing, nothing, None, None, 0, nothing)


def test_rank_zero(stream):
    one = tensor(np.float32(0.5))
    out = blank((), F32)
    run(*BCE, stream, tensor(np.float32(2)), one, tensor(np.float32(1)), None, None, 2, out)
    assert out.array() == pytest.approx(2 * (1 / (1 + np.exp(-0.5)) - 1), rel=1e-6)
    mask = aclnn.aclCreateBoolArray([True] * 3, 3)
    results = [blank((), F32) for _ in range(3)]
    run(*GN, stream, one, one, tensor(np.float32(0)), one, one, 1, 1, 1, 1, mask, *results)
    assert [float(r.array()) for r in results[1:]] == [0.125, 0.5]


# -- streams ---------------------------------------------------------------------------------------------------------


def test_nothing_runs_before_the_stream_is_synchronised(stream, small):
    _, size, executor = RMS[0](*small)
    RMS[1](aclnn.aclrtMalloc(size)[1], size, executor, stream)
    dx = small[4].array()
    assert not dx.any()
    assert stream.time_us == 0
    aclnn.aclrtSynchronizeStream(stream)
    assert dx.any()
    assert stream.time_us == pytest.approx(executor.time_us)
    aclnn.aclrtSynchronizeStream(stream)
    assert stream.time_us == pytest.approx(executor.time_us)


def test_a_stream_runs_in_order(stream):
    """The second call reads what the first one writes."""
    x, t, go = (tensor(np.float32(a)) for a in ([0.5, -1, 2], [0, 1, 0.5], [3.0]))
    first, second = blank((3,), F32), blank((3,), F32)
    for source, out in ((x, first), (first, second)):
        _, size, executor = BCE[0](go, source, t, None, None, 2, out)
        BCE[1](aclnn.aclrtMalloc(size)[1], size, executor, stream)
    aclnn.aclrtSynchronizeStream(stream)
    sigmoid = lambda a: 1 / (1 + np.exp(-a))  # noqa: E731
    once = (sigmoid(np.float64([0.5, -1, 2])) - [0, 1, 0.5]) * 3
    np.testing.assert_allclose(second.array(), (sigmoid(once) - [0, 1, 0.5]) * 3, rtol=1e-5)


def test_all_streams_of_a_device_are_synchronised_together(small):
    streams = [aclnn.aclrtCreateStream()[1] for _ in range(2)]
    for s in streams:
        _, size, executor = RMS[0](*small)
        RMS[1](aclnn.aclrtMalloc(size)[1], size, executor, s)
    assert aclnn.aclrtSynchronizeDevice() == 0
    assert all(s.time_us > 0 for s in streams)
    assert all(aclnn.aclrtDestroyStream(s) == 0 for s in streams)


def test_the_runtime_refuses_what_it_must():
    assert aclnn.aclrtMalloc(0) == (361001, None)
    memory = aclnn.aclrtMalloc(8)[1]
    assert aclnn.aclrtMemcpy(memory, 8, np.zeros(3, np.float32), 12, 1) == 361001
    assert "count is 12 bytes, destMax is 8" in aclnn.aclGetRecentErrMsg()
    assert (aclnn.aclrtFree(memory), aclnn.aclrtFree(memory)) == (0, 361001)
    assert aclnn.aclrtSetDevice(3) == 361001
    assert aclnn.aclrtCtxSetSysParamOpt(0, 9) == 361001


@pytest.mark.parametrize(
    ("shape", "strides", "offset", "storage", "text"),
    [
        ((2, 3), [3], 0, (6,), "1 strides for 2 dimensions"),
        ((2, 3), [3, 1], 1, (6,), r"reaches elements 1 to 6; the storage \(6,\) has 6"),
        ((2, 3), [-3, 1], 2, (6,), "reaches elements -1 to 4"),
        ((2, -3), None, 0, (6,), "none may be negative"),
        ((2, 8), None, 0, (16,), "64 bytes are needed, the device memory has 24"),
    ],
)
def test_tensors_that_leave_their_storage_are_refused(shape, strides, offset, storage, text):
    memory = aclnn.DeviceMemory(24)
    with pytest.raises(sim.UsageError, match=text):
        aclnn.aclCreateTensor(
            shape,
            2,
            aclnn.aclDataType.ACL_FLOAT,
            strides,
            offset,
            aclnn.aclFormat.ACL_FORMAT_ND,
            storage,
            1,
            memory,
        )


def test_views_of_the_page():
    """Shape (6, 5), strides (10, 1), offset 22; shape (4, 3), strides (20, 2), offset 22."""
    memory = aclnn.DeviceMemory(400)
    memory.bytes.view(np.float32)[:] = np.arange(100)
    make = lambda shape, strides: aclnn.aclCreateTensor(  # noqa: E731
        shape, 2, aclnn.aclDataType.ACL_FLOAT, strides, 22, aclnn.aclFormat.ACL_FORMAT_ND, (10, 10), 2, memory
    )
    np.testing.assert_array_equal(make((6, 5), (10, 1)).array()[:3, 0], [22, 32, 42])
    np.testing.assert_array_equal(make((4, 3), (20, 2)).array()[:2], [[22, 24, 26], [42, 44, 46]])
    assert not make((6, 5), (10, 1)).contiguous()


# -- what an executor tells ------------------------------------------------------------------------------------------


def test_kernels_have_tiling_traffic_and_time():
    given = get_operator("rms_norm_grad").shapes("llama3-8b", F16)
    tensors = [
        aclnn.aclCreateTensor(
            s.shape, len(s.shape), kind, None, 0, aclnn.aclFormat.ACL_FORMAT_ND, s.shape, len(s.shape), None
        )
        for s, kind in (
            (given["dy"], aclnn.aclDataType.ACL_FLOAT16),
            (given["x"], aclnn.aclDataType.ACL_FLOAT16),
            (given["rstd"], aclnn.aclDataType.ACL_FLOAT),
            (given["gamma"], aclnn.aclDataType.ACL_FLOAT16),
            (given["x"], aclnn.aclDataType.ACL_FLOAT16),
            (given["gamma"], aclnn.aclDataType.ACL_FLOAT),
        )
    ]
    status, _, executor = RMS[0](*tensors)
    assert status == 0
    assert [k.name for k in executor.kernels] == ["zero_fill", "kept_row"]
    assert executor.tiling["cores"] == 40
    assert executor.kernels[1].traffic["L2"] == pytest.approx(3 * 2048 * 4096 * 2, rel=0.05)
    assert executor.time_us == pytest.approx(sum(k.time_us for k in executor.kernels))

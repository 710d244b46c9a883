"""Tensors on the simulated device, and a call through both phases."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from ascendtile.kernels import aclnn

ND = aclnn.aclFormat.ACL_FORMAT_ND
TYPES = {
    "float16": aclnn.aclDataType.ACL_FLOAT16,
    "bfloat16": aclnn.aclDataType.ACL_BF16,
    "float32": aclnn.aclDataType.ACL_FLOAT,
    "float64": aclnn.aclDataType.ACL_DOUBLE,
    "int32": aclnn.aclDataType.ACL_INT32,
}
STORAGE = {"bfloat16": ml_dtypes.bfloat16}


def tensor(values, dtype=None, format=ND):
    """A contiguous tensor with these values."""
    values = np.asarray(values) if dtype is None else np.asarray(values).astype(STORAGE.get(dtype, dtype))
    memory = aclnn.DeviceMemory(max(1, values.nbytes))
    memory.bytes[: values.nbytes] = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    rank = values.ndim
    name = TYPES[str(values.dtype)]
    return aclnn.aclCreateTensor(values.shape, rank, name, None, 0, format, values.shape, rank, memory)


def blank(shape, dtype="float16", format=ND):
    """A tensor of zeros."""
    return tensor(np.zeros(shape), dtype, format)


def strided(values, dtype=None):
    """Every second element of every row of a wider storage, with an offset of 3; what lies between is -77."""
    values = np.asarray(values) if dtype is None else np.asarray(values).astype(STORAGE.get(dtype, dtype))
    wide = [2 * n for n in values.shape]
    strides = [2 * int(np.prod(wide[k + 1 :])) for k in range(values.ndim)]
    storage = np.full(3 + int(np.prod(wide)), -77).astype(values.dtype)
    memory = aclnn.DeviceMemory(storage.nbytes)
    memory.bytes[:] = storage.view(np.uint8)
    made = aclnn.aclCreateTensor(
        values.shape, values.ndim, TYPES[str(values.dtype)], strides, 3, ND, [len(storage)], 1, memory
    )
    made.array()[...] = values
    return made


def run(phase_one, phase_two, stream, *arguments):
    """Both phases and a synchronisation; gives the executor."""
    status, size, executor = phase_one(*arguments)
    assert status == 0, aclnn.aclGetRecentErrMsg()
    workspace = aclnn.aclrtMalloc(size)[1] if size else None
    assert phase_two(workspace, size, executor, stream) == 0
    assert aclnn.aclrtSynchronizeStream(stream) == 0, aclnn.aclGetRecentErrMsg()
    return executor


def refused(phase_one, *arguments):
    """(status, message) of a phase 1 that is refused; it gives neither workspace nor executor."""
    status, size, executor = phase_one(*arguments)
    assert (size, executor) == (0, None)
    return status, aclnn.aclGetRecentErrMsg()

"""The vendor's example of aclnnGroupNormBackward, call by call: what its C program does, in Python.

    python -m ascendtile.kernels.examples.group_norm_backward

Input and gradient are 1 to 24 as (2, 3, 4), one group, FP32. gradInput is rounding noise around zero, because the
gradient is an affine function of the input inside each group; gradGamma is -75.896867 2.896827 155.849293, gradBeta is
68 100 132.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import aclnn

FLOAT, ND = aclnn.aclDataType.ACL_FLOAT, aclnn.aclFormat.ACL_FORMAT_ND


def check(status: int, call: str) -> None:
    """Stop at the first call that fails, with its text."""
    if status != aclnn.ACL_SUCCESS:
        raise SystemExit(f"{call} failed with {status}: {aclnn.aclGetRecentErrMsg()}")


def create_tensor(data: Sequence[float], shape: Sequence[int]) -> tuple[aclnn.aclTensor, aclnn.DeviceMemory]:
    """A tensor on the device with these values."""
    host = np.array(data, np.float32)
    status, device = aclnn.aclrtMalloc(host.nbytes, aclnn.ACL_MEM_MALLOC_HUGE_FIRST)
    check(status, "aclrtMalloc")
    assert device is not None
    check(
        aclnn.aclrtMemcpy(device, host.nbytes, host, host.nbytes, aclnn.ACL_MEMCPY_HOST_TO_DEVICE),
        "aclrtMemcpy",
    )
    strides = [int(np.prod(shape[k + 1 :])) for k in range(len(shape))]
    return aclnn.aclCreateTensor(shape, len(shape), FLOAT, strides, 0, ND, shape, len(shape), device), device


def print_result(name: str, device: aclnn.DeviceMemory) -> np.ndarray:
    """Copy a result to the host and print it as C's %f does."""
    host = np.zeros(len(device) // 4, np.float32)
    check(
        aclnn.aclrtMemcpy(host, host.nbytes, device, host.nbytes, aclnn.ACL_MEMCPY_DEVICE_TO_HOST),
        "aclrtMemcpy",
    )
    for i, x in enumerate(host):
        print(f"{name}[{i}] is: {x:f}")
    return host


def main() -> dict[str, np.ndarray]:
    """The program; gives what it printed."""
    check(aclnn.aclInit(None), "aclInit")
    check(aclnn.aclrtSetDevice(0), "aclrtSetDevice")
    status, stream = aclnn.aclrtCreateStream()
    check(status, "aclrtCreateStream")

    n, c, hxw, group = 2, 3, 4, 1
    counted = [float(i) for i in range(1, 25)]
    grad_out, grad_out_memory = create_tensor(counted, [n, c, hxw])
    x, x_memory = create_tensor(counted, [n, c, hxw])
    mean, mean_memory = create_tensor([6.5, 18.5], [n, group])
    rstd, rstd_memory = create_tensor([0.2896827, 0.2896827], [n, group])
    gamma, gamma_memory = create_tensor([1.0, 1.0, 1.0], [c])
    mask = aclnn.aclCreateBoolArray([True, True, True], 3)
    grad_input, grad_input_memory = create_tensor([0.0] * 24, [n, c, hxw])
    grad_gamma, grad_gamma_memory = create_tensor([0.0] * 3, [c])
    grad_beta, grad_beta_memory = create_tensor([0.0] * 3, [c])

    status, size, executor = aclnn.aclnnGroupNormBackwardGetWorkspaceSize(
        grad_out, x, mean, rstd, gamma, n, c, hxw, group, mask, grad_input, grad_gamma, grad_beta
    )
    check(status, "aclnnGroupNormBackwardGetWorkspaceSize")
    workspace = None
    if size > 0:
        status, workspace = aclnn.aclrtMalloc(size, aclnn.ACL_MEM_MALLOC_HUGE_FIRST)
        check(status, "aclrtMalloc")
    check(aclnn.aclnnGroupNormBackward(workspace, size, executor, stream), "aclnnGroupNormBackward")
    check(aclnn.aclrtSynchronizeStream(stream), "aclrtSynchronizeStream")

    printed = {
        "gradInput": print_result("gradInputResultData", grad_input_memory),
        "gradGamma": print_result("gradGammaResultData", grad_gamma_memory),
        "gradBeta": print_result("gradBetaResultData", grad_beta_memory),
    }

    for tensor in (grad_out, x, mean, rstd, gamma, grad_input, grad_gamma, grad_beta):
        aclnn.aclDestroyTensor(tensor)
    aclnn.aclDestroyBoolArray(mask)
    for memory in (grad_out_memory, x_memory, mean_memory, rstd_memory, gamma_memory):
        aclnn.aclrtFree(memory)
    for memory in (grad_input_memory, grad_gamma_memory, grad_beta_memory):
        aclnn.aclrtFree(memory)
    if workspace is not None:
        aclnn.aclrtFree(workspace)
    aclnn.aclrtDestroyStream(stream)
    aclnn.aclrtResetDevice(0)
    aclnn.aclFinalize()
    return printed


if __name__ == "__main__":
    main()

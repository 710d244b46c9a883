"""The two-phase C interface of the operators, under its own names: aclnnXxxGetWorkspaceSize and aclnnXxx.

    status, size, executor = aclnn.aclnnRmsNormGradGetWorkspaceSize(dy, x, rstd, gamma, dxOut, dgammaOut)
    status, workspace = aclnn.aclrtMalloc(size)
    status = aclnn.aclnnRmsNormGrad(workspace, size, executor, stream)
    status = aclnn.aclrtSynchronizeStream(stream)

What C gives back through pointers is returned beside the status. Phase 1 checks and lists the device kernels with tiling,
traffic and time (`executor.kernels`, `executor.tiling`); phase 2 enqueues them; they run when the stream is synchronised.
"""

from .batch_norm_reduce_backward import (
    aclnnBatchNormReduceBackward,
    aclnnBatchNormReduceBackwardGetWorkspaceSize,
)
from .binary_cross_entropy_with_logits_backward import (
    aclnnBinaryCrossEntropyWithLogitsBackward,
    aclnnBinaryCrossEntropyWithLogitsBackwardGetWorkspaceSize,
)
from .building import tiling
from .convolution_backward import aclnnConvolutionBackward, aclnnConvolutionBackwardGetWorkspaceSize
from .copying import (
    ACL_MEMCPY_DEVICE_TO_DEVICE,
    ACL_MEMCPY_DEVICE_TO_HOST,
    ACL_MEMCPY_HOST_TO_DEVICE,
    ACL_MEMCPY_HOST_TO_HOST,
    aclrtMemcpy,
)
from .executor import DeviceKernel, aclDestroyAclOpExecutor, aclOpExecutor, aclSetAclOpExecutorRepeatable
from .group_norm_backward import aclnnGroupNormBackward, aclnnGroupNormBackwardGetWorkspaceSize
from .rms_norm_grad import aclnnRmsNormGrad, aclnnRmsNormGradGetWorkspaceSize
from .runtime import (
    ACL_MEM_MALLOC_HUGE_FIRST,
    ACL_OPT_DETERMINISTIC,
    aclFinalize,
    aclInit,
    aclrtCreateStream,
    aclrtCtxSetSysParamOpt,
    aclrtDestroyStream,
    aclrtFree,
    aclrtMalloc,
    aclrtResetDevice,
    aclrtSetDevice,
    aclrtStream,
    aclrtSynchronizeDevice,
    aclrtSynchronizeStream,
)
from .status import aclGetRecentErrMsg
from .tensor import (
    DeviceMemory,
    aclBoolArray,
    aclCreateBoolArray,
    aclCreateIntArray,
    aclCreateTensor,
    aclDataType,
    aclDestroyBoolArray,
    aclDestroyIntArray,
    aclDestroyTensor,
    aclFormat,
    aclIntArray,
    aclTensor,
)

ACL_SUCCESS = 0

__all__ = [
    "ACL_MEMCPY_DEVICE_TO_DEVICE", "ACL_MEMCPY_DEVICE_TO_HOST", "ACL_MEMCPY_HOST_TO_DEVICE",
    "ACL_MEMCPY_HOST_TO_HOST", "ACL_MEM_MALLOC_HUGE_FIRST", "ACL_OPT_DETERMINISTIC", "ACL_SUCCESS",
    "DeviceKernel", "DeviceMemory", "aclBoolArray", "aclCreateBoolArray", "aclCreateIntArray",
    "aclCreateTensor", "aclDataType", "aclDestroyAclOpExecutor", "aclDestroyBoolArray",
    "aclDestroyIntArray", "aclDestroyTensor", "aclFinalize", "aclFormat", "aclGetRecentErrMsg", "aclInit",
    "aclIntArray", "aclOpExecutor", "aclSetAclOpExecutorRepeatable", "aclTensor",
    "aclnnBatchNormReduceBackward", "aclnnBatchNormReduceBackwardGetWorkspaceSize",
    "aclnnBinaryCrossEntropyWithLogitsBackward",
    "aclnnBinaryCrossEntropyWithLogitsBackwardGetWorkspaceSize", "aclnnConvolutionBackward",
    "aclnnConvolutionBackwardGetWorkspaceSize", "aclnnGroupNormBackward",
    "aclnnGroupNormBackwardGetWorkspaceSize", "aclnnRmsNormGrad", "aclnnRmsNormGradGetWorkspaceSize",
    "aclrtCreateStream", "aclrtCtxSetSysParamOpt", "aclrtDestroyStream", "aclrtFree", "aclrtMalloc",
    "aclrtMemcpy", "aclrtResetDevice", "aclrtSetDevice", "aclrtStream", "aclrtSynchronizeDevice",
    "aclrtSynchronizeStream", "tiling",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__

"""aclnnRmsNormGrad (hicann/ops-nn, norm/rms_norm_grad/docs): one kernel, whose checks of shapes live in its tiling."""

from __future__ import annotations

from ...simulator.device import current_device
from ..norm.rms.op import OPERATOR, check_inference, check_shapes, check_types
from .building import CheckedCall, Idle, interface
from .checks import check_not_private, check_present, check_writable
from .executor import second_phase_of
from .runtime import deterministic
from .signature import phase_one
from .status import INNER_FIND_KERNEL_ERROR
from .tensor import aclTensor
from .vendor_workspace import rms_norm_grad_bytes

INTERFACE = interface(
    "aclnnRmsNormGrad",
    OPERATOR,
    "dy x rstd gamma dx=dxOut dgamma=dgammaOut",
)


@phase_one(INTERFACE)
def aclnnRmsNormGradGetWorkspaceSize(
    dy: aclTensor | None,
    x: aclTensor | None,
    rstd: aclTensor | None,
    gamma: aclTensor | None,
    dxOut: aclTensor | None,
    dgammaOut: aclTensor | None,
) -> CheckedCall | Idle:
    """Phase 1: (status, workspace size, executor). dgamma is summed atomically unless the determinism switch is on."""
    given = {"dy": dy, "x": x, "rstd": rstd, "gamma": gamma, "dx": dxOut, "dgamma": dgammaOut}
    check_present(INTERFACE.in_c(given))
    tensors = {n: t for n, t in given.items() if t is not None}
    shapes = {n: t.like for n, t in tensors.items()}
    product = current_device().product
    OPERATOR.dtypes_on(product)
    check_types(shapes, product)
    check_shapes(shapes)
    notes = check_inference(shapes, product)
    check_not_private(INTERFACE.in_c(tensors), INNER_FIND_KERNEL_ERROR)
    outputs = {n: tensors.pop(n) for n in ("dx", "dgamma")}
    check_writable(INTERFACE.in_c(outputs))
    knobs = {"combine": "two_phase" if deterministic() else "atomic"}
    types = {n: t.dtype for n, t in outputs.items()}
    x, length = tensors["x"], tensors["gamma"].size
    sizes = (x.size // length, length, x.dtype.itemsize, product.vector_cores)
    asked = rms_norm_grad_bytes(*sizes, deterministic())
    return CheckedCall(INTERFACE, tensors, outputs, {}, types, knobs=knobs, notes=notes, vendor_bytes=asked)


aclnnRmsNormGrad = second_phase_of(INTERFACE.api)

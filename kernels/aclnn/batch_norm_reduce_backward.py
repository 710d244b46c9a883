"""aclnnBatchNormReduceBackward (hicann/ops-nn, norm/sync_batch_norm_backward_reduce/docs)."""

from __future__ import annotations

from ...simulator.device import current_device
from ..norm.batch.op import NAME, OPERATOR, OUTPUTS, check_shapes, check_types
from ..operator.messages import check_same_dtype
from .building import LEFT_ALONE, CheckedCall, Idle, interface
from .checks import (
    check_not_private,
    check_present,
    check_same_format,
    check_shape,
    check_wanted,
    check_writable,
)
from .executor import second_phase_of
from .signature import phase_one
from .tensor import aclTensor

INTERFACE = interface(
    "aclnnBatchNormReduceBackward",
    OPERATOR,
    "grad_out=gradOut x=input mean invstd sum_dy=sumDy sum_dy_xmu=sumDyXmu "
    "grad_weight=gradWeight grad_bias=gradBias",
)


@phase_one(INTERFACE)
def aclnnBatchNormReduceBackwardGetWorkspaceSize(
    gradOut: aclTensor | None,
    input: aclTensor | None,
    mean: aclTensor | None,
    invstd: aclTensor | None,
    weight: aclTensor | None,
    inputG: bool,
    weightG: bool,
    biasG: bool,
    sumDy: aclTensor | None,
    sumDyXmu: aclTensor | None,
    gradWeight: aclTensor | None,
    gradBias: aclTensor | None,
) -> CheckedCall | Idle:
    """Phase 1: (status, workspace size, executor). weight has no influence and may be None; outputs that no flag asks
    for too. Outputs are of the type of input, as the operator's document says.

    An empty input gives status 0 and no kernels: the outputs keep what they held, as on the device.
    """
    given = {"grad_out": gradOut, "x": input, "mean": mean, "invstd": invstd}
    flags = {"sum_dy": inputG, "sum_dy_xmu": inputG, "grad_weight": weightG, "grad_bias": biasG}
    outputs = dict(zip(OUTPUTS, (sumDy, sumDyXmu, gradWeight, gradBias), strict=True))
    check_present(INTERFACE.in_c(given))
    reasons = {"sum_dy": "inputG", "sum_dy_xmu": "inputG", "grad_weight": "weightG", "grad_bias": "biasG"}
    check_wanted({INTERFACE.names[n]: (flags[n], outputs[n], reasons[n]) for n in OUTPUTS})
    inputs = {n: t for n, t in given.items() if t is not None}
    wanted = {n: t for n, t in outputs.items() if flags[n] and t is not None}
    _check(inputs, wanted, weight)
    if not inputs["x"].size:
        return Idle((LEFT_ALONE,))
    if not wanted:
        return Idle()
    bits = {"input_g": inputG, "weight_g": weightG, "bias_g": biasG}
    options = OPERATOR.read_options({n: int(b) for n, b in bits.items()})
    return CheckedCall(INTERFACE, inputs, wanted, options, {n: t.dtype for n, t in wanted.items()})


def _check(inputs: dict[str, aclTensor], wanted: dict[str, aclTensor], weight: aclTensor | None) -> None:
    """Types, formats, shapes: in the order of the page."""
    product = current_device().product
    shapes = {n: t.like for n, t in inputs.items()} | ({} if weight is None else {"weight": weight.like})
    check_types(shapes, product)
    check_same_dtype(NAME, {"x": shapes["x"]} | {n: t.like for n, t in wanted.items()}, "x", wanted)
    check_same_format("gradOut", inputs["grad_out"], "input", inputs["x"])
    check_not_private(INTERFACE.in_c(inputs) | {"weight": weight})
    check_not_private(INTERFACE.in_c(wanted))
    check_shapes(shapes)
    channels = inputs["x"].shape[1]
    for n, t in wanted.items():
        check_shape(INTERFACE.names[n], t, (channels,), "one element for each channel of input")
    check_writable(INTERFACE.in_c(wanted))


aclnnBatchNormReduceBackward = second_phase_of(INTERFACE.api)

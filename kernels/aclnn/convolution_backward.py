"""aclnnConvolutionBackward (hicann/ops-nn, conv/convolution_backward/docs).

gradInput is of the higher type of input and gradOutput, gradWeight of weight and gradOutput, gradBias of gradOutput. Outputs
may be strided: copies are kernels of their own. With ACL_OPT_DETERMINISTIC the sum of gradWeight has two phases in place of
atomic additions.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ...simulator.device import CUBE_MATH_TYPES, current_device, device
from ...simulator.record.files import picked
from ..convolution.call import INPUTS, RESULTS, ConvolutionCall, TensorView
from ..convolution.checks import check_call, check_nulls, is_empty
from ..convolution.op import OPERATOR
from ..operator.tensors import dtype_name
from .building import CheckedCall, Idle, interface
from .checks import check_writable
from .executor import second_phase_of
from .runtime import deterministic
from .signature import phase_one
from .tensor import aclBoolArray, aclIntArray, aclTensor

SKIPPED = (
    "input or weight is empty: ranks, shapes of results and grad_output, lengths, channels and sizes (checks 9 to 13 of the "
    "operator's page) are not looked at, as in the vendor's library"
)
INTERFACE = interface(
    "aclnnConvolutionBackward",
    OPERATOR,
    "grad_output=gradOutput input weight bias_sizes=biasSizes output_padding=outputPadding "
    "output_mask=outputMask grad_input=gradInput grad_weight=gradWeight grad_bias=gradBias "
    "cube_math_type=cubeMathType",
)


def _in_mode(given: Mapping[str, Any]) -> AbstractContextManager[object]:
    """The device in the mode that is asked for; one that there is not is refused by the checks."""
    mode = given["cubeMathType"]
    return device(cube_math_type=CUBE_MATH_TYPES[mode]) if mode in range(4) else nullcontext()


@phase_one(INTERFACE, _in_mode)
def aclnnConvolutionBackwardGetWorkspaceSize(
    gradOutput: aclTensor | None,
    input: aclTensor | None,
    weight: aclTensor | None,
    biasSizes: aclIntArray | None,
    stride: aclIntArray | None,
    padding: aclIntArray | None,
    dilation: aclIntArray | None,
    transposed: bool,
    outputPadding: aclIntArray | None,
    groups: int,
    outputMask: aclBoolArray | None,
    cubeMathType: int,
    gradInput: aclTensor | None,
    gradWeight: aclTensor | None,
    gradBias: aclTensor | None,
) -> CheckedCall | Idle:
    """Phase 1: (status, workspace size, executor). An output may be None where outputMask is false.

    cubeMathType: 0 KEEP_DTYPE, 1 ALLOW_FP32_DOWN_PRECISION, 2 USE_FP16, 3 USE_HF32. biasSizes is needed only where input is
    empty and gradBias is wanted, and checked where it is given. outputPadding has an effect only with transposed.
    """
    tensors = dict(
        zip((*INPUTS, *RESULTS), (gradOutput, input, weight, gradInput, gradWeight, gradBias), strict=True)
    )
    arrays = {"stride": stride, "padding": padding, "dilation": dilation, "output_padding": outputPadding}
    call = ConvolutionCall(
        **{n: _view(t) for n, t in tensors.items()},  # type: ignore[arg-type]
        **{n: None if a is None else tuple(a) for n, a in arrays.items()},  # type: ignore[arg-type]
        output_mask=None if outputMask is None else tuple(outputMask),  # type: ignore[arg-type]
        bias_sizes=None if biasSizes is None else tuple(biasSizes),
        transposed=bool(transposed),
        groups=int(groups),
    )
    notes = _check(call, cubeMathType)
    if is_empty(call):
        notes += (SKIPPED,)
    wanted = {n: t for n, asked in zip(RESULTS, call.wants, strict=True) if asked and (t := tensors[n])}
    check_writable(INTERFACE.in_c(wanted))
    if not any(t.size for t in wanted.values()):
        return Idle(notes)
    inputs = {n: t for n in INPUTS if (t := tensors[n])}
    knobs = {"combine": "two_phase"} if deterministic() else {}
    types = {n: t.dtype for n, t in wanted.items()}
    return CheckedCall(INTERFACE, inputs, wanted, _options(call), types, knobs=knobs, notes=notes)


def _view(t: aclTensor | None) -> TensorView | None:
    if t is None:
        return None
    return TensorView(t.shape, dtype_name(t.like), t.format.name.removeprefix("ACL_FORMAT_"))


def _check(call: ConvolutionCall, mode: int) -> tuple[str, ...]:
    """All checks of the page in their order, and warnings; a product without the operator is told at the types."""
    product = current_device().product
    check_nulls(call)
    OPERATOR.dtypes_on(product)
    return check_call(call, product, mode, result_types=True)


def _options(call: ConvolutionCall) -> dict[str, object]:
    """The call as options of the Python face."""
    types = {f"{n}_dtype": getattr(call, n) for n in RESULTS}
    found = picked(call, "stride padding dilation output_padding groups bias_sizes")
    found |= {n: "auto" if v is None else v.dtype for n, v in types.items()}
    mask = tuple(int(x) for x in call.wants)
    return OPERATOR.read_options({**found, "transposed": str(call.transposed).lower(), "output_mask": mask})


aclnnConvolutionBackward = second_phase_of(INTERFACE.api)

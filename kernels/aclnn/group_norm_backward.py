"""aclnnGroupNormBackward (hicann/ops-nn, norm/group_norm_grad/docs).

A mask that is null or not of length 3, and a wanted output that is null, give 161001, as the documents promise; the vendor's
code gives 161002 there, which the messages tell.
"""

from __future__ import annotations

from ...simulator.device import current_device
from ..norm.group.launches import TRAINING
from ..norm.group.op import NAME, OPERATOR, OUTPUTS, check_sizes, check_types
from ..norm.planes import Planes
from ..operator.messages import check_same_dtype
from .building import LEFT_ALONE, CheckedCall, Idle, interface
from .checks import check_not_private, check_present, check_shape, check_writable
from .executor import second_phase_of
from .signature import phase_one
from .status import PARAM_INVALID, PARAM_NULLPTR, Refused
from .tensor import aclBoolArray, aclTensor
from .vendor_workspace import group_norm_backward_bytes

INTERFACE = interface(
    "aclnnGroupNormBackward",
    OPERATOR,
    "grad_out=gradOut x=input mean rstd gamma grad_input=gradInput grad_gamma=gradGammaOut "
    "grad_beta=gradBetaOut",
)
DIFFERENCE = " (the documents say 161001, the vendor's code gives 161002)"
MASKS = ("input_mask", "gamma_mask", "beta_mask")


@phase_one(INTERFACE)
def aclnnGroupNormBackwardGetWorkspaceSize(
    gradOut: aclTensor | None,
    input: aclTensor | None,
    mean: aclTensor | None,
    rstd: aclTensor | None,
    gamma: aclTensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    outputMask: aclBoolArray | None,
    gradInput: aclTensor | None,
    gradGammaOut: aclTensor | None,
    gradBetaOut: aclTensor | None,
) -> CheckedCall | Idle:
    """Phase 1: (status, workspace size, executor). gamma may be None: ones; an output may be where outputMask is false.

    An empty input gives status 0 and no kernels: the outputs keep what they held, as on the device.
    """
    given = {"grad_out": gradOut, "x": input, "mean": mean, "rstd": rstd}
    outputs = dict(zip(OUTPUTS, (gradInput, gradGammaOut, gradBetaOut), strict=True))
    check_present(INTERFACE.in_c(given))
    masks = _masks(outputMask)
    rows = zip(OUTPUTS, masks, range(3), strict=True)
    for n, wants, k in rows:
        if wants and outputs[n] is None:
            raise Refused(
                PARAM_NULLPTR, f"{INTERFACE.names[n]} is null; outputMask[{k}] asks for it{DIFFERENCE}"
            )
    inputs = {n: t for n, t in {**given, "gamma": gamma}.items() if t is not None}
    wanted = {n: t for (n, t), asked in zip(outputs.items(), masks, strict=True) if asked and t is not None}
    _check(inputs, wanted, N, C, HxW, group)
    if not inputs["x"].size:
        return Idle((LEFT_ALONE,))
    if not wanted:
        return Idle()
    sizes = {"n": N, "c": C, "hxw": HxW, "group": group}
    flags = {name: int(asked) for name, asked in zip(MASKS, masks, strict=True)}
    options = OPERATOR.read_options({**sizes, **flags})
    types = {n: inputs["x"].dtype for n in wanted}
    asked = None
    if current_device().product.integer("product.npu_arch") != TRAINING:
        asked = group_norm_backward_bytes(N, C, inputs["x"].dtype.itemsize)
    return CheckedCall(INTERFACE, inputs, wanted, options, types, vendor_bytes=asked)


def _masks(given: aclBoolArray | None) -> tuple[bool, ...]:
    if given is None:
        raise Refused(PARAM_NULLPTR, f"outputMask is null; it must have 3 entries{DIFFERENCE}")
    if len(given) != 3:
        raise Refused(PARAM_NULLPTR, f"outputMask has {len(given)} entries; it must have 3{DIFFERENCE}")
    return tuple(given)


def _check(
    inputs: dict[str, aclTensor], wanted: dict[str, aclTensor], n: int, c: int, hxw: int, group: int
) -> None:
    """Types, groups, sizes, shapes of outputs: in the order of the page; formats come after types, as elsewhere."""
    product = current_device().product
    shapes = {k: t.like for k, t in inputs.items()}
    check_types(shapes, product)
    check_same_dtype(NAME, shapes | {k: t.like for k, t in wanted.items()}, "grad_out", wanted)
    check_not_private(INTERFACE.in_c({**inputs, **wanted}))
    if group <= 0 or c % group:
        raise Refused(PARAM_INVALID, f"C is {c}, group is {group}; group must be at least 1 and divide C")
    for name, size in (("N", n), ("C", c), ("HxW", hxw)):
        if size < 0:
            raise Refused(PARAM_INVALID, f"{name} is {size}; it must be at least 0")
    check_sizes(shapes, Planes(n, group, c // group, hxw), product, {k: t.like for k, t in wanted.items()})
    gamma = inputs["gamma"].shape if "gamma" in inputs else (c,)
    rules = {
        "grad_input": (inputs["x"].shape, "the shape of input"),
        "grad_gamma": (gamma, "the shape of gamma, or (C,)"),
        "grad_beta": (gamma, "the shape of gamma, or (C,)"),
    }
    for k, t in wanted.items():
        check_shape(INTERFACE.names[k], t, *rules[k])
    check_writable(INTERFACE.in_c(wanted))


aclnnGroupNormBackward = second_phase_of(INTERFACE.api)

"""aclnnBinaryCrossEntropyWithLogitsBackward (hicann/ops-nn, loss/sigmoid_cross_entropy_with_logits_grad_v2/docs).

All inputs are cast to their common type first, a kernel each where needed; the result is cast to the type of target.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...simulator.device import current_device
from ...simulator.precision import dtypes as ty
from ..loss.op import MAX_RANK, OPERATOR, check_shapes, check_types
from ..operator.tensors import dtype_name
from .building import CheckedCall, Idle, interface
from .checks import check_not_private, check_present, check_same_format, check_shape, check_writable
from .executor import second_phase_of
from .signature import phase_one
from .status import PARAM_INVALID, Refused
from .tensor import aclTensor

REDUCTIONS = ("none", "mean", "sum")
INTERFACE = interface(
    "aclnnBinaryCrossEntropyWithLogitsBackward",
    OPERATOR,
    "grad_output=gradOutput x=self target weight=weightOptional pos_weight=posWeightOptional out",
)


@phase_one(INTERFACE)
def aclnnBinaryCrossEntropyWithLogitsBackwardGetWorkspaceSize(
    gradOutput: aclTensor | None,
    self: aclTensor | None,
    target: aclTensor | None,
    weightOptional: aclTensor | None,
    posWeightOptional: aclTensor | None,
    reduction: int,
    out: aclTensor | None,
) -> CheckedCall | Idle:
    """Phase 1: (status, workspace size, executor). reduction: 0 none, 1 mean, 2 sum."""
    given = {"grad_output": gradOutput, "x": self, "target": target}
    check_present(INTERFACE.in_c({**given, "out": out}))
    assert out is not None
    given |= {"weight": weightOptional, "pos_weight": posWeightOptional}
    inputs = {n: t for n, t in given.items() if t is not None}
    _check(inputs, out, reduction)
    if not inputs["x"].size:
        return Idle()
    wide = promoted(t.dtype for t in inputs.values())
    options = OPERATOR.read_options({"reduction": REDUCTIONS[reduction]})
    return CheckedCall(INTERFACE, inputs, {"out": out}, options, {"out": wide}, widen=wide)


def _check(inputs: dict[str, aclTensor], out: aclTensor, reduction: int) -> None:
    """Rank, types, formats, shapes, reduction: in the order of the page."""
    product = current_device().product
    if len(out.shape) > MAX_RANK:
        raise Refused(PARAM_INVALID, f"out has rank {len(out.shape)}; it must be from 0 to {MAX_RANK}")
    shapes = {n: t.like for n, t in inputs.items()}
    check_types({**shapes, "out": out.like}, product)
    if out.dtype != inputs["target"].dtype:
        names = dtype_name(out.like), dtype_name(inputs["target"].like)
        raise Refused(PARAM_INVALID, f"out is {names[0]}, target is {names[1]}; they must be of one type")
    check_same_format("self", inputs["x"], "target", inputs["target"])
    check_same_format("self", inputs["x"], "out", out)
    check_not_private(INTERFACE.in_c(inputs) | {"out": out})
    if inputs["x"].size:
        check_shapes({n: shapes[n] for n in ("x", "target")})
        check_shape("out", out, inputs["x"].shape, "the shape of self")
        check_shapes(shapes)
    if reduction not in range(len(REDUCTIONS)):
        raise Refused(PARAM_INVALID, f"reduction is {reduction}; it must be 0 (none), 1 (mean) or 2 (sum)")
    check_writable({"out": out})


def promoted(types: Iterable[ty.DType]) -> ty.DType:
    """The common type: float16 with bfloat16 is float32 (hicann/ops-nn, deduction_relationship.md)."""
    found = set(types)
    return found.pop() if len(found) == 1 else ty.float32


aclnnBinaryCrossEntropyWithLogitsBackward = second_phase_of(INTERFACE.api)

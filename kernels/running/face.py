"""The Python face of an operator, `rms_norm(x, gamma, product=...)`, made from its declaration."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from ..operator.operator import Operator
from ..operator.parameter import REQUIRED, Argument
from .run_op import OpResult, run_op

COMMON = {
    "product": ("str | Product | None", None),
    "tiling": ("Mapping[str, Any] | None", None),
    "cube_math_type": ("str | int", "KEEP_DTYPE"),
    "values": ("bool", True),
    "time": ("bool", True),
    "errors": ("bool", True),
    "out": ("Mapping[str, Any] | None", None),
}
ABOUT_COMMON = """Inputs are arrays of numpy or torch (CPU), of any strides, or `sim.shape(...)` for time only.
product, tiling, cube_math_type, values, time, errors and out (arrays by name of output that take the results) are those
of `run_op`."""


def python_face(op: Operator, module: str) -> Callable[..., OpResult]:
    """The function that a module exports for its operator: inputs, arguments of the operator, keywords of `run_op`."""
    signature = signature_of(op)

    def face(*given: Any, **named: Any) -> OpResult:
        try:
            bound = signature.bind(*given, **named)
        except TypeError as e:
            raise TypeError(f"{op.name}() {e}") from None
        bound.apply_defaults()
        rest = bound.arguments
        inputs = {n: rest.pop(n) for n in (*op.required, *op.optional)}
        options: dict[str, Any] = {}
        for argument in op.arguments:
            options.update(argument.options(rest.pop(argument.name), inputs))
        return run_op(op, inputs=inputs, options=options, **rest)

    face.__name__ = face.__qualname__ = op.name
    face.__module__, face.__doc__ = module, f"{op.doc}\n\n{ABOUT_COMMON}"
    face.__signature__ = signature  # type: ignore[attr-defined]
    return face


def signature_of(op: Operator) -> Signature:
    """What may be given: inputs first, then arguments of the operator, then by name only the keywords of `run_op`."""
    inputs = [Argument(n, "Any") for n in op.required] + [Argument(n, "Any", None) for n in op.optional]
    common = [Argument(n, annotation, default, keyword=True) for n, (annotation, default) in COMMON.items()]
    every = [*inputs, *op.arguments, *common]
    return Signature([_parameter(x) for x in every], return_annotation="OpResult")


def _parameter(x: Argument) -> Parameter:
    kind = Parameter.KEYWORD_ONLY if x.keyword else Parameter.POSITIONAL_OR_KEYWORD
    default = Parameter.empty if x.default is REQUIRED else x.default
    return Parameter(x.name, kind, default=default, annotation=x.annotation)

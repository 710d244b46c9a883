"""What the operators of this folder have in common: knobs, and no cases of their own, as a chain brings their inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from ....simulator.errors import UsageError
from ....simulator.products import Product
from ...operator.layout import up
from ...operator.messages import check_same_dtype
from ...operator.operator import Operator
from ...operator.parameter import Parameter, integer
from ...operator.plan import PlanContext
from ...operator.tensors import Knobs, Tensors

PARAMETERS = (
    integer("block", None, 16, None, "elements of a tile; what fits if left out", 16),
    integer("cores", None, 1, None, "cores that share the tiles; all of the product if left out"),
    integer("buffers", 2, 1, 16, "copies of a tile that is loaded or stored in a loop"),
)
Check = Callable[[Tensors, Mapping[str, Any], Product], tuple[str, ...]]


def glue(
    name: str,
    summary: str,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    plan: Any,
    formula: Any,
    check: Check,
    options: tuple[Parameter, ...] = (),
) -> Operator:
    """An operator of `inputs`, all of one type, in float16, bfloat16 and float32; `check` looks at shapes and options."""

    def checked(tensors: Tensors, given: Mapping[str, Any], product: Product) -> tuple[str, ...]:
        check_same_dtype(name, tensors, inputs[0], inputs)
        for n, x in tensors.items():
            if not x.size:
                raise UsageError(f"{name}: {n} has shape {x.shape}; it needs at least one element")
        return check(tensors, given, product)

    return Operator(
        name=name,
        summary=summary,
        required=inputs,
        main=inputs[0],
        outputs=outputs,
        sizes={},
        cases={},
        parameters=PARAMETERS,
        options=options,
        describe=_no_case,
        draw=_no_case,
        check=checked,
        plan=plan,
        formula=formula,
    )


def _no_case(*_: Any) -> NoReturn:
    raise UsageError("an operator of chains has no cases; give it inputs")


def same_shapes(name: str) -> Check:
    """A check that all tensors have the shape of the first one."""

    def check(tensors: Tensors, given: Mapping[str, Any], product: Product) -> tuple[str, ...]:
        first, *others = tensors.items()
        for n, x in others:
            if x.shape != first[1].shape:
                raise UsageError(
                    f"{name}: {n} has shape {x.shape}, {first[0]} {first[1].shape}; they must be equal"
                )
        return ()

    return check


def block_of(elements: int, element_bytes: int, knobs: Knobs, cores: int, context: PlanContext) -> int:
    """Elements of a tile: those of a core, or what UB holds of `element_bytes` each."""
    return knobs["block"] or max(
        16, min(context.ub_bytes // element_bytes // 64 * 64, up(-(-elements // cores), 16))
    )

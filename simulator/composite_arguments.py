"""Arguments of a launch that are several values, cut into plain parameters; see ir/building/composite.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .errors import UsageError
from .interpreter.tensors import Shape, as_array
from .ir.building.composite import ArgumentPlan, ConstantPlan, DescriptorPlan, TuplePlan
from .ir.building.registry import Kernel, constexpr, unwrap_all
from .precision.dtypes import DType

_FIELDS = ("base", "shape", "strides", "block_shape")


def is_descriptor(x: Any) -> bool:
    """Whether `x` is a tensor descriptor of the host, ours or one of the same fields."""
    return all(hasattr(x, n) for n in _FIELDS) and not isinstance(x, type)


def is_composite(x: Any) -> bool:
    """Whether an argument has to be cut: a descriptor, or a tuple with a tensor in it. Other tuples are compile-time."""
    if isinstance(x, tuple):
        return any(map(is_composite, x)) or any(_is_tensor(e) for e in x)
    return is_descriptor(x)


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Shape) or as_array("an element of a tuple", x) is not None


def plan_of(name: str, x: Any, plain: Callable[[str, Any], ArgumentPlan]) -> ArgumentPlan:
    """The plan of an argument; `plain` makes one value a parameter of that name."""
    if isinstance(x, tuple):
        items = tuple(plan_of(f"{name}[{k}]", e, plain) for k, e in enumerate(x))
        return TuplePlan(items, type(x) if hasattr(x, "_fields") else None)
    if is_descriptor(x):
        return _descriptor(name, x, plain)
    if isinstance(x, constexpr):
        x = unwrap_all(x)
        return ConstantPlan(x, type(x).__name__)
    if x is None or isinstance(x, str | DType | Kernel):
        return ConstantPlan(x, type(x).__name__)
    return plain(name, x)


def _descriptor(name: str, x: Any, plain: Callable[[str, Any], ArgumentPlan]) -> ArgumentPlan:
    if not _is_tensor(x.base):
        raise UsageError(
            f"{name}: the base of a tensor descriptor must be a tensor, got {type(x.base).__name__}"
        )
    plain(f"{name}.base", x.base)
    for what in ("shape", "strides"):
        for k, n in enumerate(getattr(x, what)):
            plain(f"{name}.{what}[{k}]", int(n))
    return DescriptorPlan(name, tuple(int(n) for n in x.block_shape), getattr(x, "padding", "zero") or "zero")

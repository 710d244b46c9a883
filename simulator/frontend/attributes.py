"""What a kernel may ask of a value by `.name`: of a value of the program, and of a number, which may become one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir.building.builder import Builder
from ..ir.building.promotion import is_number
from ..ir.building.registry import METHODS, BoundBuiltin
from ..ir.program import Value
from ..ir.types import BlockType, ConstexprType
from ..precision import dtypes as ty

COMPILE_TIME = (bool, int, float, str, tuple, ty.DType)  # what a constexpr may hold
_OF_VALUE: dict[str, Callable[[Builder, Value], Any]] = {
    "dtype": lambda b, v: v.dtype,
    "type": lambda b, v: BlockType(v.dtype, v.shape) if v.shape else v.dtype,
    "shape": lambda b, v: v.shape,
    "numel": lambda b, v: v.numel,
    "T": lambda b, v: b.permute(v, tuple(reversed(range(len(v.shape))))),
}


def has(v: Value, name: str) -> bool:
    """`hasattr` of a value of the program."""
    return name in _OF_VALUE or name in METHODS


def of_value(b: Builder, v: Value, name: str) -> Any:
    """An attribute that the value has."""
    return _OF_VALUE[name](b, v) if name in _OF_VALUE else BoundBuiltin(METHODS[name], v)


def of_constant(x: Any, name: str, declared: bool) -> Any:
    """An attribute that Triton gives a compile-time value; `AttributeError` if there is none.

    A number has those of the scalar that it would be. declared: it is no variable of the kernel but a
    constant, an entry of a tuple or a name marked `tl.constexpr`, whose type is of itself.
    """
    constant = x is None or isinstance(x, COMPILE_TIME)
    if constant and name == "value":
        return x
    if constant and name == "type" and (declared or not is_number(x)):
        return ConstexprType(x)
    if is_number(x) and name in ("dtype", "type"):
        return ty.of_constant(x)
    if is_number(x) and name in METHODS:
        return BoundBuiltin(METHODS[name], x)
    raise AttributeError(name)

"""Elementwise mathematics. Floating functions compute in FP32 for halves where Triton does, else in the input's type."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any

from ..errors import in_triton
from ..ir.building.promotion import KernelError, Operand, computes_in_single, describe, is_number
from ..ir.building.registry import INSTEAD_OF, Builder, Builtin, builtin, named
from ..ir.operations import binary, by_element, define
from ..ir.program import Value
from ..precision import dtypes as ty
from ..units import functions
from ..units.vector import of_type

__all__ = [
    "PropagateNan", "abs", "add", "cdiv", "ceil", "clamp", "cos", "div_rn", "erf", "exp", "exp2", "fdiv",
    "floor", "fma", "log", "log2", "maximum", "minimum", "mul", "rsqrt", "sigmoid", "sin", "softmax",
    "sqrt", "sqrt_rn", "sub", "umulhi",
]  # fmt: skip


class PropagateNan(enum.Enum):
    """What maximum, minimum and clamp give where an operand is NaN: the other operand (NONE) or NaN (ALL)."""

    NONE = 0
    ALL = 1


def floating(b: Builder, name: str, x: Operand) -> Value:
    """`x` as a value of the program; `KernelError` unless its type is floating."""
    v = b.to_value(x)
    if not v.dtype.is_floating():
        words = in_triton(f"Expected dtype fp16/fp32/bf16, but got {v.dtype}")
        raise KernelError(f"{name} needs floating point, got {describe(v)}; cast with .to(tl.float32){words}")
    return v


def in_single(b: Builder, v: Value, compute: Callable[[Value], Operand]) -> Value:
    """`compute` of `v`; of halves in FP32 and rounded once, as the compiler widens a function of several steps."""
    if v.dtype not in (ty.float16, ty.bfloat16) and not computes_in_single(v.dtype):
        return b.to_value(compute(v))
    return b.cast(compute(b.cast(v, ty.float32)), v.dtype)


def _function(name: str, says: str, operation: str = "") -> Builtin:
    """A function of floating-point elements that is one operation."""

    def build(b: Builder, x: Operand) -> Value:
        return b.unary(operation or name, floating(b, name, x))

    return named(name, build, f"{says}; floating point only.", method=True)


exp = _function("exp", "e to the power of each element")
log = _function("log", "Natural logarithm")
exp2 = _function("exp2", "2 to the power of each element, correctly rounded (see units/functions.py)")
log2 = _function("log2", "Logarithm to the base 2, correctly rounded")
sin = _function("sin", "Sine of radians, correctly rounded for any argument")
cos = _function("cos", "Cosine of radians, correctly rounded for any argument")
erf = _function("erf", "Error function, correctly rounded")
sqrt = _function("sqrt", "Square root")
sqrt_rn = _function("sqrt_rn", "Square root, correctly rounded", "sqrt")


def _whole(name: str, says: str) -> Builtin:
    def build(b: Builder, x: Operand) -> Value:
        v = b.to_value(x)
        return v if v.dtype.is_int() else b.unary(name, v)

    return named(
        name,
        build,
        f"{says} each element, in its type; integers are that already, as on Ascend.",
        method=True,
    )


floor = _whole("floor", "Largest integer that is not above")
ceil = _whole("ceil", "Smallest integer that is not below")


@builtin(method=True)
def rsqrt(b: Builder, x: Operand) -> Value:
    """1 / sqrt(x), by a square root and a division (not the coarse Rsqrt instruction); of halves in FP32, rounded once."""
    return in_single(b, floating(b, "rsqrt", x), lambda v: b.binary("div", 1.0, b.unary("sqrt", v)))


@builtin(method=True)
def sigmoid(b: Builder, x: Operand) -> Value:
    """1 / (1 + exp(-x)), as the unit has to compute it: negate, exp, add, divide; of halves in FP32, rounded once."""

    def steps(v: Value) -> Operand:
        return b.binary("div", 1.0, b.binary("add", b.unary("exp", b.unary("neg", v)), 1.0))

    return in_single(b, floating(b, "sigmoid", x), steps)


@builtin(method=True)
def abs(b: Builder, x: Operand) -> Any:
    """Absolute value of numbers of any kind."""
    if is_number(x):
        return -x if x < 0 else x  # type: ignore[operator]
    return b.unary("abs", x)


def _extreme(b: Builder, name: str, x: Operand, y: Operand, propagate_nan: Any) -> Operand:
    """The larger or smaller of two; `name` is max or min."""
    values = [v for v in (x, y) if isinstance(v, Value)]
    nan_too = propagate_nan is PropagateNan.ALL and any(v.dtype.is_floating() for v in values)
    return b.binary(f"{name}_nan" if nan_too else name, x, y)


def _extremum(name: str, operation: str) -> Builtin:
    def build(b: Builder, x: Operand, y: Operand, propagate_nan: Any = PropagateNan.NONE) -> Operand:
        return _extreme(b, operation, x, y, propagate_nan)

    says = "Where one side is NaN the other is taken, as on Ascend; with `PropagateNan.ALL`, NaN."
    return named(name, build, f"Elementwise {name}. {says}")


maximum, minimum = _extremum("maximum", "max"), _extremum("minimum", "min")


def _wrapping(name: str, sign: str) -> Builtin:
    def build(b: Builder, x: Operand, y: Operand, sanitize_overflow: bool = True) -> Operand:
        return b.binary(name, x, y)

    return named(name, build, f"`x {sign} y`. sanitize_overflow: accepted, without effect: integers wrap.")


add, sub, mul = _wrapping("add", "+"), _wrapping("sub", "-"), _wrapping("mul", "*")


def _logical(name: str, says: str) -> Builtin:
    def build(b: Builder, x: Operand, y: Operand) -> Operand:
        return b.binary(name, b.to_bool(x), b.to_bool(y))

    return named(
        f"logical_{name}",
        build,
        f"{says} not zero, elementwise: the method behind `{name}` of tiles.",
        method=True,
    )


logical_and, logical_or = _logical("and", "Whether both are"), _logical("or", "Whether one is")


@builtin
def fdiv(b: Builder, x: Operand, y: Operand, ieee_rounding: bool = False) -> Operand:
    """Floating-point division."""
    return b.binary("div", x, y)


@builtin
def div_rn(b: Builder, x: Operand, y: Operand) -> Operand:
    """Floating-point division, correctly rounded."""
    return b.binary("div", x, y)


@builtin
def clamp(
    b: Builder, x: Operand, min: Operand, max: Operand, propagate_nan: Any = PropagateNan.NONE
) -> Operand:
    """`x`, but at least `min` and at most `max`; floating point only. NaN becomes `min`; with `PropagateNan.ALL`, NaN."""
    v = floating(b, "clamp", x)
    return _extreme(b, "min", _extreme(b, "max", v, min, propagate_nan), max, propagate_nan)


@builtin
def fma(b: Builder, x: Operand, y: Operand, z: Operand) -> Value:
    """x * y + z with one rounding; broadcast together, in their common type. Integers wrap."""
    return b.fma(x, y, z)


@builtin
@define(binary(value=of_type(functions.high_product), fallback=by_element("umulhi")))
def umulhi(b: Builder, x: Operand, y: Operand) -> Operand:
    """Upper half of the product of two integers of 32 or 64 bits; on the device element by element."""
    for v in (b.to_value(x), b.to_value(y)):
        if v.dtype.name not in ("int32", "int64", "uint32", "uint64"):
            words = in_triton(f"Expected dtype int32/int64/uint32/uint64, but got {v.dtype}")
            raise KernelError(
                f"umulhi takes int32, int64, uint32 or uint64, got {describe(v)}; cast it{words}"
            )
    return b.binary("umulhi", x if isinstance(x, Value) else b.to_value(x), y)


@builtin(method=True)
def softmax(
    b: Builder, x: Operand, dim: int | None = None, keep_dims: bool = False, ieee_rounding: bool = False
) -> Value:
    """exp(x - max) / sum along `dim` (the first axis if None), by the unit's exp, sum and division; of halves in FP32.

    keep_dims, ieee_rounding: accepted, without effect: the result has the shape of `x`, the division is rounded correctly.
    """
    axis = dim or 0

    def steps(v: Value) -> Operand:
        e = b.unary("exp", b.to_value(b.binary("sub", v, b.reduce("max", v, axis, True))))
        return b.binary("div", e, b.reduce("sum", e, axis, True))

    return in_single(b, floating(b, "softmax", x), steps)


@builtin(method=True)
def cdiv(b: Builder, x: Operand, div: Operand) -> Operand:
    """Ceiling division of integers; of floating point, the quotient rounded up, as on Ascend."""
    if not isinstance(x, Value) and not isinstance(div, Value):
        return -(-x // div)
    if any(isinstance(v, Value) and v.dtype.is_floating() for v in (x, div)):
        return b.unary("ceil", b.to_value(b.binary("div", x, div)))
    return b.binary("floordiv", b.binary("sub", b.binary("add", x, div), 1), div)


INSTEAD_OF.update(
    {
        getattr(math, name): name
        for name, x in list(globals().items())
        if isinstance(x, Builtin) and hasattr(math, name)
    }
)

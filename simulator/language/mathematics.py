"""Elementwise mathematics. Floating functions compute in FP32 for halves where Triton does, else in the input's type."""

from __future__ import annotations

import enum
import math
from typing import Any

from ..ir.building.promotion import KernelError, Operand, describe, is_number
from ..ir.building.registry import INSTEAD_OF, Builder, Builtin, builtin
from ..ir.program import Value


class PropagateNan(enum.Enum):
    """What maximum, minimum and clamp give where an operand is NaN: the other operand (NONE) or NaN (ALL)."""

    NONE = 0
    ALL = 1


def floating(b: Builder, name: str, x: Operand) -> Value:
    """`x` as a value of the program; `KernelError` unless its type is floating."""
    v = b.to_value(x)
    if not v.dtype.is_floating():
        raise KernelError(f"{name} needs floating point, got {describe(v)}; cast with .to(tl.float32)")
    return v


@builtin(method=True)
def exp(b: Builder, x: Operand) -> Value:
    """e to the power of each element; floating point only."""
    return b.unary("exp", floating(b, "exp", x))


@builtin(method=True)
def log(b: Builder, x: Operand) -> Value:
    """Natural logarithm; floating point only."""
    return b.unary("log", floating(b, "log", x))


@builtin(method=True)
def exp2(b: Builder, x: Operand) -> Value:
    """2 to the power of each element; floating point only, correctly rounded (see units/functions.py)."""
    return b.unary("exp2", floating(b, "exp2", x))


@builtin(method=True)
def log2(b: Builder, x: Operand) -> Value:
    """Logarithm to the base 2; floating point only, correctly rounded."""
    return b.unary("log2", floating(b, "log2", x))


@builtin(method=True)
def sin(b: Builder, x: Operand) -> Value:
    """Sine of radians; floating point only, correctly rounded for any argument."""
    return b.unary("sin", floating(b, "sin", x))


@builtin(method=True)
def cos(b: Builder, x: Operand) -> Value:
    """Cosine of radians; floating point only, correctly rounded for any argument."""
    return b.unary("cos", floating(b, "cos", x))


@builtin(method=True)
def erf(b: Builder, x: Operand) -> Value:
    """Error function; floating point only, correctly rounded."""
    return b.unary("erf", floating(b, "erf", x))


@builtin(method=True)
def floor(b: Builder, x: Operand) -> Value:
    """Largest integer that is not above each element, in its type; integers are that already, as on Ascend."""
    return _whole(b, "floor", x)


@builtin(method=True)
def ceil(b: Builder, x: Operand) -> Value:
    """Smallest integer that is not below each element, in its type; integers are that already, as on Ascend."""
    return _whole(b, "ceil", x)


def _whole(b: Builder, name: str, x: Operand) -> Value:
    v = b.to_value(x)
    return v if v.dtype.is_int() else b.unary(name, v)


@builtin(method=True)
def sqrt(b: Builder, x: Operand) -> Value:
    """Square root; floating point only."""
    return b.unary("sqrt", floating(b, "sqrt", x))


@builtin(method=True)
def sqrt_rn(b: Builder, x: Operand) -> Value:
    """Square root, correctly rounded."""
    return b.unary("sqrt", floating(b, "sqrt_rn", x))


@builtin(method=True)
def rsqrt(b: Builder, x: Operand) -> Value:
    """1 / sqrt(x), by a square root and a division (not the coarse Rsqrt instruction)."""
    v = floating(b, "rsqrt", x)
    out = b.binary("div", 1.0, b.unary("sqrt", v))
    assert isinstance(out, Value)
    return out


@builtin(method=True)
def sigmoid(b: Builder, x: Operand) -> Value:
    """1 / (1 + exp(-x)), as the unit has to compute it: negate, exp, add, divide."""
    e = b.unary("exp", b.unary("neg", floating(b, "sigmoid", x)))
    out = b.binary("div", 1.0, b.binary("add", e, 1.0))
    assert isinstance(out, Value)
    return out


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


@builtin
def maximum(b: Builder, x: Operand, y: Operand, propagate_nan: Any = PropagateNan.NONE) -> Operand:
    """Elementwise maximum. Where one side is NaN the other is taken, as on Ascend; with `PropagateNan.ALL`, NaN."""
    return _extreme(b, "max", x, y, propagate_nan)


@builtin
def minimum(b: Builder, x: Operand, y: Operand, propagate_nan: Any = PropagateNan.NONE) -> Operand:
    """Elementwise minimum. Where one side is NaN the other is taken, as on Ascend; with `PropagateNan.ALL`, NaN."""
    return _extreme(b, "min", x, y, propagate_nan)


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
def umulhi(b: Builder, x: Operand, y: Operand) -> Operand:
    """Upper half of the product of two integers of 32 or 64 bits; on the device element by element."""
    for v in (b.to_value(x), b.to_value(y)):
        if v.dtype.name not in ("int32", "int64", "uint32", "uint64"):
            raise KernelError(f"umulhi takes int32, int64, uint32 or uint64, got {describe(v)}; cast it")
    return b.binary("umulhi", x if isinstance(x, Value) else b.to_value(x), y)


@builtin
def add(b: Builder, x: Operand, y: Operand, sanitize_overflow: bool = True) -> Operand:
    """`x + y`. sanitize_overflow: accepted, without effect: integers wrap."""
    return b.binary("add", x, y)


@builtin
def sub(b: Builder, x: Operand, y: Operand, sanitize_overflow: bool = True) -> Operand:
    """`x - y`. sanitize_overflow: accepted, without effect: integers wrap."""
    return b.binary("sub", x, y)


@builtin
def mul(b: Builder, x: Operand, y: Operand, sanitize_overflow: bool = True) -> Operand:
    """`x * y`. sanitize_overflow: accepted, without effect: integers wrap."""
    return b.binary("mul", x, y)


def _logical(b: Builder, name: str, x: Operand, y: Operand) -> Operand:
    return b.binary(name, b.to_bool(x), b.to_bool(y))


@builtin(method=True)
def logical_and(b: Builder, x: Operand, y: Operand) -> Operand:
    """Whether both are not zero, elementwise: the method behind `and` of tiles."""
    return _logical(b, "and", x, y)


@builtin(method=True)
def logical_or(b: Builder, x: Operand, y: Operand) -> Operand:
    """Whether one is not zero, elementwise: the method behind `or` of tiles."""
    return _logical(b, "or", x, y)


@builtin(method=True)
def softmax(
    b: Builder, x: Operand, dim: int | None = None, keep_dims: bool = False, ieee_rounding: bool = False
) -> Value:
    """exp(x - max) / sum along `dim` (the first axis if None), by the unit's exp, sum and division.

    keep_dims, ieee_rounding: accepted, without effect: the result has the shape of `x`, the division is rounded correctly.
    """
    v, axis = floating(b, "softmax", x), dim or 0
    shifted = b.binary("sub", v, b.reduce("max", v, axis, True))
    e = b.unary("exp", b.to_value(shifted))
    return b.to_value(b.binary("div", e, b.reduce("sum", e, axis, True)))


@builtin(method=True)
def cdiv(b: Builder, x: Operand, div: Operand) -> Operand:
    """Ceiling division of integers; of floating point, the quotient rounded up, as on Ascend."""
    if not isinstance(x, Value) and not isinstance(div, Value):
        return -(-x // div)
    if any(isinstance(v, Value) and v.dtype.is_floating() for v in (x, div)):
        return b.unary("ceil", b.to_value(b.binary("div", x, div)))
    return b.binary("floordiv", b.binary("sub", b.binary("add", x, div), 1), div)


@builtin
def fdiv(b: Builder, x: Operand, y: Operand, ieee_rounding: bool = False) -> Operand:
    """Floating-point division."""
    return b.binary("div", x, y)


@builtin
def div_rn(b: Builder, x: Operand, y: Operand) -> Operand:
    """Floating-point division, correctly rounded."""
    return b.binary("div", x, y)


INSTEAD_OF.update(
    {
        getattr(math, name): name
        for name, x in list(globals().items())
        if isinstance(x, Builtin) and hasattr(math, name)
    }
)

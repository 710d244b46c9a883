"""Elementwise mathematics. Floating functions compute in FP32 for halves where Triton does, else in the input's type."""

from __future__ import annotations

from typing import Any

from ..frontend.program import Value
from ..frontend.rules import KernelError, Operand, describe, is_number
from ..frontend.words import Builder, word


def _float(b: Builder, name: str, x: Operand) -> Value:
    v = b.to_value(x)
    if not v.dtype.is_floating():
        raise KernelError(f"{name} needs floating point, got {describe(v)}; cast with .to(tl.float32)")
    return v


@word(method=True)
def exp(b: Builder, x: Operand) -> Value:
    """e to the power of each element; floating point only."""
    return b.unary("exp", _float(b, "exp", x))


@word(method=True)
def log(b: Builder, x: Operand) -> Value:
    """Natural logarithm; floating point only."""
    return b.unary("log", _float(b, "log", x))


@word(method=True)
def sqrt(b: Builder, x: Operand) -> Value:
    """Square root; floating point only."""
    return b.unary("sqrt", _float(b, "sqrt", x))


@word
def sqrt_rn(b: Builder, x: Operand) -> Value:
    """Square root, correctly rounded."""
    return b.unary("sqrt", _float(b, "sqrt_rn", x))


@word(method=True)
def rsqrt(b: Builder, x: Operand) -> Value:
    """1 / sqrt(x), by a square root and a division (not the coarse Rsqrt instruction)."""
    v = _float(b, "rsqrt", x)
    out = b.binary("div", 1.0, b.unary("sqrt", v))
    assert isinstance(out, Value)
    return out


@word(method=True)
def sigmoid(b: Builder, x: Operand) -> Value:
    """1 / (1 + exp(-x)), as the unit has to compute it: negate, exp, add, divide."""
    e = b.unary("exp", b.unary("neg", _float(b, "sigmoid", x)))
    out = b.binary("div", 1.0, b.binary("add", e, 1.0))
    assert isinstance(out, Value)
    return out


@word(method=True)
def abs(b: Builder, x: Operand) -> Any:
    """Absolute value of numbers of any kind."""
    if is_number(x):
        return -x if x < 0 else x  # type: ignore[operator]
    return b.unary("abs", x)


@word
def maximum(b: Builder, x: Operand, y: Operand, propagate_nan: Any = None) -> Operand:
    """Elementwise maximum; where one side is NaN the other is taken, as on Ascend."""
    return b.binary("max", x, y)


@word
def minimum(b: Builder, x: Operand, y: Operand, propagate_nan: Any = None) -> Operand:
    """Elementwise minimum; where one side is NaN the other is taken, as on Ascend."""
    return b.binary("min", x, y)


@word
def cdiv(b: Builder, x: Operand, div: Operand) -> Operand:
    """Ceiling division of integers."""
    if not isinstance(x, Value) and not isinstance(div, Value):
        return -(-x // div)
    return b.binary("floordiv", b.binary("sub", b.binary("add", x, div), 1), div)


@word
def fdiv(b: Builder, x: Operand, y: Operand, ieee_rounding: bool = False) -> Operand:
    """Floating-point division."""
    return b.binary("div", x, y)


@word
def div_rn(b: Builder, x: Operand, y: Operand) -> Operand:
    """Floating-point division, correctly rounded."""
    return b.binary("div", x, y)

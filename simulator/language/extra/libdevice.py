"""The mathematics library of the device, as one table: `from ascendtile.simulator.language.extra import libdevice`.

Every function takes tiles, scalars or numbers, broadcasts its operands together, and gives their common type: float32, or
float16 and bfloat16, computed in float32 and rounded once, or float64. Results are correctly rounded (units/functions.py
states the error). Integers are refused with the cast to write; what takes integers says so.
The _rn forms round to nearest, which every operation does; _rz, _rd and _ru round toward zero, down and up.
The fast_ forms have the same values as the accurate ones: nobody published what the coarse instructions give.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...ir.building import functions
from ...ir.building.promotion import KernelError, Operand, describe
from ...ir.building.registry import Builder, Builtin, named
from ...ir.program import Value
from ...precision import dtypes as ty
from ..mathematics import abs, fdiv, floating, fma, in_single, umulhi

Build = Callable[..., Any]


def _unary(name: str, function: str) -> Build:
    return lambda b, arg0: b.unary(function, floating(b, name, arg0))


def _binary(name: str, function: str) -> Build:
    def build(b: Builder, arg0: Operand, arg1: Operand) -> Operand:
        values = [x for x in (arg0, arg1) if isinstance(x, Value)]
        if not any(v.dtype.is_floating() for v in values):
            arg0 = floating(b, name, arg0)
        return b.binary(function, arg0, arg1)

    return build


def _integer(name: str) -> Build:
    def build(b: Builder, arg0: Operand) -> Value:
        v = b.to_value(arg0)
        if not isinstance(v.dtype, ty.DType) or v.dtype.kind not in ("int", "uint"):
            raise KernelError(f"{name} takes integers, got {describe(v)}; cast it")
        out = b.unary(name, v)
        return out if name == "brev" else b.cast(out, ty.int32)

    return build


def _isnan(b: Builder, arg0: Operand) -> Any:
    v = floating(b, "isnan", arg0)
    return b.compare("ne", v, v)


def _isinf(b: Builder, arg0: Operand) -> Any:
    return b.compare("eq", b.unary("abs", floating(b, "isinf", arg0)), float("inf"))


def _isfinite(b: Builder, arg0: Operand) -> Any:
    return b.compare("lt", b.unary("abs", floating(b, "isfinite", arg0)), float("inf"))


def _signbit(b: Builder, arg0: Operand) -> Any:
    v = floating(b, "signbit", arg0)
    return b.compare("lt", b.bitcast(v, ty.integer(v.dtype.bits, signed=True)), 0)  # type: ignore[union-attr]


def _quotient(b: Builder, x: Operand, y: Operand) -> Value:
    return b.to_value(b.binary("div", x, y))


def _rcp(b: Builder, arg0: Operand) -> Value:
    return _quotient(b, 1.0, floating(b, "reciprocal", arg0))


def _rsqrt(b: Builder, arg0: Operand) -> Value:
    return in_single(b, floating(b, "rsqrt", arg0), lambda v: _quotient(b, 1.0, b.unary("sqrt", v)))


def _relu(b: Builder, arg0: Operand) -> Any:
    return b.binary("max", floating(b, "relu", arg0), 0.0)


def _saturated(b: Builder, arg0: Operand) -> Any:
    return b.binary("min", b.binary("max", floating(b, "saturatef", arg0), 0.0), 1.0)


def _ilogb(b: Builder, arg0: Operand) -> Value:
    return b.cast(b.unary("logb", floating(b, "ilogb", arg0)), ty.int32)


def _norm(inverse: bool) -> Build:
    def build(b: Builder, *args: Operand) -> Value:
        types = [floating(b, "a norm", x).dtype for x in args if isinstance(x, Value)]
        common = functools.reduce(ty.promote, types) if types else ty.float64  # type: ignore[arg-type]
        if common in (ty.float16, ty.bfloat16):
            args = tuple(b.cast(x, ty.float32) for x in args)
        out = args[0]
        for x in args[1:]:
            out = b.binary("hypot", out, x)
        out = _quotient(b, 1.0, out) if inverse else b.to_value(out)
        return b.cast(out, common) if types else out

    return build


def _norm3(inverse: bool) -> Build:
    whole = _norm(inverse)
    return lambda b, arg0, arg1, arg2: whole(b, arg0, arg1, arg2)


def _norm4(inverse: bool) -> Build:
    whole = _norm(inverse)
    return lambda b, arg0, arg1, arg2, arg3: whole(b, arg0, arg1, arg2, arg3)


def _bessel(name: str) -> Build:
    """Of an integer order, the first operand."""
    return lambda b, arg0, arg1: b.binary(name, b.cast(arg0, b.to_value(arg1).dtype), floating(b, name, arg1))


def _mean(up: bool) -> Build:
    """Of two integers, without overflow, rounded down or up."""

    def build(b: Builder, arg0: Operand, arg1: Operand) -> Operand:
        half = b.binary("shr", b.binary("xor", arg0, arg1), 1)
        return (
            b.binary("sub", b.binary("or", arg0, arg1), half)
            if up
            else b.binary("add", b.binary("and", arg0, arg1), half)
        )

    return build


def _sad(b: Builder, arg0: Operand, arg1: Operand, arg2: Operand) -> Operand:
    low, high = b.binary("min", arg0, arg1), b.binary("max", arg0, arg1)
    return b.binary("add", b.binary("sub", high, low), arg2)


def _to_integer(rounding: str | None, dtype: ty.DType) -> Build:
    def build(b: Builder, arg0: Operand) -> Value:
        v = floating(b, "a conversion to integers", arg0)
        return b.cast(v if rounding is None else b.unary(rounding, v), dtype)

    return build


def _convert(dtype: ty.DType) -> Build:
    return lambda b, arg0: b.cast(arg0, dtype)


def _reinterpret(dtype: ty.DType) -> Build:
    return lambda b, arg0: b.bitcast(b.to_value(arg0), dtype)


# -- the table -------------------------------------------------------------------------------------------------------

UNARY = (*functions.UNARY, "ceil", "exp", "floor", "log", "sqrt")
UNARY_ALIASES = {
    "nearbyint": "rint", "gamma": "tgamma", "sqrt_rn": "sqrt", "fast_sinf": "sin", "fast_cosf": "cos",
    "fast_tanf": "tan", "fast_tanhf": "tanh", "fast_tanh": "tanh", "fast_erf": "erf", "fast_expf": "exp",
    "fast_exp10f": "exp10", "fast_logf": "log", "fast_log2f": "log2", "fast_log10f": "log10",
}  # fmt: skip
BINARY = {
    **{
        name: name for name in ("atan2", "copysign", "fdim", "fmod", "hypot", "nextafter", "pow", "remainder")
    },
    "rhypot": "rhypot",
    "ldexp": "ldexp",
    "scalbn": "ldexp",
    "fast_powf": "pow",
    "fast_dividef": "div",
    "div_rn": "div",
    "add_rn": "add",
    "sub_rn": "sub",
    "mul_rn": "mul",
    **{
        f"{name}_{direction}": f"{name}_{direction}"
        for name in ("div", "mul")
        for direction in ("rz", "rd", "ru")
    },
}
OTHERS: dict[str, Build] = {
    "isnan": _isnan,
    "isinf": _isinf,
    **{name: _isfinite for name in ("finitef", "isfinited", "isfinite")},
    "signbit": _signbit,
    **{name: _rcp for name in ("reciprocal", "rcp_rn")},
    **{name: _rsqrt for name in ("rsqrt", "rsqrt_rn")},
    "relu": _relu,
    "saturatef": _saturated,
    "ilogb": _ilogb,
    "norm3d": _norm3(False),
    "rnorm3d": _norm3(True),
    "norm4d": _norm4(False),
    "rnorm4d": _norm4(True),
    "jn": _bessel("jn"),
    "yn": _bessel("yn"),
    "hadd": _mean(up=False),
    "rhadd": _mean(up=True),
    "sad": _sad,
    **{name: _integer(name) for name in ("popc", "clz", "ffs", "brev")},
    "llrint": _to_integer("rint", ty.int64),
    "llround": _to_integer("round", ty.int64),
    "int_as_float": _reinterpret(ty.float32),
    "uint_as_float": _reinterpret(ty.float32),
    "float_as_int": _reinterpret(ty.int32),
    "float_as_uint": _reinterpret(ty.uint32),
    "longlong_as_double": _reinterpret(ty.float64),
    "double_as_longlong": _reinterpret(ty.int64),
    **{f"sqrt_{direction}": _unary("sqrt", f"sqrt_{direction}") for direction in ("rz", "rd", "ru")},
}
_TO_INTEGER = {"int": ty.int32, "uint": ty.uint32, "ll": ty.int64, "ull": ty.uint64}
_ROUNDING = {"rn": "rint", "rz": None, "rd": "floor", "ru": "ceil"}
CONVERSIONS: dict[str, Build] = {
    **{
        f"{source}2{target}_{direction}": _to_integer(rounding, dtype)
        for source in ("float", "double")
        for target, dtype in _TO_INTEGER.items()
        for direction, rounding in _ROUNDING.items()
    },
    **{
        f"{source}2{target}_rn": _convert(dtype)
        for source in _TO_INTEGER
        for target, dtype in (("float", ty.float32), ("double", ty.float64))
    },
    "double2float_rn": _convert(ty.float32),
}


def _all() -> dict[str, Builtin]:
    names = {name: named(name, _unary(name, name), f"{name} of each element.") for name in UNARY}
    names |= {n: named(n, _unary(n, f), f"{f} of each element.") for n, f in UNARY_ALIASES.items()}
    names |= {n: named(n, _binary(n, f), f"{n} of two operands.") for n, f in BINARY.items()}
    names |= {n: named(n, build, build.__doc__ or f"{n}.") for n, build in {**OTHERS, **CONVERSIONS}.items()}
    return names | {"abs": abs, "fdiv": fdiv, "fma": fma, "fma_rn": fma, "mulhi": umulhi, "umulhi": umulhi}


BUILTINS = _all()
globals().update(BUILTINS)
__all__ = list(BUILTINS)

"""Entries of elementary and special functions, and of directed rounding.

A function without an instruction of its own takes several. Nobody published the sequences that the compiler makes: these
are the textbook ones in FP32: reduce the range, evaluate a polynomial or a quotient of two, undo the reduction. Every use is
listed as assumed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...units import functions, vector
from ..operations import Operation, Steps, binary, define_all, unary
from .builder import Builder


def _polynomial(degree: int) -> Steps:
    """Horner's scheme: one product and one sum with a constant for each degree."""
    return (("mul", degree), ("adds", degree))


def _rational(degree: int) -> Steps:
    """A quotient of two polynomials of that degree."""
    return (*_polynomial(2 * degree), ("div", 1))


# x minus the nearest multiple of a constant that is split into four parts, and the sign that it takes
_PERIOD: Steps = (("muls", 5), ("cast_f32_s32", 2), ("sub", 4), ("adds", 2), ("mul", 1))
_SIN: Steps = (*_PERIOD, *_polynomial(5), ("mul", 2))
_SIGN: Steps = (("abs", 1), ("compares", 1), ("select", 1), ("muls", 1))
_EXP_TWICE: Steps = (("exp", 1), ("muls", 1), ("exp", 1), ("muls", 1))
_LOG_OF_ROOT: Steps = (("mul", 1), ("adds", 1), ("sqrt", 1), ("add", 1), ("ln", 1))
_ATAN: Steps = (*_SIGN, ("div", 1), ("compares", 2), ("select", 2), *_polynomial(9), ("adds", 1))
_ERF: Steps = (("mins", 1), ("maxs", 1), ("mul", 2), *_rational(5))
_ERFC: Steps = (*_SIGN, ("mul", 1), ("exp", 1), *_rational(8), ("compares", 1), ("select", 1))
_QUANTILE: Steps = (("ln", 1), ("sqrt", 1), *_rational(8), ("compares", 2), ("select", 2))
_BESSEL: Steps = (*_SIGN, *_rational(8), *_SIN, *_rational(6), ("sqrt", 1), ("div", 1), ("select", 1))
_MODIFIED: Steps = (*_SIGN, ("exp", 1), *_polynomial(16), ("sqrt", 1), ("div", 1), ("select", 1))
_GAMMA: Steps = (*_SIGN, ("ln", 2), ("mul", 2), *_rational(6), *_SIN, ("compares", 2), ("select", 2))
_POW: Steps = (("abs", 1), ("ln", 1), ("mul", 1), ("exp", 1), ("compares", 3), ("select", 3), ("muls", 1))
_REMAINDER: Steps = (("div", 1), ("cast_f32_s32", 2), ("mul", 1), ("sub", 1))
# Directed rounding: the nearest result, its error, and a step to the neighbour where that is on the wrong side.
_CORRECTION: Steps = (("mul", 1), ("sub", 1), ("compares", 1), ("adds", 1), ("select", 1))
_NAN_TOO: Steps = (("compare", 2), ("select", 2))

UNARY: dict[str, Steps] = {
    "acos": (*_SIGN, ("adds", 1), ("sqrt", 1), *_polynomial(7), ("select", 1)),
    "acosh": _LOG_OF_ROOT,
    "asin": (*_SIGN, ("adds", 1), ("sqrt", 1), *_polynomial(7), ("select", 1)),
    "asinh": (*_SIGN, *_LOG_OF_ROOT),
    "atan": _ATAN,
    "atanh": (("adds", 1), ("muls", 1), ("adds", 1), ("div", 1), ("ln", 1), ("muls", 1)),
    "cbrt": (*_SIGN, ("ln", 1), ("muls", 1), ("exp", 1), ("mul", 2), ("div", 1), ("select", 1)),
    "cos": (("adds", 1), *_SIN),
    "cosh": (*_EXP_TWICE, ("add", 1), ("muls", 1)),
    "cospi": _SIN,
    "cyl_bessel_i0": _MODIFIED,
    "cyl_bessel_i1": _MODIFIED,
    "erf": _ERF,
    "erfc": _ERFC,
    "erfcinv": _QUANTILE,
    "erfcx": _ERFC,
    "erfinv": _QUANTILE,
    "exp10": (("muls", 1), ("exp", 1)),
    "exp2": (("muls", 1), ("exp", 1)),
    "expm1": (("exp", 1), ("adds", 1), *_polynomial(5), ("compares", 1), ("select", 1)),
    "j0": _BESSEL,
    "j1": _BESSEL,
    "lgamma": _GAMMA,
    "log10": (("ln", 1), ("muls", 1)),
    "log1p": (("adds", 1), ("ln", 1), *_polynomial(5), ("compares", 1), ("select", 1)),
    "log2": (("ln", 1), ("muls", 1)),
    "logb": (("abs", 1), ("shift", 1), ("cast_s32_f32", 1), ("adds", 1)),
    "normcdf": (("muls", 1), *_ERFC),
    "normcdfinv": _QUANTILE,
    "rcbrt": (*_SIGN, ("ln", 1), ("muls", 1), ("exp", 1), ("mul", 2), ("div", 2), ("select", 1)),
    "rint": (("cast_f32_s32", 1),),
    "round": (("cast_f32_s32", 1),),
    "sin": _SIN,
    "sinh": (*_EXP_TWICE, ("sub", 1), ("muls", 1)),
    "sinpi": _SIN,
    "tan": (*_PERIOD, *_rational(3)),
    "tanh": (("mins", 1), ("maxs", 1), ("muls", 1), ("exp", 1), ("adds", 2), ("div", 1)),
    "tgamma": (*_GAMMA, ("exp", 1)),
    "trunc": (("cast_f32_s32", 1),),
    "y0": (*_BESSEL, ("ln", 1)),
    "y1": (*_BESSEL, ("ln", 1)),
}
BINARY: dict[str, Steps] = {
    "atan2": (*_ATAN, ("div", 1), ("compares", 2), ("select", 3)),
    "fdim": (("sub", 1), ("maxs", 1)),
    "fmod": _REMAINDER,
    "hypot": (("mul", 2), ("add", 1), ("sqrt", 1)),
    "jn": (*_BESSEL, *_BESSEL),
    "pow": _POW,
    "remainder": _REMAINDER,
    "rhypot": (("mul", 2), ("add", 1), ("sqrt", 1), ("duplicate", 1), ("div", 1)),
    "yn": (*_BESSEL, *_BESSEL),
}


def _directed(make: Callable[..., Operation], name: str, exact: np.ufunc) -> dict[str, Operation]:
    """The operation rounded in each direction."""
    return {
        f"{name}_{direction}": make(value=vector.directed(exact, direction), steps=((name, 1), *_CORRECTION))
        for direction in vector.DIRECTIONS
    }


define_all(
    {
        **{name: unary(value=vector.special(name), steps=steps) for name, steps in UNARY.items()},
        **_directed(unary, "sqrt", np.sqrt),
        "exp": unary("exp", value=vector.exp),
        "log": unary("ln", value=vector.log),
        "sqrt": unary("sqrt", value=vector.rounded(np.sqrt)),
        "floor": unary("cast_f32_s32", value=vector.rounded(np.floor), near=True),
        "ceil": unary("cast_f32_s32", value=vector.rounded(np.ceil), near=True),
    },
    Builder.unary,
)
define_all(
    {
        **{name: binary(value=vector.special(name), steps=steps) for name, steps in BINARY.items()},
        **_directed(binary, "div", np.divide),
        **_directed(binary, "mul", np.multiply),
        "copysign": binary(
            value=vector.rounded(np.copysign),
            steps=(("abs", 1), ("compares", 1), ("muls", 1), ("select", 1)),
        ),
        "max_nan": binary(value=vector.rounded(np.maximum), steps=(("max", 1), *_NAN_TOO)),
        "min_nan": binary(value=vector.rounded(np.minimum), steps=(("min", 1), *_NAN_TOO)),
        "nextafter": binary(
            value=vector.of_type(functions.next_after),
            steps=(("compare", 2), ("select", 3), ("adds", 2)),
        ),
        "ldexp": binary(
            value=vector.scaled, steps=(("cast_s32_f32", 1), ("muls", 1), ("exp", 1), ("mul", 1))
        ),
    },
    Builder.binary,
)

"""What one rounding is: a format, a mode, and what becomes of values at the ends of its range, as the loops need them.

Modes are those of the Ascend C "Cast" document (RINT, FLOOR, CEIL, ROUND, TRUNC, ODD, NONE), RNZ, nearest with ties toward
zero, which is one reading of HF32 mode 1 (Ascend C "SetHF32TransMode"), and STOCHASTIC. RNE and RNA are other names of RINT
and ROUND. Which product offers which mode is decided elsewhere.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import UsageError
from . import _rounding
from .formats import MODES, Format

_MODE_ALIASES = {"NONE": "RINT", "RNE": "RINT", "RNA": "ROUND"}
OVERFLOWS = ("inf_nan", "saturate", "clamp")
SUBNORMALS = ("keep", "flush")

_INFINITY, _NAN, _SIGN = 0x7F800000, 0x7FC00000, 0x80000000


def mode_name(mode: str) -> str:
    """A mode by any of its names."""
    name = str(mode).removeprefix("CAST_")
    return choice("rounding mode", _MODE_ALIASES.get(name, name), (*MODES, "STOCHASTIC"))


def choice(what: str, value: str, known: tuple[str, ...]) -> str:
    """`value`, if it is one of `known`."""
    if value not in known:
        raise UsageError(f"{what} {value!r}: known are {', '.join(known)}")
    return value


@lru_cache(maxsize=4096)
def rounding_of(
    fmt: Format, mode: str | None = None, overflow: str | None = None, subnormals: str = "keep"
) -> Any:
    """The `_rounding.Rounding` of `fmt`; mode and overflow None are the format's own. See `round_to` for the choices."""
    if (not fmt.is_float and not fmt.bias) or fmt.bits > 32:
        hint = (
            "results are held in float32"
            if fmt.is_float
            else "it holds whole numbers; to_integer makes integers"
        )
        raise UsageError(f"round_to: cannot round to {fmt}: {hint}")
    mode = mode_name(mode or fmt.rounding)
    overflow = choice("overflow", overflow or ("clamp" if fmt.saturates else "inf_nan"), OVERFLOWS)
    flush = choice("subnormals", subnormals, SUBNORMALS) == "flush"
    ends = _ends(fmt, mode, overflow)
    path = _path(fmt, mode, overflow, flush, max(ends["limit"], ends["limit_negative"]))
    drop = 23 - fmt.mantissa if path in ("short", "wide", "powers") else 0
    flush_below = fmt.min_normal if flush else 0.0
    return _rounding.Rounding(
        _rounding.PATHS[path], _rounding.MODES[mode], fmt.spacing, drop, flush_below=flush_below, **ends
    )


def _path(fmt: Format, mode: str, overflow: str, flush: bool, cap: float) -> str:
    """The quickest loop that serves: see _rounding.pxd."""
    if not (fmt.signed or fmt.zero) and fmt.spacing == ((-127, 0),):
        return "powers"
    if not (fmt.signed and fmt.zero):
        return "general"
    first, bits = fmt.spacing[0]
    if fmt.spacing == ((-126, fmt.mantissa),):
        default = (mode, overflow, fmt.nan, fmt.infinities) == ("RINT", "inf_nan", "ieee", True)
        if not default or (flush and fmt.mantissa < 23):
            return "wide"
        return "short" if fmt.mantissa < 23 else "flush" if flush else "as is"
    # The number that is added must be below infinity, also twice; a spacing must be a normal number.
    top = np.frexp(cap)[1] + 23 - fmt.spacing[-1][1]
    if first - bits < -126 or top > 127 or max(m for _, m in fmt.spacing) > 22:
        return "general"
    return "tapered" if len(fmt.spacing) > 1 else "narrow"


def _ends(fmt: Format, mode: str, overflow: str) -> dict[str, Any]:
    """Overflow as IEEE 754 has it (a mode that rounds toward zero never reaches infinity), saturated or clamped."""
    top = float(fmt.max)
    bottom = -float(fmt.min) if fmt.signed else top
    largest = _word(top), _word(bottom)
    beyond = tuple(_beyond(fmt, overflow, word) for word in largest)
    directed = {
        "TRUNC": largest,
        "ODD": largest,
        "FLOOR": (largest[0], beyond[1]),
        "CEIL": (beyond[0], largest[1]),
    }
    over = directed.get(mode, beyond)
    return {
        "limit": top + float(fmt.ulp(top)), "limit_negative": bottom + float(fmt.ulp(bottom)),
        "over": over[0], "over_negative": over[1], "infinity": beyond[0], "infinity_negative": beyond[1],
        **_nan(fmt, overflow), **_missing(fmt, overflow),
    }  # fmt: skip


def _word(x: float) -> int:
    with np.errstate(over="ignore"):  # 2^128 is infinity's word
        return int(np.float32(x).view(np.uint32))


def _beyond(fmt: Format, overflow: str, largest: int) -> int:
    """What stands for infinity."""
    if overflow != "inf_nan":
        return largest
    return _INFINITY if fmt.infinities else _NAN if fmt.nan != "none" else largest


def _nan(fmt: Format, overflow: str) -> dict[str, int]:
    """Bits of a NaN that stay, and that are set. A format without NaN has minus zero for it, as ml_dtypes has; one without a
    zero its least value."""
    zero = 0 if fmt.zero else _word(fmt.min_subnormal)
    if overflow == "saturate":
        return {"nan_and": 0, "nan_or": zero}
    if fmt.nan == "none":
        return {"nan_and": 0, "nan_or": _SIGN if fmt.is_float and fmt.signed and fmt.zero else zero}
    payload = ~((1 << 23 - fmt.mantissa) - 1) & 0xFFFFFFFF if fmt.nan == "ieee" else _SIGN
    return {"nan_and": payload, "nan_or": _NAN}


def _missing(fmt: Format, overflow: str) -> dict[str, int | bool | None]:
    """NaN stands for what a format without a sign or a zero cannot hold, or else its least value."""
    least = 0 if fmt.zero else _word(fmt.min_subnormal)
    instead = _NAN if fmt.nan != "none" and overflow != "saturate" else least
    return {
        "minus_zero": fmt.is_float and fmt.signed and fmt.nan != "zero", "least": least,
        "nothing": None if fmt.zero else instead, "negative": None if fmt.signed else instead,
    }  # fmt: skip

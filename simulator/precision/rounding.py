"""Rounding for Python callers: names, checks and memory; the arithmetic is in _rounding.pyx.

    round_to(x, "fp16")                             # float32 values on the FP16 grid, nearest, ties to even
    round_to(x, "fp16", overflow="saturate")        # 1e5 gives 65504, NaN gives 0
    round_to(x, "hf32", "ROUND", subnormals="flush", out=x)
    encode(x, "bf16"), decode(stored)               # to and from the dtype that memory holds

Modes are those of the Ascend C "Cast" document (RINT, FLOOR, CEIL, ROUND, TRUNC, ODD, NONE) and RNZ,
nearest with ties toward zero, which is one reading of HF32 mode 1 (Ascend C "SetHF32TransMode"). RNE and
RNA are other names of RINT and ROUND. Which product offers which mode is decided elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..errors import UsageError
from . import _rounding
from .formats import BF16, FP16, FP32, Format, get_format

MODES = ("RINT", "FLOOR", "CEIL", "ROUND", "TRUNC", "ODD", "RNZ")
_MODE_ALIASES = {"NONE": "RINT", "RNE": "RINT", "RNA": "ROUND"}
OVERFLOWS = ("inf_nan", "saturate")
INTEGER_OVERFLOWS = ("saturate", "wrap")
SUBNORMALS = ("keep", "flush")

Array = NDArray[Any]
Float32 = NDArray[np.float32]


def round_to(
    values: ArrayLike,
    fmt: str | Format,
    mode: str = "RINT",
    overflow: str = "inf_nan",
    subnormals: str = "keep",
    out: Float32 | None = None,
) -> Float32:
    """Values rounded once to the grid of `fmt`, held in float32, in the shape of `values`.

    `values`: floats, integers or booleans of any shape and strides; float64 and integers are rounded once,
    not by way of float32. `fmt`: fp16, bf16, hf32, tf32 or fp32. `overflow`: "inf_nan" (IEEE), or
    "saturate": too large and infinite give the largest finite value, NaN gives 0 (CANN reference of
    INF_NAN_MODE_ENABLE). `subnormals`: "keep", or "flush": operands under the smallest normal number of
    `fmt` become zero of their sign. `out`: float32 of that shape; it may be `values` itself.
    """
    target = _target(fmt)
    rule = (
        target,
        _rounding.MODES[_mode(mode)],
        _choice("overflow", overflow, OVERFLOWS) == "saturate",
        _choice("subnormals", subnormals, SUBNORMALS) == "flush",
    )
    source = _operand(values)
    result = _result(source, out)
    if source.dtype == np.float64:
        _rounding.round_double(source.reshape(-1), result.reshape(-1), *rule)
    else:
        _rounding.round_float(source.reshape(-1), result.reshape(-1), *rule)
    return _deliver(result, out)


def to_integer(
    values: ArrayLike, fmt: str | Format, mode: str = "TRUNC", overflow: str = "saturate"
) -> Array:
    """Floating-point values as integers of `fmt`, rounded by `mode`.

    `overflow`: "saturate" clamps to the type, "wrap" keeps the low bits of the rounded integer (control bit
    59 of the core: hw-native-sys/pto-isa, include/pto/npu/a2a3/TCvt.hpp). Assumed: NaN and a wrapped
    infinity give 0.
    """
    target = get_format(fmt)
    if target.is_float or target.name == "bool":
        raise UsageError(
            f"to_integer: {target} is not an integer format; round_to makes floating-point values"
        )
    wrap = _choice("overflow", overflow, INTEGER_OVERFLOWS) == "wrap"
    source = _operand(values)
    if np.asarray(values).dtype.kind in "iu":
        raise UsageError("to_integer: the values are integers already; numpy's astype keeps their low bits")
    words = np.empty(source.shape, np.uint64)
    ends = (int(target.max), -int(target.min))
    _rounding.round_integer(source.reshape(-1), words.reshape(-1), _rounding.MODES[_mode(mode)], wrap, *ends)
    return words.astype(target.dtype)  # integer to integer: numpy keeps the low bits


def decode(stored: Array, fmt: str | Format | None = None) -> Float32:
    """float32 values of an FP16 or BF16 array, exactly; float32 is passed through.

    `stored`: float16, ml_dtypes.bfloat16, or uint16 words with `fmt` naming what they are.
    """
    array = np.asarray(stored)
    source = get_format(array.dtype if fmt is None else fmt)
    if source is FP32 and array.dtype == np.float32:
        return array
    if source not in (FP16, BF16) or _native(array.dtype) not in (source.dtype, np.uint16):
        raise UsageError(
            f"decode: {array.dtype} as {source}: storage is float16, bfloat16 or float32, or uint16 with fmt"
        )
    words = _contiguous(array, _native(array.dtype)).view(np.uint16)
    result = np.empty(array.shape, np.float32)
    _rounding.decode(words.reshape(-1), result.reshape(-1), source is BF16)
    return result


def encode(
    values: ArrayLike,
    fmt: str | Format,
    mode: str = "RINT",
    overflow: str = "inf_nan",
    subnormals: str = "keep",
) -> Array:
    """Values in the dtype that memory holds for `fmt` (fp16, bf16, fp32), rounded once as `round_to` does."""
    target = get_format(fmt)
    if target not in (FP16, BF16, FP32):
        raise UsageError(
            f"encode: {target} is not a floating-point storage format; those are fp16, bf16, fp32"
        )
    source = np.asarray(values)
    default = (_mode(mode), overflow, subnormals) == ("RINT", "inf_nan", "keep")
    if source.dtype != np.float32 or not default:
        source = round_to(source, target, mode, overflow, subnormals)
    if target is FP32:
        return source
    words = np.empty(source.shape, np.uint16)
    _rounding.encode(_contiguous(source, source.dtype).reshape(-1), words.reshape(-1), target is BF16)
    return words.view(target.dtype)


def flush_subnormals(values: Float32, out: Float32 | None = None) -> Float32:
    """float32 with every FP32 subnormal replaced by zero of its sign."""
    return round_to(values, FP32, subnormals="flush", out=out)


def _target(fmt: str | Format) -> int:
    found = get_format(fmt)
    if found.name not in _rounding.TARGETS:
        hint = "" if found.is_float else "; to_integer makes integers"
        raise UsageError(f"round_to: cannot round to {found}: known are {', '.join(_rounding.TARGETS)}{hint}")
    return int(_rounding.TARGETS[found.name])


def _mode(mode: str) -> str:
    name = mode.removeprefix("CAST_")
    name = _MODE_ALIASES.get(name, name)
    return _choice("rounding mode", name, MODES)


def _choice(what: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise UsageError(f"{what} {value!r}: known are {', '.join(known)}")
    return value


def _operand(values: ArrayLike) -> Array:
    """Contiguous float32 or float64 with the same values, or, for long integers, the same roundings."""
    array = np.asarray(values)
    dtype = _native(array.dtype)
    if dtype in (FP16.dtype, BF16.dtype):
        return decode(array)
    if dtype in (np.int64, np.uint64):
        return _contiguous(_long_integers(array), np.float64)
    if dtype.kind in "biu":
        return _contiguous(array, np.float64)
    if dtype not in (np.float32, np.float64):
        raise UsageError(f"cannot round {dtype}: give float16, bfloat16, float32, float64, integers or bool")
    return _contiguous(array, dtype)


def _native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def _contiguous(array: Array, dtype: DTypeLike) -> Array:
    """What a loop over a pointer needs; unlike numpy.ascontiguousarray it leaves a scalar its shape ()."""
    return np.require(array, dtype, ["C", "A"])


def _long_integers(array: Array) -> Array:
    """64-bit integers that float64 holds: others are rounded to odd, which no later rounding can notice."""
    lost = np.asarray(array & 0x7FF) != 0
    sticky = (array >> 11 | lost) << 11
    small = (array < 2**53) if array.dtype.kind == "u" else (array < 2**53) & (array > -(2**53))
    return np.where(small, array, sticky)


def _result(source: Array, out: Float32 | None) -> Float32:
    """A contiguous float32 array to write: `out` itself if that is safe."""
    if out is None:
        return np.empty(source.shape, np.float32)
    if out.dtype != np.float32 or out.shape != source.shape or not out.flags.writeable:
        state = "" if out.flags.writeable else ", read-only"
        raise UsageError(
            f"out is {out.dtype} {out.shape}{state}: it must be writeable float32 {source.shape}"
        )
    same = source.ctypes.data == out.ctypes.data and source.dtype == out.dtype
    if out.flags.carray and (same or not np.may_share_memory(source, out)):
        return out
    return np.empty(source.shape, np.float32)


def _deliver(result: Float32, out: Float32 | None) -> Float32:
    if out is None or out is result:
        return result
    out[...] = result
    return out

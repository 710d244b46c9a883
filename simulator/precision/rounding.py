"""Rounding for Python callers: names, checks and memory; the arithmetic is in _rounding.pyx.

round_to(x, "fp16")                             # float32 values on the FP16 grid, nearest, ties to even
round_to(x, "fp16", overflow="saturate")        # 1e5 gives 65504, NaN gives 0
round_to(x, "hf32", "ROUND", subnormals="flush", out=x)
round_to(x, "e4m3", "STOCHASTIC", seed=7)       # up or down by chance, the same on every machine
encode(x, "hif8"), decode(stored)               # to and from the dtype that memory holds
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..errors import UsageError
from . import _rounding
from .code_tables import codes_of, value_table
from .formats import BF16, BOOL, FP16, FP32, MODES, Format, get_format
from .rounding_rules import OVERFLOWS, SUBNORMALS, choice, mode_name, rounding_of

__all__ = [
    "MODES", "OVERFLOWS", "SUBNORMALS", "decode", "encode", "flush_subnormals", "round_to", "to_integer",
]  # fmt: skip

INTEGER_OVERFLOWS = ("saturate", "wrap")

Array = NDArray[Any]
Float32 = NDArray[np.float32]


def round_to(
    values: ArrayLike,
    fmt: object,
    mode: str | None = None,
    overflow: str | None = None,
    subnormals: str = "keep",
    out: Float32 | None = None,
    *,
    seed: int | None = None,
    random: NDArray[np.uint32] | None = None,
) -> Float32:
    """Values rounded once to the grid of `fmt`, held in float32, in the shape of `values`.

    `values`: floats, integers or booleans of any shape and strides, or codes in the dtype of a format; float64 and
    integers are rounded once, not by way of float32. `fmt`: what `get_format` takes. `mode`: None is the format's own,
    RINT but for HiF8. `overflow`: "inf_nan" (IEEE; where there is no infinity NaN stands for it, and where there is
    neither the largest finite value), "saturate": too large and infinite give the largest finite value, NaN gives 0 (CANN
    reference of INF_NAN_MODE_ENABLE), "clamp": the same, but NaN stays (OFP8 1.0, section 5.2, saturating mode); None is
    the format's own: "clamp" if it saturates, else "inf_nan". `subnormals`: "keep", or "flush": operands under the
    smallest normal number of `fmt` become zero of their sign. `out`: float32 of that shape; it may be `values` itself.

    Mode "STOCHASTIC" takes one of two: `seed`, 0 to 2^64 - 1, where the bits of an element follow from the seed and its
    index in row-major order alone (Philox 4x32-10; those of `tl.randint(seed, index)`), or `random`, uint32 in the shape of
    `values`. The first 31 bits that are dropped and the upper 31 random ones are added, and a carry rounds away from zero:
    31 bits decide, which is exact for float32 values down to 2^-8 of the smallest value of `fmt`.
    """
    target = get_format(fmt)
    named = mode_name(mode or target.rounding)
    rule = rounding_of(target, named, overflow, subnormals)
    source = _operand(values)
    words = _random_words(named, seed, random, source.shape)
    result = _result(source, out)
    _rounding.round_values(source.reshape(-1), result.reshape(-1), rule, words, seed)
    return _deliver(result, out)


def _random_words(
    mode: str, seed: int | None, random: NDArray[np.uint32] | None, shape: tuple[int, ...]
) -> NDArray[np.uint32] | None:
    given = [x for x in (seed, random) if x is not None]
    if len(given) != (mode == "STOCHASTIC"):
        need = "STOCHASTIC takes one of the two" if mode == "STOCHASTIC" else "only STOCHASTIC takes them"
        raise UsageError(f"round_to: mode {mode} with seed {seed} and random {_described(random)}: {need}")
    if seed is not None and not (isinstance(seed, int | np.integer) and 0 <= seed < 1 << 64):
        raise UsageError(f"round_to: seed {seed}: it is a whole number from 0 to 2^64 - 1")
    if random is None:
        return None
    array = isinstance(random, np.ndarray)
    if not array or _native(random.dtype) != np.uint32 or random.shape != shape:
        raise UsageError(
            f"round_to: random is {_described(random)}: it must be uint32 {shape}, a word for each value"
        )
    return _contiguous(random, np.uint32).reshape(-1)


def _described(array: object) -> str:
    return f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else repr(array)


def to_integer(
    values: ArrayLike, fmt: str | Format, mode: str = "TRUNC", overflow: str = "saturate"
) -> Array:
    """Floating-point values as integers of `fmt`, rounded by `mode`.

    `overflow`: "saturate" clamps to the type, "wrap" keeps the low bits of the rounded integer (control bit
    59 of the core: hw-native-sys/pto-isa, include/pto/npu/a2a3/TCvt.hpp). Assumed: NaN and a wrapped
    infinity give 0.
    """
    target = get_format(fmt)
    if not target.is_integer or target is BOOL:
        raise UsageError(
            f"to_integer: {target} is not an integer format; round_to makes floating-point values"
        )
    wrap = choice("overflow", overflow, INTEGER_OVERFLOWS) == "wrap"
    source = _operand(values)
    if np.asarray(values).dtype.kind in "iu":
        raise UsageError("to_integer: the values are integers already; numpy's astype keeps their low bits")
    words = np.empty(source.shape, np.uint64)
    ends = (int(target.max), -int(target.min))
    _rounding.round_integer(
        source.reshape(-1),
        words.reshape(-1),
        _rounding.MODES[choice("rounding mode", mode_name(mode), MODES)],
        wrap,
        *ends,
    )
    if wrap and target.bits < target.storage_bits:
        words = _extended(words, target)
    return words.astype(target.dtype)  # integer to integer: numpy keeps the low bits


def _extended(words: NDArray[np.uint64], fmt: Format) -> Array:
    """The low bits of integers of less than a byte, with their sign repeated above."""
    size, offset = 1 << fmt.bits, -int(fmt.min)
    return (words + np.uint64(offset)) % np.uint64(size) - np.uint64(offset)


def decode(stored: Array, fmt: object = None) -> Float32:
    """float32 values of stored ones, exactly; float32 is passed through.

    `stored`: the dtype of a format of at most 16 bits (float16, those of ml_dtypes, [("hif8", "u1")]), or unsigned codes of
    as many bytes with `fmt` naming what they are.
    """
    array = np.asarray(stored)
    source = get_format(array.dtype if fmt is None else fmt)
    if source.dtype == np.float32 == _native(array.dtype):
        return np.asarray(array, np.float32)
    code = np.dtype(f"u{source.dtype.itemsize}")
    if source.is_integer or source.bits > 16 or _native(array.dtype) not in (source.dtype, code):
        if array.dtype.kind != "u" and (held := get_format(array.dtype)) != source:
            raise UsageError(
                f"decode: the array holds {held}, fmt says {source}: leave fmt out, or give codes of {code}"
            )
        raise UsageError(
            f"decode: {array.dtype} as {source}: storage is float16, bfloat16 or float32, or uint16 with fmt; so it is "
            f"with other formats of at most 16 bits: {source.dtype}, or {code} with fmt"
        )
    codes = _contiguous(array, _native(array.dtype)).view(code)
    if (
        array.dtype.kind == "u"
        and source.bits < 8 * code.itemsize
        and int(codes.max(initial=0)) >> source.bits
    ):
        raise UsageError(
            f"decode: a code is {codes.max()}; those of {source} have {source.bits} bits, one in each {code}: codes that "
            "share bytes are taken apart by code_tables.unpack"
        )
    if source not in (FP16, BF16):
        return np.asarray(value_table(source)[codes & ((1 << source.bits) - 1)])
    result = np.empty(array.shape, np.float32)
    _rounding.decode(codes.reshape(-1), result.reshape(-1), source is BF16)
    return result


def encode(
    values: ArrayLike,
    fmt: object,
    mode: str | None = None,
    overflow: str | None = None,
    subnormals: str = "keep",
    *,
    seed: int | None = None,
    random: NDArray[np.uint32] | None = None,
) -> Array:
    """Values in the dtype that memory holds for `fmt`, rounded once as `round_to` does.

    Formats above 16 bits are held in float32, others as codes: see `Format.dtype`.
    """
    target = get_format(fmt)
    if target.is_integer or not target.stored or target.bits > 32:
        raise UsageError(
            f"encode: {target} is not a floating-point storage format; those are fp16, bf16, fp32 and others that fill "
            "memory in float32 or less"
        )
    source = np.asarray(values)
    default = (mode or target.rounding, overflow, subnormals) == ("RINT", None, "keep")
    quick = default and target in (FP16, BF16, FP32)  # encoding alone rounds so
    if _native(source.dtype) != np.float32 or not quick:
        source = round_to(source, target, mode, overflow, subnormals, seed=seed, random=random)
    source = np.asarray(source, np.float32)
    if target.bits > 16:
        return source
    source = _contiguous(source, np.float32)
    if target not in (FP16, BF16):
        return codes_of(source, target).view(target.dtype)
    words = np.empty(source.shape, np.uint16)
    _rounding.encode(source.reshape(-1), words.reshape(-1), target is BF16)
    return words.view(target.dtype)


def flush_subnormals(values: Float32, out: Float32 | None = None) -> Float32:
    """float32 with every FP32 subnormal replaced by zero of its sign."""
    return round_to(values, FP32, subnormals="flush", out=out)


def _operand(values: ArrayLike) -> Array:
    """Contiguous float32 or float64 with the same values, or, for long integers, the same roundings."""
    array = np.asarray(values)
    dtype = _native(array.dtype)
    if dtype in (np.float32, np.float64):
        return _contiguous(array, dtype)
    if dtype.kind in "Vf" and dtype != np.longdouble:
        whole = get_format(dtype).is_integer
        return array.astype(np.float64) if whole else decode(array)
    if dtype in (np.int64, np.uint64):
        return _contiguous(_long_integers(array), np.float64)
    if dtype.kind in "biu":
        return _contiguous(array, np.float64)
    raise UsageError(f"cannot round {dtype}: give float16, bfloat16, float32, float64, integers or bool")


def _native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def _contiguous(array: Array, dtype: DTypeLike) -> Array:
    """What a loop over a pointer needs; unlike numpy.ascontiguousarray it leaves a scalar its shape ()."""
    ready = array.dtype == dtype and array.flags.c_contiguous and array.flags.aligned
    return array if ready else np.require(array, dtype, ["C", "A"])


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
    array = isinstance(out, np.ndarray)
    if not array or out.dtype != np.float32 or out.shape != source.shape or not out.flags.writeable:
        state = ", read-only" if array and not out.flags.writeable else ""
        raise UsageError(f"out is {_described(out)}{state}: it must be writeable float32 {source.shape}")
    safe = not np.may_share_memory(source, out) or _same_place(source, out)
    return out if out.flags.carray and safe else np.empty(source.shape, np.float32)


def _same_place(one: Array, other: Array) -> bool:
    return one is other or (one.ctypes.data == other.ctypes.data and one.dtype == other.dtype)


def _deliver(result: Float32, out: Float32 | None) -> Float32:
    if out is None or out is result:
        return result
    out[...] = result
    return out

"""Matrix products of operands whose groups of K carry a scale each.

Of fp16 or bf16 the Vector unit multiplies the operands by their scales before the product. Of formats that are made for
scales (MXFP8, MXFP4, NVFP4) the Cube reads elements and scales as they lie, a what-if: no Cube of the products here does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import UsageError
from ..ir.building.promotion import KernelError, describe
from ..ir.building.registry import Builder, builtin, unwrap
from ..ir.operations import FREE, Context, Operation, define, result_type
from ..ir.program import Op, Value
from ..precision import dtypes as ty
from ..precision.dtypes import DType
from .linear import dot

__all__ = ["dot_scaled"]

VECTOR_SCALED = {"fp16": ty.float16, "bf16": ty.bfloat16}
FP32_BIAS, FP32_MANTISSA = 127, 23
E8M0_NAN = 255
# Elements of K that share a scale: OCP Microscaling Formats (MX) v1.0, 5.2 and 6.3; of NVFP4, whose scales are E4M3,
# NVIDIA's cuBLAS documentation, 1D block scaling.
MX_GROUP, NV_GROUP = 32, 16


@builtin
def dot_scaled(
    b: Builder,
    lhs: Value,
    lhs_scale: Value | None,
    lhs_format: str,
    rhs: Value,
    rhs_scale: Value | None,
    rhs_format: str,
    acc: Value | None = None,
    fast_math: bool = False,
    lhs_k_pack: bool = True,
    rhs_k_pack: bool = True,
    out_dtype: Any = ty.float32,
) -> Value:
    """lhs (M, K) times rhs (K, N), plus `acc` if given, each multiplied by its scales before: a float32 tile.

    lhs_format, rhs_format: "e4m3", "e5m2", "e2m1", the name of another format, "fp16" or "bf16"; they may differ, but for
    fp16 with bf16. A tile is of that type, or uint8 of its codes. Formats of four bits come two a byte, the low half first:
    along K, lhs (M, K / 2) and rhs (K / 2, N), or along the other axis, (M / 2, K) and (K, N / 2), with lhs_k_pack or
    rhs_k_pack False.
    lhs_scale (M, K / g), rhs_scale (N, K / g), or None. Scales are uint8, powers of two 2^(s - 127) of which 255 is NaN
    (E8M0, as Triton has them), int8, powers 2^s (as Triton-Ascend has them), each for g = 32 elements of K; or
    tl.float8e4nv for g = 16 (NVFP4). Of fp16 and bf16 alone any g that divides K, and no float8 scales.
    An element times its scale is exact, but for infinity from 2^128 on and for what lies below 2^-149.
    fast_math: a scale of 255 may be taken for infinity, which saves a comparison of fp16 and bf16.
    """
    left, right = unwrap(lhs_format), unwrap(rhs_format)
    if left == right and left in VECTOR_SCALED:
        return _by_vector(b, lhs, lhs_scale, rhs, rhs_scale, left, acc, fast_math, out_dtype)
    if left in VECTOR_SCALED and right in VECTOR_SCALED:
        raise KernelError(
            f"dot_scaled: the formats are {left} and {right}; the Cube reads operands of 16 bits of one format"
        )
    x = _elements(b, "lhs", lhs, left, 1 if lhs_k_pack else 0)
    y = _elements(b, "rhs", rhs, right, 0 if rhs_k_pack else 1)
    if x.shape[1] != y.shape[0]:
        raise KernelError(f"dot_scaled: lhs has K = {x.shape[1]}, rhs K = {y.shape[0]}; they must be equal")
    x, y = _scaled(b, "lhs", x, lhs_scale, 1), _scaled(b, "rhs", y, rhs_scale, 0)
    out = b.dot(x, y, acc, "ieee", scaled=True)
    return out if out.dtype == out_dtype else b.cast(out, out_dtype)


# ---- read by the Cube ----


def _elements(b: Builder, side: str, v: Any, name: Any, axis: int) -> Value:
    """An operand as elements of its format. axis: along which those of four bits are packed."""
    t = _format(side, name)
    if not isinstance(v, Value) or len(v.shape) != 2 or v.dtype not in (t, ty.uint8, ty.int8):
        raise KernelError(
            f"dot_scaled: {side} must be a tile of {name}, or of its codes in uint8, with two axes, got {describe(v)}"
        )
    if v.dtype is t:
        return v
    return unpacked(b, v, t, axis) if t.bits == 4 else b.bitcast(b.cast(v, ty.uint8), t)


def _format(side: str, name: Any) -> DType:
    try:
        t = ty.element_type(name)
    except UsageError as e:
        raise KernelError(f"dot_scaled: the format of {side} is {name!r}: {e}") from None
    if not t.is_floating() or t.bits > 16:
        raise KernelError(
            f"dot_scaled: the format of {side} is {name!r}; it takes floating formats up to 16 bits"
        )
    return t


def _unpack(at: Context, op: Op, packed: np.ndarray) -> np.ndarray:
    """Pairs of codes next to each other along the axis, as values."""
    axis, codes = op.attrs["axis"] + 1, packed.view(np.uint8)
    pairs = np.stack([codes & 15, codes >> 4], axis=axis + 1)
    return result_type(op).format.values.astype(np.float32)[pairs].reshape(-1, *op.results[0].shape)


@define(Operation(FREE, value=_unpack, view=True), name="unpack")
def unpacked(b: Builder, v: Value, t: DType, axis: int) -> Value:
    """Bytes as the two elements of four bits in each: the same bits."""
    shape = [2 * n if k == axis else n for k, n in enumerate(v.shape)]
    return b.emit_one("unpack", (v,), t, shape, axis=axis)


def _times_scales(at: Context, op: Op, x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    factors = _factors_of(scale, op.operand(1).number)
    wide = np.repeat(factors, op.attrs["group"], axis=2)
    with np.errstate(all="ignore"):
        return np.asarray((x * (wide if op.attrs["axis"] == 1 else wide.swapaxes(1, 2))).astype(x.dtype))


def _factors_of(scale: np.ndarray, t: DType) -> np.ndarray:
    """Scales as float64 numbers."""
    if t.is_floating():
        return scale.astype(np.float64)
    powers = np.ldexp(1.0, scale.astype(np.int32) - (FP32_BIAS if t is ty.uint8 else 0))
    return np.where(scale == E8M0_NAN, np.nan, powers) if t is ty.uint8 else powers


@define(Operation(FREE, value=_times_scales, view=True), name="scaled")
def _scaled(b: Builder, side: str, v: Value, scale: Any, axis: int) -> Value:
    """An operand of a product and its scales. axis: that of K in the operand; scales have one for each group of it."""
    if scale is None:
        return v
    group = _group(side, scale)
    rows, depth = v.shape[1 - axis], v.shape[axis]
    if depth % group:
        raise KernelError(
            f"dot_scaled: scales of {side} are for groups of {group} along K, which does not divide K = {depth}"
        )
    if scale.shape != (rows, depth // group):
        raise KernelError(
            f"dot_scaled: the scales of {side} must have shape [{rows}, {depth // group}], one for each of {rows} "
            f"{'rows' if axis else 'columns'} and each {group} of K, got {list(scale.shape)}"
        )
    return b.emit_one("scaled", (v, scale), v.dtype, v.shape, axis=axis, group=group)


def _group(side: str, scale: Any) -> int:
    t = scale.dtype if isinstance(scale, Value) and len(scale.shape) == 2 else None
    if t in (ty.uint8, ty.int8) or (isinstance(t, DType) and t.is_foreign and t.format.name == "e8m0"):
        return MX_GROUP
    if t is ty.float8e4nv:
        return NV_GROUP
    raise KernelError(
        f"dot_scaled: the scales of {side} must be uint8, int8 or {ty.float8e4nv} with two axes, got {describe(scale)}"
    )


# ---- multiplied by the Vector unit ----


def _by_vector(
    b: Builder,
    lhs: Any,
    lhs_scale: Any,
    rhs: Any,
    rhs_scale: Any,
    name: str,
    acc: Any,
    fast: bool,
    out_dtype: Any,
) -> Value:
    for side, v in (("lhs", lhs), ("rhs", rhs)):
        _check(side, v, name)
    left, right = lhs, rhs
    if lhs_scale is not None:
        left = _product(b, lhs, _factors(b, "lhs", lhs_scale, lhs.shape, lhs.dtype, fast))
    if rhs_scale is not None:
        transposed = _factors(b, "rhs", rhs_scale, rhs.shape[::-1], rhs.dtype, fast)
        right = _product(b, rhs, b.permute(transposed, (1, 0)))
    out: Value = dot.build(b, left, right, acc, out_dtype=out_dtype)
    return out


def _check(side: str, v: Any, name: str) -> None:
    if not isinstance(v, Value) or len(v.shape) != 2 or v.dtype != VECTOR_SCALED[name]:
        raise KernelError(f"dot_scaled: {side} must be a {name} tile with two axes, got {describe(v)}")


def _factors(b: Builder, side: str, scale: Value, shape: tuple[int, ...], dtype: Any, fast: bool) -> Value:
    """Powers of two for every element of an operand (rows, K), from the exponents (rows, K / g)."""
    rows, depth = shape
    fits = (
        isinstance(scale, Value)
        and len(scale.shape) == 2
        and scale.shape[0] == rows
        and depth % scale.shape[1] == 0
    )
    if not fits or scale.dtype not in (ty.int8, ty.uint8):
        raise KernelError(
            f"dot_scaled: the scales of {side} must be int8 or uint8 of shape [{rows}, a divisor of {depth}], "
            f"got {describe(scale)}"
        )
    exponent = b.cast(scale, ty.int32)
    if scale.dtype == ty.int8:
        exponent = b.to_value(b.binary("add", exponent, FP32_BIAS))
    power = b.bitcast(b.binary("shl", exponent, FP32_MANTISSA), ty.float32)
    if scale.dtype == ty.uint8 and not fast:
        power = b.select(b.compare("eq", exponent, E8M0_NAN), float("nan"), power)
    groups = scale.shape[1]
    wide = b.broadcast_to(b.expand_dims(b.cast(power, dtype), 2), (rows, groups, depth // groups))
    return b.reshape(wide, (rows, depth))


def _product(b: Builder, v: Value, factors: Value) -> Value:
    return b.to_value(b.binary("mul", v, factors))

"""Matrix products, also of operands whose groups of K carry a power of two each."""

from __future__ import annotations

from typing import Any

from ..ir.building.promotion import KernelError, describe
from ..ir.building.registry import Builder, builtin
from ..ir.program import Value
from ..precision import dtypes as ty

__all__ = ["dot", "dot_scaled"]

PRECISIONS = ("ieee", "hf32")


@builtin(method=True)
def dot(
    b: Builder,
    input: Value,
    other: Value,
    acc: Value | None = None,
    input_precision: str | None = None,
    allow_tf32: bool | None = None,
    max_num_imprecise_acc: int | None = None,
    out_dtype: Any = ty.float32,
) -> Value:
    """input (M, K) times other (K, N), plus `acc` (M, N) if given: a float32 tile (int32 for int8 operands).

    Of tiles with three axes, (B, M, K) and (B, K, N), each of the B products, (B, M, N).
    input, other: int8, float16, bfloat16 or float32, both alike; any sizes. The Cube adds into a float32 accumulator that
    stays in L0C over a loop (`acc = tl.dot(a, b, acc)` and `acc += tl.dot(a, b)` are the same).
    input_precision: for float32 operands and a float32 result, "ieee" or "hf32"; "tf32" and "tf32x3" mean "hf32", as on
    Ascend; elsewhere it is ignored. Without it the device's cube_math_type decides. allow_tf32, max_num_imprecise_acc:
    accepted, without effect, as on Ascend. The Run's notes say which precision a product of float32 had.
    out_dtype: float32, or float16 / bfloat16 for a cast of the result.
    """
    precision = _precision(input_precision)
    if precision == "hf32" and out_dtype not in (ty.float32, ty.int32):
        precision = "ieee"
    given = {
        "input_precision": input_precision,
        "allow_tf32": allow_tf32,
        "max_num_imprecise_acc": max_num_imprecise_acc,
    }
    asked = [f"{name}={x}" for name, x in given.items() if x is not None]
    out = b.dot(input, other, acc, precision, asked)
    return out if out.dtype == out_dtype or out.dtype == ty.int32 else b.cast(out, out_dtype)


def _precision(input_precision: str | None) -> str:
    if input_precision is None:
        return "device"
    name = str(input_precision).lower()
    if name in ("tf32", "tf32x3"):
        return "hf32"
    if name not in PRECISIONS:
        raise KernelError(
            f"dot: input_precision must be one of {', '.join(PRECISIONS)}, got {input_precision!r}"
        )
    return name


FORMATS = {"fp16": ty.float16, "bf16": ty.bfloat16}
FP32_BIAS, FP32_MANTISSA = 127, 23


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

    lhs_format, rhs_format: "fp16" or "bf16", both alike, as on Ascend; the 8-bit and 4-bit formats are refused.
    lhs_scale (M, K / g), rhs_scale (N, K / g), or None: exponents of groups of g elements of K: 2^s for int8, as
    Triton-Ascend has it, 2^(s - 127) for uint8, as Triton has it.
    fast_math, lhs_k_pack, rhs_k_pack: accepted, without effect.
    """
    for side, v, name in (("lhs", lhs, lhs_format), ("rhs", rhs, rhs_format)):
        _check(side, v, name)
    left = lhs if lhs_scale is None else _scaled(b, lhs, _factors(b, "lhs", lhs_scale, lhs.shape, lhs.dtype))
    right = rhs
    if rhs_scale is not None:
        transposed = _factors(b, "rhs", rhs_scale, rhs.shape[::-1], rhs.dtype)
        right = _scaled(b, rhs, b.permute(transposed, (1, 0)))
    out: Value = dot.build(b, left, right, acc, out_dtype=out_dtype)
    return out


def _check(side: str, v: Any, name: str) -> None:
    if name not in FORMATS:
        raise KernelError(
            f"dot_scaled: the format of {side} is {name!r}; the Cube of these products reads fp16 and bf16 only: multiply "
            "the operand by its scales in one of them"
        )
    if not isinstance(v, Value) or len(v.shape) != 2 or v.dtype != FORMATS[name]:
        raise KernelError(f"dot_scaled: {side} must be a {name} tile with two axes, got {describe(v)}")


def _factors(b: Builder, side: str, scale: Value, shape: tuple[int, ...], dtype: Any) -> Value:
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
    groups = scale.shape[1]
    wide = b.broadcast_to(b.expand_dims(b.cast(power, dtype), 2), (rows, groups, depth // groups))
    return b.reshape(wide, (rows, depth))


def _scaled(b: Builder, v: Value, factors: Value) -> Value:
    return b.to_value(b.binary("mul", v, factors))

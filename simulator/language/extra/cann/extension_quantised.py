"""Quantised numbers: products that the fixpipe multiplies by scales on their way out of L0C, and int4 two a byte."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.building.promotion import KernelError, Operand, describe
from ....ir.building.registry import Builder, builtin, unwrap
from ....ir.operations import Context, Operation, Scratch, define, result_type
from ....ir.program import Op, Value
from ....precision import dtypes as ty
from ....units.fixpipe import fixpipe

SCALED = {"int32": ("fp16", "int8"), "fp32": ("int8",)}  # what `units/fixpipe.py` makes of a sum and a scale
SIGN, NIBBLE = 8, 16  # a nibble from 8 up is negative


def _scaled(at: Context, op: Op, acc: np.ndarray, scale: np.ndarray) -> np.ndarray:
    target = result_type(op).name
    scales = scale if len(scale) == len(acc) else np.broadcast_to(scale, (len(acc), *scale.shape[1:]))
    return np.stack([fixpipe(x, target, scale=s) for x, s in zip(acc, scales, strict=True)])


@builtin
@define(
    Operation(
        "fixpipe_scaled",
        "mul",
        _scaled,
        scalar="muls",
        rows=("cast_s32_f32", "cast_f32_f16", "cast_other"),
        scratch=Scratch.OPERANDS,
        flops=1,
        elementwise=True,
    )
)
def fixpipe_scaled(b: Builder, acc: Value, scale: Operand, dtype: Any = ty.float16) -> Value:
    """A product times scales, rounded once to `dtype`: what the fixpipe does on the way out of L0C (quant_pre of Ascend C).

    acc: (M, N), int32 of a product of int8, or float32. scale: float32, one for each column (N,) or a number; read as
    1+8+10 bits, the low 13 of a float32 are ignored. dtype: float16 or int8 of int32 (beyond its range the largest value),
    int8 of float32. Takes no time of its own where the result is only stored and Cube and Vector are apart: scales come by
    way of L1 into the fixpipe's buffer. Elsewhere the Vector unit does it. Triton-Ascend has no such builtin.
    """
    target, given = unwrap(dtype), b.to_value(scale)
    if not isinstance(acc, Value) or len(acc.shape) != 2 or acc.dtype.name not in SCALED:
        raise KernelError(f"fixpipe_scaled takes an int32 or float32 tile with two axes, got {describe(acc)}")
    if getattr(target, "name", None) not in SCALED[acc.dtype.name]:
        have = " or ".join(SCALED[acc.dtype.name])
        raise KernelError(f"fixpipe_scaled makes {have} of {acc.dtype.name}, not {target}")
    if given.dtype != ty.float32 or given.shape not in ((), acc.shape[1:]):
        raise KernelError(
            f"fixpipe_scaled: the scale must be float32, a number or one for each of {acc.shape[1]} columns, "
            f"got {describe(given)}"
        )
    return b.emit_one("fixpipe_scaled", (acc, given), target, acc.shape)


def _unpacked(at: Context, op: Op, packed: np.ndarray) -> np.ndarray:
    bits = packed.view(np.uint8)
    pairs = np.stack([bits % NIBBLE, bits // NIBBLE], axis=-1).astype(np.float32)
    pairs -= (pairs >= SIGN) * np.float32(NIBBLE)
    return pairs.reshape(*packed.shape[:-1], -1)


@builtin
@define(Operation("unpack_int4", "cast_s8_f16", _unpacked, near=True, scratch=Scratch.FIRST, flops=1))
def unpack_int4(b: Builder, packed: Value) -> Value:
    """The int4 of a tile that holds two a byte, low four bits first: a float16 tile twice as long along the last axis.

    packed: uint8 or int8, any rank from 1. Ascend C: Cast of int4b_t to half. No figure of that instruction is published;
    it takes the time of the cast of as many int8. Triton-Ascend has no such builtin.
    """
    if not isinstance(packed, Value) or not packed.shape or packed.dtype not in (ty.int8, ty.uint8):
        raise KernelError(f"unpack_int4 takes a uint8 or int8 tile, got {describe(packed)}")
    shape = (*packed.shape[:-1], 2 * packed.shape[-1])
    return b.emit_one("unpack_int4", (packed,), ty.float16, shape)


__all__ = ["fixpipe_scaled", "unpack_int4"]

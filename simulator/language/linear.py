"""Matrix products."""

from __future__ import annotations

from typing import Any

from ..ir.building.promotion import KernelError
from ..ir.building.registry import Builder, builtin
from ..ir.program import Value
from ..precision import dtypes as ty
from .creation import element_type

__all__ = ["dot"]

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
    acc_format: Any = None,
) -> Value:
    """input (M, K) times other (K, N), plus `acc` (M, N) if given: a float32 tile (int32 for int8 operands).

    Of tiles with three axes, (B, M, K) and (B, K, N), each of the B products, (B, M, N).
    input, other: int8, float16, bfloat16 or float32, both alike; or one or both a type of another format up to 16 bits
    (tl.float8e4nv, sim.element_type("hif8"), int4 with int4), which may differ and is a what-if where the product's Cube
    lacks it. Any sizes. The Cube adds into a float32 accumulator that
    stays in L0C over a loop (`acc = tl.dot(a, b, acc)` and `acc += tl.dot(a, b)` are the same).
    input_precision: for float32 operands and a float32 result, "ieee" or "hf32"; "tf32" and "tf32x3" mean "hf32", as on
    Ascend; elsewhere it is ignored. Without it the device's cube_math_type decides. allow_tf32, max_num_imprecise_acc:
    accepted, without effect, as on Ascend. The Run's notes say which precision a product of float32 had.
    out_dtype: float32, or float16 / bfloat16 for a cast of the result. acc_format: a floating type to which the accumulator
    is rounded after each step of the Cube, a what-if; the result is float32 (or `out_dtype`) on its grid.
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
    kept = None if acc_format is None else element_type(acc_format)
    out = b.dot(input, other, acc, precision, asked, kept)
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

"""Tiles made from nothing, and casts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ..errors import UsageError, in_triton
from ..ir.building.promotion import KernelError, Operand, describe
from ..ir.building.registry import Builder, builtin, named
from ..ir.program import Value
from ..ir.types import PointerType
from ..precision import dtypes as ty
from ..precision.dtypes import ALL, EVERY, DType, from_name, int1, integer, types_of_kind
from ..precision.formats import Format
from ..precision.rounding import MODES

__all__ = ["arange", "cast", "dtype", "full", "get_int_dtype", "to_tensor", "zeros", "zeros_like"]


class _ElementTypes(type):
    """`dtype("fp32")` gives the type of that name; `isinstance(x, dtype)` asks whether x is an element type."""

    def __call__(cls, name: str) -> DType:
        try:
            return from_name(name) or ty.element_type(name)
        except UsageError as e:
            known = ", ".join(t.name for t in ALL)
            raise KernelError(f"there is no element type {name!r}; there are {known}; and {e}") from None

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, DType)


class dtype(metaclass=_ElementTypes):
    """The element types: `tl.float32` and the others are instances; `tl.dtype("fp32")` looks one up."""

    __ascendtile_host__ = True
    SINT_TYPES: ClassVar = types_of_kind("int")
    UINT_TYPES: ClassVar = types_of_kind("bool", "uint")
    FP_TYPES: ClassVar = types_of_kind("float")
    STANDARD_FP_TYPES: ClassVar = [name for name in FP_TYPES if EVERY[name].is_standard_floating()]
    OTHER_TYPES: ClassVar = types_of_kind("void")


@builtin
def arange(b: Builder, start: int, end: int) -> Value:
    """int32 tile start, start+1, ..., end-1. Bounds are compile-time integers; any length is allowed, as on Ascend."""
    return b.arange(start, end)


@builtin
def full(b: Builder, shape: Sequence[int] | int, value: Operand, dtype: DType) -> Value:
    """Tile of `shape` filled with the scalar `value` in `dtype`."""
    return b.full(_shape(shape), value, element_type(dtype))


@builtin
def zeros(b: Builder, shape: Sequence[int] | int, dtype: DType) -> Value:
    """Tile of `shape` filled with zero in `dtype`."""
    return b.full(_shape(shape), 0, element_type(dtype))


@builtin
def zeros_like(b: Builder, input: Value) -> Value:
    """Tile of zeros with the shape and dtype of `input`."""
    return b.full(input.shape, 0, element_type(input.dtype))


def _choice(what: str, given: str | None, known: dict[str | None, str]) -> str:
    if given not in known:
        names = ", ".join(repr(k) for k in known if k)
        raise KernelError(f"{what} must be one of {names}, got {given!r}")
    return known[given]


# Triton's names of rounding modes, and those of `precision.round_to` in small letters.
STOCHASTIC = "STOCHASTIC"
ROUNDINGS: dict[str | None, str] = {
    None: "",
    "rtne": "RINT",
    "rtz": "TRUNC",
    **{mode.lower(): mode for mode in (*MODES, STOCHASTIC)},
}
OVERFLOWS: dict[str | None, str] = {
    None: "",
    "trunc": "wrap",
    "saturate": "saturate",
    "inf_nan": "inf_nan",
}


@builtin(method=True)
def cast(
    b: Builder,
    input: Operand,
    dtype: DType,
    fp_downcast_rounding: str | None = None,
    bitcast: bool = False,
    overflow_mode: str | None = None,
    random: Value | None = None,
) -> Value:
    """`input` in `dtype`: to floats with round to nearest even (HiF8: ties away), to integers toward zero.

    dtype: any element type, also one of `sim.element_type`. fp_downcast_rounding, between floats: "rtne", "rtz" (toward
    zero), and "rint", "round" (ties away), "floor", "ceil", "trunc", "odd", "rnz" (ties to zero), "stochastic". The last
    needs `random`, an int32 or uint32 tile of the shape of `input`, such as tl.randint gives: an element goes away from zero
    where its 32 bits, as a fraction, lie below the part that is cut off.
    bitcast: the same bits read as `dtype`, which must be as wide. overflow_mode, to integers: "saturate" ends at the limits,
    "trunc" keeps the low bits; without it floats saturate and integers keep their low bits. To floats: "saturate" ends at
    the largest finite value, "inf_nan" gives infinity, or NaN in a format without; without it the format and the product
    decide.
    """
    if isinstance(dtype, PointerType):
        return b.cast(input, dtype)
    target = element_type(dtype)
    if bitcast:
        return b.bitcast(input, target)
    mode = _choice("fp_downcast_rounding", fp_downcast_rounding, ROUNDINGS)
    overflow = _choice("overflow_mode", overflow_mode, OVERFLOWS)
    if mode == "RINT" and not target.is_foreign:
        mode = ""
    bits = _random_bits(b, b.to_value(input), mode, random)
    _check_overflow(target, overflow)
    return b.cast_with(input, target, mode, overflow, bits) if mode or overflow else b.cast(input, target)


def _random_bits(b: Builder, v: Value, mode: str, random: Any) -> Value | None:
    """The bits that decide a stochastic rounding; `KernelError` where they are missing, wrong or not asked for."""
    if mode != STOCHASTIC:
        if random is not None:
            raise KernelError(
                f'cast: `random` is for fp_downcast_rounding="stochastic", not for {mode or "the usual"} rounding'
            )
        return None
    if not isinstance(random, Value) or random.dtype not in (ty.int32, ty.uint32) or random.shape != v.shape:
        raise KernelError(
            f"cast: stochastic rounding of {describe(v)} needs `random`, an int32 or uint32 tile of shape {list(v.shape)} "
            f"such as tl.randint(seed, offsets), got {describe(random)}"
        )
    return random


def _check_overflow(target: DType, overflow: str) -> None:
    if overflow == "inf_nan" and not target.is_floating():
        raise KernelError(
            f'cast: overflow_mode "inf_nan" is for floating point, not for {target}; take "trunc" or "saturate"'
        )
    if overflow == "wrap" and target.is_foreign and target.is_floating():
        raise KernelError(
            f'cast: overflow_mode "trunc" is for integers, not for {target}; take "saturate" or "inf_nan"'
        )


named("to", cast.build, "As `cast`.", method=True)


@builtin
def to_tensor(b: Builder, x: Operand) -> Value:
    """A number as a scalar of the program; values stay what they are."""
    return b.to_value(x)


@builtin
def get_int_dtype(b: Builder, bitwidth: int, signed: bool) -> DType:
    """The integer type of 1, 8, 16, 32 or 64 bits."""
    if bitwidth == 1:
        return int1
    if bitwidth not in (8, 16, 32, 64):
        raise KernelError(f"get_int_dtype: bitwidth must be 1, 8, 16, 32 or 64, got {bitwidth!r}")
    return integer(bitwidth, bool(signed))


def _shape(shape: Sequence[int] | int) -> Sequence[int]:
    return shape if isinstance(shape, tuple | list) else (shape,)


def element_type(x: Any) -> DType:
    """`x` if it is an element type that tiles can have; `KernelError` if not."""
    if not isinstance(x, DType):
        got = f'{x!s:.60}; a number format is one by sim.element_type("{x!s:.60}")'
        got = got if isinstance(x, str | Format) else repr(x)
        raise KernelError(f"expected an element type such as tl.float32, got {got}")
    if x is ty.void:
        raise KernelError(f"there are no tiles of {x}{in_triton(f'unexpected type {x}')}")
    return x

"""Tiles made from nothing, and casts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ..errors import in_triton
from ..ir.building.promotion import KernelError, Operand
from ..ir.building.registry import Builder, builtin, named
from ..ir.program import Value
from ..ir.types import PointerType
from ..precision.dtypes import ALL, EVERY, DType, from_name, int1, integer, types_of_kind

__all__ = ["arange", "cast", "dtype", "full", "get_int_dtype", "to_tensor", "zeros", "zeros_like"]


class _ElementTypes(type):
    """`dtype("fp32")` gives the type of that name; `isinstance(x, dtype)` asks whether x is an element type."""

    def __call__(cls, name: str) -> DType:
        found = from_name(name) or EVERY.get(name)
        if found is None:
            raise KernelError(
                f"there is no element type {name!r}; there are {', '.join(t.name for t in ALL)}"
            )
        return found

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


@builtin(method=True)
def cast(
    b: Builder,
    input: Operand,
    dtype: DType,
    fp_downcast_rounding: str | None = None,
    bitcast: bool = False,
    overflow_mode: str | None = None,
) -> Value:
    """`input` in `dtype`: to floats with round to nearest even, to integers toward zero.

    fp_downcast_rounding: "rtne", or "rtz" (toward zero) between floats. bitcast: the same bits read as `dtype`, which must
    be as wide. overflow_mode, to integers: "saturate" ends at the limits, "trunc" keeps the low bits; without it floats
    saturate and integers keep their low bits.
    """
    if isinstance(dtype, PointerType):
        return b.cast(input, dtype)
    target = element_type(dtype)
    if bitcast:
        return b.bitcast(input, target)
    mode = _choice("fp_downcast_rounding", fp_downcast_rounding, {None: "", "rtne": "", "rtz": "TRUNC"})
    overflow = _choice("overflow_mode", overflow_mode, {None: "", "trunc": "wrap", "saturate": "saturate"})
    return b.cast_with(input, target, mode, overflow) if mode or overflow else b.cast(input, target)


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
        raise KernelError(f"expected an element type such as tl.float32, got {x!r}")
    if x not in ALL:
        raise KernelError(
            f"tiles of {x} are not supported: no product here has it; use tl.float16 or tl.int8"
            f"{in_triton(f'unexpected type {x}; type {x} not supported in this architecture')}"
        )
    return x

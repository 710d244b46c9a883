"""Small rules that all operations of a tile program share: folding of numbers, broadcasting, checks, texts of errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import in_triton
from ...precision import dtypes as ty
from ...precision.dtypes import DType
from ...precision.rounding import round_to
from ..program import Value
from ..types import PointerType

MAX_FOLDED_BITS = 4096  # of << and ** between Python numbers
MAX_REPEATED = 1 << 16  # parts of a text or tuple made by `*`
Number = bool | int | float
Operand = Value | Number


class KernelError(Exception):
    """A rule of the language is broken at the operation being built; the compiler adds file, line and caret."""


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
    "pow": lambda a, b: a**b,
    "max": max,
    "min": min,
}
COMPARISON: dict[str, Callable[[Any, Any], bool]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}
DOT_TYPES = ("int8", "fp16", "bf16", "fp32")
BITWISE = ("and", "or", "xor", "shl", "shr")
# What bishengir makes of arithmetic on booleans (LegalizeBool.cpp of its HFusion transforms): a sum is "or", as in torch.
OF_BOOLEANS = {
    "add": "or",
    "sub": "xor",
    "mul": "and",
    "max": "or",
    "min": "and",
    "and": "and",
    "or": "or",
    "xor": "xor",
}


def promoted(a: DType, b: DType, division: bool = False) -> DType:
    """`dtypes.promote`, for types that a kernel gives."""
    try:
        return ty.promote(a, b, division)
    except TypeError as e:
        raise KernelError(f"{e}{in_triton(f'unexpected type {a} and {b}')}") from None


def can_multiply(a: DType, b: DType) -> bool:
    """Whether the Cube has a product of these types, or could read formats like them: float64 is too wide for it."""
    if a is b:
        return a.name in DOT_TYPES or a.is_foreign
    return all(t.is_floating() and t is not ty.float64 for t in (a, b)) and (a.is_foreign or b.is_foreign)


def computes_in_single(t: object) -> bool:
    """Whether arithmetic on elements of that type is done in FP32: no unit here has any for formats of its own."""
    return isinstance(t, DType) and t.is_foreign and t.is_floating()


def is_number(x: object) -> bool:
    return isinstance(x, (int, float))


def _repeated(a: Any, b: Any) -> int:
    """Parts of a text or tuple that is repeated; 0 for numbers."""
    many = (str, tuple, list, bytes)
    if isinstance(a, many) and isinstance(b, int):
        return len(a) * b
    return len(b) * a if isinstance(b, many) and isinstance(a, int) else 0


def fold(name: str, a: Any, b: Any) -> Any:
    """The operation on two compile-time numbers, as Python computes it."""
    if name in ("div", "floordiv", "mod") and b == 0:
        raise KernelError(f"division by zero in a compile-time expression: {a!r} and {b!r}")
    try:
        if name in ("shl", "pow") and is_number(b) and b > MAX_FOLDED_BITS:
            raise OverflowError(f"the right side is above {MAX_FOLDED_BITS}")
        if name == "mul" and _repeated(a, b) > MAX_REPEATED:
            raise OverflowError(f"it would have {_repeated(a, b)} parts, the limit is {MAX_REPEATED}")
        return ARITHMETIC[name](a, b)
    except TypeError:
        raise KernelError(f"'{name}' of {describe(a)} and {describe(b)} has no meaning") from None
    except (ValueError, OverflowError, ZeroDivisionError) as e:
        raise KernelError(f"'{name}' of {a!r} and {b!r} in a compile-time expression: {e}") from None


def broadcast_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of a and b together: aligned right, 1 broadcasts."""
    if a == b:
        return a
    rank = max(len(a), len(b))
    wide_a, wide_b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    out = []
    for axis, (x, y) in enumerate(zip(wide_a, wide_b, strict=True)):
        if x != y and 1 not in (x, y):
            raise KernelError(
                f"shapes {list(a)} and {list(b)} do not match: axis {axis} is {x} on the left and {y} on the right; "
                "they must be equal or one of them 1"
            )
        out.append(y if x == 1 else x)
    return tuple(out)


def describe(x: object) -> str:
    """How a message names something found where a value was expected."""
    if isinstance(x, Value):
        return f"a {x.dtype} tile of shape {list(x.shape)}" if x.shape else f"a {x.dtype} scalar"
    if isinstance(x, tuple):
        return "a tuple"
    if hasattr(x, "methods"):  # block pointers and descriptors
        return str(x)
    return f"{type(x).__name__} {x!r}"


def float_constant(value: float, dtype: DType) -> float:
    """A constant of a floating type, rounded to it; to halves through fp32, as Triton's compiler does."""
    if dtype.bits == 64 or (value in (0.0, 1.0) and not dtype.is_foreign):
        return value
    with np.errstate(over="ignore"):
        single = np.float32(value)
    return float(single if dtype is ty.float32 else round_to(single, dtype.format))


def integer_constant(value: Number, dtype: DType) -> int | bool:
    """A constant of an integer type: a float is cut off toward zero and stops at the limits, an integer wraps."""
    if dtype.is_bool():
        return bool(value)
    if not isinstance(value, float):
        return ty.wrapped(int(value), dtype)
    low, high = ty.limits(dtype)
    if value != value:
        return 0
    return int(min(max(value, low), high)) if abs(value) == float("inf") else min(max(int(value), low), high)


def check_constant(n: Number, dtype: DType) -> None:
    """Triton's rule: a number beside an integer tile must be one of its type."""
    if dtype.is_floating() or isinstance(n, float):
        return
    low, high = ty.limits(dtype)
    if not low <= n <= high:
        raise KernelError(f"{n} is out of range for {dtype} ({low} to {high}); cast one of the two")


def shifted_as(a: Operand, common: DType) -> DType | None:
    """The type in which `a` is shifted right, if not the common one: a sign that it has is drawn along, as in Triton."""
    if isinstance(a, Value) and element_of(a).is_int_signed() and not common.is_int_signed():
        return ty.from_name(f"int{common.bits}")
    return None


def check_signs(a: DType, b: DType, out: DType, division: bool) -> None:
    """Triton's rule for / // %: signed and unsigned integers must not meet."""
    if division and out.is_int() and a.is_int_signed() != b.is_int_signed():
        words = in_triton("Cannot use them because they have different signedness")
        raise KernelError(
            f"/, // and % of {a} and {b}: one is signed, the other is not; cast one of the two{words}"
        )


def is_pointer(x: Operand) -> bool:
    return isinstance(x, Value) and x.is_pointer


def element_of(v: Value) -> DType:
    assert isinstance(v.dtype, DType)
    return v.dtype


def pointee(pointer: object, what: str) -> DType:
    if not isinstance(pointer, Value) or not isinstance(pointer.dtype, PointerType):
        raise KernelError(f"{what}: the first argument must be a pointer, got {describe(pointer)}")
    return pointer.dtype.element_ty  # type: ignore[no-any-return]


def target(pointer: object, what: str) -> DType:
    """As `pointee`, of a pointer that is written through."""
    element = pointee(pointer, what)
    if pointer.dtype.const:  # type: ignore[attr-defined]
        raise KernelError(
            f"{what}: the pointer is annotated tl.const, which a kernel only reads; drop that from the parameter"
            f"{in_triton('Cannot store to a constant pointer')}"
        )
    return element


def types_of(a: Operand, b: Operand) -> str:
    return f"{describe(a)} and {describe(b)}"


def axis_of(axis: int, rank: int) -> int:
    if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
        shown = describe(axis) if isinstance(axis, Value) else repr(axis)
        raise KernelError(
            f"axis {shown} is out of range for rank {rank}: allowed are {-rank} to {rank - 1}"
            f"{in_triton(f'invalid axis {shown}')}"
        )
    return axis % rank


def grid_axis(what: str, axis: int) -> int:
    if axis not in (0, 1, 2):
        shown = describe(axis) if isinstance(axis, Value) else repr(axis)
        words = in_triton(f"{what} axis must be 0, 1, or 2 but got {shown}")
        raise KernelError(f"the axis of a grid is 0, 1 or 2, got {shown}{words}")
    return axis


def check_shape(shape: Sequence[int]) -> tuple[int, ...]:
    for s in shape:
        if isinstance(s, bool) or not isinstance(s, int):
            advice = "; take a tl.constexpr size and mask the rest" if isinstance(s, Value) else ""
            raise KernelError(f"a shape must be made of compile-time integers, got {describe(s)}{advice}")
        if s <= 0:
            raise KernelError(f"a shape must be made of positive integers, got {s} in {list(shape)}")
    return tuple(shape)


def check_broadcast(old: tuple[int, ...], new: tuple[int, ...]) -> None:
    for axis, (x, y) in enumerate(zip(old, new, strict=True)):
        if x not in (1, y):
            words = (
                f"Cannot broadcast, the expanded size of the tensor ({y}) must match the existing size ({x})"
            )
            raise KernelError(
                f"cannot broadcast {list(old)} to {list(new)}: axis {axis} is {x}, not 1 or {y}"
                f"{in_triton(words)}"
            )

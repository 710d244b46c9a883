"""Builds the tile program: one method per operation, with its type and shape rule.

The words of the language (`language/`) call these methods; a method takes `Value`s or Python numbers and returns a
`Value` (or a Python number, where all operands are compile-time constants). Rules are Triton's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..precision.rounding import round_to
from . import types as ty
from .program import Loc, Op, Region, Value
from .types import DType, PointerType

MAX_FOLDED_BITS = 4096  # of << and ** between Python numbers
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
_BITWISE = ("and", "or", "xor", "shl", "shr")
_MODULO_2 = {
    "add": "xor",
    "sub": "xor",
    "mul": "and",
    "max": "or",
    "min": "and",
    "and": "and",
    "or": "or",
    "xor": "xor",
}


def is_number(x: object) -> bool:
    return isinstance(x, bool | int | float)


class Builder:
    """Appends operations to the current region of one program."""

    def __init__(self) -> None:
        self.region = Region()
        self.loc = Loc("<kernel>", 0)
        self._values = 0
        self._ops = 0
        self.captured: list[
            tuple[Any, str, Any]
        ] = []  # (function, name, value) read from outside of the kernel

    # -- values and operations ---------------------------------------------------------------------------------------

    def value(self, dtype: ty.AnyType, shape: Sequence[int] = (), name: str = "") -> Value:
        self._values += 1
        return Value(self._values - 1, dtype, tuple(shape), self.loc, name)

    @property
    def value_count(self) -> int:
        return self._values

    @property
    def op_count(self) -> int:
        return self._ops

    def emit(
        self,
        kind: str,
        args: Sequence[Value | None],
        results: Sequence[Value],
        name: str = "",
        regions: Sequence[Region] = (),
        **attrs: Any,
    ) -> Op:
        op = Op(self._ops, kind, name, tuple(args), tuple(results), attrs, self.loc, tuple(regions))
        self._ops += 1
        self.region.ops.append(op)
        return op

    def _one(
        self, kind: str, args: Sequence[Value | None], dtype: ty.AnyType, shape: Sequence[int], **kw: Any
    ) -> Value:
        out = self.value(dtype, shape)
        self.emit(kind, args, (out,), **kw)
        return out

    def const(self, value: Number, dtype: DType | None = None) -> Value:
        """A scalar constant of the program; its type is Triton's for that Python number unless given."""
        try:
            dtype = dtype or ty.of_constant(value)
            held: Number = _float(float(value), dtype) if dtype.is_floating() else _integer(value, dtype)
        except OverflowError as e:
            raise KernelError(str(e)) from None
        return self._one("const", (), dtype, (), value=held)

    def to_value(self, x: Operand, like: DType | None = None) -> Value:
        if isinstance(x, Value):
            return x
        if not is_number(x):
            raise KernelError(f"expected a tile, a scalar or a number here, got {describe(x)}")
        return self.const(x, like)

    # -- programs and creation ---------------------------------------------------------------------------------------

    def program_id(self, axis: int) -> Value:
        return self._one("program_id", (), ty.int32, (), axis=_grid_axis(axis))

    def num_programs(self, axis: int) -> Value:
        return self._one("num_programs", (), ty.int32, (), axis=_grid_axis(axis))

    def arange(self, start: int, end: int) -> Value:
        for what, x in (("start", start), ("end", end)):
            if isinstance(x, bool) or not isinstance(x, int):
                raise KernelError(f"arange: {what} must be a compile-time integer, got {describe(x)}")
        if end <= start:
            raise KernelError(f"arange: end must be above start, got start {start} and end {end}")
        return self._one("arange", (), ty.int32, (end - start,), start=start, end=end)

    def full(self, shape: Sequence[int], value: Operand, dtype: DType) -> Value:
        if isinstance(value, Value) and value.shape:
            raise KernelError(f"full needs a scalar to fill with, got {describe(value)}")
        return self.splat(self.cast(value, dtype), _check_shape(shape))

    def splat(self, x: Value, shape: Sequence[int]) -> Value:
        return x if tuple(shape) == x.shape else self._one("splat", (x,), x.dtype, shape)

    # -- shapes ------------------------------------------------------------------------------------------------------

    def broadcast_to(self, x: Operand, shape: Sequence[int]) -> Value:
        v = self.to_value(x)
        shape = _check_shape(shape)
        if v.shape == shape:
            return v
        if v.shape == ():
            return self.splat(v, shape)
        if len(v.shape) != len(shape):
            raise KernelError(
                f"cannot broadcast a tile of rank {len(v.shape)} {list(v.shape)} to rank {len(shape)} {list(shape)}; "
                "add axes with x[:, None] or tl.expand_dims"
            )
        _check_broadcast(v.shape, shape)
        return self._one("broadcast", (v,), v.dtype, shape)

    def expand_dims(self, x: Value, axis: int) -> Value:
        rank = len(x.shape) + 1
        axis = _axis(axis, rank)
        shape = (*x.shape[:axis], 1, *x.shape[axis:])
        return self._one("expand_dims", (x,), x.dtype, shape, axis=axis)

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        shape = _check_shape(shape)
        n = 1
        for s in shape:
            n *= s
        if n != x.numel:
            raise KernelError(
                f"reshape: {list(x.shape)} has {x.numel} elements but {list(shape)} needs {n}; "
                "the two products must be equal"
            )
        return x if shape == x.shape else self._one("reshape", (x,), x.dtype, shape)

    def permute(self, x: Value, order: Sequence[int]) -> Value:
        order = tuple(_axis(a, len(x.shape)) for a in order)
        if sorted(order) != list(range(len(x.shape))):
            raise KernelError(f"permute: {list(order)} is no permutation of the axes of {list(x.shape)}")
        return self._one("permute", (x,), x.dtype, [x.shape[a] for a in order], order=order)

    # -- arithmetic --------------------------------------------------------------------------------------------------

    def cast(self, x: Operand, dtype: DType | PointerType) -> Value:
        if not isinstance(x, Value):
            if isinstance(dtype, PointerType):
                raise KernelError("a number cannot become a pointer")
            return self.const(x, dtype)
        if x.dtype == dtype:
            return x
        if x.is_pointer or isinstance(dtype, PointerType):
            raise KernelError(f"cannot cast {x.dtype} to {dtype}")
        return self._one("cast", (x,), dtype, x.shape)

    def binary(self, name: str, a: Operand, b: Operand) -> Operand:
        """`a op b` with Triton's promotion and broadcasting; folded where both are Python numbers."""
        if not isinstance(a, Value) and not isinstance(b, Value):
            folded: Number = fold(name, a, b)
            return folded
        if _is_pointer(a) or _is_pointer(b):
            return self._pointer_arithmetic(name, a, b)
        dtype = self._common_type(a, b, name)
        if dtype.is_floating() and name in (*_BITWISE, "floordiv"):
            what = "integers or booleans" if name != "floordiv" else "integers; divide with / and round down"
            raise KernelError(f"'{name}' needs {what}, got {_types(a, b)}")
        if name == "pow":
            raise KernelError(
                "`**` of tiles or scalars of the program is not supported; multiply, or use tl.exp"
            )
        if dtype.is_bool():
            name = self._boolean(name)
        a, b = self._same_shape(self._operand(a, dtype), self._operand(b, dtype))
        return self._one("binary", (a, b), dtype, a.shape, name=name)

    def _boolean(self, name: str) -> str:
        """The logical operation that arithmetic modulo 2 on booleans is."""
        if name not in _MODULO_2:
            raise KernelError(f"'{name}' of booleans has no meaning; cast with .to(tl.int32)")
        return _MODULO_2[name]

    def invert(self, x: Value) -> Operand:
        """Every bit turned round."""
        if not isinstance(x.dtype, DType) or x.dtype.is_floating():
            raise KernelError(f"`~` needs integers or booleans, got {describe(x)}")
        return self.binary("xor", x, self.const(-1, x.dtype))

    def compare(self, name: str, a: Operand, b: Operand) -> Operand:
        if not isinstance(a, Value) and not isinstance(b, Value):
            return COMPARISON[name](a, b)
        if _is_pointer(a) or _is_pointer(b):
            raise KernelError(
                f"pointers cannot be compared, got {_types(a, b)}; compare offsets, or use `is None`"
            )
        dtype = self._common_type(a, b, name)
        a, b = self._same_shape(self._operand(a, dtype), self._operand(b, dtype))
        return self._one("compare", (a, b), ty.int1, a.shape, name=name)

    def unary(self, name: str, x: Operand, dtype: DType | None = None) -> Value:
        v = self.to_value(x)
        if v.is_pointer:
            raise KernelError(f"'{name}' of a pointer has no meaning")
        if name == "abs" and v.dtype.is_int() and not v.dtype.is_int_signed():  # type: ignore[union-attr]
            return v
        if name == "neg" and v.dtype.is_bool():
            raise KernelError("the sign of a boolean has no meaning; cast with .to(tl.int32), or use `not`")
        return self._one("unary", (v,), dtype or v.dtype, v.shape, name=name)

    def select(self, condition: Operand, a: Operand, b: Operand) -> Value:
        c = self.to_value(condition)
        c = c if c.dtype == ty.int1 else self.to_bool(c)
        dtype = self._common_type(self.to_value(a) if not isinstance(b, Value) else a, b, "where")
        va, vb = self._same_shape(self._operand(a, dtype), self._operand(b, dtype))
        if c.shape != va.shape:
            c, va = self._same_shape(c, va)
            c, vb = self._same_shape(c, vb)
        return self._one("select", (c, va, vb), dtype, va.shape)

    def to_bool(self, x: Operand) -> Value:
        v = self.to_value(x)
        if v.dtype == ty.int1:
            return v
        out = self.compare("ne", v, 0)
        assert isinstance(out, Value)
        return out

    def _pointer_arithmetic(self, name: str, a: Operand, b: Operand) -> Value:
        if _is_pointer(b) and name == "add":
            a, b = b, a
        if not _is_pointer(a) or _is_pointer(b) or name not in ("add", "sub"):
            raise KernelError(f"a pointer takes + or - with integers only, got {_types(a, b)}")
        offset = self.to_value(b)
        if not offset.dtype.is_int() or offset.dtype.is_bool():
            raise KernelError(f"a pointer offset must be an integer (elements), got {offset.dtype}")
        if name == "sub":
            negative = self.binary("sub", 0, offset)
            assert isinstance(negative, Value)
            offset = negative
        pointer = self.to_value(a)
        pointer, offset = self._same_shape(pointer, offset)
        return self._one("addptr", (pointer, offset), pointer.dtype, pointer.shape)

    def _common_type(self, a: Operand, b: Operand, name: str) -> DType:
        if _is_pointer(a) or _is_pointer(b):
            raise KernelError(f"'{name}' of pointers has no meaning, got {_types(a, b)}")
        division = name in ("div", "mod", "floordiv")
        if isinstance(a, Value) and isinstance(b, Value):
            out = ty.promote(_element(a), _element(b), division)
            _check_signs(_element(a), _element(b), out, division)
        else:
            v, n = (a, b) if isinstance(a, Value) else (b, a)
            assert isinstance(v, Value)
            if not is_number(n):
                raise KernelError(f"'{name}' needs tiles or numbers, got {describe(n)}")
            assert not isinstance(n, Value)
            out = ty.promote_with_constant(_element(v), n, division)
            _check_constant(n, out)
        if name == "div" and out.is_int():
            return ty.float32
        return out

    def _operand(self, x: Operand, dtype: DType) -> Value:
        return self.cast(x, dtype) if isinstance(x, Value) else self.const(x, dtype)

    def _same_shape(self, a: Value, b: Value) -> tuple[Value, Value]:
        if a.shape == b.shape:
            return a, b
        shape = broadcast_shape(a.shape, b.shape)
        return self._stretch(a, shape), self._stretch(b, shape)

    def _stretch(self, x: Value, shape: tuple[int, ...]) -> Value:
        while x.shape and len(x.shape) < len(shape):
            x = self.expand_dims(x, 0)
        return self.broadcast_to(x, shape)

    # -- memory ------------------------------------------------------------------------------------------------------

    def load(self, pointer: Value, mask: Operand | None, other: Operand | None) -> Value:
        element = _pointee(pointer, "load")
        pointer, m = self._with_mask(pointer, mask, "load")
        if other is not None and mask is None:
            raise KernelError("load: `other` is the value of masked-out elements and needs a `mask`")
        o = None if other is None else self.broadcast_to(self.cast(other, element), pointer.shape)
        return self._one("load", (pointer, m, o), element, pointer.shape)

    def store(self, pointer: Value, value: Operand, mask: Operand | None) -> None:
        element = _pointee(pointer, "store")
        v = self.cast(value, element)
        if v.shape != pointer.shape:
            if v.shape and not pointer.shape:
                raise KernelError(
                    f"store: the pointer is a scalar but the value has shape {list(v.shape)}; "
                    "add an offset tile to the pointer"
                )
            pointer, v = self._same_shape(pointer, v)
        pointer, m = self._with_mask(pointer, mask, "store")
        if v.shape != pointer.shape:
            v = self.broadcast_to(v, pointer.shape)
        self.emit("store", (pointer, v, m), ())

    def atomic(self, name: str, pointer: Value, value: Operand, mask: Operand | None) -> Value:
        element = _pointee(pointer, f"atomic_{name}")
        v = self.cast(value, element)
        pointer, v = self._same_shape(pointer, v)
        pointer, m = self._with_mask(pointer, mask, f"atomic_{name}")
        return self._one("atomic", (pointer, v, m), element, pointer.shape, name=name)

    def _with_mask(self, pointer: Value, mask: Operand | None, what: str) -> tuple[Value, Value | None]:
        if mask is None or mask is True:
            return pointer, None
        m = self.to_bool(mask)
        if m.shape != pointer.shape:
            if m.shape and not pointer.shape:
                raise KernelError(f"{what}: the mask has shape {list(m.shape)} but the pointer is a scalar")
            pointer, m = self._same_shape(pointer, m)
        return pointer, m

    # -- reductions --------------------------------------------------------------------------------------------------

    def reduce(self, name: str, x: Operand, axis: int | None, keep_dims: bool) -> Value:
        v = self.to_value(x)
        if v.shape == ():
            return v
        if v.is_pointer:
            raise KernelError(f"'{name}' of pointers has no meaning")
        if axis is None:
            flat = self.reshape(v, (v.numel,))
            out = self._one("reduce", (flat,), v.dtype, (), name=name, axis=0)
            return self.splat(out, (1,) * len(v.shape)) if keep_dims else out
        axis = _axis(axis, len(v.shape))
        out = self._one(
            "reduce", (v,), v.dtype, [s for i, s in enumerate(v.shape) if i != axis], name=name, axis=axis
        )
        if not keep_dims:
            return out
        return self.expand_dims(out, axis) if out.shape else self.splat(out, (1,))


# -- small rules -----------------------------------------------------------------------------------------------------


def fold(name: str, a: Any, b: Any) -> Any:
    """The operation on two compile-time numbers, as Python computes it."""
    if name in ("div", "floordiv", "mod") and b == 0:
        raise KernelError(f"division by zero in a compile-time expression: {a!r} and {b!r}")
    try:
        if name in ("shl", "pow") and is_number(b) and b > MAX_FOLDED_BITS:
            raise OverflowError(f"the right side is above {MAX_FOLDED_BITS}")
        return ARITHMETIC[name](a, b)
    except TypeError:
        raise KernelError(f"'{name}' of {describe(a)} and {describe(b)} has no meaning") from None
    except (ValueError, OverflowError, ZeroDivisionError) as e:
        raise KernelError(f"'{name}' of {a!r} and {b!r} in a compile-time expression: {e}") from None


def broadcast_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of a and b together: aligned right, 1 stretches."""
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
    return f"{type(x).__name__} {x!r}"


def _float(value: float, dtype: DType) -> float:
    """A constant of a floating type, rounded to it; to halves through fp32, as Triton's compiler does."""
    if dtype.bits == 64:
        return value
    with np.errstate(over="ignore"):
        single = np.float32(value)
    return float(single if dtype.bits == 32 else round_to(single, dtype.name))


def _integer(value: Number, dtype: DType) -> int | bool:
    """A constant of an integer type: a float is cut off toward zero and stops at the limits, an integer wraps."""
    if dtype.is_bool():
        return bool(value)
    if not isinstance(value, float):
        return ty.wrapped(int(value), dtype)
    low, high = ty.limits(dtype)
    if value != value:
        return 0
    return int(min(max(value, low), high)) if abs(value) == float("inf") else min(max(int(value), low), high)


def _check_constant(n: Number, dtype: DType) -> None:
    """Triton's rule: a number beside an integer tile must be one of its type."""
    if dtype.is_floating() or isinstance(n, float):
        return
    low, high = ty.limits(dtype)
    if not low <= n <= high:
        raise KernelError(f"{n} is out of range for {dtype} ({low} to {high}); cast one of the two")


def _check_signs(a: DType, b: DType, out: DType, division: bool) -> None:
    """Triton's rule for / // %: signed and unsigned integers must not meet."""
    if division and out.is_int() and a.is_int_signed() != b.is_int_signed():
        raise KernelError(f"/, // and % of {a} and {b}: one is signed, the other is not; cast one of the two")


def _is_pointer(x: Operand) -> bool:
    return isinstance(x, Value) and x.is_pointer


def _element(v: Value) -> DType:
    assert isinstance(v.dtype, DType)
    return v.dtype


def _pointee(pointer: object, what: str) -> DType:
    if not isinstance(pointer, Value) or not isinstance(pointer.dtype, PointerType):
        raise KernelError(f"{what}: the first argument must be a pointer, got {describe(pointer)}")
    return pointer.dtype.element_ty


def _types(a: Operand, b: Operand) -> str:
    return f"{describe(a)} and {describe(b)}"


def _axis(axis: int, rank: int) -> int:
    if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
        raise KernelError(f"axis {axis!r} is out of range for rank {rank}: allowed are {-rank} to {rank - 1}")
    return axis % rank


def _grid_axis(axis: int) -> int:
    if axis not in (0, 1, 2):
        raise KernelError(f"the axis of a grid is 0, 1 or 2, got {axis!r}")
    return axis


def _check_shape(shape: Sequence[int]) -> tuple[int, ...]:
    for s in shape:
        if isinstance(s, bool) or not isinstance(s, int):
            raise KernelError(f"a shape must be made of compile-time integers, got {describe(s)}")
        if s <= 0:
            raise KernelError(f"a shape must be made of positive integers, got {s} in {list(shape)}")
    return tuple(shape)


def _check_broadcast(old: tuple[int, ...], new: tuple[int, ...]) -> None:
    for axis, (x, y) in enumerate(zip(old, new, strict=True)):
        if x not in (1, y):
            raise KernelError(
                f"cannot broadcast {list(old)} to {list(new)}: axis {axis} is {x}, not 1 or {y}"
            )

"""Ordinary Python functions that a kernel may call while it is compiled."""

from __future__ import annotations

import builtins
import inspect
import math
from typing import Any

from ..ir.building.builder import Builder
from ..ir.building.promotion import KernelError, describe
from ..ir.building.ranges import DynamicRange, StaticRange
from ..ir.building.registry import INSTEAD_OF, constexpr, unwrap
from ..ir.program import Value
from ..ir.types import BlockType, ConstexprType, PointerType
from ..precision.dtypes import DType
from . import attributes

# Compile-time values in, a compile-time value out. Besides these, a function marked `__ascendtile_host__`.
HOST_FUNCTIONS: tuple[Any, ...] = (
    *(len, int, float, bool, str, abs, min, max, round, divmod),
    *(isinstance, hasattr, getattr, tuple, list, range, zip, enumerate, reversed, sorted, any, all),
    constexpr,
    BlockType,
    ConstexprType,
    PointerType,
)
# Modules whose functions are all harmless: numbers in, a number or a tuple of numbers out.
HOST_MODULES = (math,)
# Those that only put values of the program into another order.
ARRANGING = (tuple, list, isinstance, zip, enumerate, reversed)


def host_call(b: Builder, fn: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Call a harmless Python function; `min`, `max` and `abs` also take values of the program."""
    values = any(isinstance(a, Value) for a in (*args, *kwargs.values()))
    if values and fn is abs and len(args) == 1:
        return b.unary("abs", args[0])
    if values and (fn is min or fn is max) and not kwargs:
        out = args[0]
        for a in args[1:]:
            out = b.binary(fn.__name__, out, a)
        return out
    if fn is hasattr and len(args) == 2 and isinstance(args[0], Value) and isinstance(args[1], str):
        return attributes.has(args[0], args[1])
    if not is_host(fn):
        raise KernelError(f"{describe_function(fn)} cannot be called in a kernel; {_instead(fn)}")
    args = [_iterable(fn, a) for a in args]
    if fn in (zip, enumerate, reversed):
        return tuple(fn(*args, **kwargs))
    if (
        fn not in (*ARRANGING, len)
        and not is_named_tuple(fn)
        and any(_holds_value(a) for a in (*args, *kwargs.values()))
    ):
        raise KernelError(
            f"{describe_function(fn)} needs compile-time arguments, got a value of the program{_builtin_for(fn)}"
        )
    return unwrap(fn(*args, **kwargs))


def _holds_value(x: Any) -> bool:
    return any(map(_holds_value, x)) if isinstance(x, tuple | list) else isinstance(x, Value)


def _iterable(fn: Any, x: Any) -> Any:
    """An argument for a function that may go over it: a range that is unrolled as its numbers."""
    if isinstance(x, DynamicRange):
        raise KernelError(
            f"{describe_function(fn)} cannot go over a range of the program; take tl.static_range"
        )
    if isinstance(x, Value) and fn in (tuple, list, zip, reversed, enumerate, len):
        raise KernelError(f"{describe_function(fn)} needs a compile-time tuple, got {describe(x)}")
    return x.values if isinstance(x, StaticRange) else x


def is_host(fn: Any) -> bool:
    """Whether a kernel may call `fn` at compile time."""
    owner = getattr(fn, "__self__", None)
    if isinstance(owner, DType | PointerType | BlockType | str | tuple | int | float):
        return True  # x.dtype.is_floating(), B.bit_length() and the like
    if any(owner is m for m in HOST_MODULES) or is_named_tuple(fn):
        return True
    return any(fn is f for f in HOST_FUNCTIONS) or getattr(fn, "__ascendtile_host__", False) is True


def is_named_tuple(fn: Any) -> bool:
    """Whether `fn` makes tuples whose entries have names."""
    return isinstance(fn, type) and issubclass(fn, tuple) and hasattr(fn, "_fields")


def _instead(fn: Any) -> str:
    if fn is builtins.sum:
        return "use tl.sum"
    if inspect.isfunction(fn):
        return "make it a @jit function"
    return (
        f"compute it outside and pass the result as tl.constexpr{_builtin_for(fn)}"
        if callable(fn)
        else "it is no function"
    )


def _builtin_for(fn: Any) -> str:
    """The builtin of the same name, if there is one."""
    name = INSTEAD_OF.get(fn) if callable(fn) and fn.__hash__ else None
    return f"; use tl.{name}" if name else ""


def describe_function(fn: Any) -> str:
    """How a message names what was called."""
    name = getattr(fn, "name", None) or getattr(fn, "__name__", None)
    if not isinstance(name, str):
        return f"{type(fn).__name__} {fn!r}"
    module = getattr(fn, "__module__", None) or ""
    return name if module == "builtins" or "ascendtile." in module else f"{module}.{name}".lstrip(".")

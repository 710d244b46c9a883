"""Reductions and scans by a function of the user: they become slices and that function, log2 of the axis times."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...precision import dtypes as ty
from ..program import Op, Region, Value
from ..types import AnyType
from .builder import Builder
from .promotion import KernelError, describe
from .rearrange import cat, cut, flip
from .registry import Kernel

Values = tuple[Value, ...]
Combine = Callable[[Values, Values], Values]
KNOWN = {"add": "sum", "mul": "mul", "max": "max", "min": "min", "and": "and", "or": "or", "xor": "xor"}
# Comparisons of a function of (value, index) -> extremum, and whether the first of equal values wins.
EXTREMA = {
    "lt": ("min", True),
    "lt eq lt": ("min", True),
    "eq lt lt": ("min", True),
    "lt eq gt": ("min", False),
    "eq gt lt": ("min", False),
    "gt": ("max", True),
    "gt eq lt": ("max", True),
    "eq lt gt": ("max", True),
    "gt eq gt": ("max", False),
    "eq gt gt": ("max", False),
}


def known_operation(b: Builder, combine: Combine, types: Sequence[AnyType]) -> str | None:
    """Which built-in reduction a combine function is: it must be one operation on its two operands and nothing else."""
    if len(types) != 1:
        return None
    (left,), (right,), (out,), ops = _tried(b, combine, types)
    one = len(ops) == 1 and ops[0].kind == "binary" and ops[0].results[0] is out and out.dtype == types[0]
    if not one or {id(v) for v in ops[0].args} != {id(left), id(right)}:
        return None
    return KNOWN.get(ops[0].name)


def known_extremum(b: Builder, combine: Combine, types: Sequence[AnyType]) -> tuple[str, bool] | None:
    """ "max" or "min" and whether the first of equal ones wins, for a function of (value, index) that the compiler knows.

    It goes by the comparisons, in their order, and what is selected by them.
    """
    if len(types) != 2:
        return None
    left, right, out, ops = _tried(b, combine, types)
    compared = [op for op in ops if op.kind == "compare" and op.name in ("lt", "gt", "eq")]
    chosen = [next((op for op in ops if v in op.results), None) for v in out]
    condition = chosen[0] and chosen[0].args[0]
    for op, x, y in zip(chosen, left, right, strict=True):
        if op is None or op.kind != "select" or op.args != (condition, x, y):
            return None
    pairs: list[Any] = list(zip(left, right, strict=True))
    if any(op.args not in pairs for op in compared):
        return None
    return EXTREMA.get(" ".join(op.name for op in compared))


def _tried(b: Builder, combine: Combine, types: Sequence[AnyType]) -> tuple[Values, Values, Values, list[Op]]:
    """Two operands of a combine function, its results and its operations, which stand nowhere."""
    outer, b.region = b.region, Region()
    try:
        left, right = (tuple(b.value(t) for t in types) for _ in range(2))
        return left, right, combine(left, right), b.region.ops
    finally:
        b.region = outer


def is_position(b: Builder, v: Value, axis: int) -> bool:
    """Whether a tile is known to count from 0 along an axis."""
    op = b.made.get(v.id)
    while op is not None and op.kind in ("broadcast", "expand_dims", "cast"):
        if op.kind == "expand_dims":
            if axis == op.attrs["axis"]:
                return False
            axis -= axis > op.attrs["axis"]
        op = b.made.get(op.operand(0).id)
    return op is not None and op.kind == "arange" and op.attrs["start"] == 0 and axis == 0


def combined(b: Builder, parts: Values, axis: int, combine: Combine) -> Values:
    """One element along an axis: neighbours are combined in pairs, and their results again, until one is left.

    The order of the elements is kept, so the function need not commute. An odd last one waits for the next round.
    """
    n = parts[0].shape[axis]
    while n > 1:
        half = n // 2
        left = tuple(cut(b, v, axis, 0, half, 2) for v in parts)
        right = tuple(cut(b, v, axis, 1, half, 2) for v in parts)
        made = combine(left, right)
        if n % 2:
            rest = [cut(b, v, axis, n - 1, 1) for v in parts]
            made = tuple(cat(b, (m, r), axis) for m, r in zip(made, rest, strict=True))
        parts, n = made, half + n % 2
    return parts


def running(b: Builder, parts: Values, axis: int, combine: Combine, reverse: bool) -> Values:
    """Running combination: in round k each element is combined with the one 2^k before it (behind it, if `reverse`)."""
    if reverse:
        parts = tuple(flip(b, v, axis) for v in parts)
    n, distance = parts[0].shape[axis], 1
    while distance < n:
        early = tuple(cut(b, v, axis, 0, n - distance) for v in parts)
        late = tuple(cut(b, v, axis, distance, n - distance) for v in parts)
        head = [cut(b, v, axis, 0, distance) for v in parts]
        made = combine(early, late)
        parts = tuple(cat(b, (h, m), axis) for h, m in zip(head, made, strict=True))
        distance *= 2
    return tuple(flip(b, v, axis) for v in parts) if reverse else parts


def combiner(b: Builder, fn: Any, types: Sequence[AnyType]) -> Combine:
    """A jit function of 2n values as a function of two n-tuples; its results must have the types of its operands."""
    if not isinstance(fn, Kernel):
        raise KernelError(f"the combine function must be a @jit function, got {describe(fn)}")

    def combine(left: Values, right: Values) -> Values:
        out = b.compile_helper(fn, (*left, *right))
        made = out if isinstance(out, tuple) else (out,)
        if len(made) != len(types):
            raise KernelError(
                f"{fn.name} must return {len(types)} values, one for each input, got {len(made)}"
            )
        shape = left[0].shape
        return tuple(_fitting(b, fn.name, x, t, shape) for x, t in zip(made, types, strict=True))

    return combine


def mapped(b: Builder, fn: Any, values: Sequence[Value], pack: int) -> Any:
    """A jit function on values that are broadcast together, `pack` neighbours of each at a time."""
    if not isinstance(fn, Kernel):
        raise KernelError(f"map_elementwise takes a @jit function, got {describe(fn)}")
    for k in range(1, len(values)):
        values = [b.same_shape(v, values[k])[0] for v in values]
    shape = values[0].shape if values else ()
    parts = [part for v in values for part in _neighbours(b, b.broadcast_to(v, shape), pack)]
    outer, b.by_lane = b.by_lane, True
    try:
        out = b.compile_helper(fn, parts)
    finally:
        b.by_lane = outer
    return out if pack == 1 else _rejoined(b, fn.name, out, pack, shape)


def _neighbours(b: Builder, v: Value, pack: int) -> list[Value]:
    """`pack` tiles with one axis: the first elements of each group of neighbours, the second ones, and so on."""
    if pack == 1:
        return [v]
    if v.numel % pack:
        raise KernelError(f"map_elementwise: pack {pack} does not divide the {v.numel} elements")
    flat = b.reshape(v, (v.numel,))
    return [cut(b, flat, 0, k, v.numel // pack, pack) for k in range(pack)]


def _rejoined(b: Builder, name: str, out: Any, pack: int, shape: tuple[int, ...]) -> Any:
    """The results of packed calls, `pack` for each tile, as tiles of the shape."""
    made = out if isinstance(out, tuple) else (out,)
    if len(made) % pack:
        raise KernelError(
            f"{name} must return {pack} values for each result with pack={pack}, got {len(made)}"
        )
    size = math.prod(shape) // pack
    columns = [b.expand_dims(b.broadcast_to(x, (size,)), 1) for x in made]
    groups = [columns[k : k + pack] for k in range(0, len(columns), pack)]
    tiles = tuple(b.reshape(cat(b, group, 1), shape) for group in groups)
    return tiles if len(tiles) > 1 else tiles[0]


def _fitting(b: Builder, name: str, x: Any, wanted: AnyType, shape: tuple[int, ...]) -> Value:
    v = b.to_value(x, wanted if isinstance(wanted, ty.DType) else None)
    if v.dtype != wanted:
        raise KernelError(
            f"{name} must return the types of its operands: {wanted} is expected, got {describe(v)}"
        )
    return b.broadcast_to(v, shape) if v.shape != shape else v

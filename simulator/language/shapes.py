"""Changing the shape of a tile, and choosing between elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import in_triton
from ..ir.building import combining, rearrange
from ..ir.building.promotion import KernelError, Operand, axis_of, describe
from ..ir.building.registry import Builder, builtin, named
from ..ir.program import Value

__all__ = [
    "broadcast", "broadcast_to", "cat", "expand_dims", "flip", "gather", "interleave", "join",
    "map_elementwise", "permute", "ravel", "reshape", "split", "squeeze", "swizzle2d", "trans",
    "unsqueeze", "view", "where",
]  # fmt: skip


def _flat(args: tuple[Any, ...]) -> Sequence[int]:
    return args[0] if len(args) == 1 and isinstance(args[0], tuple | list) else args


@builtin(method=True)
def reshape(b: Builder, input: Value, *shape: Any, can_reorder: bool = False) -> Value:
    """Same elements in row-major order under another shape of the same number of elements."""
    return b.reshape(input, _flat(shape))


view = named("view", reshape.build, "As `reshape`.", method=True)


@builtin(method=True)
def broadcast_to(b: Builder, input: Operand, *shape: Any) -> Value:
    """Stretch axes of size 1 to `shape`."""
    return b.broadcast_to(input, _flat(shape))


@builtin(method=True)
def expand_dims(b: Builder, input: Operand, axis: int | Sequence[int]) -> Value:
    """Add an axis of size 1 at `axis`, or at each of several, which count in the result."""
    v = b.to_value(input)
    if isinstance(axis, int):
        return _expanded(b, v, axis)
    rank = len(v.shape) + len(axis)
    places = sorted(axis_of(a, rank) for a in axis)
    if len(set(places)) < len(places):
        words = in_triton(f"duplicate axes, normalized axes = {places}")
        raise KernelError(f"expand_dims: {list(axis)} names one axis of the result twice{words}")
    for at in places:
        v = _expanded(b, v, at)
    return v


def _expanded(b: Builder, v: Value, axis: int) -> Value:
    if v.shape:
        return b.expand_dims(v, axis)
    axis_of(axis, 1)
    return b.splat(v, (1,))


@builtin(method=True)
def permute(b: Builder, input: Value, *dims: Any) -> Value:
    """Axes in the order `dims`."""
    return b.permute(input, _flat(dims))


@builtin(method=True)
def trans(b: Builder, input: Value, *dims: Any) -> Value:
    """Transpose: the last two axes swapped, or the axes in the order `dims`."""
    order = (
        list(_flat(dims))
        if dims
        else [*range(len(input.shape) - 2), len(input.shape) - 1, len(input.shape) - 2]
    )
    return b.permute(input, order)


@builtin(method=True)
def ravel(b: Builder, x: Value, can_reorder: bool = False) -> Value:
    """All elements in one axis."""
    return b.reshape(x, (x.numel,))


@builtin
def broadcast(b: Builder, input: Operand, other: Operand) -> tuple[Value, Value]:
    """Both stretched to their common shape."""
    return rearrange.broadcast(b, input, other)


@builtin
def cat(b: Builder, input: Value, other: Value, can_reorder: bool = False, dim: int = 0) -> Value:
    """`input` and `other`, of one type, behind each other along `dim`, in this order whatever `can_reorder` allows."""
    first, second = rearrange.tile(b, "cat", input), rearrange.tile(b, "cat", other)
    if len(first.shape) != len(second.shape):
        raise KernelError(f"cat: {describe(first)} and {describe(second)} have different ranks")
    return rearrange.cat(b, [first, second], axis_of(dim, len(first.shape)))


@builtin
def join(b: Builder, a: Operand, other: Operand) -> Value:
    """`a` and `other`, broadcast together, along a new last axis of size 2."""
    return rearrange.join(b, a, other)


@builtin
def interleave(b: Builder, a: Operand, other: Operand) -> Value:
    """Elements of `a` and `other` in turn along the last axis, which doubles."""
    both = rearrange.join(b, a, other)
    return b.reshape(both, (*both.shape[:-2], 2 * both.shape[-2])) if len(both.shape) > 1 else both


@builtin(method=True)
def split(b: Builder, a: Value) -> tuple[Value, Value]:
    """The two parts of a last axis of size 2, without that axis."""
    return rearrange.split(b, rearrange.tile(b, "split", a))


@builtin(method=True)
def flip(b: Builder, x: Value, dim: int | None = None) -> Value:
    """`x` in the opposite order along `dim` (the last axis if None)."""
    v = rearrange.tile(b, "flip", x)
    return rearrange.flip(b, v, axis_of(-1 if dim is None else dim, len(v.shape)))


@builtin(method=True)
def gather(b: Builder, src: Value, index: Value, axis: int) -> Value:
    """src[..., index, ...] along `axis`: integers in 0..size-1, with the shape of `src` in all other axes.

    An index outside is a `RunError` with element, program and line.
    """
    return rearrange.gather(b, rearrange.tile(b, "gather", src), rearrange.tile(b, "gather", index), axis)


@builtin
def swizzle2d(b: Builder, i: Operand, j: Operand, size_i: Operand, size_j: Operand, size_g: Operand) -> Any:
    """Place (i, j) of a row-major size_i x size_j grid in an order that goes down columns within groups of size_g rows."""
    number = b.binary("add", b.binary("mul", i, size_j), j)
    in_group = b.binary("mul", size_g, size_j)
    first = b.binary("mul", b.binary("floordiv", number, in_group), size_g)
    rows = b.binary("min", b.binary("sub", size_i, first), size_g)
    rest = b.binary("mod", number, in_group)
    return b.binary("add", first, b.binary("mod", rest, rows)), b.binary("floordiv", rest, rows)


@builtin(method=True)
def squeeze(b: Builder, x: Value, dim: int) -> Value:
    """`x` without its axis `dim`, whose size must be 1."""
    axis = axis_of(dim, len(x.shape))
    if x.shape[axis] != 1:
        raise KernelError(f"squeeze: axis {dim} of {describe(x)} has size {x.shape[axis]}, not 1")
    shape = [n for k, n in enumerate(x.shape) if k != axis]
    return b.reshape(x, shape) if shape else rearrange.element(b, x)


@builtin(method=True)
def unsqueeze(b: Builder, x: Value, dim: int) -> Value:
    """`x` with an axis of size 1 more, at `dim`."""
    return b.expand_dims(x, dim)


@builtin
def map_elementwise(b: Builder, scalar_fn: Any, *args: Operand, pack: int = 1) -> Any:
    """`scalar_fn`, a @jit function written for one element, on each element of the `args` (broadcast together).

    It is applied to whole tiles: its body may use elementwise builtins, and of an `if` on an element both sides are
    computed. pack: how many neighbouring elements of each argument a call takes, those of the first argument first; it
    returns as many for each result.
    """
    if isinstance(pack, bool) or not isinstance(pack, int) or pack < 1:
        raise KernelError(
            f"map_elementwise: pack must be a positive compile-time integer, got {describe(pack)}"
        )
    return combining.mapped(b, scalar_fn, [b.to_value(x) for x in args], pack)


@builtin(method=True)
def item(b: Builder, x: Value) -> Value:
    """The one element of a tile of one element, as a scalar."""
    if x.numel != 1:
        raise KernelError(f"item needs a tile of one element, got {describe(x)}")
    return rearrange.element(b, x) if x.shape else x


@builtin
def where(b: Builder, condition: Operand, x: Operand, y: Operand) -> Value:
    """`x` where `condition` holds, else `y`; the three are broadcast together. Both sides are computed."""
    return b.select(condition, x, y)

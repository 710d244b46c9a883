"""Reductions along one axis, in the order of the hardware.

A sum along the last axis adds adjacent pairs inside a repeat (64 lanes), then the repeats' results; a sum along another
axis adds the upper half onto the lower half elementwise until one row is left. Halves are summed in FP32 and rounded once.
"""

from __future__ import annotations

from typing import Any

from ..ir.building import combining, rearrange
from ..ir.building.promotion import KernelError, Operand, axis_of, computes_in_single, describe
from ..ir.building.registry import Builder, Builtin, builtin, named
from ..ir.operations import Operation, Scratch, by_element, define
from ..ir.program import Value
from ..precision import dtypes as ty
from ..units import scans
from .creation import element_type
from .mathematics import PropagateNan

__all__ = [
    "argmax", "argmin", "associative_scan", "bitonic_merge", "cumprod", "cumsum", "histogram", "max",
    "min", "reduce", "reduce_or", "sort", "sum", "topk", "xor_sum",
]  # fmt: skip


@builtin(method=True)
def sum(
    b: Builder, input: Operand, axis: int | None = None, keep_dims: bool = False, dtype: Any = None
) -> Value:
    """Sum along `axis` (all axes if None). Integers narrower than 32 bits are summed in int32, as in Triton."""
    v = b.to_value(input)
    if dtype is not None:
        v = b.cast(v, element_type(dtype))
    elif isinstance(v.dtype, ty.DType) and v.dtype.is_int() and v.dtype.bits < 32:
        v = b.cast(v, ty.uint32 if v.dtype.kind == "uint" else ty.int32)
    return b.reduce("sum", v, axis, keep_dims)


def _widened(b: Builder, x: Operand) -> Value:
    """Triton widens halves to fp32 and short integers to int32 before a maximum."""
    v = b.to_value(x)
    t = v.dtype
    if isinstance(t, ty.DType) and t.bits < 32:
        return b.cast(v, ty.float32 if t.is_floating() else ty.int32)
    return v


def _or_nan(b: Builder, x: Value, out: Value, axis: int | None, keep_dims: bool) -> Value:
    """The result of a reduction, NaN where a NaN was among its elements."""
    bad = b.reduce("or", b.to_value(b.compare("ne", x, x)), axis, keep_dims)
    return b.select(bad, float("nan"), out)


def _single_for_bf16(b: Builder, x: Operand) -> Value:
    v = rearrange.tile(b, "a reduction with indices", x)
    return b.cast(v, ty.float32) if v.dtype == ty.bfloat16 or computes_in_single(v.dtype) else v


def _extremum(name: str, says: str) -> Builtin:
    def build(
        b: Builder,
        input: Operand,
        axis: int | None = None,
        return_indices: bool = False,
        return_indices_tie_break_left: bool = True,
        keep_dims: bool = False,
        propagate_nan: Any = False,
    ) -> Any:
        nan = propagate_nan is PropagateNan.ALL or propagate_nan is True
        if not return_indices:
            wide = _widened(b, input)
            out = b.reduce(name, wide, axis, keep_dims)
            return _or_nan(b, wide, out, axis, keep_dims) if nan and wide.dtype.is_floating() else out
        if nan:
            raise KernelError(
                f"{name}: propagate_nan with return_indices is not supported; take the index by argmax"
            )
        v = _single_for_bf16(b, input)
        at = rearrange.arg_reduce(b, f"arg{name}", v, axis, keep_dims, bool(return_indices_tie_break_left))
        return b.reduce(name, v, axis, keep_dims), at

    return named(name, build, says, method=True)


max = _extremum(
    "max",
    """Maximum along `axis` (all axes if None); NaN is skipped, as on Ascend, unless propagate_nan (without indices).

    return_indices: also the int32 index of it, the first of equal ones (the last without tie_break_left). Halves and short
    integers are widened to 32 bits without indices; with them only bfloat16 is, as in Triton.
    """,
)
min = _extremum("min", "Minimum along `axis`; as `max`.")


def _place(name: str, extreme: str) -> Builtin:
    def build(
        b: Builder, input: Operand, axis: int | None, tie_break_left: bool = True, keep_dims: bool = False
    ) -> Value:
        v = rearrange.tile(b, name, input)
        return rearrange.arg_reduce(b, name, v, axis, keep_dims, bool(tie_break_left))

    says = f"int32 index of the {extreme} along `axis`: the first of equal ones, or the last. NaN is skipped."
    return named(name, build, says, method=True)


argmax, argmin = _place("argmax", "maximum"), _place("argmin", "minimum")


def _integers(b: Builder, what: str, x: Operand) -> Value:
    v = b.to_value(x)
    if not v.dtype.is_int():
        raise KernelError(f"{what} takes integers, got {describe(v)}")
    return v


@builtin(method=True)
def xor_sum(b: Builder, input: Operand, axis: int | None = None, keep_dims: bool = False) -> Value:
    """Exclusive or of all integers along `axis` (all axes if None)."""
    return b.reduce("xor", _integers(b, "xor_sum", input), axis, keep_dims)


@builtin(method=True)
def reduce_or(b: Builder, input: Operand, axis: int | None, keep_dims: bool = False) -> Value:
    """Bitwise or of all integers along `axis` (all axes if None)."""
    return b.reduce("or", _integers(b, "reduce_or", input), axis, keep_dims)


@builtin(method=True)
def reduce(
    b: Builder,
    input: Any,
    axis: int | None,
    combine_fn: Any,
    keep_dims: bool = False,
    reduction_ordering: Any = None,
) -> Any:
    """`input` (a tile, or a tuple of tiles of one shape) combined along `axis` by `combine_fn` (all axes if None).

    combine_fn: a @jit function; (a, b) -> c for one tile, (a0, a1, b0, b1) -> (c0, c1) for two. It must be associative.
    Neighbours are combined in pairs, their results again, and so on: log2(n) calls on whole tiles; an odd last element
    waits. Where the function is just a sum, product, maximum, minimum, and, or, xor, it is the unit's own reduction; so is
    a maximum or minimum of (value, index), whose index is then the place along `axis`, whatever the second tile holds.
    reduction_ordering: accepted, without effect: the order is always this one.
    """
    parts, combine, known = _combination(b, "reduce", input, combine_fn)
    if known is not None:
        return _like(input, (b.reduce(known, parts[0], axis, keep_dims),))
    extremum = combining.known_extremum(b, combine, [v.dtype for v in parts])
    if extremum is not None:
        return _extremum_and_place(b, parts, axis, keep_dims, *extremum)
    rank = len(parts[0].shape)
    if axis is None:
        parts, at = tuple(b.reshape(v, (v.numel,)) for v in parts), 0
    else:
        at = axis_of(axis, rank)
    out = combining.combined(b, parts, at, combine)
    return _like(input, tuple(_without_axis(b, v, at, rank if axis is None else 0, keep_dims) for v in out))


def _extremum_and_place(
    b: Builder, parts: tuple[Value, ...], axis: int | None, keep_dims: bool, name: str, first: bool
) -> tuple[Value, Value]:
    """The extremum along an axis and its place. The unit counts places itself: the tile of indices is not read."""
    values, index = parts
    if axis is None or not combining.is_position(b, index, axis_of(axis, len(values.shape))):
        b.warn(
            f"reduce: a {name}imum with its index is one instruction, which gives places from 0 on along the axis and does "
            "not read the tile of indices: add an offset to the result, or take the index from such a tile by tl.gather"
        )
    wide = _single_for_bf16(b, values)
    place = rearrange.arg_reduce(b, f"arg{name}", wide, axis, keep_dims, first)
    return b.cast(b.reduce(name, wide, axis, keep_dims), values.number), b.cast(place, index.number)


def _like(given: Any, results: tuple[Value, ...]) -> Any:
    """A tuple where one was given, else the one result."""
    return results if isinstance(given, tuple | list) else results[0]


def _without_axis(b: Builder, v: Value, axis: int, all_axes: int, keep_dims: bool) -> Value:
    """The reduced axis, of size 1, taken away; kept if asked (all of them where the tile was flattened)."""
    if keep_dims:
        return b.reshape(v, (1,) * all_axes) if all_axes else v
    shape = [n for k, n in enumerate(v.shape) if k != axis]
    return b.reshape(v, shape) if shape else rearrange.element(b, v)


def _combination(
    b: Builder, what: str, input: Any, combine_fn: Any
) -> tuple[tuple[Value, ...], combining.Combine, str | None]:
    """The tiles, the combine function on tuples, and the built-in operation that it is, if any."""
    given = tuple(input) if isinstance(input, tuple | list) else (input,)
    parts = tuple(b.counted(rearrange.tile(b, what, x)) for x in given)
    for v in parts[1:]:
        if v.shape != parts[0].shape:
            raise KernelError(
                f"{what}: all inputs must have one shape, got {describe(parts[0])} and {describe(v)}"
            )
    types = [v.dtype for v in parts]
    combine = combining.combiner(b, combine_fn, types)
    return parts, combine, combining.known_operation(b, combine, types)


# -- scans -----------------------------------------------------------------------------------------------------------


def _scanned(b: Builder, name: str, x: Operand, axis: int, reverse: bool, dtype: Any) -> Value:
    v = rearrange.tile(b, f"cum{name}", x)
    t = v.dtype
    if dtype is not None:
        v = b.cast(v, element_type(dtype))
    elif t == ty.bfloat16 or computes_in_single(t):
        v = b.cast(v, ty.float32)
    elif name == "sum" and isinstance(t, ty.DType) and t.is_int() and t.bits < 32:
        v = b.cast(v, ty.int32 if t.kind == "int" else ty.uint32)
    at = axis_of(axis, len(v.shape))
    return rearrange.scan(b, "sum" if name == "sum" else "mul", v, at, bool(reverse))


@builtin(method=True)
def cumsum(b: Builder, input: Operand, axis: int = 0, reverse: bool = False, dtype: Any = None) -> Value:
    """Running sum along `axis`, one element after another (from the end, if `reverse`), rounded at each step.

    float16 is summed in float32, each result rounded once. bfloat16 becomes float32, integers narrower than 32 bits become
    32 bits wide, unless `dtype` says otherwise.
    """
    return _scanned(b, "sum", input, axis, reverse, dtype)


@builtin(method=True)
def cumprod(b: Builder, input: Operand, axis: int = 0, reverse: bool = False) -> Value:
    """Running product along `axis`; as `cumsum`, but integers keep their type."""
    return _scanned(b, "prod", input, axis, reverse, None)


@builtin(method=True)
def associative_scan(b: Builder, input: Any, axis: int, combine_fn: Any, reverse: bool = False) -> Any:
    """Running combination of `input` (a tile, or a tuple of tiles of one shape) along `axis` by `combine_fn`.

    combine_fn: as in `reduce`, associative. In round k every element is combined with the result 2^k places before it (the
    earlier one is the first operand); with `reverse` the axis is reversed before and after. Sums, products, maxima,
    minima, and, or, xor go one element after another instead.
    """
    parts, combine, known = _combination(b, "associative_scan", input, combine_fn)
    at = axis_of(axis, len(parts[0].shape))
    if known is not None:
        return _like(input, (rearrange.scan(b, known, parts[0], at, bool(reverse)),))
    return _like(input, combining.running(b, parts, at, combine, bool(reverse)))


# -- sorting and counting --------------------------------------------------------------------------------------------


def _last(b: Builder, v: Value, dim: int | None) -> int:
    return axis_of(-1 if dim is None else dim, len(v.shape))


@builtin(method=True)
def sort(b: Builder, x: Operand, dim: int | None = None, descending: bool = False) -> Value:
    """Elements along the last axis in order, NaN as the largest. Any length; `dim` must be the last axis."""
    v = rearrange.tile(b, "sort", x)
    return rearrange.sort(b, v, _last(b, v, dim), bool(descending))


@builtin(method=True)
def topk(b: Builder, x: Operand, k: int, dim: int | None = None) -> Value:
    """The `k` largest elements along the last axis, largest first."""
    v = rearrange.tile(b, "topk", x)
    axis = _last(b, v, dim)
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= v.shape[axis]:
        raise KernelError(
            f"topk: k must be a compile-time integer from 1 to {v.shape[axis]}, got {describe(k)}"
        )
    return rearrange.cut(b, rearrange.sort(b, v, axis, True), axis, 0, k)


@builtin
def bitonic_merge(b: Builder, x: Operand, dim: int | None = None, descending: bool = False) -> Value:
    """A bitonic sequence (rising, then falling) along the last axis, sorted; the same result as `sort`."""
    v = rearrange.tile(b, "bitonic_merge", x)
    return rearrange.sort(b, v, _last(b, v, dim), bool(descending))


@builtin(method=True)
@define(
    Operation(
        value=lambda at, op, x, mask=None: scans.histogram(x, mask, op.results[0].shape[0]),
        scratch=Scratch.ALL,
        flops=1,
        of_operand=True,
        fallback=by_element("a histogram"),
    )
)
def histogram(b: Builder, input: Operand, num_bins: int, mask: Any = None) -> Value:
    """(num_bins,) int32: how often each of 0..num_bins-1 occurs in `input`, a tile of integers of any shape.

    Elements outside of that range, or where `mask` (broadcast to `input`) is False, are not counted.
    """
    v = rearrange.tile(b, "histogram", _integers(b, "histogram", input))
    if isinstance(num_bins, bool) or not isinstance(num_bins, int) or num_bins < 1:
        raise KernelError(
            f"histogram: num_bins must be a positive compile-time integer, got {describe(num_bins)}"
        )
    chosen = None if mask is None else b.broadcast_to(b.to_bool(mask), v.shape)
    return b.emit_one("histogram", (v,) if chosen is None else (v, chosen), ty.int32, (num_bins,))

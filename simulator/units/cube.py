"""What the Cube does to values: c = a @ b + c in the formats and in the order of the hardware.

    mmad(a, b, operand="fp16")                               # float32 accumulators
    mmad(a, b, acc, operand="hf32", hf32_round="ROUND")      # goes on from old L0C content
    mmad(a, b, operand="fp32", accumulate="blas")            # numpy's order: faster, other last bits

Nobody publishes a bit-exact model of the Cube. This one is fitted to device errors that third parties published:
operands are rounded to their format, products are exact, the sum of a block of products and of the accumulator is
rounded once, blocks follow each other in ascending k. `CubeRules` has every choice with its grade.

Sums inside a block are made in double precision, which agreed with rational arithmetic in all of 120 000 random steps;
where terms differ by more than 2^29 a tie, or with TRUNC a value just beside a grid point, can go the other way.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UsageError
from ..precision import _rounding
from ..precision.formats import FP16, FP32, Format, get_format
from ..precision.rounding import round_to
from ..precision.rounding_rules import rounding_of
from ._cube import PATHS, multiply, scratch_doubles
from ._elementwise import has_subnormals
from ._steps import multiply_in_steps
from .blocks import new_tile
from .cube_rules import CubeRules

Array = NDArray[Any]
Float32 = NDArray[np.float32]

_DEFAULT = CubeRules()
_FASTEST = len(PATHS) - 1
PRODUCTS_OF_THREAD = 1 << 24  # some milliseconds
_EXACT_K = 1024  # products of two INT8 are at most 2^14: so many add up to at most 2^24, exact in float32


def mmad(
    a: Array,
    b: Array,
    acc: Array | None = None,
    *,
    bias: Array | None = None,
    rules: CubeRules | None = None,
    on_grid: bool = False,
    **switches: Any,
) -> Array:
    """`a @ b + acc` as the Cube computes it: float32 of shape (..., M, N), int32 for INT8 operands.

    a: (..., M, K), b: (..., K, N); leading axes, such as the programs of a launch, broadcast. Held arrays: float32 on the
    grid of `operand` (others are rounded to it once, nearest even), or int8 for integers. acc: old accumulator, (..., M, N),
    float32 or int32. bias: initial value instead of one, broadcast to (..., M, N), usually (N,). `switches` are fields of
    `CubeRules`, changing `rules`. on_grid: the caller knows that operands are on the grid, they are not rounded again.
    Values of an FP16 accumulator come back as float32 on the FP16 grid.
    """
    chosen = (rules or _DEFAULT).with_switches(switches)
    shape = _result_shape(np.asarray(a), np.asarray(b))
    if chosen.formats[0].is_integer:
        return _integer_product(a, b, _start(acc, bias, shape, np.int32))
    second = chosen if chosen.other is None else chosen.with_switches({"operand": chosen.other})
    x, y = _operand(a, chosen, on_grid), _operand(b, second, on_grid)
    if chosen.accumulate == "blas" and acc is None and bias is None:
        return _blas_product(x, y, None, chosen)  # an array of zeros would cost a tenth of the product
    if chosen.accumulate == "blas" and bias is None and _settles_on_the_way(chosen):
        return _blas_sum(x, y, _accumulators(acc, shape), chosen)
    if chosen.accumulate == "blas":
        return _blas_product(x, y, _settle(_start(acc, bias, shape, np.float32), chosen), chosen)
    if acc is None and bias is None:
        return exact_product(x, y, None, chosen, out=new_tile(shape, np.float32))
    if bias is None and _settles_on_the_way(chosen):
        return exact_product(x, y, _accumulators(acc, shape), chosen, out=new_tile(shape, np.float32))
    start = _settle(_start(acc, bias, shape, np.float32), chosen)
    return exact_product(x, y, start, chosen)


def exact_product(
    x: Float32,
    y: Float32,
    start: Float32 | None,
    rules: CubeRules,
    path: int = _FASTEST,
    out: Float32 | None = None,
) -> Float32:
    """`start` + x @ y in the Cube's order, in `out` (None: in `start` itself). Operands are on their grid.

    start: None for zeros; where `_settles_on_the_way` says so, accumulators are brought to what the unit holds on the way.
    path: index of PATHS.
    """
    c = start if out is None else out
    assert c is not None
    if c.size == 0 or x.shape[-1] == 0:
        c[...] = 0 if start is None else _settle(start.copy(), rules)
        return c
    if rules.k_order == "descending":
        return _last_step_first(x, y, start, rules, path, c)
    left, right, stack = _as_stacks(x, y, c)
    if rules.block_sum != "exact":
        return _in_steps(left, right, stack, start, rules, c)
    kb = min(rules.products_per_step, x.shape[-1])
    first = None if start is None else start.reshape(stack.shape)
    rounding = _each_step(rules)

    def part(at: tuple[slice, slice]) -> None:
        multiply(
            left[at if len(left) > 1 else (slice(None), at[1])],
            right[at[0]] if len(right) > 1 else right,
            None if first is None else first[at],
            stack[at],
            np.empty(scratch_doubles(kb)),
            kb,
            rounding,
            rules.flushes_results,
            path,
        )

    _on_all_processors(part, stack.shape, stack.size * x.shape[-1])
    return c


def _each_step(rules: CubeRules, accumulator: Format | None = None) -> Any:
    """How a sum is brought to the accumulator's format, or to another."""
    return rounding_of(accumulator or rules.accumulates_in, rules.block_round, rules.overflow)


def _last_step_first(
    x: Float32, y: Float32, start: Float32 | None, rules: CubeRules, path: int, out: Float32
) -> Float32:
    """The steps backward: those that the ascending order has, of which the last one may be shorter."""
    k, kb, rules = x.shape[-1], rules.products_per_step, rules.with_switches({"k_order": "ascending"})
    whole = k // kb * kb
    if whole < k:
        rest = np.ascontiguousarray(x[..., whole:]), np.ascontiguousarray(y[..., whole:, :])
        start = exact_product(*rest, start, rules, path, out)
    if whole:
        back = np.arange(whole).reshape(-1, kb)[::-1].reshape(-1)
        exact_product(np.take(x, back, -1), np.take(y, back, -2), start, rules, path, out)
    return out


def _in_steps(
    left: Float32, right: Float32, stack: Float32, start: Float32 | None, rules: CubeRules, c: Float32
) -> Float32:
    """`exact_product` where the sums of steps are not exact."""
    if start is not c:
        c[...] = 0 if start is None else start
    kb = min(rules.products_per_step, left.shape[-1])
    scratch, extra, pairs = np.empty(kb), rules.extra_bits, _each_step(rules, FP32)
    multiply_in_steps(left, right, stack, scratch, kb, extra, _each_step(rules), pairs, rules.flushes_results)
    return c


def _on_all_processors(
    part: Callable[[tuple[slice, slice]], None], shape: tuple[int, ...], products: int
) -> None:
    """`part` of all (programs, rows); in threads where that pays. Each element is one chain of sums, whoever makes it."""
    everything = slice(None)
    workers = products // PRODUCTS_OF_THREAD
    if workers > 1:
        workers = min(os.cpu_count() or 1, workers)
    axis = 0 if shape[0] > 1 else 1
    if workers < 2 or shape[axis] < workers:
        part((everything, everything))
        return
    edges = [shape[axis] * k // workers for k in range(workers + 1)]
    cuts = [slice(a, b) for a, b in itertools.pairwise(edges)]
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(part, [(c, everything) if axis == 0 else (everything, c) for c in cuts]))


def _settles_on_the_way(rules: CubeRules) -> bool:
    """Whether the loops bring old accumulators to what the unit holds as they read them."""
    rule = rules.accumulates_in, rules.overflow, rules.block_round, rules.block_sum
    return rule == (FP32, "inf_nan", "RINT", "exact")


def _accumulators(acc: Array | None, shape: tuple[int, ...]) -> Float32:
    """Old accumulators, contiguous, not to be written."""
    values = np.asarray(acc)
    _check_start("acc", values, shape, np.float32)
    return np.ascontiguousarray(values)


def _result_shape(a: Array, b: Array) -> tuple[int, ...]:
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        raise UsageError(
            f"mmad: a is {a.shape}, b is {b.shape}; the rule is (..., M, K) times (..., K, N) with one K"
        )
    try:
        leading = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise UsageError(
            f"mmad: leading axes of a {a.shape[:-2]} and b {b.shape[:-2]} do not broadcast; make them equal or 1"
        ) from None
    return (*leading, a.shape[-2], b.shape[-1])


def _operand(values: Array, rules: CubeRules, on_grid: bool) -> Float32:
    """Values as the Cube reads them: on the grid of the operand format, float32."""
    array = np.asarray(values)
    if array.dtype.kind in "biu":
        raise UsageError(
            f"mmad: {rules.operand} operands are floats, not {array.dtype}; cast them, or use operand='int8'"
        )
    subnormals, fmt = rules.operand_subnormals, get_format(rules.operand)
    on_grid = on_grid or fmt is FP32  # every float32 is
    if on_grid and rules.overflow == "inf_nan" and array.dtype == np.float32:
        if rules.accumulate != "blas" or subnormals != "keep":
            array = np.ascontiguousarray(array)  # numpy's product takes transposed operands as they are
        if subnormals == "keep" or (fmt is not FP16 and not has_subnormals(array.reshape(-1))):
            return array
    how = (rules.operand_grid, rules.operand_round, rules.overflow)
    if array.dtype != np.float32 or subnormals == "keep" or fmt is FP16:
        return round_to(array, *how, subnormals)
    copy = _flushed(
        np.array(array, order="C")
    )  # the range is that of FP32: flushing apart is the same, and quicker
    plain = fmt is FP32 and rules.overflow == "inf_nan"
    return copy if plain else round_to(copy, *how, out=copy)


def _flushed(values: Float32) -> Float32:
    """FP32 subnormals of a contiguous array as zeros, in place."""
    _rounding.flush(values.reshape(-1))
    return values


def _start(acc: Array | None, bias: Array | None, shape: tuple[int, ...], dtype: type) -> Array:
    """A new array with the initial accumulators."""
    if acc is None and bias is None:
        return np.zeros(shape, dtype)
    if acc is not None and bias is not None:
        raise UsageError("mmad: both acc and bias given; an accumulator starts from one of them")
    name, values = ("acc", np.asarray(acc)) if acc is not None else ("bias", np.asarray(bias))
    _check_start(name, values, shape, dtype)
    start: Array = np.empty(shape, dtype)
    start[...] = values
    return start


def _check_start(name: str, values: Array, shape: tuple[int, ...], dtype: type) -> None:
    fits = values.shape == shape if name == "acc" else _broadcasts(values.shape, shape)
    if values.dtype != dtype or not fits:
        raise UsageError(
            f"mmad: {name} is {values.dtype} {values.shape}, but accumulators are {np.dtype(dtype)} {shape}"
        )


def _broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


def _settle(values: Float32, rules: CubeRules) -> Float32:
    """Float32 values as the accumulator would hold them, in place."""
    if rules.accumulates_in is not FP32 or rules.overflow == "saturate":
        round_to(values, rules.accumulates_in, rules.block_round, rules.overflow, out=values)
    return _flushed(values) if rules.flushes_results else values


def _as_stacks(x: Float32, y: Float32, start: Float32) -> tuple[Float32, Float32, Float32]:
    """Views or copies with one leading axis; a shared right operand turns programs into more rows."""
    m, k, n = x.shape[-2], x.shape[-1], y.shape[-1]
    if y.size == k * n and x.size * n == start.size * k:
        return x.reshape(1, -1, k), y.reshape(1, k, n), start.reshape(1, -1, n)
    leading = start.shape[:-2]
    return _stack(x, leading, (m, k)), _stack(y, leading, (k, n)), start.reshape(-1, m, n)


def _stack(x: Float32, leading: tuple[int, ...], tile: tuple[int, int]) -> Float32:
    if x.size == tile[0] * tile[1]:
        return x.reshape(1, *tile)
    return np.ascontiguousarray(np.broadcast_to(x, (*leading, *tile))).reshape(-1, *tile)


def _blas_product(x: Float32, y: Float32, start: Float32 | None, rules: CubeRules) -> Float32:
    """Rounded operands, numpy's order of summation; the accumulator is added at the end and rounded once more."""
    with np.errstate(all="ignore"):
        result: Float32 = np.matmul(x, y)
        if start is not None:
            result += start
    return _settle(result, rules)


def _blas_sum(x: Float32, y: Float32, acc: Float32, rules: CubeRules) -> Float32:
    """As above with old accumulators, which are read once."""
    result: Float32 = new_tile(acc.shape, np.float32)
    with np.errstate(all="ignore"):
        np.matmul(x, y, out=result)
        _rounding.add_row(result.reshape(-1), acc.reshape(-1), rules.flushes_results)
    return result


def _integer_product(a: Array, b: Array, start: Array) -> Array:
    """INT8 products added to INT32, exact; beyond 32 bits the low bits stay. float32 holds a chunk's sum exactly."""
    for name, values in (("a", a), ("b", b)):
        if np.asarray(values).dtype != np.int8:
            raise UsageError(f"mmad: {name} is {np.asarray(values).dtype}; int8 operands are int8 arrays")
    x, y = np.asarray(a).astype(np.float32), np.asarray(b).astype(np.float32)
    for k in range(0, x.shape[-1], _EXACT_K):
        start += np.matmul(x[..., k : k + _EXACT_K], y[..., k : k + _EXACT_K, :]).astype(np.int32)
    return start

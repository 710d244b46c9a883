"""What the Vector unit does to values: elementwise operations, casts and reductions on arrays in the host dtype.

Arrays are (P, *shape); FP16 and BF16 values are float32 arrays on the grid of their format. Each operation rounds once in
its own type: float32 has more than twice the significand bits of a half plus two, so computing in float32 and rounding
to the half gives the correctly rounded result of +, -, *, / and sqrt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import UsageError
from ..precision import _rounding, rounding
from ..precision.dtypes import DType, limits
from ..precision.dtypes import float32 as FP32
from ..precision.formats import get_format
from ..precision.rounding import OVERFLOWS, round_to, to_integer
from ..precision.rounding_rules import rounding_of
from . import functions
from ._arithmetic import OPERATIONS, arithmetic
from ._elementwise import TREES, exp_f32, log_f32, sum_rows
from .blocks import new_tile
from .cube_rules import CubeRules, flushes_operands, flushes_results


@dataclass(frozen=True)
class Numerics:
    """Choices of the units that differ between products and runs.

    sum_order: tree_tree or tree_sequential, of the repeats of a sum. sum_tree: within a repeat "adjacent" lanes are added
    (documented), the "halves" of it, or one lane, and one repeat, after another ("sequential"). repeat_bytes: of a
    repeat, 32 to 512. overflow: inf_nan (IEEE) or saturate (the largest finite value, NaN becomes 0). fp32_subnormals: of
    FP32, one of SUBNORMAL_RULES. bf16_subnormals: of BF16, None: as FP32. fp16_subnormals: of FP16. cast_round: of casts
    to a half that name no mode. directed_overflow: what too large a value becomes in a cast toward zero, "largest" (IEEE)
    or "infinity". to_integer: floats that an integer cannot hold "saturate" or "wrap". fused: whether a * b + c is
    rounded once. coarse: whether the Reciprocal and Rsqrt instructions have their 9 bits, or are correctly rounded. cube:
    how matrix products are computed. hf32: whether FP32 products that say nothing of their precision run in HF32.
    """

    sum_order: str = "tree_sequential"
    overflow: str = "inf_nan"
    fp32_subnormals: str = "keep"
    fp16_subnormals: str = "keep"
    cube: CubeRules = field(default_factory=CubeRules)
    hf32: bool = False
    coarse: bool = True
    bf16_subnormals: str | None = None
    sum_tree: str = "adjacent"
    repeat_bytes: int = 256
    cast_round: str = "RINT"
    directed_overflow: str = "largest"
    to_integer: str = "saturate"
    fused: bool = True

    def subnormals(self, dtype: DType) -> str:
        """One of SUBNORMAL_RULES, for a type."""
        of_type = {"fp16": self.fp16_subnormals, "bf16": self.bf16_subnormals or self.fp32_subnormals}
        return of_type.get(dtype.name, self.fp32_subnormals) if dtype.name in _GRID else "keep"

    def flushes_operands(self, dtype: DType) -> bool:
        """Whether subnormal operands of that type count as zero."""
        return flushes_operands(self.subnormals(dtype))

    def flushes(self, dtype: DType) -> bool:
        """Whether subnormal results of that type become zero."""
        return flushes_results(self.subnormals(dtype))


_GRID = {name: get_format(name) for name in ("fp16", "bf16", "fp32")}
_HALVES = ("fp16", "bf16")
_IEEE = Numerics()

# (type of the result, numerics, operands) -> the result; `rounded` makes one of a plain function on arrays.
UnitFunction = Callable[..., np.ndarray]
_QUIET = np.errstate(all="ignore")  # infinities and NaN are results as others
# What reductions and scans combine elements by. fmax and fmin skip NaN, as the unit does.
COMBINE: dict[str, np.ufunc] = {
    "sum": np.add,
    "mul": np.multiply,
    "max": np.fmax,
    "min": np.fmin,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_COMPARE: dict[str, Callable[..., Any]] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}


def _shape(*arrays: np.ndarray) -> tuple[int, ...]:
    first, *rest = [a.shape for a in arrays]
    return np.broadcast_shapes(first, *rest) if any(s != first for s in rest) else first


def _rounded(x: np.ndarray, dtype: DType, numerics: Numerics) -> np.ndarray:
    """Bring a contiguous float32 result to the grid of its type, in place, under the unit's overflow and subnormal rules."""
    if dtype.name in _GRID:
        flat = x.reshape(-1)
        _rounding.round_values(flat, flat, _rounding_to(dtype, numerics), None, None)
    return x


def _rounding_to(dtype: DType, numerics: Numerics) -> Any:
    """How a result is brought to its type: to nearest, under the unit's overflow and subnormal rules."""
    flush = "flush" if numerics.flushes(dtype) else "keep"
    return rounding_of(_GRID[dtype.name], "RINT", numerics.overflow, flush)


def flushed(x: np.ndarray, dtype: DType, numerics: Numerics) -> np.ndarray:
    """An operand as the unit reads it: a copy with zeros for its subnormal values, where the unit does that."""
    if not numerics.flushes_operands(dtype) or x.dtype != np.float32:
        return x
    return round_to(x, _GRID["fp16" if dtype.name == "fp16" else "fp32"], subnormals="flush")


def rounded(compute: Callable[..., np.ndarray]) -> UnitFunction:
    """The unit's function of `compute`, which takes and gives arrays (P or 1, *shape).

    Halves are given to it as float32. Its result is rounded once to the type of the result, under the unit's overflow and
    subnormal rules; that is the correct rounding of one sum, product, quotient or root.
    """

    def apply(dtype: DType, numerics: Numerics, *operands: np.ndarray) -> np.ndarray:
        return _rounded(
            _filled(compute, new_tile(_shape(*operands), dtype.host_dtype), operands), dtype, numerics
        )

    return apply


def _filled(
    compute: Callable[..., np.ndarray], out: np.ndarray, operands: tuple[np.ndarray, ...]
) -> np.ndarray:
    """`out` with what `compute` gives on the operands."""
    with np.errstate(all="ignore"):  # quicker than the decorator
        if isinstance(compute, np.ufunc):
            compute(*operands, out=out)
        else:
            out[...] = compute(*operands)
    return out


def in_one_pass(name: str, ufunc: np.ufunc) -> UnitFunction:
    """A sum, difference, product or quotient; computed and rounded together, where the layouts of the operands allow."""
    number = OPERATIONS[name]

    def apply(dtype: DType, numerics: Numerics, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        out = new_tile(_shape(a, b), dtype.host_dtype)
        if dtype.name in _GRID and out.size and arithmetic(number, a, b, out, _rounding_to(dtype, numerics)):
            return out
        return _rounded(_filled(ufunc, out, (a, b)), dtype, numerics)

    return apply


def special(name: str) -> UnitFunction:
    """A function of `units/functions.py` by name."""
    compute: Callable[..., np.ndarray] = functions.unary if name in functions.UNARY else functions.binary
    return lambda dtype, numerics, *operands: _rounded(compute(name, *operands, dtype), dtype, numerics)


def of_type(compute: Callable[..., np.ndarray]) -> UnitFunction:
    """What `compute(*operands, dtype)` gives, exact in the type."""

    @_QUIET
    def apply(dtype: DType, numerics: Numerics, *operands: np.ndarray) -> np.ndarray:
        return compute(*operands, dtype).astype(dtype.host_dtype, copy=False)

    return apply


DIRECTIONS = {"rz": "TRUNC", "rd": "FLOOR", "ru": "CEIL"}


def directed(exact: np.ufunc, direction: str) -> UnitFunction:
    """A double rounded in one of DIRECTIONS: right for products, quotients and roots, which are never closer than a
    double's last bit to a value of a narrower type without being that value."""

    @_QUIET
    def apply(dtype: DType, numerics: Numerics, first: np.ndarray, *rest: np.ndarray) -> np.ndarray:
        if dtype.bits == 64:
            raise UsageError(f"directed rounding (_{direction}) of fp64 is not supported; use the _rn form")
        return np.asarray(round_to(exact(first.astype(np.float64), *rest), dtype.name, DIRECTIONS[direction]))

    return apply


@_QUIET
def scaled(dtype: DType, numerics: Numerics, x: np.ndarray, n: np.ndarray) -> np.ndarray:
    """x * 2^n, rounded once."""
    exact = functions.scaled(x, n)
    if dtype.bits == 64:
        return exact
    return np.asarray(
        round_to(exact, dtype.name, overflow=numerics.overflow, subnormals=_results(dtype, numerics))
    )


def transcendental(single: Callable[..., Any], double: np.ufunc) -> UnitFunction:
    """exp or log, correctly rounded (see `_elementwise.pyx`); of float64 the C library's."""

    def apply(dtype: DType, numerics: Numerics, x: np.ndarray) -> np.ndarray:
        out = new_tile(x.shape, dtype.host_dtype)
        if dtype.bits == 64:
            return _filled(double, out, (x,))
        single(np.ascontiguousarray(x).reshape(-1), out.reshape(-1), dtype.bits == 16)
        return _rounded(out, dtype, numerics)

    return apply


exp, log = transcendental(exp_f32, np.exp), transcendental(log_f32, np.log)
ESTIMATE_BITS = 9  # of the significand: what the printed examples of the Ascend C pages lie on


def estimate(exact: Callable[[np.ndarray], np.ndarray]) -> UnitFunction:
    """A coarse instruction: the exact value, rounded to nearest at 9 significand bits.

    The documents say only that FP16 misses 0.1 % and FP32 0.01 %; their 15 printed results lie on this grid, 8 of them one
    step from the nearest point, so the grid is inferred and the rule assumed. `Numerics.coarse` turns it off.
    """

    @_QUIET
    def apply(dtype: DType, numerics: Numerics, x: np.ndarray) -> np.ndarray:
        out, wide = new_tile(x.shape, dtype.host_dtype), exact(x.astype(np.float64))
        if numerics.coarse:
            significand, exponent = np.frexp(wide)
            wide = np.ldexp(np.rint(np.ldexp(significand, ESTIMATE_BITS)), exponent - ESTIMATE_BITS)
        out[...] = wide
        return _rounded(out, dtype, numerics)

    return apply


def truncated_division(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Integer quotient toward zero, as C and Triton have it."""
    q: np.ndarray = np.floor_divide(a, b)
    if q.dtype.kind == "i":
        q += (q * b != a) & ((a < 0) != (b < 0))
    return q


_PRODUCT, _SUM = in_one_pass("mul", np.multiply), in_one_pass("add", np.add)


def fma(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, dtype: DType, numerics: Numerics | None = None
) -> np.ndarray:
    """a * b + c with one rounding, or two where the unit does not fuse them; integers wrap."""
    if not dtype.is_floating():
        return np.asarray(a * b + c)
    rules = numerics or _IEEE
    if not rules.fused:
        return _SUM(dtype, rules, _PRODUCT(dtype, rules, a, b), c)
    return _rounded(functions.fma(a, b, c, dtype), dtype, rules)


def compare(name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    out = new_tile(_shape(a, b), bool)
    _COMPARE[name](a, b, out=out)
    return out


def select(condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    shape = _shape(condition, a, b)
    out = new_tile(shape, b.dtype)
    out[...] = b
    np.copyto(out, a, where=condition)
    return out


def bitcast(x: np.ndarray, source: DType, target: DType) -> np.ndarray:
    """The same bits read as another type."""
    stored = np.ascontiguousarray(encode(x, source))
    return np.array(decode(stored.view(target.storage), target))


def cast(
    x: np.ndarray,
    source: DType,
    target: DType,
    numerics: Numerics | None = None,
    mode: str = "",
    overflow: str = "",
    random: np.ndarray | None = None,
) -> np.ndarray:
    """Elements of `source` as `target`: to floats round to nearest even, to integers toward zero up to the limits.

    mode: how floats are rounded to narrower ones, "" for the usual way. overflow: how what does not fit ends, for integers
    "saturate" or "wrap" (without it floats saturate and integers wrap), for floats "saturate" or "inf_nan" (without it the
    format and the unit decide). random: of STOCHASTIC, 32 bits for each element.
    """
    rules = numerics or _IEEE
    said = (mode and source.is_floating()) or overflow in OVERFLOWS
    if target.is_floating() and (target.is_foreign or (said and not _exact(source, target))):
        return _toward(x, target, rules, mode, overflow if overflow in OVERFLOWS else "", random)
    if overflow and target.is_int() and not target.is_bool():
        return _limited(x, source, target, overflow)
    if target.is_bool():
        return np.asarray(x != 0)
    if not target.is_floating():
        return _limited(x, source, target, rules.to_integer if source.is_floating() else "wrap")
    wide = source.bits == 64 or (
        source.bits == 32 and source.is_int()
    )  # than float32: rounded once, not twice
    if target.bits == 16 and (wide or (source.bits == 32 and rules.cast_round != "RINT")):
        return np.asarray(round_to(x, target.name, rules.cast_round, rules.overflow, _results(target, rules)))
    with np.errstate(over="ignore", invalid="ignore"):
        if _exact(source, target):
            return np.asarray(x if x.dtype == target.host_dtype else x.astype(target.host_dtype))
        return _rounded(np.array(x, target.host_dtype, order="C"), target, rules)


def _results(dtype: DType, rules: Numerics) -> str:
    """keep or flush, for results of a type."""
    return "flush" if rules.flushes(dtype) else "keep"


def _toward(
    x: np.ndarray, target: DType, rules: Numerics, mode: str, overflow: str, random: np.ndarray | None
) -> np.ndarray:
    """A cast that names its rounding or its overflow, or one to a format that the unit does not have."""
    mode = mode or ("" if target.is_foreign else rules.cast_round)
    ends = overflow or (None if target.is_foreign and rules.overflow == "inf_nan" else rules.overflow)
    if random is not None:
        x, random = np.broadcast_arrays(x, random.view(np.uint32))
    out = np.asarray(round_to(x, target.format, mode or None, ends, _results(target, rules), random=random))
    if rules.directed_overflow == "infinity" and ends == "inf_nan" and not (overflow or target.is_foreign):
        largest = float(target.format.max)
        limit = 2.0 ** np.ceil(np.log2(largest))
        out = np.where(np.abs(x) >= limit, np.copysign(np.float32(np.inf), x), out)
    return out


def _limited(x: np.ndarray, source: DType, target: DType, overflow: str) -> np.ndarray:
    """As integers of `target`, under that rule for those that do not fit."""
    if source.is_floating():
        return to_integer(x, target.format, overflow=overflow).astype(target.host_dtype)
    out = x.astype(target.host_dtype)
    if overflow == "wrap":
        return _low_bits(out, target) if target.is_foreign else out
    low, high = limits(target)
    below, above = (x < low, x > high)  # Python numbers: compared exactly
    return np.asarray(
        np.where(above, target.host_dtype.type(high), np.where(below, target.host_dtype.type(low), out))
    )


def _low_bits(x: np.ndarray, target: DType) -> np.ndarray:
    """Integers of less than a byte, which are held in eight bits."""
    low, sign = x & ((1 << target.bits) - 1), 1 << (target.bits - 1)
    return np.asarray((low ^ sign) - sign if target.is_int_signed() else low)


def _exact(source: DType, target: DType) -> bool:
    """Whether every value of a floating type is one of the other."""
    wider = source.bits < target.bits and (not source.is_foreign or target.bits >= 32)
    return source.is_floating() and (source == target or wider)


def in_fp32(compute: Callable[..., np.ndarray], dtype: DType, numerics: Numerics) -> np.ndarray:
    """What `compute(FP32)` gives, rounded once to a half, under the unit's overflow and subnormal rules."""
    return _rounded(compute(FP32), dtype, numerics)


def reduce(name: str, x: np.ndarray, axis: int, dtype: DType, numerics: Numerics) -> np.ndarray:
    """Reduce tile axis `axis` of (P, *shape); each step is rounded to `dtype`, as the instructions do."""
    if name == "sum" and dtype.is_floating() and dtype.bits <= 32:
        return (
            _sum_last(x, dtype, numerics)
            if axis == x.ndim - 2
            else _fold(np.add, x, axis + 1, dtype, numerics)
        )
    if name == "sum":
        return np.asarray(x.sum(axis=axis + 1, dtype=dtype.host_dtype))
    if name == "mul" and dtype.is_floating():
        return _fold(np.multiply, x, axis + 1, dtype, numerics)
    with np.errstate(all="ignore"):
        return np.asarray(COMBINE[name].reduce(x, axis=axis + 1))


def _sum_last(x: np.ndarray, dtype: DType, numerics: Numerics) -> np.ndarray:
    lanes = numerics.repeat_bytes * 8 // dtype.bits
    flat = np.ascontiguousarray(x).reshape(-1, x.shape[-1])
    out = np.empty(flat.shape[0], np.float32)
    scratch = np.empty(-(-flat.shape[1] // lanes), np.float32)
    order = TREES[numerics.sum_tree], numerics.sum_order == "tree_sequential"
    sum_rows(flat, out, scratch, lanes, _rounding_to(dtype, numerics), *order)
    return _rounded(out, dtype, numerics).reshape(x.shape[:-1])


def _fold(
    combine: Callable[..., Any], x: np.ndarray, axis: int, dtype: DType, numerics: Numerics
) -> np.ndarray:
    """Upper half onto lower half, elementwise, until one is left."""
    n = x.shape[axis]
    work = np.moveaxis(x, axis, 1)
    while n > 1:
        lower = (n + 1) // 2
        folded = np.array(work[:, :lower])
        with np.errstate(all="ignore"):  # infinities are results
            combine(folded[:, : n - lower], work[:, lower:n], out=folded[:, : n - lower])
        work, n = _rounded(folded, dtype, numerics), lower
    return np.ascontiguousarray(work[:, 0])


def decode(stored: np.ndarray, dtype: DType) -> np.ndarray:
    """Elements as they lie in memory, in the host dtype."""
    if dtype.is_coded and dtype.is_floating():
        return rounding.decode(stored, dtype.format)
    if dtype.name not in _HALVES:
        return stored.astype(dtype.host_dtype, copy=False)
    bits = np.require(stored, None, ["C", "A"]).view(np.uint16)  # which leaves a scalar its shape ()
    out = np.empty(bits.shape, np.float32)
    _rounding.decode(bits.reshape(-1), out.reshape(-1), dtype.name == "bf16")
    return out


def encode(x: np.ndarray, dtype: DType) -> np.ndarray:
    """Elements in the host dtype as they lie in memory."""
    if dtype.is_coded and dtype.is_floating():
        return rounding.encode(x, dtype.format)
    if dtype.name not in _HALVES:
        return x.astype(dtype.storage, copy=False)
    flat = np.ascontiguousarray(x, np.float32)
    bits = np.empty(flat.shape, np.uint16)
    _rounding.encode(flat.reshape(-1), bits.reshape(-1), dtype.name == "bf16")
    return bits.view(dtype.storage)

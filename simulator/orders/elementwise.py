"""Expressions of operations on each element: which canonical form an operation of the tile program has."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir.operations import operation, result_type
from ..ir.program import Op, Value
from ..ir.types import AnyType
from ..precision import dtypes as ty
from ..precision.dtypes import DType
from ..units import vector
from ..units.vector import Numerics
from .arithmetic import BLIND, CAST, SELECT, SETTLE, Arithmetic
from .expressions import EXACT_INTEGERS, FINITE, NO_MINUS_ZERO, NOT_NEGATIVE, ExpressionKind, VectorRounding

Make = Callable[..., int]
_UNIT: dict[str, Callable[..., np.ndarray]] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
WHOLE_SETS = ("max", "min", "and", "or", "xor")


def rounding(dtype: DType, numerics: Numerics) -> VectorRounding:
    """How the Vector unit rounds results of a type."""
    saturates = numerics.overflow == "saturate"
    return VectorRounding(dtype.name, saturates, numerics.flushes(dtype), numerics.flushes_operands(dtype))


def fold(r: VectorRounding, name: str, values: tuple[float, ...]) -> float:
    """What the Vector unit makes of constants; see `Arithmetic`."""
    return _fold(r, name, tuple(x.hex() for x in map(float, values)))


@functools.lru_cache(maxsize=1 << 14)
def _fold(r: VectorRounding, name: str, texts: tuple[str, ...]) -> float:
    """Of texts, in which zeros of either sign are two."""
    values = [float.fromhex(x) for x in texts]
    dtype = ty.from_name(r.dtype)
    assert isinstance(dtype, DType)
    flush = {(True, True): "flush", (True, False): "flush_results", (False, True): "flush_operands"}
    subnormals = flush.get((r.flushes, r.reads_zeros), "keep")
    rules = Numerics(
        overflow="saturate" if r.saturates else "inf_nan",
        fp32_subnormals=subnormals,
        fp16_subnormals=subnormals,
    )
    with np.errstate(all="ignore"):
        given = [vector.flushed(np.array([x], dtype.host_dtype), dtype, rules) for x in values]
        if name == "fma":
            a, b, c = given
            return float(vector.fma(a, b, c, dtype, rules)[0])
        compute = _UNIT.get(name, lambda x: x)
        source = np.array(values, np.float64) if name == SETTLE else None
        if source is not None and dtype.bits == 16:
            return float(vector.cast(source, ty.float64, dtype, rules)[0])
        return float(vector.rounded(compute)(dtype, rules, *given)[0])


class Elementwise:
    """Makers of expressions, by operation, under the numerics of a run."""

    def __init__(self, arithmetic: Arithmetic, numerics: Numerics) -> None:
        self.arithmetic = arithmetic
        self.of = arithmetic.of
        self.numerics = numerics

    def maker(self, op: Op) -> Make:
        """A function of the numbers of the operands, without those that are not there."""
        chosen: Callable[[Op], Make | None] | None = getattr(self, f"_{op.kind}", None)
        made = chosen(op) if chosen is not None else None
        return self._any(op) if made is None else made

    def rounding(self, op: Op) -> VectorRounding:
        """Of the result of an operation on floating-point numbers."""
        return rounding(result_type(op), self.numerics)

    def _any(self, op: Op) -> Make:
        """An operation of which nothing is known but what it depends on."""
        made = self._made(op)
        return lambda *operands: self.of.number(made, operands)

    def _made(self, op: Op) -> ExpressionKind:
        types = tuple(str(v.dtype) for v in (*op.args, *op.results) if v is not None)
        n = self.numerics
        floats = any(_is_float(v.dtype) for v in (*op.args, *op.results) if v is not None)
        rules: tuple[Any, ...] = ()
        if floats:
            rules = n.overflow, n.fp32_subnormals, n.bf16_subnormals, n.fp16_subnormals
            rules += n.cast_round, n.directed_overflow, n.to_integer, n.fused
        rules += (n.coarse,) if operation(op).coarse else ()
        attrs = tuple(sorted((k, repr(x)) for k, x in op.attrs.items() if k not in ("core", "of")))
        return ExpressionKind(op.name or op.kind, (types, rules, attrs))

    def whole(self, op: Op, r: Value) -> ExpressionKind:
        """What makes a result of which all elements depend on all operands."""
        name, detail = self._made(op)
        return ExpressionKind(name, (*detail, op.results.index(r)))

    def _unary(self, op: Op) -> Make | None:
        if op.name not in BLIND or not _is_float(op.operand(0).dtype):
            return None
        made = self._made(op)
        return lambda x: self.arithmetic.blind(made, x)

    def _binary(self, op: Op) -> Make | None:
        t = result_type(op)
        if t.is_floating():
            return self._float_binary(op)
        bits, signed = t.bits, t.is_int_signed()
        if any(v is not None and v.dtype != t for v in op.args):
            return None
        if op.name in WHOLE_SETS:
            return lambda a, b: self.arithmetic.whole.combined(op.name, bits, signed, (a, b))
        if t.is_bool():
            return None
        if op.name == "add":
            return lambda a, b: self.arithmetic.whole.sum(bits, signed, (a, b))
        return functools.partial(self.arithmetic.whole.product, bits, signed) if op.name == "mul" else None

    def _float_binary(self, op: Op) -> Make | None:
        r = self.rounding(op)
        if op.name in _UNIT:
            plain: Make = getattr(self.arithmetic, op.name)
            return functools.partial(plain, r)
        if op.name in ("max", "min"):
            return lambda a, b: self.arithmetic.extreme(op.name, r, (a, b))
        return None

    def _fma(self, op: Op) -> Make | None:
        if not result_type(op).is_floating() or not self.numerics.fused:
            return None
        return functools.partial(self.arithmetic.fma, self.rounding(op))

    def _compare(self, op: Op) -> Make | None:
        """It does not see the sign of a zero."""
        made = self._made(op)
        unsigned = self.arithmetic.unsigned
        return lambda a, b: self.of.number(made, (unsigned(a), unsigned(b)), FINITE | NO_MINUS_ZERO)

    def _select(self, op: Op) -> Make:
        return self.select

    def select(self, condition: int, a: int, b: int) -> int:
        """a where the condition holds, else b."""
        if a == b:
            return a
        if self.of.is_constant(condition):
            return a if self.of.value(condition) else b
        return self.of.number(
            ExpressionKind(SELECT), (condition, a, b), self.of.traits[a] & self.of.traits[b]
        )

    def _cast(self, op: Op) -> Make | None:
        source, target = op.operand(0).dtype, result_type(op)
        assert isinstance(source, DType)
        if not target.is_floating():
            return self._whole_cast(op, source, target)
        if not source.is_floating():
            return self._from_whole(op, source, target)
        if source.bits < target.bits and (not source.is_foreign or target.bits >= 32):
            return lambda x: x
        asked = op.attrs.get("rounding") or op.attrs.get("overflow")
        if asked or source.is_foreign or target.is_foreign or self.numerics.cast_round != "RINT":
            return None
        return self.to_narrower(source, target)

    def to_narrower(self, source: DType, target: DType) -> Make:
        """A cast to nearest."""
        r = rounding(target, self.numerics)
        return functools.partial(self.arithmetic.cast, ExpressionKind(CAST, (source.name, *r)), r)

    def _whole_cast(self, op: Op, source: DType, target: DType) -> Make | None:
        """Floats to integers do not see the sign of a zero; a wider integer is the same number."""
        if source.is_floating():
            made = self._made(op)
            return lambda x: self.of.number(made, (self.arithmetic.unsigned(x),), FINITE | NO_MINUS_ZERO)
        wider = source.bits < target.bits and (target.is_int_signed() or not source.is_int_signed())
        return (lambda x: x) if wider and not target.is_bool() else None

    def _from_whole(self, op: Op, source: DType, target: DType) -> Make | None:
        """Integers that are exact in the type are known by their size."""
        if target.is_foreign:
            return None
        made, bound = self._made(op), 1 << (source.bits - source.is_int_signed())
        exact = bound <= EXACT_INTEGERS.get(target.name, 0)
        traits = (FINITE * exact) | NO_MINUS_ZERO | NOT_NEGATIVE * (not source.is_int_signed())

        def make(x: int) -> int:
            found = self.of.number(made, (x,), traits)
            return self.arithmetic.integer(found, bound) if exact else found

        return make


def _is_float(t: AnyType) -> bool:
    return isinstance(t, DType) and t.is_floating()


def is_float(v: Value | None) -> bool:
    """Whether a value is made of floating-point numbers."""
    return v is not None and _is_float(v.dtype)

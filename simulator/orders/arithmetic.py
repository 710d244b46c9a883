"""Canonical forms of additions, products and extremes: where an order cannot show in the bits, it is not in the expression.

What is used, and nothing else:

* a + b = b + a and a * b = b * a, bit for bit;
* exact sums of small integers held as floats, and extremes without a zero of either sign: in any order (`integers.py` has
  the integers);
* x + 0, x - 0, x * 1 where x is a result of the same rounding already, and cannot be -0 if the zero is +0;
* a narrower format is a part of a wider one;
* what cannot exceed the largest finite value of its type does not saturate;
* the sign of a zero that goes into exp, abs, a comparison does not come out.

`unsigned` is the same expression where the sign of zero does not count at all: it says which differences are no more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .expressions import (
    EXACT_INTEGERS,
    FINITE,
    INTEGER,
    LARGEST,
    NO_MINUS_ZERO,
    NOT_NEGATIVE,
    SLACK,
    ZERO,
    ExpressionKind,
    ExpressionTable,
    VectorRounding,
)
from .integers import MUL, SET_OF, SUM, Integers

INFINITY = math.inf
ADD, SUB, MAX, MIN, SETTLE = "add", "sub", "max", "min", "settle"
SQUARE, FMA, CAST, SELECT, STEP, NEG, ABS, SORTED = (
    "square",
    "fma",
    "cast",
    "select",
    "step",
    "neg",
    "abs",
    "sorted",
)
_END = {"max": -INFINITY, "min": INFINITY}
# Functions whose value does not depend on the sign of a zero, and those that may only pass it on.
BLIND = frozenset(("exp", "exp2", "exp10", "cos", "cosh", ABS, "log", "log2", "log10"))
PASSING = frozenset(
    (NEG, "sqrt", "sin", "tanh", "erf", "floor", "ceil", "trunc", "rint", "round", "expm1", "log1p")
)


Fold = Callable[
    [VectorRounding, str, tuple[float, ...]], float
]  # an operation on constants, as the unit does it


class Arithmetic:
    """Makes expressions in their canonical form. fold: the unit, on constants."""

    def __init__(self, expressions: ExpressionTable, fold: Fold) -> None:
        self.of = expressions
        self.fold = fold
        self.whole = Integers(expressions)
        self.bounds: dict[int, int] = {}  # of expressions that are integers held as floats: the largest size
        self.limits: dict[int, float] = {}  # of expressions whose size is known not to exceed one
        self._unsigned: dict[int, int] = {}
        self._zeros = frozenset((ZERO, expressions.constant(-0.0)))
        self._steps: dict[tuple[ExpressionKind, int, tuple[int, ...]], int] = {}

    # -- what is known -----------------------------------------------------------------------------------------------

    def settled(self, x: int, r: VectorRounding, of_type: bool = True) -> bool:
        """Whether a rounding leaves an expression as it is. of_type: whether its value is one of the type, by its use."""
        if self.bounds.get(x, INFINITY) <= EXACT_INTEGERS.get(r.dtype, 0):
            return True
        if self.of.is_constant(x):
            return self.of.has(x, FINITE) and self._folded(r, SETTLE, x) == x
        known = self.of.settled[x]
        if of_type and r.plain:
            return True
        if known is None or (r.saturates and not (known.saturates or self.of.has(x, FINITE))):
            return False
        if (known.dtype, r.dtype) == ("fp16", "fp32"):
            return True
        return known.dtype == r.dtype and (known.flushes or not r.no_subnormals)

    def _folded(self, r: VectorRounding, name: str, *operands: int) -> int | None:
        """The constant that constants give."""
        if not all(self.of.is_constant(x) for x in operands):
            return None
        values = tuple(float(self.of.value(x)) for x in operands)
        return self.of.constant(self.fold(r, name, values))

    def limit(self, x: int) -> float:
        """The size that an expression does not exceed; infinite where none is known, or where it may be NaN."""
        if self.of.is_constant(x):
            value = abs(self.of.value(x))
            return INFINITY if math.isnan(value) else float(value)
        known = self.of.settled[x]
        usual = (
            LARGEST.get(known.dtype, INFINITY) if known is not None and self.of.has(x, FINITE) else INFINITY
        )
        return min(self.limits.get(x, usual), self.bounds.get(x, usual))

    def _within(self, r: VectorRounding, limit: float) -> VectorRounding | None:
        """The rounding of what does not exceed a limit, if the limit is finite in the type: it does not saturate."""
        if not limit * SLACK.get(r.dtype, INFINITY) < LARGEST.get(r.dtype, 0):
            return None
        return r._replace(saturates=False)

    def _limited(self, x: int, r: VectorRounding, limit: float) -> int:
        """Remember a limit."""
        self.limits[x] = min(limit * SLACK[r.dtype], self.limits.get(x, INFINITY))
        return x

    def _node(
        self,
        name: str,
        r: VectorRounding,
        operands: tuple[int, ...],
        traits: int = 0,
        limit: float = INFINITY,
    ) -> int:
        """limit: the size that the exact value does not exceed."""
        within = self._within(r, limit)
        if within is not None:
            return self._limited(self._new(name, within, operands, traits | FINITE), r, limit)
        return self._new(name, r, operands, traits)

    def _new(self, name: str, r: VectorRounding, operands: tuple[int, ...], traits: int) -> int:
        found = self.of.number(ExpressionKind(name, tuple(r)), operands, traits, r._replace(signed=True))
        if not r.signed:
            self._unsigned[found] = found
        return found

    # -- floating-point numbers --------------------------------------------------------------------------------------

    def settle(self, r: VectorRounding, x: int) -> int:
        """x as the unit holds it."""
        if self.settled(x, r):
            return x
        known = self._folded(r, SETTLE, x)
        if known is not None:
            return known
        return self._node(SETTLE, r, (x,), self._rounded_traits(x), self.limit(x))

    def _rounded_traits(self, x: int) -> int:
        """What rounding leaves of what is known: a small negative number may become -0."""
        return self.of.traits[x] & (NOT_NEGATIVE | NO_MINUS_ZERO) if self.of.has(x, NOT_NEGATIVE) else 0

    def add(self, r: VectorRounding, a: int, b: int) -> int:
        """a + b, rounded."""
        a, b = sorted(self._bare(r, x) for x in (a, b))
        exact = self._exact(r, a, b)
        if exact is not None:
            return exact
        known = self._folded(r, ADD, a, b)
        if known is not None:
            return known
        for zero, x in ((a, b), (b, a)):
            if self._adds_nothing(r, zero, x):
                return self.settle(r, x)
        limit = self.limit(a) + self.limit(b)
        return self._node(ADD, r, (a, b), self._traits_of_sum(r, a, b), limit)

    def _bare(self, r: VectorRounding, x: int) -> int:
        """An operand that is brought to the type anyway, as it was before."""
        made = self.of.made[x]
        if made.name != SETTLE or (r.flushes and not r.reads_zeros):
            return x
        if r._replace(saturates=False) != VectorRounding(*made.detail)._replace(saturates=False):
            return x
        inner = self.of.operands[x][0]
        return inner if not r.saturates or self.of.has(inner, FINITE) else x

    def _adds_nothing(self, r: VectorRounding, zero: int, x: int) -> bool:
        if not self.of.is_constant(zero) or self.of.value(zero) != 0:
            return False
        return zero != ZERO or not r.signed or self._never_minus_zero(x, r)

    def _never_minus_zero(self, x: int, r: VectorRounding) -> bool:
        """Nor a small negative number that is read as one, or becomes one."""
        if not self.of.has(x, NO_MINUS_ZERO):
            return False
        return not r.no_subnormals or self.of.has(x, NOT_NEGATIVE) or self.settled(x, r)

    def _traits_of_sum(self, r: VectorRounding, a: int, b: int) -> int:
        """A sum is -0 if both terms are, or are read as such, or if it is flushed."""
        both = self.of.traits[a] & self.of.traits[b]
        some = self.of.traits[a] | self.of.traits[b]
        if both & NOT_NEGATIVE:
            return NOT_NEGATIVE | NO_MINUS_ZERO
        if ZERO in (a, b):
            return NO_MINUS_ZERO * (r.reads_zeros or not r.flushes)
        return NO_MINUS_ZERO * (bool(some & NO_MINUS_ZERO) and not r.no_subnormals)

    def sub(self, r: VectorRounding, a: int, b: int) -> int:
        """a - b, rounded."""
        known = self._folded(r, SUB, a, b)
        if known is not None:
            return known
        if b == ZERO and self.settled(a, r):
            return a
        if self.of.is_constant(a) and math.isinf(self.of.value(a)) and self.of.has(b, FINITE):
            return self.sub(r, a, ZERO)
        return self._node(SUB, r, (a, b), 0, self.limit(a) + self.limit(b))

    def mul(self, r: VectorRounding, a: int, b: int) -> int:
        """a * b, rounded."""
        a, b = sorted((a, b))
        exact = self._exact_square(r, a, b)
        known = self._folded(r, MUL, a, b) if exact is None else exact
        if known is not None:
            return known
        for one, x in ((a, b), (b, a)):
            if self.of.is_constant(one) and self.of.value(one) == 1 and self.settled(x, r):
                return x
        if a == ZERO and self.of.has(b, FINITE) and (self.of.has(b, NOT_NEGATIVE) or not r.signed):
            return ZERO
        positive = a == b or self.of.traits[a] & self.of.traits[b] & NOT_NEGATIVE
        traits = (NOT_NEGATIVE | NO_MINUS_ZERO) * bool(positive)
        return self._node(MUL, r, (a, b), traits, self._product_limit(a, b))

    def _product_limit(self, a: int, b: int) -> float:
        """0 times what may be infinite is NaN."""
        both = self.limit(a), self.limit(b)
        return INFINITY if INFINITY in both else both[0] * both[1]

    def fma(self, r: VectorRounding, a: int, b: int, c: int) -> int:
        """a * b + c with one rounding."""
        a, b = sorted((a, b))
        known = self._folded(r, FMA, a, b, c)
        if known is not None:
            return known
        return self._node(FMA, r, (a, b, c), 0, self._product_limit(a, b) + self.limit(c))

    def extreme(
        self, name: str, r: VectorRounding, terms: tuple[int, ...], place: tuple[Any, ...] = ()
    ) -> int:
        """The largest or smallest; NaN is skipped. place: what decides between zeros of either sign, if not the order."""
        finite = all(self.of.has(x, FINITE) for x in terms if not self.of.is_constant(x))
        free = not r.signed or all(self._never_minus_zero(x, r) for x in terms)
        if free and (finite or not r.saturates):
            return self._largest(name, r._replace(saturates=False), terms, finite)
        traits = self._traits_of_extreme(name, terms)
        if not place:
            return self._node(name, r, terms, traits)
        return self.of.number(ExpressionKind(name, (*r, *place)), terms, traits)

    def _largest(self, name: str, r: VectorRounding, terms: tuple[int, ...], finite: bool) -> int:
        r = self._rounding_of_terms(name, r, terms)
        kept = {t for x in terms for t in self._terms_of(name, r, x)}
        fixed = [self.of.value(x) for x in kept if self.of.is_constant(x)]
        fixed = [x for x in fixed if not math.isnan(x)]
        others = {x for x in kept if not self.of.is_constant(x)}
        best = SET_OF[name](fixed, default=None)
        if best is not None and not (best == _END[name] and others and finite):
            others.add(self.settle(r, self.of.constant(best)))
        if not others:
            return self.of.constant(math.nan)
        only = next(iter(others))
        if len(others) == 1 and self.settled(only, r):
            return only
        return self._node(name, r, tuple(sorted(others)), self._traits_of_extreme(name, tuple(others)))

    def _traits_of_extreme(self, name: str, terms: tuple[int, ...]) -> int:
        """It is one of the terms, and no infinite constant that one of them exceeds."""
        ends = {x for x in terms if self.of.is_constant(x) and self.of.value(x) == _END[name]}
        real = [self.of.traits[x] for x in terms if x not in ends]
        every = [self.of.traits[x] for x in terms]
        traits = FINITE * (bool(real) and all(t & FINITE for t in real))
        for trait in (NOT_NEGATIVE, NO_MINUS_ZERO):
            traits |= trait * all(t & trait for t in every)
        return traits

    def _rounding_of_terms(self, name: str, r: VectorRounding, terms: tuple[int, ...]) -> VectorRounding:
        """That of an extreme among the terms which leaves all of them as they are, and so the result: memory does not
        flush what the Vector unit flushed.
        """
        for x in terms:
            made = self.of.made[x]
            if made.name == name and len(made.detail) == len(VectorRounding._fields):
                other = VectorRounding(*made.detail)
                alike = (other.dtype, other.signed) == (r.dtype, r.signed)
                if alike and all(self.settled(t, other) for t in terms):
                    return other
        return r

    def _terms_of(self, name: str, r: VectorRounding, x: int) -> tuple[int, ...]:
        """What an operand is an extreme of, by the same rules."""
        same = self.of.made[x].name == name and self.of.made[x].detail == tuple(r)
        return self.of.operands[x] if same else (x,)

    def cast(self, made: ExpressionKind, r: VectorRounding, x: int) -> int:
        """To another floating-point type, to nearest. made: all that matters."""
        if self.settled(x, r, of_type=False):
            return x
        known = self._folded(r, SETTLE, x)
        if known is not None:
            return known
        limit, traits = self.limit(x), self._rounded_traits(x)
        within = self._within(r, limit)
        if within is None:
            return self.of.number(made, (x,), traits, r._replace(signed=True))
        made = made._replace(detail=(made.detail[0], *within))
        return self._limited(
            self.of.number(made, (x,), traits | FINITE, within._replace(signed=True)), r, limit
        )

    # -- integers held as floats -------------------------------------------------------------------------------------

    def _bound(self, x: int) -> int | None:
        if self.of.is_constant(x):
            value = self.of.value(x)
            return abs(value) if isinstance(value, int) else None
        return self.bounds.get(x)

    def integer(self, x: int, bound: int) -> int:
        """Remember that an expression is an integer of that size at most; it cannot be -0."""
        self.bounds[x] = min(bound, self.bounds.get(x, bound))
        return x

    def _exact(self, r: VectorRounding, a: int, b: int) -> int | None:
        """A sum of integers that the type holds exactly, in no order."""
        bounds = self._bound(a), self._bound(b)
        if None in bounds or sum(bounds) > EXACT_INTEGERS.get(r.dtype, 0):  # type: ignore[arg-type]
            return None
        if self.of.is_constant(a) and self.of.is_constant(b):
            return None
        terms = (*self.whole.terms_of(SUM, (), a), *self.whole.terms_of(SUM, (), b))
        return self.integer(self.whole.added(ExpressionKind(SUM), terms, lambda x: x), sum(bounds))  # type: ignore[arg-type]

    def _exact_square(self, r: VectorRounding, a: int, b: int) -> int | None:
        """The square of an integer that the type holds exactly; other products may be -0."""
        bound = self.bounds.get(a)
        if a != b or bound is None or bound * bound > EXACT_INTEGERS.get(r.dtype, 0):
            return None
        return self.integer(
            self.of.number(ExpressionKind(SQUARE), (a,), INTEGER | NOT_NEGATIVE), bound * bound
        )

    # -- the sign of zero --------------------------------------------------------------------------------------------

    def blind(self, made: ExpressionKind, x: int) -> int:
        """A function that does not see the sign of a zero."""
        positive = made.name in ("exp", "exp2", "exp10", ABS)
        return self.of.number(made, (self.unsigned(x),), (NOT_NEGATIVE | NO_MINUS_ZERO) * positive)

    def unsigned(self, top: int) -> int:
        """The expression without the sign of zeros: equal ones have equal values but for that."""
        todo = [top]
        while todo:
            x = todo[-1]
            if x in self._unsigned:
                todo.pop()
                continue
            again = self._passes_on(x)
            if again is None:
                self._unsigned[x] = ZERO if self._is_zero(x) else x
                continue
            waits = [y for y in again if y not in self._unsigned]
            if waits:
                todo += waits
                continue
            found = self._again(x)
            self._unsigned[x] = found
            self._unsigned.setdefault(found, found)
        return self._unsigned[top]

    def _is_zero(self, x: int) -> bool:
        return self.of.is_constant(x) and self.of.value(x) == 0

    def _passes_on(self, x: int) -> tuple[int, ...] | None:
        """The operands whose sign of zero an expression may pass on; None where it passes none."""
        made, operands = self.of.made[x], self.of.operands[x]
        if made.name in (ADD, SUB, MUL, FMA, MAX, MIN, SETTLE) and len(made.detail) >= len(
            VectorRounding._fields
        ):
            return operands
        if made.name in (STEP, CAST) or made.name in PASSING:
            return operands
        if made.name == "div":
            return operands[:1]
        if made.name == SORTED:
            return operands
        return operands[1:] if made.name == SELECT else None

    def _again(self, x: int) -> int:
        """The same expression of operands without signs of zeros."""
        made, operands = self.of.made[x], self.of.operands[x]
        passed = self._passes_on(x) or ()
        given = tuple(self._unsigned[y] if y in passed else y for y in operands)
        if made.name in (ADD, SUB, MUL, FMA, MAX, MIN, SETTLE):
            r = VectorRounding(*made.detail[: len(VectorRounding._fields)])._replace(signed=False)
            if made.name in (MAX, MIN):
                return self.extreme(made.name, r, given)
            plain: Callable[..., int] = getattr(self, made.name)
            return plain(r, *given)
        if made.name == SORTED:
            return self.of.number(made, tuple(sorted(given)))
        if made.name == STEP:
            return self.step(made._replace(detail=(*made.detail[:-1], False)), given[0], given[1:])
        return self.of.number(made, given, self.of.traits[x], self.of.settled[x])

    # -- steps of the Cube -------------------------------------------------------------------------------------------

    def step(self, made: ExpressionKind, acc: int, factors: tuple[int, ...]) -> int:
        """One rounding of the Cube: the accumulator and exact products (pairs of factors), added in that order.

        made.detail ends with whether both operands have one format, whether products are added exactly, and whether the sign
        of a zero counts; it begins with the rounding of the accumulator. A product with a constant zero and a finite factor
        adds nothing, unless it is all that keeps a sum of zeros from being -0.
        """
        key = made, acc, factors
        found = self._steps.get(key)
        if found is None:
            found = self._steps[key] = self._step(made, acc, factors)
        return found

    def _step(self, made: ExpressionKind, acc: int, factors: tuple[int, ...]) -> int:
        same, exact, signed = made.detail[-3:]
        limit = self.limit(acc) + sum(map(self._product_limit, factors[::2], factors[1::2]))
        within = self._within(made.detail[0], limit) if exact else None
        if within is not None:
            made = made._replace(detail=(within, *made.detail[1:]))
        kept: list[int] = []
        for a, b in zip(factors[::2], factors[1::2], strict=True):
            if not exact or self._zeros.isdisjoint((a, b)) or not self._no_product(a, b):
                kept += (b, a) if same and b < a else (a, b)
        dropped = len(kept) < len(factors)
        harmless = not signed or acc == ZERO or self._never_minus_zero(acc, made.detail[0])
        if not kept and harmless and (acc == ZERO or self.of.made[acc] == made):
            return acc
        if dropped and not harmless:
            kept += [ZERO, ZERO]
        if within is None:
            return self.of.number(made, (acc, *kept), 0, made.detail[0])
        return self._limited(self.of.number(made, (acc, *kept), FINITE, made.detail[0]), within, limit)

    def _no_product(self, a: int, b: int) -> bool:
        return any(zero in self._zeros and self.of.has(x, FINITE) for zero, x in ((a, b), (b, a)))

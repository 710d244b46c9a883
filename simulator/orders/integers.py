"""Canonical forms of integers and truth values, which combine in any order: they wrap, and nothing is rounded."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .expressions import INTEGER, ZERO, ExpressionKind, ExpressionTable

MOST_TERMS = 1 << 14  # of a sum that is kept as a set of terms; longer ones keep their order
SUM, MUL = "sum", "mul"
SET_OF: dict[str, Callable[..., Any]] = {"max": max, "min": min}
BITWISE: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


class Integers:
    """Makes expressions of integers."""

    def __init__(self, expressions: ExpressionTable) -> None:
        self.of = expressions

    def sum(self, bits: int, signed: bool, terms: tuple[int, ...]) -> int:
        """Sum of integers that wraps: in no order."""
        detail = (bits, signed)
        every = tuple(t for x in terms for t in self.terms_of(SUM, detail, x))
        return self.added(ExpressionKind(SUM, detail), every, lambda x: _wrapped(x, bits, signed))

    def terms_of(self, name: str, detail: tuple[Any, ...], x: int) -> tuple[int, ...]:
        same = self.of.made[x] == ExpressionKind(name, detail)
        return self.of.operands[x] if same else (x,)

    def added(self, made: ExpressionKind, terms: tuple[int, ...], wrapped: Callable[[int], int]) -> int:
        if len(terms) > MOST_TERMS:
            return self.of.number(ExpressionKind(made.name, (*made.detail, "long")), terms)
        fixed = wrapped(sum(self.of.value(x) for x in terms if self.of.is_constant(x)))
        kept = sorted(x for x in terms if not self.of.is_constant(x))
        if fixed:
            kept.append(self.of.constant(fixed))
        if len(kept) < 2:
            return kept[0] if kept else ZERO
        return self.of.number(made, tuple(kept), INTEGER)

    def product(self, bits: int, signed: bool, a: int, b: int) -> int:
        """Product of integers that wraps."""
        if self.of.is_constant(a) and self.of.is_constant(b):
            return self.of.constant(_wrapped(self.of.value(a) * self.of.value(b), bits, signed))
        if ZERO in (a, b):
            return ZERO
        one = self.of.constant(1)
        if one in (a, b):
            return a if b == one else b
        return self.of.number(ExpressionKind(MUL, (bits, signed)), (min(a, b), max(a, b)), INTEGER)

    def combined(self, name: str, bits: int, signed: bool, terms: tuple[int, ...]) -> int:
        """max, min, and, or (each term once), xor of integers or truth values: in no order."""
        made = ExpressionKind(name, (bits, signed))
        every = [t for x in terms for t in (self.of.operands[x] if self.of.made[x] == made else (x,))]
        fixed = [self.of.value(x) for x in every if self.of.is_constant(x)]
        combine = SET_OF.get(name) or BITWISE[name]
        kept = sorted({x for x in every if not self.of.is_constant(x)})
        if name == "xor":
            kept = [x for x in kept if every.count(x) % 2]
        if fixed and not (kept and functools.reduce(combine, fixed) == _neutral(name, bits, signed)):
            kept.append(self.of.constant(functools.reduce(combine, fixed)))
        if len(kept) < 2:
            return kept[0] if kept else ZERO
        return self.of.number(made, tuple(kept), INTEGER)


def _neutral(name: str, bits: int, signed: bool) -> int:
    """The integer of a type that changes no other one."""
    least = -(1 << (bits - 1)) if signed else 0
    most = least + (1 << bits) - 1
    return {"max": least, "min": most, "and": -1 if signed else most}.get(name, 0)


def _wrapped(x: int, bits: int, signed: bool) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if signed and x >> (bits - 1) else x

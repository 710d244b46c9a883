"""Expressions in words: what is added to what, in which order, short where it is long.

A sum of terms goes from left to right; brackets are steps of the Cube, in each of which all is added with one rounding.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from .arithmetic import ABS, ADD, CAST, MAX, MIN, NEG, SELECT, SETTLE, SQUARE, STEP, SUB
from .expressions import CONSTANT, INPUT, PART, ExpressionTable
from .integers import MUL, SUM

Item = TypeVar("Item")
MOST_TERMS, ALL_TERMS = 6, 16  # of one sum that are written out
LEAST_LETTERS, FEW = 20, 3
MOST_LETTERS = 120  # of an expression; the deeper a part is nested, the fewer it has
SUMS = (ADD, SUB, SUM, SETTLE, CAST, SQUARE, NEG, ABS)
INFIX = {SUB: " - ", MUL: " * ", "div": " / "}


class Words:
    """Of the expressions of several runs.

    kept: the elements of inputs (by number) that are not 0; None for all. most: terms of one sum that are written out.
    """

    def __init__(
        self, expressions: ExpressionTable, kept: frozenset[int] | None = None, most: int = MOST_TERMS
    ) -> None:
        self.of = expressions
        self.most = most
        self.kept = kept
        self._depths: dict[int, int] = {}
        self._zeros: dict[int, bool] = {}

    def is_zero(self, top: int) -> bool:
        """Whether an expression is 0 because the elements that are not kept are."""
        if top not in self._zeros:
            for x in sorted(_reached(self.of, [top])):  # operands come before what they make
                self._zeros[x] = self._is_zero(x)
        return self._zeros[top]

    def _is_zero(self, x: int) -> bool:
        made, operands = self.of.made[x], self.of.operands[x]
        if made.name == CONSTANT:
            return bool(made.detail[0] == 0)
        if made.name == INPUT:
            return self.kept is not None and x not in self.kept
        zeros = [self._zeros[y] for y in operands]
        if made.name == MUL:
            return any(zeros)
        if made.name == STEP:
            return zeros[0] and all(a or b for a, b in zip(zeros[1::2], zeros[2::2], strict=True))
        return made.name in SUMS and all(zeros)

    def text(self, x: int, room: int = MOST_LETTERS) -> str:
        """An expression in words, in about so many letters."""
        x = self.without_zeros(x)
        made, operands = self.of.made[x], self.of.operands[x]
        if made.name == CONSTANT:
            return f"{made.detail[0]:g}"
        if made.name == INPUT:
            return f"{made.detail[0]}[{','.join(map(str, made.detail[1]))}]"
        if room < LEAST_LETTERS and (short := self._short(x)):
            return short
        if made.name == ADD or (made.name == SUM and operands):
            return self._sum(x, room)
        if made.name == STEP:
            return self._steps(x, room)
        return self._function(x, room)

    def without_zeros(self, x: int) -> int:
        """A sum of which one side is 0 is the other side."""
        while self.of.made[x].name == ADD:
            sides = [y for y in self.of.operands[x] if not self.is_zero(y)]
            if len(sides) != 1:
                break
            x = sides[0]
        return x

    def _short(self, x: int) -> str:
        """What it is made of, where there is no room for how; "" where that is not much."""
        every = [y for y in inputs_of(self.of, [x]) if not self.is_zero(y)]
        if len(every) <= FEW:
            return ""
        return f"({len(every)}: {self.text(every[0])} ... {self.text(every[-1])})"

    def _function(self, x: int, room: int) -> str:
        made, operands = self.of.made[x], self.of.operands[x]
        if made.name == SETTLE:
            return self.text(operands[0], room)
        if made.name == SQUARE:
            operands = operands * 2
        if made.name in INFIX or made.name == SQUARE:
            return INFIX.get(made.name, " * ").join(self._term(y, room) for y in operands)
        if made.name == PART:
            return f"{self.text(operands[0], room)}[{made.detail[0]}]"
        name = made.name
        if name == CAST:
            name = str(made.detail[1])
        elif name == SELECT:
            name = "where"
        return f"{name}({self._listed(operands, room)})"

    def _listed(self, operands: tuple[int, ...], room: int) -> str:
        return ", ".join(_shortened([self.text(y, room // 3) for y in operands[: self.most]], len(operands)))

    def _term(self, x: int, room: int) -> str:
        """In parentheses where it is a sum or the like."""
        x = self.without_zeros(x)
        text = self.text(x, room // 3)
        plain = self.of.made[x].name not in (ADD, SUM, *INFIX, SQUARE)
        return text if plain or text.startswith("(") else f"({text})"

    def _sum(self, x: int, room: int) -> str:
        terms = self.chain(x)
        if all(self.is_zero(y) for y in terms):
            return "0"
        written = [self._factor(y, room) for y in _ends(terms, self.most)]
        return " + ".join(_gap(written, len(terms), self.most))

    def _factor(self, x: int, room: int) -> str:
        """A term of a sum: products need no parentheses."""
        name = self.of.made[self.without_zeros(x)].name
        return self.text(x, room // 3) if name in (MUL, SQUARE) else self._term(x, room)

    def chain(self, x: int) -> list[int]:
        """The terms of a sum that are added from left to right: the longer side of each addition comes first."""
        made, out = self.of.made[x], []
        if made.name == SUM:
            return [y for y in self.of.operands[x] if not self.is_zero(y)] or [x]
        while self.of.made[x] == made and not self.is_zero(x):
            a, b = map(self.without_zeros, self.of.operands[x])
            first, other = (a, b) if self.depth(a) >= self.depth(b) else (b, a)
            out.append(other)
            x = first
        return [x, *reversed(out)]

    def depth(self, x: int) -> int:
        """Of nested operations."""
        todo = [x]
        while todo:
            y = todo[-1]
            waits = [z for z in self.of.operands[y] if z not in self._depths]
            if waits:
                todo += waits
                continue
            self._depths[y] = 1 + max((self._depths[z] for z in self.of.operands[y]), default=0)
            todo.pop()
        return self._depths[x]

    def _steps(self, x: int, room: int) -> str:
        steps = []
        while self.of.made[x].name == STEP:
            acc, *factors = self.of.operands[x]
            steps += [self._step(factors, room)] if self._has_products(factors) else []
            x = acc
        first = [] if self.is_zero(x) else [self._term(x, room)]
        every = [*first, *reversed(steps)]
        return " + ".join(_gap(_ends(every, self.most), len(every), self.most)) or "0"

    def _has_products(self, factors: list[int]) -> bool:
        return not all(
            self.is_zero(a) or self.is_zero(b) for a, b in zip(factors[::2], factors[1::2], strict=True)
        )

    def _step(self, factors: list[int], room: int) -> str:
        every = zip(factors[::2], factors[1::2], strict=True)
        pairs = [(a, b) for a, b in every if not (self.is_zero(a) or self.is_zero(b))]
        written = [f"{self._term(a, room)} * {self._term(b, room)}" for a, b in _ends(pairs, self.most)]
        return f"[{' + '.join(_gap(written, len(pairs), self.most))}]"


def inputs_of(expressions: ExpressionTable, numbers: Iterable[int]) -> list[int]:
    """The elements of inputs in expressions."""
    return sorted(x for x in _reached(expressions, numbers) if expressions.made[x].name == INPUT)


def _reached(expressions: ExpressionTable, numbers: Iterable[int]) -> set[int]:
    """Expressions and all that they are made of."""
    todo, seen = list(numbers), set()
    while todo:
        x = todo.pop()
        if x not in seen:
            seen.add(x)
            todo += expressions.operands[x]
    return seen


def parting(expressions: ExpressionTable, a: int, b: int) -> tuple[int, int]:
    """The innermost operations at which two expressions part: what is around them is the same in both."""
    while expressions.made[a] == expressions.made[b]:
        left, right = list(expressions.operands[a]), list(expressions.operands[b])
        if len(left) != len(right):
            break
        if expressions.made[a].name in (ADD, MUL, MAX, MIN):
            common = set(left) & set(right)
            left, right = ([x for x in side if x not in common] for side in (left, right))
        apart = [(x, y) for x, y in zip(left, right, strict=False) if x != y]
        if len(apart) != 1 or len(left) != len(right):
            break
        a, b = apart[0]
    return a, b


def _ends(items: list[Item], most: int) -> list[Item]:
    """The first and last of many."""
    return items if len(items) <= most else [*items[: most // 2], *items[-most // 2 + 1 :]]


def _gap(written: list[str], count: int, most: int) -> list[str]:
    """With a word for those that are left out between them."""
    left = count - len(written)
    return written if left <= 0 else [*written[: most // 2], f"({left} more)", *written[most // 2 :]]


def _shortened(written: list[str], count: int) -> list[str]:
    return written if count == len(written) else [*written, f"{count - len(written)} more"]

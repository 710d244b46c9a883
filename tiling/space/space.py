"""Spaces of tilings: named axes of values, and rules that say which points are legal.

    space = Space({"BLOCK": powers_of_two(256, 16384), "buffers": (1, 2)}, [Rule("fits", lambda BLOCK, **_: BLOCK <= 8192)])

Points are numbered in the order of the axes, the last one fastest, and are kept as columns of numpy arrays: a space of a
million points takes megabytes, and rules over whole columns take milliseconds.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...simulator.errors import UsageError

MOST_POINTS = 20_000_000
MOST_VALUES = 1_000_000  # of an axis
LARGEST_VALUE = 2**63 - 1
MOST_NUMBERS = 2**62  # points have numbers of 64 bits
Columns = dict[str, np.ndarray]
Point = dict[str, Any]


def powers_of_two(low: int, high: int) -> tuple[int, ...]:
    """1, 2, 4 ... within low..high, both included."""
    _ordered("powers_of_two", low, high)
    return tuple(1 << k for k in range(high.bit_length()) if low <= 1 << k <= high)


def integers(low: int, high: int, step: int = 1) -> tuple[int, ...]:
    """low, low + step ... up to high."""
    _ordered("integers", low, high, step)
    return tuple(range(low, high + 1, step))


def multiples(of: int, low: int, high: int) -> tuple[int, ...]:
    """Multiples of a number within low..high."""
    _ordered("multiples", low, high, of)
    return tuple(range(-(-low // of) * of, high + 1, of))


def divisors(n: int, low: int = 1, high: int | None = None) -> tuple[int, ...]:
    """Numbers that divide n, within low..high (n if left out)."""
    most = n if high is None else high
    _ordered("divisors", low, most)
    return tuple(d for d in range(low, min(n, most) + 1) if n % d == 0)


def choices(*values: Any) -> tuple[Any, ...]:
    """These values."""
    return values


def _ordered(what: str, low: int, high: int, step: int = 1) -> None:
    if not (1 <= low <= high and step >= 1):
        raise UsageError(f"{what}: takes 1 <= low <= high and a step from 1, got {low}, {high}, step {step}")
    count = (high - low) // step + 1
    if what != "powers_of_two" and count > MOST_VALUES:
        raise UsageError(
            f"{what}: {low} to {high} in steps of {step} are {count:,} values, an axis has at most {MOST_VALUES:,}; take "
            "larger steps, or powers of two"
        )


@dataclass(frozen=True)
class Rule:
    """A condition for a point to be legal.

    name: as it is counted and shown. allows: called with the values of a point that it asks for by name (all of them if it
    takes **others), or, with `columns`, with arrays of all points at once; gives whether a point is legal.
    """

    name: str
    allows: Callable[..., Any]
    columns: bool = False


def rule_of(constraint: Callable[..., Any] | Rule) -> Rule:
    """A user's constraint as a rule; its name is that of the function, or the source of a lambda's line."""
    if isinstance(constraint, Rule):
        return constraint
    name = getattr(constraint, "__name__", "constraint")
    if name == "<lambda>":
        try:
            source = " ".join(inspect.getsource(constraint).split())
            name = source[source.index("lambda") :].rstrip(" ,")[:60]
        except (OSError, TypeError, ValueError):
            name = "constraint"
    return Rule(name, constraint)


class Space:
    """All combinations of the axes' values. Raises `UsageError` for an axis without values."""

    def __init__(
        self, axes: Mapping[str, Sequence[Any]], rules: Sequence[Rule | Callable[..., Any]] = ()
    ) -> None:
        self.axes: dict[str, tuple[Any, ...]] = {
            n: tuple(dict.fromkeys(x.item() if isinstance(x, np.generic) else x for x in v))
            for n, v in axes.items()
        }
        self.rules = tuple(rule_of(r) for r in rules)
        for name, values in self.axes.items():
            if not values:
                raise UsageError(f"the axis {name!r} of the space has no value; give it at least one")
            large = [x for x in values if isinstance(x, int) and abs(x) > LARGEST_VALUE]
            if large:
                raise UsageError(
                    f"the axis {name!r} of the space has the value {str(large[0])[:40]}, the largest is {LARGEST_VALUE}"
                )
        self.size = math.prod(map(len, self.axes.values()))
        if self.size > MOST_NUMBERS:
            raise UsageError(
                f"the space has {self.size:.2g} points, more than {MOST_NUMBERS:.2g} have no number; give fewer "
                f"values to some of its {len(self.axes)} axes"
            )

    def digits(self, number: int) -> list[int]:
        """Which value of each axis the point of that number has."""
        out: list[int] = []
        for values in reversed(self.axes.values()):
            number, k = divmod(number, len(values))
            out.append(k)
        return out[::-1]

    def joined(self, digits: Sequence[int]) -> int:
        """The number of the point with those values; the inverse of `digits`."""
        out = 0
        for k, values in zip(digits, self.axes.values(), strict=True):
            out = out * len(values) + k
        return out

    def point(self, number: int) -> Point:
        """The point of that number."""
        return {n: v[k] for (n, v), k in zip(self.axes.items(), self.digits(number), strict=True)}

    def columns(self, numbers: np.ndarray) -> Columns:
        """The values of those points by axis: arrays of numbers, of objects where an axis holds anything else."""
        out: Columns = {}
        rest = np.asarray(numbers, np.int64)
        for name in reversed(self.axes):
            values = self.axes[name]
            rest, k = np.divmod(rest, len(values))
            out[name] = _array(values)[k]
        return {n: out[n] for n in self.axes}

    def legal(self) -> tuple[np.ndarray, dict[str, int]]:
        """(numbers of the legal points, rule -> how many points it refused that the rules before it had let pass)."""
        if self.size > MOST_POINTS:
            widest = max(self.axes, key=lambda n: len(self.axes[n]))
            raise UsageError(
                f"the space has {self.size:,} points, more than {MOST_POINTS:,} are not listed; narrow an axis ({widest!r} "
                f"has {len(self.axes[widest])} values), or sample: sampler='tpe'"
            )
        left = np.arange(self.size)
        refused: dict[str, int] = {}
        for rule in self.rules:
            keep = self._allowed(rule, left)
            if not keep.all():
                refused[rule.name] = refused.get(rule.name, 0) + int((~keep).sum())
            left = left[keep]
        if self.rules and not len(left):
            raise UsageError(
                f"the space is empty: {_why_empty(refused, self.size)}; widen an axis or drop a rule"
            )
        return left, refused

    def allowed(self, number: int) -> str | None:
        """The first rule that refuses a point, None if it is legal."""
        return self.refusals(np.array([number]))[0]

    def refusals(self, numbers: np.ndarray) -> list[str | None]:
        """For each of some points the first rule that refuses it, None if it is legal."""
        out: list[str | None] = [None] * len(numbers)
        left = np.arange(len(numbers))
        for rule in self.rules:
            keep = self._allowed(rule, numbers[left])
            for k in left[~keep]:
                out[k] = rule.name
            left = left[keep]
        return out

    def number(self, point: Mapping[str, Any]) -> int:
        """The number of a point; the inverse of `point`."""
        return self.joined([values.index(point[name]) for name, values in self.axes.items()])

    def number_of(self, point: Mapping[str, Any]) -> int | None:
        """The number of a point, None if it is not one of this space."""
        same = point.keys() == self.axes.keys() and all(point[n] in v for n, v in self.axes.items())
        return self.number(point) if same else None

    def _allowed(self, rule: Rule, numbers: np.ndarray) -> np.ndarray:
        if rule.columns:
            return np.broadcast_to(np.asarray(rule.allows(**self.columns(numbers)), bool), numbers.shape)
        names = _asked(rule)
        points = (self.point(int(k)) for k in numbers)
        kept = (p if names is None else {n: x for n, x in p.items() if n in names} for p in points)
        return np.fromiter((bool(_called(rule, p)) for p in kept), bool, len(numbers))


def _asked(rule: Rule) -> set[str] | None:
    """The axes that a rule asks for by name; None for all of them."""
    try:
        parameters = inspect.signature(rule.allows).parameters.values()
    except (TypeError, ValueError):
        return None
    return None if any(p.kind == p.VAR_KEYWORD for p in parameters) else {p.name for p in parameters}


def _called(rule: Rule, point: Point) -> Any:
    try:
        return rule.allows(**point)
    except Exception as e:  # of the user's own function
        what = "take" if isinstance(e, TypeError) else "judge"
        raise UsageError(
            f"the rule {rule.name!r} does not {what} the point {point}: {type(e).__name__}: {e}; a rule is a function of "
            "axes by name, lambda BLOCK: BLOCK <= 4096"
        ) from None


def _why_empty(refused: Mapping[str, int], size: int) -> str:
    counts = ", ".join(f"{name!r} refused {n:,}" for name, n in refused.items())
    told = f"of {size:,} points {counts}; {list(refused)[-1]!r} removed the last" if refused else ""
    return told or "it has no point"


def _array(values: tuple[Any, ...]) -> np.ndarray:
    if all(isinstance(x, int) and not isinstance(x, bool) for x in values):
        return np.array(values, np.int64)
    out = np.empty(len(values), object)
    out[:] = values
    return out

"""Values that are several values of the program under one name: tuples, block pointers, tensor descriptors.

Control flow carries them part by part. A leaf is a value of the program, a number, or any other compile-time object.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from ..program import Value
from .promotion import is_number
from .registry import Builtin, unwrap


class Aggregate(ABC):
    """Base of what a kernel can name that is made of several values. `methods` are builtins that it has in a kernel."""

    methods: dict[str, Builtin]

    @abstractmethod
    def parts(self) -> tuple[Any, ...]:
        """Everything in it that may differ between iterations of a loop or between branches."""

    @abstractmethod
    def rebuilt(self, parts: tuple[Any, ...]) -> Aggregate:
        """The same with other parts."""

    @abstractmethod
    def kind(self) -> str:
        """What must agree for one to take the place of another; also its name in messages."""

    def stable(self) -> int:
        """How many of the first parts a kernel seldom changes: a loop carries them only if it does."""
        return len(self.parts())


def children(x: Any) -> tuple[Any, ...] | None:
    """Parts of a tuple or an aggregate; None for a leaf."""
    if isinstance(x, Aggregate):
        return x.parts()
    return tuple(x) if isinstance(x, tuple | list) else None


def same_structure(a: Any, b: Any) -> bool:
    """Whether two are aggregates, or tuples, that match part by part."""
    if isinstance(a, Aggregate) or isinstance(b, Aggregate):
        return isinstance(a, Aggregate) and isinstance(b, Aggregate) and a.kind() == b.kind()
    mine, other = children(a), children(b)
    if mine is None or other is None:
        return mine is other
    return len(mine) == len(other) and all(map(same_structure, mine, other))


def rebuild(x: Any, parts: tuple[Any, ...]) -> Any:
    """`x` with other parts; tuples with names keep them."""
    if isinstance(x, Aggregate):
        return x.rebuilt(parts)
    return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)


def flatten(x: Any) -> list[Any]:
    """The leaves of `x`, left to right."""
    x = unwrap(x)
    inner = children(x)
    return [x] if inner is None else [leaf for part in inner for leaf in flatten(part)]


def unflatten(x: Any, leaves: Iterator[Any]) -> Any:
    """`x` with the next leaves in place of its own."""
    x = unwrap(x)
    inner = children(x)
    return next(leaves) if inner is None else rebuild(x, tuple(unflatten(part, leaves) for part in inner))


def stays(x: Any) -> list[bool]:
    """For each leaf, whether a loop may take it as fixed until it sees it change."""
    x = unwrap(x)
    inner = children(x)
    if inner is None:
        return [not isinstance(x, Value) and not is_number(x)]
    if isinstance(x, Aggregate):
        first = x.stable()
        return [k < first or fixed for k, part in enumerate(inner) for fixed in stays(part)]
    return [fixed for part in inner for fixed in stays(part)]

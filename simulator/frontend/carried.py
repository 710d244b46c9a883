"""What a loop carries from one iteration to the next."""

from __future__ import annotations

from typing import Any

from ..ir.building.aggregate import flatten, stays, unflatten
from ..ir.building.blocks import Block
from ..ir.building.promotion import is_number
from ..ir.program import Value


class LoopCarried:
    """Names that a loop carries. `fixed` are the parts, as (name, number of the leaf), taken to stay the same."""

    def __init__(self, trees: dict[str, Any]) -> None:
        self.trees = trees
        self.fixed = {(n, k) for n, x in trees.items() for k, f in enumerate(stays(x)) if f}
        self.changed: list[tuple[str, int]] = []
        self.initial: list[Value] = []
        self.tried: set[tuple[str, int]] = set()

    def owners(self) -> list[str]:
        """For each carried part the name it belongs to."""
        return [
            n for n, x in self.trees.items() for k, _ in enumerate(flatten(x)) if (n, k) not in self.fixed
        ]

    def moving(self) -> list[tuple[Any, bool]]:
        """The parts that are carried, as they are before the loop, and whether they are parts of a block: offsets that are
        numbers are int64 there, as those that are scalars.
        """
        return [
            (leaf, isinstance(x, Block))
            for n, x in self.trees.items()
            for k, leaf in enumerate(flatten(x))
            if (n, k) not in self.fixed
        ]

    def untried_numbers(self) -> list[tuple[str, int]]:
        """Numbers that are carried and were never taken as constants."""
        parts = [(n, k, leaf) for n, x in self.trees.items() for k, leaf in enumerate(flatten(x))]
        return [
            (n, k)
            for n, k, x in parts
            if is_number(x) and (n, k) not in self.fixed and (n, k) not in self.tried
        ]

    def names_with(self, values: list[Value]) -> dict[str, Any]:
        """The names with `values` as their carried parts."""
        position = iter(values)
        out = {}
        for n, x in self.trees.items():
            leaves = [leaf if (n, k) in self.fixed else next(position) for k, leaf in enumerate(flatten(x))]
            out[n] = unflatten(x, iter(leaves))
        return out

    def settle(self) -> None:
        """Carry what was found to change, fix what was found to stay; what was fixed by trial is then carried for good."""
        for part in self.changed:
            if part in self.fixed:
                self.fixed.discard(part)
            else:
                self.fixed.add(part)
            self.tried.add(part)
        self.changed = []

"""What becomes of elements that a buffer holds: which of them something may read, and which writes replace them first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...ir.passes.core_parts import carried_groups
from ...ir.program import Op, Program, Region, Value

Part = tuple[slice, ...] | None  # of a buffer; None where only the program knows


def part_of(op: Op) -> Part:
    """What a write to a buffer covers, or what a `subview` reads of it."""
    if op.attrs["offsets"] is None:
        return tuple(slice(0, n) for n in op.results[0].shape)
    if None in op.attrs["offsets"]:
        return None
    return tuple(slice(o, o + n) for o, n in zip(op.attrs["offsets"], op.attrs["sizes"], strict=True))


class Reached(NamedTuple):
    """read, overwritten: elements that something may read, and that a write may replace. over: these writes. goes_on:
    elements that the next iteration of a loop finds, by value.
    """

    read: np.ndarray
    overwritten: np.ndarray
    over: list[Op]
    goes_on: dict[int, np.ndarray]


class ContentsFlow:
    """Who uses what a buffer holds.

    goes: contents that become others where a loop or a branch begins or ends, by value: (value, loop), the loop if
    that is its next iteration. ends: results of loops.
    """

    def __init__(self, program: Program) -> None:
        self.uses: dict[int, list[tuple[Op, int]]] = {}
        self.goes: dict[int, list[tuple[int, Op | None]]] = {}
        self.ends: dict[int, Op] = {}
        self._region(program.body)

    def _region(self, region: Region) -> None:
        for op in region.ops:
            for inner in op.regions:
                self._region(inner)
            groups = carried_groups(op) if op.regions else []
            handed = {v.id for g in groups for v in g}
            for i, v in enumerate(op.args):
                if v is not None and v.id not in handed:
                    self.uses.setdefault(v.id, []).append((op, i))
            for group in groups:
                for v, to, loop in _handed_on(op, group):
                    self.goes.setdefault(v.id, []).append((to.id, loop))
                if op.kind != "if":
                    self.ends[group[0].id] = op

    def fate(self, starts: dict[int, np.ndarray], within: Op | None = None) -> Reached:
        """What becomes of elements of contents, by value. within: in one iteration of that loop only."""
        (some, *_) = starts.values()
        out = Reached(np.zeros_like(some), np.zeros_like(some), [], {})
        reached = {v: elements.copy() for v, elements in starts.items()}
        todo = list(reached)
        while todo:
            v = todo.pop()
            for to, elements in self._next(v, reached[v], within, out):
                known = reached.setdefault(to, np.zeros_like(some))
                if (elements & ~known).any():
                    known |= elements
                    todo.append(to)
        return out

    def _next(
        self, v: int, elements: np.ndarray, within: Op | None, out: Reached
    ) -> Iterator[tuple[int, np.ndarray]]:
        """The contents that those of a value become, each with the elements that stay."""
        for op, i in self.uses.get(v, ()):
            part = part_of(op) if op.kind in ("move", "subview") else None
            if op.kind == "move" and i == 0 and op.attrs["offsets"] is not None:
                yield op.results[0].id, self._replaced(op, part, elements, out)
            elif op.kind == "subview" and i == 0 and part is not None:
                out.read[part] |= elements[part]
            else:
                out.read[...] |= elements
        for to, loop in self.goes.get(v, ()):
            if loop is not None and loop is within:
                out.goes_on[to] = elements | out.goes_on.get(to, False)
            elif within is None or self.ends.get(to) is not within:
                yield to, elements

    def _replaced(self, op: Op, part: Part, elements: np.ndarray, out: Reached) -> np.ndarray:
        """What a write to a part leaves."""
        if part is None or not elements[part].any():
            return elements
        if op not in out.over:
            out.over.append(op)
        out.overwritten[part] |= elements[part]
        left = elements.copy()
        left[part] = False
        return left


def _handed_on(op: Op, group: tuple[Value, ...]) -> Iterator[tuple[Value, Value, Op | None]]:
    """(value, what it becomes, the loop if that is the next iteration) where a loop or a branch hands a value on."""
    result, *given = group
    if op.kind == "if":
        yield from ((v, result, None) for v in given)
    elif op.kind == "for":
        first, last, inside = given
        yield from ((first, inside, None), (first, result, None), (last, inside, op), (last, result, None))
    else:
        first, last, asked, inside = given
        yield from ((first, asked, None), (last, asked, None), (asked, inside, op), (asked, result, None))

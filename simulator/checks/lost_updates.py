"""Lanes of one load, change, store that meet at one element with equal values: of their updates only one stays.

`tl.store(hist + i, tl.load(hist + i) + 1)` is the usual one. Only places that are data count, as a clamped tail repeats its
last lane on purpose: a load gives them that has an element for each lane and reads no element twice. What may be done twice
without harm, as a maximum, loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ..interpreter.regions import ElementAddresses
from ..ir.definitions import makers
from ..ir.program import Op, Program, Value
from .access import Access
from .undefined.taint import MOVES, is_elementwise

COUNTING = (
    "add",
    "sub",
    "mul",
    "div",
    "truediv",
    "floordiv",
    "mod",
    "xor",
    "shl",
    "shr",
)  # twice is not once


class LastLoad(NamedTuple):
    """A load that was carried out last; where: None if it reads no element twice, by a box."""

    access: Access
    where: ElementAddresses | None


class LostUpdates:
    """Knows the loads of each store's value and of its addresses, and what they read last."""

    def __init__(self, program: Program) -> None:
        made, _ = makers(program.walk())
        self.values: dict[int, set[int]] = {}
        self.places: dict[int, set[int]] = {}
        for op in program.of_kind("store"):
            updated = _updated(op, made)
            if updated:
                self.values[op.id] = updated
                self.places[op.id] = {x.id for x in _behind(op.args[:1], made) if x.kind == "load"}
        self.needed = {n for found in (*self.values.values(), *self.places.values()) for n in found}
        self.last: dict[int, LastLoad] = {}

    def lost(self, a: Access, where: ElementAddresses, values: np.ndarray) -> tuple[int, int] | None:
        """Positions of two lanes of a program whose store keeps one of two updates; values: those stored, flat."""
        loads = [self.last[n] for n in sorted(self.values.get(a.op.id, ())) if n in self.last]
        if not any(_same_places(x, a, where) for x in loads) or not self._data(a):
            return None
        assert a.tensor.window is not None
        kept = np.flatnonzero(where.chosen) if len(where.chosen) else np.arange(len(where.at))
        kept = kept[a.tensor.window[where.at[kept]].astype(values.dtype) != values[kept]]
        rows = kept // (len(where.at) // where.shape[0])
        order = np.lexsort((where.at[kept], rows))
        at, row = where.at[kept][order], rows[order]
        same = np.flatnonzero((at[1:] == at[:-1]) & (row[1:] == row[:-1]))
        if not len(same):
            return None
        one, two = sorted(kept[order[same[0] : same[0] + 2]].tolist())
        return one, two

    def _data(self, a: Access) -> bool:
        """Whether a load that has an element for each lane, and none of them twice, gives the places."""
        loads = (self.last[n] for n in self.places[a.op.id] if n in self.last)
        return any(np.prod(x.access.op.results[0].shape) > 1 and not _repeats(x.where) for x in loads)


def _same_places(x: LastLoad, a: Access, where: ElementAddresses) -> bool:
    """Whether a load has read what a store of the same programs stores to, lane by lane."""
    mine, tensor = x.where, x.access.tensor
    return (
        mine is not None
        and tensor.whole is a.tensor.whole
        and mine.shape == where.shape
        and np.array_equal(x.access.programs, a.programs)
        and np.array_equal(mine.at, where.at)
    )


def _repeats(where: ElementAddresses | None) -> bool:
    """Whether a program reads an element twice."""
    if where is None:
        return False
    rows = where.at.reshape(where.shape[0], -1)
    ordered = np.sort(rows, axis=1)
    same = ordered[:, 1:] == ordered[:, :-1]
    return bool(same.any())


def _updated(op: Op, made: dict[int, Op]) -> set[int]:
    """Loads whose elements a store's value is made of one by one, by an operation that counts when it is done twice."""
    todo = [(v, False) for v in op.args[1:2]]
    seen, out = set(), set()
    while todo:
        v, counts = todo.pop()
        if v is None or (v.id, counts) in seen:
            continue
        seen.add((v.id, counts))
        x = made.get(v.id)
        if x is not None and x.kind == "load" and counts:
            out.add(x.id)
        elif x is not None and (x.kind in MOVES or x.kind == "select" or is_elementwise(x)):
            counts = counts or x.kind == "fma" or (x.kind == "binary" and x.name in COUNTING)
            todo += [(w, counts) for w in x.args]
    return out


def _behind(values: Iterable[Value | None], made: dict[int, Op]) -> list[Op]:
    """Operations that values are made of, up to loads."""
    todo, found = [v for v in values if v is not None], {}
    while todo:
        x = made.get(todo.pop().id)
        if x is None or x.id in found:
            continue
        found[x.id] = x
        todo += [v for v in x.args if v is not None] if x.kind != "load" else []
    return list(found.values())

"""Which lanes of an access use numbers that did not fit in their type: found by going back from its pointers and its mask.

A lane that a mask hides uses no index, only what the mask itself is made of. What loops and branches hand on is noted when
they do (see `IndexOverflows.hand_on`): the last increment of a loop is used by nobody.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ...ir.index_arithmetic import ACCESSES, parts
from ...ir.program import Op, Value
from ..values import Affine, Box, Opaque, column, take
from .wrapped_numbers import Source, Wrapped, joined
from .zero_divisors import BY_ELEMENT, SHAPED

Makers = tuple[dict[int, Op], dict[int, list[int]]]  # see `definitions.makers`


class _Frame(Protocol):
    """Values by number of the programs that run now; see `state.Frame`."""

    values: dict[int, Any]
    index: np.ndarray | None

    @property
    def parent(self) -> Any: ...


class Trail:
    """Goes back from values of one operation. wrapped: what is known to have wrapped, by value (id); handed: handed on.

    selected: what has decided in selects, by value (id) that they give or that was handed on.
    """

    def __init__(
        self,
        made: dict[int, Op],
        wrapped: dict[int, Wrapped],
        handed: dict[int, Source],
        selected: dict[int, Source],
        frame: _Frame,
        programs: np.ndarray,
    ) -> None:
        self.made, self.wrapped, self.handed = made, wrapped, handed
        self.selected, self.frame, self.programs = selected, frame, programs
        self.found: dict[int, Source] = {}  # by value (id)

    def index(self, v: Value) -> Source:
        """What wrapped numbers a pointer or an index is made of."""
        wanted = [v]
        while wanted:
            x = wanted[-1]
            op = self.made.get(x.id)
            if x.id not in self.found and (first := [p for p in _parts(op) if p.id not in self.found]):
                wanted += first
                continue
            wanted.pop()
            if x.id not in self.found:
                self.found[x.id] = joined([w for w in self._index(x, op) if (w.at >= 0).any()])
        return self.found[v.id]

    def _index(self, v: Value, op: Op | None) -> Source:
        known = self.wrapped.get(v.id)
        out = [] if known is None else [known.of(self.programs)]
        out += [_shaped(op, w, v.shape) for x in _parts(op) for w in self.found[x.id]]  # type: ignore[arg-type]
        return out + [w.of(self.programs) for w in self.handed.get(v.id, ())]

    def data(self, v: Value) -> Source:
        """What wrapped numbers have decided, in selects, on elements of a value or a pointer."""
        reached, found = self._reached(v), dict[int, Source]()
        if not reached.isdisjoint(self.selected):
            for number, op in self.made.items():  # in the order of the program
                if number in reached and number not in self.selected:
                    found[number] = joined(
                        [w for k, x in enumerate(op.args) for w in self._given(op, k, x, found)]
                    )
        return self._selected(v, found)

    def _selected(self, v: Value | None, found: dict[int, Source]) -> Source:
        if v is None or v.id not in self.selected:
            return [] if v is None else found.get(v.id, [])
        return [w.of(self.programs) for w in self.selected[v.id]]

    def _given(self, op: Op, k: int, v: Value | None, found: dict[int, Source]) -> Source:
        """What an operand gives to the result of an operation; of a select, where it is the side that is taken."""
        source = self._selected(v, found)
        if not source or op.kind in ACCESSES:
            return []
        shape = op.results[0].shape
        if op.kind not in BY_ELEMENT and op.kind not in SHAPED:
            return [_spread(w, shape) for w in source]
        source = [_shaped(op, w, shape) for w in source]
        if op.kind != "select" or k == 0:
            return source
        c = self._elements(op.operand(0))
        if c is None:
            return []
        taken = column(c, len(shape)) if c.ndim == 1 else c
        return [w._replace(at=np.where(taken if k == 1 else ~taken, w.at, -1)) for w in source]

    def _reached(self, v: Value) -> set[int]:
        """Values (by id) that a value is computed from."""
        reached: set[int] = set()
        wanted = [v.id]
        while wanted:
            number = wanted.pop()
            if number not in reached:
                reached.add(number)
                op = self.made.get(number)
                wanted += [x.id for x in op.args if x is not None] if op is not None else []
        return reached

    def differs(self, op: Op, found: Source) -> Source:
        """What decides in a select, where its two sides are not the same."""
        a, b = (self._elements(v) for v in (op.operand(1), op.operand(2)))
        if a is None or b is None or not found:
            return []
        shape = op.results[0].shape
        x, y = (column(s, len(shape)) if s.ndim == 1 else s for s in (a, b))
        found = [_shaped(op, w, shape) for w in found]
        unlike = (x != y) & ((x == x) | (y == y))  # NaN on both sides is alike
        return [w for s in found if ((w := s._replace(at=np.where(unlike, s.at, -1))).at >= 0).any()]

    def mask(self, v: Value) -> Source:
        """What wrapped numbers decide in a mask, where nothing else has decided."""
        op = self.made.get(v.id)
        if op is None:
            return []
        if op.kind == "compare":
            return [w for x in op.args if x is not None and x.dtype.is_int() for w in self.index(x)]
        if op.kind in SHAPED:
            return [_shaped(op, w, v.shape) for w in self.mask(op.operand(0))]
        if op.kind == "binary" and op.name in ("and", "or"):
            return self._both(op, op.operand(0), op.operand(1))
        return []

    def _both(self, op: Op, a: Value, b: Value) -> Source:
        """Of `a and b`: not where the other side is false by itself; of `a or b`, not where it is true."""
        mine, other = self.mask(a), self.mask(b)
        return [*self._open(op, mine, b, other), *self._open(op, other, a, mine)]

    def _open(self, op: Op, mine: Source, v: Value, other: Source) -> Source:
        x = self._elements(v) if mine else None
        if x is None:
            return mine
        undecided = x if op.name == "and" else ~x
        for w in other:
            undecided = undecided | (w.at >= 0)
        return [w._replace(at=np.where(undecided, w.at, -1)) for w in mine]

    def chosen(self, mask: Value | None) -> Any:
        """Where a mask lets an access through; nowhere if that is not known, as in a run without values."""
        if mask is None:
            return True
        x = self._elements(mask)
        return False if x is None else x

    def _elements(self, v: Value) -> np.ndarray | None:
        """(P or 1, *shape); None for what is not known, or not any more."""
        x = _present(self.frame, v)
        if x is None or isinstance(x, Opaque) or v.is_pointer:
            return None
        if isinstance(x, Affine):
            return np.asarray(x.dense(v.number))
        return x.dense() if isinstance(x, Box) else np.atleast_1d(np.asarray(x))


def _parts(op: Op | None) -> list[Value]:
    return [] if op is None else parts(op)


def _shaped(op: Op, w: Wrapped, shape: tuple[int, ...]) -> Wrapped:
    """Of the result of an operation that copies elements, or combines them one by one."""
    if op.kind in SHAPED:
        return w._replace(at=SHAPED[op.kind](op, w.at, shape))
    if w.at.shape[1:] == shape:
        return w
    return _spread(w, shape)


def _spread(w: Wrapped, shape: tuple[int, ...]) -> Wrapped:
    """Of all elements of a tile, where any of its parts is one."""
    some = w.at.reshape(len(w.at), -1).max(axis=1)  # which part is not followed
    return w._replace(at=np.broadcast_to(column(some, len(shape)), (len(some), *shape)))


def _present(frame: _Frame, v: Value) -> Any:
    """A value that has not been given back yet."""
    x = frame.values.get(v.id)
    if x is not None or frame.parent is None:
        return x
    x = _present(frame.parent, v)
    return x if x is None or frame.index is None else take(x, frame.index)

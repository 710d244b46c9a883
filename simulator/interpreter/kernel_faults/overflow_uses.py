"""Which lanes of an access use numbers that did not fit in their type: found by going back from its pointers and its mask.

A lane that a mask hides uses no index, only what the mask itself is made of. What a loop hands on counts where the number at
hand is one that has wrapped: the last increment of a loop is used by nobody.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from ...ir.index_arithmetic import parts
from ...ir.program import Op, Value
from ...precision import dtypes as ty
from ..values import Affine, Box, Opaque, column, take
from .zero_divisors import SHAPED

Source = list["Wrapped"]
Makers = tuple[dict[int, Op], dict[int, list[int]]]  # see `definitions.makers`


class _Frame(Protocol):
    """Values by number of the programs that run now; see `state.Frame`."""

    values: dict[int, Any]
    index: np.ndarray | None

    @property
    def parent(self) -> Any: ...


class Wrapped(NamedTuple):
    """at: for elements of a value, (P or 1, *shape), the element of `exact` that it is made of; -1 for none that wrapped.

    exact: what `op` would have given in the programs, one row for each of them or one for all.
    """

    op: Op
    programs: np.ndarray
    exact: np.ndarray
    at: np.ndarray

    def of(self, programs: np.ndarray) -> Wrapped:
        """The same with a row for each of these programs; nothing has wrapped in others."""
        if np.array_equal(programs, self.programs):
            return self
        rows = np.broadcast_to(self.at, (len(self.programs), *self.at.shape[1:]))
        order = np.argsort(self.programs, kind="stable")
        near = order[np.searchsorted(self.programs, programs, sorter=order).clip(max=len(order) - 1)]
        known = column(self.programs[near] == programs, rows.ndim - 1)
        return self._replace(programs=programs, at=np.where(known, rows[near], -1))


class Trail:
    """Goes back from values of one access. wrapped: what is known to have wrapped, by value (id); before: before that."""

    def __init__(
        self,
        made: Makers,
        wrapped: dict[int, Wrapped],
        before: dict[int, Wrapped],
        frame: _Frame,
        programs: np.ndarray,
    ) -> None:
        self.made, self.sources = made
        self.wrapped, self.before, self.frame, self.programs = wrapped, before, frame, programs
        self.found: dict[int, Source] = {}  # by value (id)

    def index(self, v: Value) -> Source:
        """What wrapped numbers a pointer or an index is made of."""
        if v.id not in self.found:
            self.found[v.id] = []  # a loop hands on what is made of the same value: nothing new
            self.found[v.id] = [w for w in self._index(v) if (w.at >= 0).any()]
        return self.found[v.id]

    def _index(self, v: Value) -> Source:
        known, op = self.wrapped.get(v.id), self.made.get(v.id)
        out = [] if known is None else [known.of(self.programs)]
        for x in parts(op) if op is not None else ():
            out += [_shaped(op, w, v.shape) for w in self.index(x)]  # type: ignore[arg-type]
        for number in self.sources.get(v.id, ()):
            out += self._handed_on(v, number)
        return out

    def _handed_on(self, v: Value, number: int) -> Source:
        """What a loop or branch hands on, from another value of the same type."""
        found = [known[number] for known in (self.wrapped, self.before) if number in known]
        if not found:
            return self.index(Value(number, v.dtype, v.shape, v.loc))
        x = self._elements(v)
        return [w.of(self.programs) if x is None else _equal(w, x, self.programs) for w in found]

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


def _shaped(op: Op, w: Wrapped, shape: tuple[int, ...]) -> Wrapped:
    """Of the result of an operation that copies elements, or combines them one by one."""
    if op.kind in SHAPED:
        return w._replace(at=SHAPED[op.kind](op, w.at, shape))
    if w.at.shape[1:] == shape:
        return w
    some = w.at.reshape(len(w.at), -1).max(axis=1)  # a part of a tile: which is not followed
    return w._replace(at=np.broadcast_to(column(some, len(shape)), (len(some), *shape)))


def _equal(w: Wrapped, x: np.ndarray, programs: np.ndarray) -> Wrapped:
    """Where elements of a value are numbers that have wrapped in the same program."""
    number = w.op.results[0].number
    at = np.broadcast_to(w.at, (len(w.programs), *w.at.shape[1:]))
    rows = np.nonzero(at >= 0)[0]
    kept = {
        (int(w.programs[row]), ty.wrapped(int(w.exact.flat[k]), number)): int(k)
        for row, k in zip(rows, at[at >= 0], strict=True)
    }
    x = np.broadcast_to(x, (len(programs), *x.shape[1:]))
    low, high = min(n for _, n in kept), max(n for _, n in kept)
    found = np.full(x.shape, -1, np.int64)
    for where in zip(*np.nonzero((x >= low) & (x <= high)), strict=True):
        found[where] = kept.get((int(programs[where[0]]), int(x[where])), -1)
    return w._replace(programs=programs, at=found)


def _present(frame: _Frame, v: Value) -> Any:
    """A value that has not been given back yet."""
    x = frame.values.get(v.id)
    if x is not None or frame.parent is None:
        return x
    x = _present(frame.parent, v)
    return x if x is None or frame.index is None else take(x, frame.index)

"""Numbers that did not fit in their type, of the elements of values: those of programs and of operations put together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...ir.program import Op, Value
from ..values import column


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
        after = np.searchsorted(self.programs, programs, "right", sorter=order)
        near = order[(after - 1).clip(min=0)]  # the last of many iterations at once
        known = column(self.programs[near] == programs, rows.ndim - 1)
        return self._replace(programs=programs, at=np.where(known, rows[near], -1))


Source = list[Wrapped]  # one for each operation


def joined(found: Source) -> Source:
    """The same with one entry for each operation; of two numbers of one element, the first."""
    by_op: dict[int, Wrapped] = {}
    for w in found:
        known = by_op.get(w.op.id)
        by_op[w.op.id] = w if known is None or known is w else _either(known, w)
    return list(by_op.values())


def _either(a: Wrapped, b: Wrapped) -> Wrapped:
    """Of one operation in the same programs; of the numbers, those that are still used."""
    exact = np.concatenate([a.exact.reshape(-1), b.exact.reshape(-1)])
    at = np.where(a.at >= 0, a.at, np.where(b.at >= 0, b.at + a.exact.size, -1))
    used, order = np.unique(at[at >= 0], return_inverse=True)
    kept = np.full(at.shape, -1, np.int64)
    kept[at >= 0] = order.reshape(-1)
    return a._replace(exact=exact[used], at=kept)


def others(w: Wrapped, programs: np.ndarray) -> Wrapped | None:
    """Without these programs; None where nothing is left."""
    stay = np.flatnonzero(~np.isin(w.programs, programs))
    if not len(stay):
        return None
    at = np.broadcast_to(w.at, (len(w.programs), *w.at.shape[1:]))[stay]
    return w._replace(programs=w.programs[stay], at=at) if (at >= 0).any() else None


def both(a: Wrapped, b: Wrapped) -> Wrapped:
    """Of two groups of programs."""
    rows = [np.broadcast_to(w.at, (len(w.programs), *w.at.shape[1:])) for w in (a, b)]
    rows[1] = np.where(rows[1] >= 0, rows[1] + a.exact.size, -1)
    exact = np.concatenate([a.exact.reshape(-1), b.exact.reshape(-1)])
    return Wrapped(b.op, np.concatenate([a.programs, b.programs]), exact, np.concatenate(rows))


def put(known: dict[int, Source], v: Value, new: Source, programs: np.ndarray) -> None:
    """Keep what is new of a value in these programs, with what is known of it in others."""
    kept = (others(w, programs) for w in known.pop(v.id, ()))
    if left := grouped([*(w for w in kept if w is not None), *(w for w in new if (w.at >= 0).any())]):
        known[v.id] = left


def grouped(found: Source) -> Source:
    """One entry for each operation, of entries of different programs."""
    by_op: dict[int, Wrapped] = {}
    for w in found:
        known = by_op.get(w.op.id)
        by_op[w.op.id] = w if known is None else both(known, w)
    return list(by_op.values())

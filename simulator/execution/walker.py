"""Walks a tile program for many programs of its grid at once, exactly for each of them.

`Indexing` computes scalars, index tiles and masks; `Flow` follows branches and loops; a reading (see reading.py) says what
operations on elements and accesses to memory mean.
"""

from __future__ import annotations

from ..frontend.program import Op
from .custom import Custom
from .flow import Flow
from .indexing import Indexing
from .reading import DEFAULT_STEP_LIMIT, DataDependentError, Frame, place
from .slicing import Slicing


class Walker(Indexing, Slicing, Custom, Flow):
    """One walk over a program; readings derive from it."""

    def op_load(self, op: Op, frame: Frame) -> None:
        p, m, o = (None if v is None else frame.get(v) for v in op.args)
        assert p is not None
        frame.values[op.results[0].id] = self.scalar_result(op, self.load(op, p, m, o))

    def op_store(self, op: Op, frame: Frame) -> None:
        p, x, m = (None if v is None else frame.get(v) for v in op.args)
        assert p is not None
        self.store(op, p, x, m)

    def op_atomic(self, op: Op, frame: Frame) -> None:
        p, x, m, *rest = (None if v is None else frame.get(v) for v in op.args)
        assert p is not None
        frame.values[op.results[0].id] = self.atomic(op, p, x, m, rest[0] if rest else None)

    def op_print(self, op: Op, frame: Frame) -> None:
        self.show(op, [frame.get(v) for v in op.args if v is not None])

    def op_assert(self, op: Op, frame: Frame) -> None:
        v = op.args[0]
        assert v is not None
        self.check_assert(op, frame.get(v))


__all__ = ["DEFAULT_STEP_LIMIT", "DataDependentError", "Frame", "Walker", "place"]

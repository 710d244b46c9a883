"""Accesses outside of their tensors in a launch that goes on after them, as a device does that does not notice.

A load gives 0 there, a store or atomic does nothing. Each operation is told once, with the first of them and their number.
"""

from __future__ import annotations

from ...errors import OutOfBoundsError
from ...ir.program import Op
from ...messages import Message, fault
from ..faults import place

LEFT_OUT = {
    "load": "a load gives 0 there",
    "store": "such a store does nothing",
    "atomic": "such an atomic does nothing",
}


class OutsideAccesses:
    """Notes them. silent: where another part of the launch tells of them."""

    def __init__(self, silent: bool = False) -> None:
        self.silent = silent
        self.first: dict[int, tuple[Op, OutOfBoundsError]] = {}
        self.counts: dict[int, int] = {}

    def note(self, op: Op, error: OutOfBoundsError, count: int = 0) -> None:
        """error: what the first of `count` elements would have raised; 0 for a number that is not known."""
        self.first.setdefault(op.id, (op, error))
        self.counts[op.id] = self.counts.get(op.id, 0) + count

    def messages(self) -> tuple[Message, ...]:
        return () if self.silent else tuple(self._message(op, error) for op, error in self.first.values())

    def _message(self, op: Op, error: OutOfBoundsError) -> Message:
        count = self.counts[op.id]
        number = f"; {count:,} such elements in the launch" if count > 1 else ""
        return fault(f"{error.what}{number}; {LEFT_OUT[op.kind]}", place(op), (error.program,))

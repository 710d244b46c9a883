"""What is kept while many iterations of a loop are lowered at once."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...ir.program import Op, walk
from ..trace.scalar_evolution import NotAlikeError
from .lowering import Lowering


class LeftOver:
    """Values that an iteration reads where the one before left them; the first iteration does not have them there."""

    def __init__(self, before: dict[int, int]) -> None:
        self.before = before
        self.read: set[int] = set()

    def note(self, roots: tuple[tuple[int, int], ...], now: dict[int, int]) -> None:
        for i, _ in roots:
            if now.get(i) == self.before.get(i):
                self.read.add(i)

    def inside(self, inner: LeftOver) -> None:
        """Add what lowering an inner loop at once found."""
        self.read |= {i for i in inner.read if inner.before.get(i) == self.before.get(i)}

    def check(self, now: dict[int, int]) -> None:
        if any(now.get(i) != self.before.get(i) for i in self.read):
            raise NotAlikeError


class Flush(NamedTuple):
    """The first record of scalar work of many iterations: where it went, the operations it stands for, its lanes."""

    body: list[Any]
    number: int
    pending: int
    lanes: int


class Counts:
    """The state of lowering before an iteration, so that it can continue as after many of them."""

    def __init__(self, lowering: Lowering) -> None:
        self.current, self.iteration_counts = dict(lowering.current), dict(lowering.iteration_counts)
        self.pending = lowering.pending

    def repeat(self, now: Lowering, op: Op, times: int, last: bool) -> dict[Any, int]:
        """Continue as after so many iterations of `op` instead of one; return what one adds to counts.

        last: no loop around this one is lowered at once, so that all counts are known. Raises `NotAlikeError` unless the
        iteration has ended as it began, but for what each one makes anew.
        """
        moved = {v for v, slot in now.current.items() if self.current.get(v) != slot}
        if moved and not moved <= {r.id for inner in walk(op.regions[0]) for r in inner.results}:
            raise NotAlikeError
        rotating = now.recorder.builder.rotating
        gains = {k: count - self.iteration_counts.get(k, -1) for k, count in now.iteration_counts.items()}
        for v, slot in now.current.items():
            if slot < 0:
                later = rotating.after(slot, gains, times - 1)
                now.current[v] = rotating.now(later) if last else later
        for k in now.iteration_counts:
            now.iteration_counts[k] = self.iteration_counts.get(k, -1) + times * gains[k]
        return gains

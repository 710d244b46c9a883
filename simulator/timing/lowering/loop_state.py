"""What a walk of many turns of a loop keeps aside: so that it can be taken back, and what it found on the way."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...ir.program import Op, walk
from ..trace.scalar_evolution import NotAlikeError
from .lowering import Lowering


class LeftOver:
    """Values that a turn reads before it makes them: where the last turn left them, which the first one does not know."""

    def __init__(self, before: dict[int, int]) -> None:
        self.before = before
        self.read: set[int] = set()

    def note(self, roots: tuple[tuple[int, int], ...], now: dict[int, int]) -> None:
        for i, _ in roots:
            if now.get(i) == self.before.get(i):
                self.read.add(i)

    def inside(self, inner: LeftOver) -> None:
        """What a walk of a loop inside found."""
        self.read |= {i for i in inner.read if inner.before.get(i) == self.before.get(i)}

    def check(self, now: dict[int, int]) -> None:
        if any(now.get(i) != self.before.get(i) for i in self.read):
            raise NotAlikeError


class Flush(NamedTuple):
    """The first record of scalar work in a walk of many iterations: where it went, the operations it stands for, its lanes."""

    body: list[Any]
    number: int
    pending: int
    lanes: int


class State:
    """What a walk changes besides values, so that it can be taken back."""

    def __init__(self, turns: Lowering) -> None:
        plan, model = turns.plan, turns.plan.costs.model
        self.dicts: list[dict[Any, Any]] = [
            plan.lines,
            plan.templates,
            plan.executed,
            model.notes,
            model.assumed,
            model.known_rows,  # a row makes its notes when it is looked up
        ]
        self.copies = [d.copy() for d in self.dicts]
        self.warnings = plan.warnings.saved()
        self.current, self.turn_counts = dict(turns.current), dict(turns.turn_counts)
        self.steps_left = turns.steps_left
        self.pending, self.pending_loc = turns.pending, turns.pending_loc
        self.read_lines = turns.touch.read_lines
        self.pending_bias = dict(turns.cube.pending_bias)

    def restore(self, turns: Lowering) -> None:
        for d, copy in zip(self.dicts, self.copies, strict=True):
            d.clear()
            d.update(copy)
        turns.plan.warnings.restore(self.warnings)
        turns.current, turns.turn_counts = self.current, self.turn_counts
        turns.steps_left = self.steps_left
        turns.pending, turns.pending_loc = self.pending, self.pending_loc
        turns.touch.read_lines = self.read_lines
        turns.cube.pending_bias = self.pending_bias

    def check(self, after: Lowering, op: Op, fresh: bool) -> None:
        """Raise `NotAlikeError` unless the turn of `op` has ended as it began, but for what each turn makes anew.

        fresh: scalar work that has no record yet may differ; see `Turns._charge_later_turns`.
        """
        moved = {v for v, slot in after.current.items() if self.current.get(v) != slot}
        waiting = (after.pending, after.pending_loc) != (self.pending, self.pending_loc)
        if waiting and not fresh:
            raise NotAlikeError
        if moved and not moved <= {r.id for inner in walk(op.regions[0]) for r in inner.results}:
            raise NotAlikeError

    def repeat(self, turns: Lowering, times: int, last: bool) -> dict[Any, int]:
        """Go on as after so many iterations instead of one; gives what one adds to counts.

        last: no other loop is walked around this one, so that all counts are known.
        """
        rotating = turns.recorder.builder.rotating
        gains = {k: count - self.turn_counts.get(k, -1) for k, count in turns.turn_counts.items()}
        for v, slot in turns.current.items():
            if slot < 0:
                later = rotating.after(slot, gains, times - 1)
                turns.current[v] = rotating.now(later) if last else later
        for k in turns.turn_counts:
            turns.turn_counts[k] = self.turn_counts.get(k, -1) + times * gains[k]
        return gains

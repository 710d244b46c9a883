"""Slots that alternate from iteration to iteration, under numbers of their own, below zero.

Which copy of a buffer an iteration uses depends on a count: of the iterations of the loop around it, or of products. In the
k-th iteration of a loop the count is larger by k times what one iteration adds to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .tree import Instruction, Loop, Slots, instructions

Choices = tuple[Slots, ...]  # per copy: what stands there


class Rotating:
    """All such numbers of a trace. meaning: for number -1 - k the choices, the counter, and its count at first."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[Choices, Any, int], int] = {}
        self.meaning: list[tuple[Choices, Any, int]] = []

    def number(self, choices: Choices, counter: Any, count: int) -> int:
        """The number for `choices[count % copies]`, where `count` is that of `counter` in the first iteration."""
        key = (choices, counter, count % len(choices))
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = -1 - len(self.meaning)
            self.meaning.append(key)
        return found

    def after(self, slot: int, gains: Mapping[Any, int], iterations: int) -> int:
        """The slot so many iterations later."""
        if slot >= 0:
            return slot
        choices, counter, count = self.meaning[-1 - slot]
        return self.number(choices, counter, count + iterations * gains.get(counter, 0))

    def now(self, slot: int) -> int:
        """The one that it is in the first iteration."""
        if slot >= 0:
            return slot
        choices, _, count = self.meaning[-1 - slot]
        return choices[count][0]

    def counters(self, body: Sequence[Any]) -> set[Any]:
        """Those that slots of a body go by."""
        used = {s for x in instructions(body) for s in (*x.reads, *x.writes, *x.clobbers) if s < 0}
        return {self.meaning[-1 - s][1] for s in used}

    def later(self, body: Sequence[Any], gains: Mapping[Any, int], iterations: int) -> list[Any]:
        """A body so many iterations later."""
        if not (gains and iterations):
            return list(body)
        return [
            x._replace(body=self.later(x.body, gains, iterations))
            if isinstance(x, Loop)
            else self._later(x, gains, iterations)
            for x in body
        ]

    def _later(self, x: Instruction, gains: Mapping[Any, int], iterations: int) -> Instruction:
        if min((*x.reads, *x.writes, *x.clobbers), default=0) >= 0:
            return x
        reads, writes, clobbers = (
            tuple([self.after(s, gains, iterations) for s in slots])
            for slots in (x.reads, x.writes, x.clobbers)
        )
        return x._replace(reads=reads, writes=writes, clobbers=clobbers)

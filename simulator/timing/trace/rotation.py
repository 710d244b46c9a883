"""Slots that alternate from turn to turn, as a walk of many turns knows them: under numbers of their own, below zero.

Which copy of a buffer a turn uses depends on a count: of the turns of the loop around it, or of products. In the k-th turn
of a loop the count is larger by k times what one turn adds to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

Slots = tuple[int, ...]
Choices = tuple[Slots, ...]  # per copy: what stands there


class Rotation:
    """All such numbers of a walk."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[Choices, Any, int], int] = {}
        self.meaning: list[tuple[Choices, Any, int]] = []

    def number(self, choices: Choices, counter: Any, count: int) -> int:
        """The number for `choices[count % copies]`, where `count` is that of `counter` in the first turn."""
        key = (choices, counter, count % len(choices))
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = -1 - len(self.meaning)
            self.meaning.append(key)
        return found

    def period(self, slots: Iterable[int], gains: Mapping[Any, int]) -> int:
        """Turns after which all slots are the same again. gains: what a turn adds to each count."""
        out = 1
        for s in slots:
            if s < 0:
                choices, counter, _ = self.meaning[-1 - s]
                copies = len(choices)
                out = math.lcm(out, copies // math.gcd(copies, gains.get(counter, 0)))
        return out

    def after(self, slots: Slots, gains: Mapping[Any, int], turns: int, last: bool) -> Slots:
        """The slots so many turns later. last: no other loop is walked around this one, so that all counts are known."""
        if not slots or min(slots) >= 0:
            return slots
        out: list[int] = []
        for s in slots:
            if s >= 0:
                out.append(s)
                continue
            choices, counter, count = self.meaning[-1 - s]
            count += turns * gains.get(counter, 0)
            out += choices[count % len(choices)] if last else (self.number(choices, counter, count),)
        return tuple(out)

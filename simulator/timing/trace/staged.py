"""Loops whose stages run some iterations ahead of each other, as code of a trace.

Two stages, to the other core and back, are a round. With four iterations under way and two rounds, a chunk is two
iterations. It has its second round when the next chunk has had its first, so that both cores have work while tiles are on
their way:

    for c in range(chunks + 1):
        for k in range(2): first(2 c + k)                 # but in the last step
        for k in range(2): second(2 c + k)
        for k in range(2): third(2 (c - 1) + k)           # but in the first step
        for k in range(2): fourth(2 (c - 1) + k)

Steps that are alike become a loop. The last chunk may be shorter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .repeats import Repeats
from .tree import Loop

Key = tuple[Any, ...]
COLUMN, CYCLES, SLOTS, STRIDES, OTHER = 3, 4, 7, 8, -1  # of the key of an instruction, see `TraceBuilder`


class _Change:
    """Makes instructions of a loop's iterations those of others. outside: loops around that loop."""

    def __init__(
        self, repeats: Repeats, number: Callable[[Key], int], gains: dict[Any, int], outside: int
    ) -> None:
        self.repeats, self.number, self.gains, self.outside = repeats, number, gains, outside

    def every(self, code: int, key: Callable[[Key], Key]) -> int:
        """An instruction, or all of a loop."""
        if code < 0:
            trip_count, body, gains = self.repeats.loops[-1 - code]
            return self.repeats.loop(trip_count, tuple([self.every(c, key) for c in body]), gains)
        old = self.repeats.keys[code]
        other = old[OTHER] if old[OTHER] < 0 else self.every(old[OTHER], key)
        return self.number((*key(old)[:OTHER], other))

    def in_chunks(self, key: Key, size: int) -> Key:
        """Of one more loop around, of chunks of so many iterations."""
        strides = key[STRIDES]
        if not strides:
            return key
        place = len(strides) - self.outside
        more = (*strides[:place], size * strides[place - 1], *strides[place:])
        return (*key[:STRIDES], more, *key[STRIDES + 1 :])

    def later(self, key: Key, done: int) -> Key:
        """So many iterations later."""
        out, strides = list(key), key[STRIDES]
        rows = done * strides[-1 - self.outside] if strides else 0
        for k in (COLUMN, CYCLES):
            out[k] += rows if out[k] >= 0 else 0
        after = self.repeats.rotating.after
        out[SLOTS] = tuple(tuple([after(s, self.gains, done) for s in slots]) for slots in key[SLOTS])
        return tuple(out)


def staged(
    repeats: Repeats,
    number: Callable[[Key], int],
    stages: Mapping[int, tuple[int, ...]],
    loop: Loop,
    outside: int,
) -> list[int]:
    """Code of a loop. stages: number -> the code of each in one iteration. number: of an instruction, by its key."""
    every = _Part(
        _Change(repeats, number, dict(loop.gains), outside), tuple(sorted(loop.gains.items(), key=str))
    )
    rounds = rounds_of(stages)
    size = chunk_of(loop.ahead, rounds)
    chunks, left = divmod(loop.trip_count, size)
    sizes = [size] * chunks + [left] * (left > 0)

    def at(step: int) -> list[Stage]:
        parts = ((codes, step - k // 2) for k, codes in sorted(stages.items()))
        return [Stage(codes, c * size, sizes[c]) for codes, c in parts if 0 <= c < len(sizes)]

    alike = range(rounds - 1, max(chunks, rounds - 1))  # steps in which all stages have a whole chunk
    out: list[int] = []
    for step in range(len(sizes) + rounds - 1):
        if step not in alike:
            out += every.once(at(step))
        elif step == alike[0]:
            out += every.again(at(step), len(alike), size)
    return out


def rounds_of(stages: Iterable[int]) -> int:
    """Two stages make a round, to the other core and back."""
    return max(stages, default=0) // 2 + 1


def chunk_of(ahead: int, rounds: int) -> int:
    """Iterations of a stage before the next one runs, where so many are under way in all."""
    return max(1, ahead // rounds)


class Stage(NamedTuple):
    """The code of a stage for some iterations."""

    codes: tuple[int, ...]
    first: int
    times: int


class _Part:
    """Parts of a loop's code: stages one after the other, each for some iterations. gains: of the loop."""

    def __init__(self, change: _Change, gains: tuple[tuple[Any, int], ...]) -> None:
        self.change, self.gains = change, gains

    def once(self, stages: Sequence[Stage]) -> list[int]:
        return self._loops(stages, lambda key: key)

    def again(self, stages: Sequence[Stage], count: int, size: int) -> list[int]:
        """The same for the chunks that follow, `count` in all."""
        if count == 1:
            return self.once(stages)
        body = self._loops(stages, lambda key: self.change.in_chunks(key, size))
        gains = tuple((c, size * by) for c, by in self.gains)
        return [self.change.repeats.loop(count, tuple(body), gains)]

    def _loops(self, stages: Sequence[Stage], key: Callable[[Key], Key]) -> list[int]:
        change, out = self.change, []
        for codes, first, times in stages:

            def moved(old: Key, first: int = first) -> Key:
                return key(change.later(old, first) if first else old)

            out.append(change.repeats.loop(times, tuple([change.every(c, moved) for c in codes]), self.gains))
        return out

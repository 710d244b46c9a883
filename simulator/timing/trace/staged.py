"""Loops whose stages run some iterations ahead of each other, as code of a trace.

for i in range(10): first(i); second(i), with four iterations ahead, becomes

    for c in range(2):
        for k in range(4): first(4 c + k)
        for k in range(4): second(4 c + k)
    for k in range(2): first(8 + k)
    for k in range(2): second(8 + k)

Two stages, to the other core and back, are a round. A loop with more than one keeps both cores at work: while tiles of one
chunk are with the other core in their second round, the next chunk has its first one. Chunks are as much smaller, so that no
more tiles are under way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

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
    change = _Change(repeats, number, dict(loop.gains), outside)
    rounds = max(stages, default=0) // 2 + 1
    size = loop.ahead // rounds
    if size and loop.trip_count // size >= rounds:
        return _in_rounds(change, stages, loop, rounds, size)
    chunks, left = divmod(loop.trip_count, loop.ahead)
    every = _Part(change, tuple(sorted(loop.gains.items(), key=str)))
    order = [(codes, 0) for _, codes in sorted(stages.items())]
    out = every.chunks(order, chunks, loop.ahead)
    return out + every.one_by_one([(c, chunks * loop.ahead) for c, _ in order], left)


def _in_rounds(
    change: _Change, stages: Mapping[int, tuple[int, ...]], loop: Loop, rounds: int, size: int
) -> list[int]:
    """Two stages make a round, there and back. A chunk begins its second round when the next chunk has done its first."""
    chunks, left = divmod(loop.trip_count, size)
    every = _Part(change, tuple(sorted(loop.gains.items(), key=str)))

    def at(step: int) -> list[tuple[tuple[int, ...], int]]:
        """What a step consists of, and the first iteration of each part."""
        parts = ((codes, step - k // 2) for k, codes in sorted(stages.items()))
        return [(codes, chunk * size) for codes, chunk in parts if 0 <= chunk < chunks]

    out: list[int] = []
    for step in range(rounds - 1):
        out += every.one_by_one(at(step), size)
    out += every.chunks(at(rounds - 1), chunks - rounds + 1, size)
    for step in range(chunks, chunks + rounds - 1):
        out += every.one_by_one(at(step), size)
    return out + every.one_by_one([(codes, chunks * size) for _, codes in sorted(stages.items())], left)


class _Part:
    """Parts of a loop's code: stages one after the other, each for some iterations. gains: of the loop."""

    def __init__(self, change: _Change, gains: tuple[tuple[Any, int], ...]) -> None:
        self.change, self.gains = change, gains

    def one_by_one(self, stages: Sequence[tuple[tuple[int, ...], int]], times: int) -> list[int]:
        """So many iterations of each, the first one as given."""
        return self._loops(stages, times, lambda key: key) if times else []

    def chunks(self, stages: Sequence[tuple[tuple[int, ...], int]], count: int, size: int) -> list[int]:
        """The same again for the chunks that follow, `count` in all."""
        if count <= 1:
            return self.one_by_one(stages, size * count)
        body = self._loops(stages, size, lambda key: self.change.in_chunks(key, size))
        gains = tuple((c, size * by) for c, by in self.gains)
        return [self.change.repeats.loop(count, tuple(body), gains)]

    def _loops(
        self, stages: Sequence[tuple[tuple[int, ...], int]], times: int, key: Callable[[Key], Key]
    ) -> list[int]:
        change, out = self.change, []
        for codes, first in stages:

            def moved(old: Key, first: int = first) -> Key:
                return key(change.later(old, first) if first else old)

            out.append(change.repeats.loop(times, tuple([change.every(c, moved) for c in codes]), self.gains))
        return out

"""Loops whose stages run some iterations ahead of each other, as code of a trace.

for i in range(10): first(i); second(i), with four iterations ahead, becomes

    for c in range(2):
        for k in range(4): first(4 c + k)
        for k in range(4): second(4 c + k)
    for k in range(2): first(8 + k)
    for k in range(2): second(8 + k)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    stages: Sequence[tuple[int, ...]],
    loop: Loop,
    outside: int,
) -> list[int]:
    """Code of a loop. stages: the code of each in one iteration. number: of an instruction, by its key."""
    change = _Change(repeats, number, dict(loop.gains), outside)
    chunks, left = divmod(loop.trip_count, loop.ahead)
    gains = tuple(sorted(loop.gains.items(), key=str))

    def one_by_one(times: int, key: Callable[[Key], Key]) -> list[int]:
        return [repeats.loop(times, tuple([change.every(c, key) for c in codes]), gains) for codes in stages]

    out: list[int] = []
    if chunks == 1:
        out += one_by_one(loop.ahead, lambda key: key)
    elif chunks:
        body = one_by_one(loop.ahead, lambda key: change.in_chunks(key, loop.ahead))
        out.append(repeats.loop(chunks, tuple(body), tuple((c, loop.ahead * by) for c, by in gains)))
    if left:
        out += one_by_one(left, lambda key: change.later(key, chunks * loop.ahead))
    return out

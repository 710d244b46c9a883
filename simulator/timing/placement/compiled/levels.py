"""Where the buffers of one space lie: the planner's order, its first fit and its levels.

Rules 3.13 to 3.21 of the planner (AscendNPU-IR, lib/Dialect/HIVM/Transforms/PlanMemory.cpp). While all of them fit,
buffers lie side by side. Else they share bytes, at first only where no transfer has to wait for it (level 3), then with
buffers of other loops (2), then with any whose life is another (0). Level 1, which gives more slots to a buffer that shares
the place of one with several, is left out: it changes no need, and the rules for copies alone say where a second slot is.
What one entry cannot get is tried anew for all from the next lower level on; the planner takes back the last few first.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Sequence

from .tiles import PlannedTile

Pairs = Collection[
    tuple[int, int]
]  # identities of tiles that may lie on each other although they touch at one time
Placed = tuple[int, int, int, PlannedTile]  # first byte, behind the last, number, buffer
TRANSFERS, LOOPS, ANY = (
    3,
    2,
    0,
)  # levels: apart from what transfers touch; from the same loop's; whatever is dead
LEVELS = (TRANSFERS, LOOPS, ANY)


def in_order(tiles: Sequence[PlannedTile]) -> list[PlannedTile]:
    """3.13: what loads and stores move, then the others, then what scalar code touches, each by its first write."""
    return sorted(tiles, key=lambda t: (not t.unique, not t.moved, t.scalar and not t.moved, t.first))


def figure(tiles: Sequence[PlannedTile], pairs: Pairs = ()) -> int:
    """3.20: bytes that the message tells: the highest end at level 0, holes counted."""
    return max((hi for _, hi, _, _ in _packed(tiles, (ANY,), pairs, None) or ()), default=0)


def addresses(tiles: Sequence[PlannedTile], limit: int, pairs: Pairs = ()) -> dict[int, tuple[int, ...]]:
    """Where each slot of each buffer begins, by identity of the buffer; without a limit where they do not fit."""
    if sum(t.size * t.slots for t in tiles) <= limit:
        return _side_by_side(tiles)
    for first in range(len(LEVELS)):
        placed = _packed(tiles, LEVELS[first:], pairs, limit)
        if placed is not None:
            return _by_tile(placed)
    return _by_tile(_packed(tiles, (ANY,), pairs, None) or [])


def _side_by_side(tiles: Sequence[PlannedTile]) -> dict[int, tuple[int, ...]]:
    """3.14."""
    found, top = {}, 0
    for t in in_order(tiles):
        found[id(t)] = tuple(range(top, top + t.size * t.slots, t.size)) if t.size else (top,) * t.slots
        top += t.size * t.slots
    return found


def _by_tile(placed: list[Placed]) -> dict[int, tuple[int, ...]]:
    found: dict[int, tuple[int, ...]] = {}
    for lo, _, _, t in sorted(placed, key=lambda p: p[2]):
        found[id(t)] = (*found.get(id(t), ()), lo)
    return found


def _packed(
    tiles: Sequence[PlannedTile], levels: Sequence[int], pairs: Pairs, limit: int | None
) -> list[Placed] | None:
    """3.16 to 3.18: each at the first place that the highest level grants; None if a place ends above the limit."""
    placed: list[Placed] = []
    slots = [t for t in in_order(tiles) for _ in range(t.slots)]
    for number, t in enumerate(slots):
        places = (_first_fit(placed, t, level, pairs) for level in levels)
        at = next((at for at in places if limit is None or at + t.size <= limit), None)
        if at is None:
            return None
        insort(placed, (at, at + t.size, number, t))
    return placed


def _first_fit(placed: list[Placed], t: PlannedTile, level: int, pairs: Pairs) -> int:
    """3.16, fine sections: the lowest address at which nothing that is in the way lies."""
    at = 0
    for lo, hi, _, other in placed:
        if hi > at and _in_the_way(t, other, level, pairs):
            if at + t.size <= lo:
                break
            at = hi
    return at


def _in_the_way(t: PlannedTile, other: PlannedTile, level: int, pairs: Pairs) -> bool:
    """3.16, both ends of a life included, and the condition of the level (3.17)."""
    if other.first <= t.last and t.first <= other.last:
        return not (level == ANY and _touching(t, other, pairs))
    if level == TRANSFERS:
        return t.moved or other.moved or t.scalar != other.scalar
    return level == LOOPS and t.loops[-1:] == other.loops[-1:]


def _touching(t: PlannedTile, other: PlannedTile, pairs: Pairs) -> bool:
    """3.12: one ends when the other begins, and the pair is remembered."""
    return min(t.last, other.last) == max(t.first, other.first) and (
        (id(t), id(other)) in pairs or (id(other), id(t)) in pairs
    )

"""Addresses of random buffers: nothing that lives at one time shares bytes, and no order of levels costs room."""

from __future__ import annotations

from itertools import combinations, pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.timing.placement.compiled.levels import addresses, figure, in_order
from ascendtile.simulator.timing.placement.compiled.tiles import TILE, PlannedLoop, PlannedTile

BLOCK = 32
LOOPS = (PlannedLoop(SimpleNamespace(), 0, 9), PlannedLoop(SimpleNamespace(), 0, 9))  # type: ignore[arg-type]


def buffer(blocks: int, first: int, length: int = 0, slots: int = 1, **more: Any) -> PlannedTile:
    t = PlannedTile((blocks * BLOCK,), "int8", 8, TILE, SimpleNamespace(), **more)  # type: ignore[arg-type]
    t.size, t.first, t.last, t.slots = blocks * BLOCK, first, first + length, slots
    return t


@st.composite
def buffers(draw: st.DrawFn) -> list[PlannedTile]:
    small = st.integers(0, 9)
    loops = st.sampled_from([(), LOOPS[:1], LOOPS[1:]])
    return [
        buffer(
            draw(small) + 1, draw(small), draw(small), draw(st.integers(1, 2)),
            loaded=draw(st.booleans()), scalar=draw(st.booleans()), loops=draw(loops),
        )
        for _ in range(draw(st.integers(1, 8)))
    ]  # fmt: skip


def side_by_side(tiles: list[PlannedTile]) -> int:
    return sum(t.size * t.slots for t in tiles)


def most_alive(tiles: list[PlannedTile]) -> int:
    times = range(max(t.last for t in tiles) + 1)
    return max(sum(t.size * t.slots for t in tiles if t.first <= at <= t.last) for at in times)


def held(tiles: list[PlannedTile], places: dict[int, tuple[int, ...]]) -> np.ndarray:
    """How many buffers hold each byte at each time, byte by byte."""
    top = max(at + t.size for t in tiles for at in places[id(t)])
    out = np.zeros((max(t.last for t in tiles) + 1, top), np.int64)
    for t in tiles:
        for at in places[id(t)]:
            out[t.first : t.last + 1, at : at + t.size] += 1
    return out


@given(buffers(), st.floats(0, 1))
def test_no_byte_holds_two_buffers_at_one_time(tiles: list[PlannedTile], part: float) -> None:
    limit = int(most_alive(tiles) + part * (side_by_side(tiles) - most_alive(tiles)))
    places = addresses(tiles, limit)
    assert [len(places[id(t)]) for t in tiles] == [t.slots for t in tiles]
    assert held(tiles, places).max() == 1


@given(buffers())
def test_a_figure_lies_between_what_is_alive_at_once_and_side_by_side(tiles: list[PlannedTile]) -> None:
    assert most_alive(tiles) <= figure(tiles) <= side_by_side(tiles)


@given(buffers(), st.integers(0, 200))
def test_what_the_figure_fits_in_is_placed_within_it(tiles: list[PlannedTile], more: int) -> None:
    limit = figure(tiles) + more * BLOCK
    assert held(tiles, addresses(tiles, limit)).shape[1] <= limit


@given(buffers())
def test_with_room_for_all_nothing_shares_bytes_and_copies_follow_each_other(
    tiles: list[PlannedTile],
) -> None:
    places = addresses(tiles, side_by_side(tiles))
    spans = sorted((at, at + t.size) for t in tiles for at in places[id(t)])
    assert all(a[1] == b[0] for a, b in pairwise(spans))
    for t in tiles:
        assert np.diff(places[id(t)]).tolist() == [t.size] * (t.slots - 1)


def test_while_there_is_room_no_transfer_waits_for_a_place() -> None:
    """A tile that is loaded later shares bytes with a dead temporary only where the limit asks for it."""
    moved, dead, later = buffer(4, 0, 5, loaded=True), buffer(4, 1, 1), buffer(4, 4, 1)
    loose = addresses([moved, dead, later], 11 * BLOCK)  # level 3: the temporaries share
    assert loose[id(dead)] == loose[id(later)] != loose[id(moved)]
    loaded = buffer(4, 7, 1, loaded=True)
    tight = addresses([moved, dead, later, loaded], 8 * BLOCK)  # level 0: the load takes what is dead
    assert max(at for places in tight.values() for at in places) == 4 * BLOCK


def test_holes_count() -> None:
    """First fit: the third buffer is larger than the hole that the first leaves (3.20)."""
    first, second, third = buffer(2, 0, 1), buffer(3, 1, 5), buffer(3, 3, 1)
    assert figure([first, second, third]) == 8 * BLOCK > most_alive([first, second, third])


def test_a_load_and_a_store_that_touch_may_lie_on_each_other_if_they_were_kept_apart_for_that() -> None:
    one, other = buffer(4, 0, 2, slots=2, loaded=True), buffer(4, 2, 2, slots=2, stored=True)
    assert figure([one, other]) == 16 * BLOCK
    assert figure([one, other], {(id(one), id(other))}) == 8 * BLOCK


@pytest.mark.parametrize("marks", [{"unique": True}, {"loaded": True}, {}, {"scalar": True}])
def test_order_is_unique_moved_others_scalar(marks: dict[str, bool]) -> None:
    kinds = [{"unique": True}, {"loaded": True}, {}, {"scalar": True}]
    mine, *rest = [buffer(1, 5 - k, **kind) for k, kind in enumerate([marks, *kinds])]
    order = in_order([*rest, mine])
    assert order.index(mine) - order.index(rest[kinds.index(marks)]) in (1, -1)
    assert all(a.first != b.first for a, b in combinations(rest, 2))

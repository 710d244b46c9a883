"""Records of one instruction: what lanes skip, what they take, and that the parts of a transfer are all of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.timing.trace.pieces import Piece, averages, pieces, waiting
from ascendtile.simulator.timing.trace.tree import Instruction, Path

MEMORY, L2 = 0, 1
PATH = Path((MEMORY, L2), (10, 11))
lanes_and_iterations = st.tuples(st.integers(1, 5), st.integers(1, 4))


@st.composite
def transfers(draw: st.DrawFn) -> tuple[int, Instruction]:
    """A load of some lanes and iterations of which memory gives all, a part or nothing."""
    lanes, iterations = draw(lanes_and_iterations)
    size = lanes * iterations
    share = np.array(draw(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=size, max_size=size)))
    amount = np.array(draw(st.lists(st.integers(1, 50), min_size=size, max_size=size)))
    occupancy = np.array(draw(st.lists(st.sampled_from([8.0, 20.0]), min_size=size, max_size=size)))
    slow = draw(st.sampled_from([None, 32.0]))
    writes, clobbers = draw(st.sampled_from([((3,), ()), ((), (4,)), ((3,), (4,))]))
    one, late = draw(st.booleans()), draw(st.sampled_from([0.0, 12.0]))
    waits = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size))) & (share == 0.0)
    return lanes, Instruction(
        2, 0, 16.0 if one else occupancy, 9.0, amount=40 if one else amount, path=PATH, share=share, slow=slow,
        writes=writes, clobbers=clobbers, late=late, waits=draw(st.sampled_from([None, waits])),
    )  # fmt: skip


def every_piece(x: Instruction, lanes: int) -> list[Piece]:
    """Each followed by the one that lanes execute in its place."""
    return [part for p in pieces(x, lanes) for part in (p, p.other) if part is not None]


def from_memory(x: Instruction, lanes: int) -> np.ndarray:
    """[iterations, lanes] that take as long as memory does: it gives all, to them or to a lane that they wait for."""
    waits = np.zeros(x.share.size, bool) if x.waits is None else x.waits  # type: ignore[union-attr]
    found: np.ndarray = ((x.share == 1.0) | waits).reshape(-1, lanes)
    return found


def wide(x: object, lanes: int, iterations: int) -> np.ndarray:
    """[iterations, lanes] of one number, or of rows of numbers."""
    return np.array(np.broadcast_to(np.reshape(x, (-1, 1)) if np.ndim(x) == 1 else x, (iterations, lanes)))


@given(transfers())
def test_bytes_of_the_parts_add_up_to_the_transfer_in_each_lane(given: tuple[int, Instruction]) -> None:
    lanes, x = given
    iterations = x.share.size // lanes  # type: ignore[union-attr]
    share, amount = (np.broadcast_to(v, x.share.size).reshape(-1, lanes) for v in (x.share, x.amount))  # type: ignore[union-attr]
    moved = {MEMORY: np.zeros((iterations, lanes)), L2: np.zeros((iterations, lanes))}
    for part in every_piece(x, lanes):
        moved[part.channel] += np.maximum(wide(part.amount, lanes, iterations), 0.0)
    np.testing.assert_allclose(moved[MEMORY], share * amount)
    np.testing.assert_allclose(moved[L2], (1.0 - share) * amount)


@given(transfers())
def test_each_lane_waits_for_one_latency_and_writes_once_at_the_end(given: tuple[int, Instruction]) -> None:
    """The last part of a lane writes; before it the tile is only clobbered."""
    lanes, x = given
    parts = every_piece(x, lanes)
    iterations = x.share.size // lanes  # type: ignore[union-attr]
    does = np.array([wide(p.amount, lanes, iterations) >= 0 for p in parts])
    last = len(parts) - 1 - np.argmax(does[::-1], axis=0)  # of each lane
    assert does.any(axis=0).all()
    for k, (p, mine) in enumerate(zip(parts, does, strict=True)):
        at_the_end = mine & (last == k)
        assert at_the_end[mine].all() or not at_the_end.any()
        own = (x.writes, x.clobbers) if at_the_end.any() else ((), x.writes + x.clobbers)
        assert (p.writes, p.clobbers) == own
    latency = sum(np.where(mine, p.latency, 0.0) for p, mine in zip(parts, does, strict=True))
    assert (latency == x.latency + x.late * from_memory(x, lanes)).all()
    assert [p.line for p in parts] == [PATH.lines[p.channel] for p in parts]


@given(transfers())
def test_least_cycles_are_shared_as_the_bytes_are(given: tuple[int, Instruction]) -> None:
    """In an iteration whose lanes have one share, memory's part at memory's pace and the rest at that of L2.

    A lane that waits for another one's load does so at memory's pace, too.
    """
    lanes, x = given
    share = x.share.reshape(-1, lanes)  # type: ignore[union-attr]
    fast = np.broadcast_to(averages(x.occupancy, lanes), len(share))
    slow = fast if x.slow is None else np.full(len(share), x.slow)
    found = np.zeros(len(share))
    for p in every_piece(x, lanes):
        does = (wide(p.amount, lanes, len(share)) >= 0).all(axis=1)
        found += np.where(does, p.occupancy, 0.0)
    waits = from_memory(x, lanes) & (share == 0.0)
    alike = (share == share[:, :1]).all(axis=1) & (waits == waits[:, :1]).all(axis=1)
    part = np.where(waits[:, 0], 1.0, share[:, 0])
    expected = part * slow + (1.0 - part) * fast
    np.testing.assert_allclose(found[alike], expected[alike])


@given(transfers())
def test_lanes_that_l2_serves_alike_take_the_same_beside_any_others(given: tuple[int, Instruction]) -> None:
    """What another lane has from memory is no cycle of a lane that has all, a part or nothing from there."""
    lanes, x = given
    x = x._replace(occupancy=16.0, slow=None)
    share = x.share.reshape(-1, lanes)  # type: ignore[union-attr]
    found = np.zeros(share.shape)
    for p in every_piece(x, lanes):
        found += np.where(wide(p.amount, *share.shape[::-1]) >= 0, wide(p.occupancy, *share.shape[::-1]), 0.0)
    np.testing.assert_allclose(found, 16.0)


@given(lanes_and_iterations, st.integers(1, 3), st.data())
def test_lanes_wait_for_what_another_one_of_their_wave_loads_from_memory(
    size: tuple[int, int], cores: int, data: st.DataObject
) -> None:
    lanes, iterations = size
    count = lanes * iterations
    shares = st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=count, max_size=count)
    share = np.array(data.draw(shares))
    starts = np.array(data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)))
    found = waiting(share, starts, np.arange(lanes) // cores)
    for at in np.ndindex(iterations, lanes):
        same = [(at[0] * lanes + k) for k in range(lanes) if k // cores == at[1] // cores]
        mine = at[0] * lanes + at[1]
        leader = any(share[k] == 1.0 and starts[k] == starts[mine] for k in same)
        assert (found is not None and bool(found[at])) == (share[mine] == 0.0 and leader)


@given(lanes_and_iterations, st.data())
def test_lanes_that_do_not_have_a_record_skip_it(size: tuple[int, int], data: st.DataObject) -> None:
    lanes, iterations = size
    count = lanes * iterations
    partial = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    (part,) = pieces(Instruction(1, 0, 5.0, partial=partial), lanes)
    assert np.array_equal(part.amount, np.where(partial, 5.0, -1.0).reshape(iterations, lanes))


@given(lanes_and_iterations, st.data())
def test_an_average_is_exact_where_lanes_are_alike(size: tuple[int, int], data: st.DataObject) -> None:
    lanes, iterations = size
    numbers = st.lists(st.floats(0, 1e6), min_size=iterations, max_size=iterations)
    each = np.array(data.draw(numbers))
    assert np.array_equal(np.broadcast_to(averages(np.repeat(each, lanes), lanes), iterations), each)
    mixed = np.array(data.draw(st.lists(st.floats(0, 1e6), min_size=lanes, max_size=lanes)))
    assert averages(mixed, lanes) == pytest.approx(mixed.mean())

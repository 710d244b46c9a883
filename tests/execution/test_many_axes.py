"""Tiles of six to nine axes: what is loaded, stored, reduced and timed is what numpy and fewer axes say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import OutOfBoundsError, UsageError


@sim.jit
def places(SHAPE: tl.constexpr, STEPS: tl.constexpr):
    at = tl.arange(0, SHAPE[0]) * STEPS[0]
    for k in tl.static_range(1, len(SHAPE)):
        at = tl.expand_dims(at, k) + tl.arange(0, SHAPE[k]) * STEPS[k]
    return at


@sim.jit
def inner_below(SHAPE: tl.constexpr, end):
    """The box where the last index is below `end`."""
    i = tl.arange(0, SHAPE[-1]) < end
    for _k in tl.static_range(1, len(SHAPE)):
        i = tl.expand_dims(i, 0)
    return i


@sim.jit
def moved(x, out, rest, total, end, N: tl.constexpr, SHAPE: tl.constexpr, TO: tl.constexpr, AXIS: tl.constexpr,
          FROM: tl.constexpr):  # fmt: skip
    first = tl.program_id(0) * N
    v = tl.load(x + first + places(SHAPE, FROM), mask=inner_below(SHAPE, end), other=-1)
    tl.store(out + first + places(SHAPE, TO), v)
    tl.atomic_add(total + tl.program_id(0), tl.sum(v))
    part: tl.constexpr = N // SHAPE[AXIS]
    tl.store(rest + tl.program_id(0) * part + tl.arange(0, part), tl.reshape(tl.max(v, AXIS), (part,)))


def steps(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(np.prod(shape[k + 1 :])) for k in range(len(shape)))


@settings(max_examples=5)
@given(st.lists(st.integers(1, 3), min_size=6, max_size=9), st.randoms(use_true_random=False), st.data())
def test_moves_and_reductions(sizes: list[int], random, data) -> None:
    """Loads with a box mask, stores in a drawn order of the axes, sums and maxima."""
    shape, rank = tuple(sizes), len(sizes)
    axis, end = data.draw(st.integers(0, rank - 1)), data.draw(st.integers(0, shape[-1]))
    order = random.sample(range(rank), rank)
    back = [order.index(k) for k in range(rank)]
    to = tuple(steps(tuple(shape[k] for k in order))[back[k]] for k in range(rank))
    x = np.random.default_rng(rank).integers(0, 100, (2, *shape)).astype(np.float32)
    out, total = np.empty(x.size, np.float32), np.zeros(2, np.float32)
    rest = np.empty(x.size // shape[axis], np.float32)
    run = moved[(2,)](x, out, rest, total, end, x[0].size, SHAPE=shape, TO=to, AXIS=axis, FROM=steps(shape))
    want = np.where(np.arange(shape[-1]) < end, x, -1)
    assert out.tolist() == want.transpose(0, *(k + 1 for k in order)).reshape(-1).tolist()
    assert rest.tolist() == want.max(axis + 1).reshape(-1).tolist()
    assert total.tolist() == want.reshape(2, -1).sum(1).tolist()
    assert run.cycles > 0


@sim.jit
def to_one_place(x, out, SHAPE: tl.constexpr, STEPS: tl.constexpr):
    tl.store(out + places(SHAPE, STEPS), tl.load(x + places(SHAPE, STEPS)) + tl.program_id(0))


def test_faults_and_errors_name_places_along_all_axes() -> None:
    shape = (2, 1, 2, 2, 2, 2, 2)
    x, out = np.zeros(64, np.float32), np.zeros(64, np.float32)
    with sim.device("ascend910b3", check=True):
        run = to_one_place[(2,)](x, out, shape, steps(shape))
        assert ["program" in str(f) for f in run.faults] == [True]
        with pytest.raises(OutOfBoundsError, match=r"element 64 .*tile element \[1, 0, 1, 1, 1, 1, 1\]"):
            to_one_place[(1,)](x, out, shape, (33, *steps(shape)[1:]))


def test_a_tile_without_gaps_moves_in_the_time_of_its_elements_whatever_its_axes() -> None:
    times = {}
    for shape in ((4096,), (4, 1024), (2, 2, 2, 2, 4, 64), (2, 2, 2, 2, 2, 2, 2, 32), (2,) * 8 + (16,)):
        x = sim.shape(4096, "float32")
        run = to_one_place.time((1,), x, x, shape, steps(shape))
        times[shape] = tuple(run.pipes[f"AIV.{pipe}"].busy_cycles for pipe in ("MTE2", "V", "MTE3"))
    assert len(set(times.values())) == 1, times


def test_ten_axes_are_too_many() -> None:
    x = np.zeros(1024, np.float32)
    with pytest.raises(UsageError, match="rank 10 cannot be loaded or stored; the limit is 9 axes"):
        to_one_place[(1,)](x, x, (2,) * 10, steps((2,) * 10))

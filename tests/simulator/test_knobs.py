"""What one change of a launch's knobs would do: each time is the one that the changed launch really takes."""

from __future__ import annotations

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.observers import quietly, watch

N = 98_432


@sim.jit
def double(x, out, n, B: tl.constexpr, TIMES: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n) * TIMES, mask=i < n)


@sim.jit
def by_iterations(x, out, n, B: tl.constexpr):
    for first in range(tl.program_id(0) * B, n, tl.num_programs(0) * B):
        i = first + tl.arange(0, B)
        tl.store(out + i, tl.exp(tl.load(x + i, mask=i < n)), mask=i < n)


@sim.jit
def square(a, c, M: tl.constexpr):
    at = tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :]
    x = tl.load(a + at)
    tl.store(c + at, tl.dot(x, x))


def grid(meta):
    return (-(-N // meta["B"]),)


def test_a_size_that_the_grid_asks_for_is_doubled_and_halved():
    shapes = (sim.shape(N, "float32"), sim.shape(N, "float32"))
    with sim.device("ascend910b3", explain=True):
        run = double.time(grid, *shapes, N, B=256, TIMES=2)
    with sim.device("ascend910b3"):
        for other in (128, 512):
            expected = double.time(grid, *shapes, N, B=other, TIMES=2).time_us
            assert run.changes[f"B 256 -> {other}"] == pytest.approx(expected)
    assert list(run.changes.values()) == sorted(run.changes.values())
    assert not any(name.startswith("TIMES") for name in run.changes)  # the grid knows nothing of it
    assert not any("grid is fixed" in note for note in run.notes)


def test_a_fixed_grid_goes_along_with_a_tile_and_no_size_of_the_data_is_tried():
    shapes = (sim.shape(N, "float32"), sim.shape(N, "float32"))
    with sim.device("ascend910b3", explain=True):
        run = double.time((385,), *shapes, N, B=256, TIMES=2)
        row = double.time((1,), *shapes, 256, B=256, TIMES=2)
    with sim.device("ascend910b3"):
        for other, programs in ((128, 769), (512, 193)):
            expected = double.time((programs,), *shapes, N, B=other, TIMES=2).time_us
            assert run.changes[f"B 256 -> {other}, grid 385 -> {programs}"] == expected
    assert run.untried["TIMES"] == "no tile goes by it"
    assert not any(change.startswith("TIMES") for change in run.changes)
    assert row.untried == {"TIMES": "no tile goes by it"}


def test_programs_that_go_on_by_their_number_do_the_same_work_with_any_size():
    shapes = (sim.shape(N, "float32"), sim.shape(N, "float32"))
    with sim.device("ascend910b3", explain=True):
        run = by_iterations.time((8,), *shapes, N, B=1024)
    assert {"multibuffer 2 -> 1", "multibuffer 2 -> 4", "B 1024 -> 2048", "B 1024 -> 512"} <= set(run.changes)
    with sim.device("ascend910b3"):
        for change, grid, size, copies in (
            ("multibuffer 2 -> 1", 8, 1024, 1),
            ("B 1024 -> 2048", 8, 2048, 2),
            ("grid 8 -> 40", 40, 1024, 2),
        ):
            again = by_iterations.time((grid,), *shapes, N, B=size, multibuffer=copies)
            assert run.changes[change] == again.time_us


def test_products_have_the_unit_flag():
    shapes = (sim.shape((64, 64), "float16"), sim.shape((64, 64), "float32"))
    for name, there in (("ascend910b3", True), ("ascend310p", False)):
        with sim.device(name, explain=True):
            run = square.time((1,), *shapes, M=64)
        with sim.device(name, unit_flag=True):
            changed = square.time((1,), *shapes, M=64)
        differs = there and changed.time_us != run.time_us
        assert ("unit_flag False -> True" in run.changes) == differs


def test_nothing_is_written_by_a_trial_and_candidates_are_not_explained():
    x, out = np.ones(N, np.float32), np.zeros(N, np.float32)
    told = []
    with sim.device("ascend910b3", explain=True), watch(told.append):
        run = double[grid](x, out, N, B=256, TIMES=2)
        with quietly():
            quiet = double[grid](x, out, N, B=256, TIMES=2)
    assert (out == 2).all()
    assert len(told) == 1
    assert run.changes
    assert run.lifted
    assert quiet.changes == {}
    assert quiet.lifted == {}
    plain = double.time(grid, x, out, N, B=256, TIMES=2)
    assert plain.changes == {}
    assert plain.lifted == {}


@pytest.mark.exhaustive
def test_a_persistent_grid_is_timed_with_one_program_for_each_core():
    shapes = (sim.shape(N, "float32"), sim.shape(N, "float32"))
    with sim.device("ascend910b3", explain=True):
        cores = 40
        for programs in (3 * cores // 2, 2 * cores - 1, 7):
            run = by_iterations.time((programs,), *shapes, N, B=256)
            assert f"grid {programs} -> {cores}" in run.changes
        several = by_iterations.time((7, 2), *shapes, N, B=256)
        follows = by_iterations.time(grid, *shapes, N, B=4096)
    assert several.untried["grid"] == "it has several axes"
    assert follows.untried["grid"] == "a function of B"

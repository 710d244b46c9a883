"""A change that is proposed leaves what the launch computes as it is, and sizes of the data are never proposed."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.trials.search import MOST_STEPS, Trials, neighbours


@sim.jit
def masked_copy(x, out, n, B: tl.constexpr, PERSISTENT: tl.constexpr, FACTOR: tl.constexpr):
    step = tl.num_programs(0) * B if PERSISTENT else n
    for first in range(tl.program_id(0) * B, n, step):
        i = first + tl.arange(0, B)
        tl.store(out + i, tl.load(x + i, mask=i < n, other=0.0) * FACTOR, mask=i < n)


@sim.jit
def rows_without_mask(x, out, WIDTH: tl.constexpr, LENGTH: tl.constexpr):
    """With half the programs and rows twice as wide the same memory would be read and written."""
    at = tl.program_id(0) * WIDTH * LENGTH
    for k in range(0, LENGTH):
        i = at + k * WIDTH + tl.arange(0, WIDTH)
        v = tl.load(x + i)
        tl.store(out + i, v - tl.max(v, axis=0))


@sim.jit
def added_to_one(x, out, WIDTH: tl.constexpr):
    i = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    tl.atomic_add(out, tl.sum(tl.load(x + i), axis=0))


@sim.jit
def bias_of_rows(x, b, out, n, B: tl.constexpr):
    """Right where 1024 columns are whole tiles or a tile is whole rows: a smaller tile has the first columns' bias."""
    bias = tl.load(b + tl.arange(0, B) % 1024)
    for first in range(tl.program_id(0) * B, n, tl.num_programs(0) * B):
        i = first + tl.arange(0, B)
        tl.store(out + i, tl.load(x + i) + bias)


@settings(max_examples=4, deadline=None)
@given(st.integers(1, 5000), st.integers(1, 300), st.booleans(), st.booleans())
def test_a_proposed_tile_computes_the_same(n, block, persistent, follows):
    x = np.arange(n, dtype=np.float32)
    programs = 3 if persistent else -(-n // block)
    grid = (lambda m: (3 if persistent else -(-n // m["B"]),)) if follows else (programs,)
    sizes = {"PERSISTENT": persistent, "FACTOR": 3}
    with sim.device("ascend910b3", explain=True, values=False):
        run = masked_copy.time(grid, x, np.zeros_like(x), n, B=block, **sizes)
    changed = [re.fullmatch(r"B \d+ -> (\d+)(?:, grid \d+ -> (\d+))?", text) for text in run.changes]
    for found in filter(None, changed):
        out, size = np.zeros_like(x), int(found[1])
        there = (int(found[2]),) if found[2] else grid
        with sim.device("ascend910b3", time=False):
            masked_copy[there](x, out, n, B=size, **sizes)
        assert (out == 3 * x).all()
    assert not [text for text in run.changes if text.startswith("FACTOR")]


def test_what_the_data_has_is_no_knob():
    shape = sim.shape((64, 8, 96), "float32")
    with sim.device("ascend910b3", explain=True):
        run = rows_without_mask.time((64,), shape, shape, WIDTH=96, LENGTH=8)
        parts = added_to_one.time((96,), sim.shape(9216, "float32"), sim.shape(1, "float32"), WIDTH=96)
    assert not [text for text in run.changes if text.startswith(("WIDTH", "LENGTH"))]
    assert run.untried["WIDTH"].startswith("a length that is reduced as a whole")
    assert "WIDTH 96 -> 192, grid 96 -> 48" in parts.changes  # whose sum stays
    assert run.untried["LENGTH"] == "no tile goes by it"


def test_a_change_that_computes_something_else_is_not_proposed():
    rng = np.random.default_rng(0)
    x, b = (rng.standard_normal(n).astype(np.float16) for n in ((64, 1024), 1024))
    out = np.empty_like(x)
    with sim.device("ascend910b3", explain=True):
        run = bias_of_rows[(8,)](x, b, out, x.size, B=1024)
        timed = bias_of_rows.time((8,), x, b, out, x.size, B=1024)
    assert (out == x + b).all()  # not what a change leaves
    better = [
        t for t, us in timed.changes.items() if us < 0.98 * timed.time_us and t.startswith("B 1024 -> ")
    ]
    assert "B 1024 -> 256" in better
    assert "B 1024 -> 256" not in run.changes
    assert run.untried["B=256"] == "with it out gets other values"
    assert "values" in timed.untried
    assert "values" not in run.untried
    assert any(t.startswith("grid") for t in run.changes)


@given(st.integers(1, 1000), st.integers(1, 1 << 14), st.integers(1, 1 << 14))
def test_values_go_on_while_they_are_faster_and_have_room(now, best, room):
    """Time falls towards `best` and rises behind it; beyond `room` nothing can be timed."""

    def time(n):
        return float(abs(n - best)) if n <= room else None

    found = dict(neighbours(now, abs(now - best), time))
    assert all(us == time(n) for n, us in found.items())
    assert max(found, default=0) <= room
    if now < best and 2 * now <= room:
        reached = max(found)
        doubled = min(now << MOST_STEPS, room)
        assert reached >= min(best, doubled) * 5 // 8


def test_of_equal_copies_the_fewest_come_first():
    found = Trials({"multibuffer 2 -> 4": 1.0, "multibuffer 2 -> 1": 1.0, "B 8 -> 4": 0.5})
    assert list(found.sorted_changes(2.0)) == ["B 8 -> 4", "multibuffer 2 -> 1", "multibuffer 2 -> 4"]

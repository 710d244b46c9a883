"""L2 in a loop: what the launch before left is found by going backwards; against a plain model, and as whole launches."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.timing.costs.l2_cache import FirstTouch

from .test_l2_cache import LINE, PlainCache, cases, lines_of, tensor

SMALL = {"l2.size": 1 << 20}
MIB = 1 << 20


@sim.jit
def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = first + tl.arange(0, BLOCK)
        tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2.0, mask=at < n)


@sim.jit
def written_then_read(x_ptr, y_ptr, n, small, BLOCK: tl.constexpr):
    """Stores come first: what they leave is pushed out by loads."""
    for first in range(tl.program_id(0) * BLOCK, small, tl.num_programs(0) * BLOCK):
        tl.store(y_ptr + first + tl.arange(0, BLOCK), 1.0)
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        tl.load(x_ptr + first + tl.arange(0, BLOCK))


def launched(kernel, *args, cores=20, **options):
    with sim.device("ascend910b3", **options):
        return kernel.time((cores,), *args, BLOCK=4096).launches[0]


def copied(n, cores=20, **options):
    return launched(copy, *(sim.shape(n, "float16") for _ in "xy"), n, cores=cores, **options)


class Forgetful(dict):
    """Tiles met again are remembered whole: with it each access begins without, so that every line is looked at."""

    def get(self, key):
        self[len(self)] = np.zeros((16, 3), np.int64)
        return self[len(self) - 1]


class PlainLoop(PlainCache):
    """Begins with the lines that were touched last, as many as there is room for."""

    def __init__(self, room, steps):
        super().__init__(room)
        self.came = room + 1
        for first, count, write in reversed(steps):
            full = False
            for line in range(first, first + count):
                if line not in self.last and len(self.last) < room:
                    self.last[line] = room + 1 - len(self.last)
                full = full or line not in self.last
                if write and line in self.last:
                    self.dirty.add(line)
            if full:
                break
        self.full = len(self.last) == room


@given(cases)
def test_a_loop_begins_with_the_lines_that_were_touched_last(case):
    steps, room = case
    loop, x = FirstTouch(room * LINE), tensor(280)
    plain = PlainLoop(room, steps)
    touched = len({line for first, count, _ in steps for line in range(first, first + count)})
    assume(touched > room)
    dirty = len(plain.dirty)
    loop.in_loop((), tuple)
    loop.touched = Forgetful()
    one = np.zeros(1, np.int64)
    for first, count, write in steps:
        loop.later([(x, lines_of(x, first, count), write)], one.astype(np.int32), one, one)
    loop.settle()
    wrote = read = 0
    for first, count, write in steps:
        found = [plain.touch(line, write) for line in range(first, first + count)]
        wrote += sum(changed for _, changed in found)
        read += 0 if write else sum(new for new, _ in found)
    assert loop.read_lines == read
    assert loop.written_lines + loop.owed + sum(n for _, n in loop.changed) == wrote + dirty


@given(st.integers(1, 30_000), st.integers(1, 40))
def test_what_fits_is_all_there_and_nothing_is_written_back(n, cores):
    loop, warm, cold = (copied(n, cores, l2=word) for word in ("loop", "warm", "cold"))
    assert loop.resources["HBM"] == 0
    assert (loop.cycles, loop.resources) == (warm.cycles, warm.resources)
    assert loop.cycles <= cold.cycles
    assert loop.l2_left_bytes == pytest.approx(2 * n, abs=2 * LINE)


@pytest.mark.parametrize("times", [2, 5])
def test_what_is_much_more_than_l2_is_read_and_written_every_time(times):
    n = times * MIB // 2
    loop, cold = copied(n, overrides=SMALL), copied(n, overrides=SMALL, l2="cold")
    assert loop.resources["HBM"] == pytest.approx(2 * 2 * n, rel=0.05)
    assert cold.resources["HBM"] == pytest.approx(2 * 2 * n - cold.l2_left_bytes, rel=0.05)
    assert loop.l2_left_bytes == pytest.approx(MIB / 2, abs=MIB / 7)  # half of L2 is y
    assert loop.cycles > cold.cycles


def test_changed_lines_that_loads_push_out_take_their_part_of_memory():
    """The same bytes as with stores that wait for them; on a clean L2 they are left for others."""
    n, small = 4 * MIB // 2, MIB // 4
    args = sim.shape(n, "float16"), sim.shape(small, "float16"), n, small
    loop, cold = (launched(written_then_read, *args, overrides=SMALL, l2=x) for x in ("loop", "cold"))
    assert loop.resources["HBM"] == pytest.approx(2 * (n + small), rel=0.03)
    assert loop.bounds["HBM"] > cold.bounds["HBM"]
    assert loop.cycles > cold.cycles


@given(st.sampled_from([4_096, 200_000, 400_000, 600_000]), st.integers(1, 40))
def test_the_same_launch_again_and_again_comes_to_what_the_loop_says(n, cores):
    x, y = (sim.shape(n, "float16") for _ in "xy")
    loop = copied(n, cores, overrides=SMALL)
    with sim.device("ascend910b3", overrides=SMALL), sim.chain():
        third = [copy.time((cores,), x, y, n, BLOCK=4096) for _ in range(3)][-1].launches[0]
    assert third.resources["HBM"] == pytest.approx(loop.resources["HBM"], rel=0.05, abs=MIB / 20)
    assert third.cycles == pytest.approx(loop.cycles, rel=0.06)


@pytest.mark.parametrize("n", [100_000, 1_000_000])
def test_a_tensor_may_be_found_otherwise_than_the_others(n):
    own = {"cold": {"x": "cold"}, "warm": {"x_ptr": "warm"}}
    hbm = {w: copied(n, overrides=SMALL, l2=x).resources["HBM"] for w, x in own.items()}
    assert hbm["cold"] >= 2 * n - LINE
    assert hbm["warm"] <= hbm["cold"]


def test_a_launch_with_too_many_accesses_to_wait_for_takes_about_as_long(monkeypatch):
    """What is there at the start is then told by the sizes of the tensors."""
    n = 600_000
    waited = copied(n, overrides=SMALL)
    monkeypatch.setattr("ascendtile.simulator.timing.costs.l2_cache.KEPT_BYTES", 0)
    monkeypatch.setattr("ascendtile.simulator.launch.recall", lambda *_: None)
    guessed = copied(n, overrides=SMALL)
    assert guessed.resources["HBM"] == pytest.approx(waited.resources["HBM"], rel=0.1)
    assert guessed.cycles == pytest.approx(waited.cycles, rel=0.1)

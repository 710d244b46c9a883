"""L2 of a launch: which bytes come from memory, which stores wait for it; against a plain model of least recent use."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.interpreter.regions import AccessRegion
from ascendtile.simulator.interpreter.tensors import Tensor
from ascendtile.simulator.interpreter.values import Affine
from ascendtile.simulator.precision import dtypes as ty
from ascendtile.simulator.timing.costs.l2_cache import FirstTouch
from ascendtile.simulator.timing.costs.transfers import sharers, traffic
from ascendtile.simulator.timing.engine.machine import start_cycles

LINE = 128  # bytes
P = sim.load_product("ascend910b1")


def tensor(lines):
    elements = lines * LINE // 4
    return Tensor("x", ty.float32, (elements,), None, 0, elements, True, 0)


def lines_of(x, first, count):
    n = count * LINE // 4
    return AccessRegion(x, Affine(first * LINE // 4, (1,), (n,)), None, 1)


class PlainCache:
    """A line is there while no more lines than fit came since it was touched last."""

    def __init__(self, room):
        self.room, self.came, self.last, self.dirty = room, 0, {}, set()

    def touch(self, line, write):
        new = line not in self.last or self.came - self.last[line] > self.room
        if new:
            self.came += 1
            self.dirty.discard(line)
        changed = write and line not in self.dirty
        if write:
            self.dirty.add(line)
        self.last[line] = self.came
        return new, changed


accesses = st.lists(st.tuples(st.integers(0, 55), st.integers(4, 8), st.booleans()), min_size=1, max_size=40)
eights = st.integers(1, 16).map(lambda n: 8 * n)
long_accesses = st.lists(
    st.tuples(eights, eights, st.booleans()), min_size=1, max_size=20
)  # whole blocks, too
cases = st.tuples(accesses, st.integers(4, 40)) | st.tuples(long_accesses, st.integers(120, 300))


@given(cases)
def test_lines_from_memory_are_those_that_least_recent_use_has_lost(case):
    steps, room = case
    cache, plain, x = FirstTouch(room * LINE), PlainCache(room), tensor(280)
    wrote = read = 0
    for first, count, write in steps:
        found = [plain.touch(line, write) for line in range(first, first + count)]
        if write:
            cache.write(x, lines_of(x, first, count))
            wrote += sum(changed for _, changed in found)
        else:
            cache.touched.clear()  # tiles met again are remembered whole: here every line is looked at
            cache.share(x, lines_of(x, first, count))
            read += sum(new for new, _ in found)
    assert cache.read_lines == read
    assert cache.written_lines + cache.owed <= wrote
    assert cache.written_lines + cache.owed + sum(n for _, n in cache.changed) == wrote
    there = [line for line, last in plain.last.items() if plain.came - last <= room]
    (end,) = cache.ends({"x": x})
    assert (end.lines, end.changed) == (len(there), len(plain.dirty.intersection(there)))


def test_what_fits_is_read_once_and_what_does_not_is_read_every_time():
    for lines, again in ((90, 0.0), (120, 1.0)):
        cache, x = FirstTouch(100 * LINE), tensor(lines)
        shares = [cache.share(x, lines_of(x, k, 10))[0] for _ in range(3) for k in range(0, lines, 10)]
        assert shares[: lines // 10] == [1.0] * (lines // 10)
        assert set(shares[lines // 10 :]) == {again}


def test_a_resident_tensor_comes_from_l2_until_others_push_it_out():
    x, other = tensor(50), tensor(300)
    cache = FirstTouch(100 * LINE, [x])
    assert cache.share(x, lines_of(x, 0, 50))[0] == 0
    cache.share(other, lines_of(other, 0, 300))
    assert cache.share(x, lines_of(x, 0, 50))[0] == 1


def test_stores_run_at_the_pace_of_l2_until_it_is_full():
    cache, x = FirstTouch(100 * LINE), tensor(400)
    slow = [cache.write(x, lines_of(x, k, 10)) for k in range(0, 400, 10)]
    assert not any(slow[:10])
    assert all(slow[12:])
    full, y = FirstTouch(6400 * LINE, changed=1.0), tensor(6400)
    assert sum(full.write(y, lines_of(y, k, 100)) for k in range(0, 6400, 100)) >= 60  # of 64


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_memory_takes_as_many_bytes_whether_lines_are_stored_whole_or_in_parts(parts):
    """Parts of lines that follow each other, as the columns of a matrix that is stored block of columns by block."""
    cache, x, width, waited = FirstTouch(100 * LINE), tensor(400), LINE // 4 // parts, 0.0
    for top in range(0, 400, 40):
        for left in range(parts):
            where = Affine(top * LINE // 4 + left * width, (LINE // 4, 1), (40, width))
            waited += cache.write(x, AccessRegion(x, where, None, 1)) * 40 / parts
    assert 400 - 100 - 80 <= waited <= 400 - 100


def test_bursts_that_start_inside_of_a_line_weigh_more():
    def weight(base, pitch, columns):
        tile, x = Affine(base, (pitch, 1), (64, columns)), tensor(1 << 16)
        return traffic(tile, 2, AccessRegion(x, tile, None, 1))[0] / (64 * columns * 2)

    assert weight(0, 12288, 256) == 1
    assert weight(0, 12287, 256) == pytest.approx(1.97, rel=0.02)  # EX data_copy: 422.5 against 214.5 us
    assert weight(0, 12287, 1024) == pytest.approx(1.28, rel=0.04)  # 259.0 against 202.7 us


def test_sharers_are_counted_among_the_cores_of_one_moment():
    programs = np.arange(8)
    assert sharers(np.arange(8), programs, 4) == 1
    assert sharers(np.zeros(8, np.int64), programs, 4).tolist() == [4] * 8
    assert sharers(np.array([0, 0, 1, 2, 0, 0, 1, 2]), programs, 4).tolist() == [2, 2, 1, 1] * 2
    assert (
        sharers(np.array([0, 1, 0, 1]), np.tile(np.arange(2), 2), 4, np.repeat(np.arange(2), 2)) == 1
    )  # two iterations of two programs


@sim.jit
def read(x_ptr, n, apart, PAST: tl.constexpr, BLOCK: tl.constexpr):
    for k in range(0, n, BLOCK):
        at = tl.program_id(0) * apart + k + tl.arange(0, BLOCK)
        tl.load(x_ptr + at, cache_modifier=".cv" if PAST else "")


def test_reading_past_l2_comes_from_memory_each_time():
    n = 1 << 16
    for past, iterations in ((False, 1), (True, 2)):
        with sim.device("ascend910b1", l2="cold"):
            run = read.time((2,), sim.shape(n, "float16"), n, 0, PAST=past, BLOCK=8192)
        assert run.launches[0].resources["HBM"] == iterations * 2 * n


def test_cores_that_read_the_same_addresses_share_what_one_part_of_l2_serves():
    n, cores = 1 << 16, 48
    times = []
    for apart in (0, n):
        with sim.device("ascend910b1", l2="warm"):
            run = read.time((cores,), sim.shape(cores * n, "float16"), n, apart, PAST=False, BLOCK=8192)
        times.append(run.cycles)
    served = cores * 2 * n / P.number("l2.same_address_bytes_per_cycle")
    started = (cores - 1) * start_cycles(P)  # the last core begins so much later
    assert times[0] - started == pytest.approx(served, rel=0.05)
    assert times[1] < 0.6 * times[0]


@sim.jit
def read_rows(x_ptr, pitch, ROWS: tl.constexpr, WIDE: tl.constexpr):
    row, column = tl.arange(0, ROWS), tl.arange(0, WIDE)
    tl.load(x_ptr + row[:, None] * pitch + column[None, :])


@pytest.mark.parametrize("cores", [2, 4, 8, 12, 16, 48])
def test_two_limits_of_rows_that_cores_share_are_each_a_bound_and_both_together_take_somewhat_longer(cores):
    rows, wide = 128, 64
    with sim.device("ascend910b1", l2="warm"):
        run = read_rows.time((cores,), sim.shape(rows * 256, "float16"), 256, ROWS=rows, WIDE=wide)
    own, one = rows * P.number("path.gm_to_ub.row_cycles"), P.number("l2.same_address_row_cycles")
    served = cores * rows * (one + 2 * wide / P.number("l2.same_address_bytes_per_cycle"))
    found = run.launches[0].pipes["AIV.MTE2"].busy_cycles
    assert max(own, served) < found <= 1.2 * max(own, served)
    if max(own, served) > 3 * min(own, served):
        assert found == pytest.approx(max(own, served), rel=0.01)


@given(st.integers(8, 40), st.data(), st.sampled_from((1, 2, 4, 8, 32)), st.integers(1, 4))
def test_rows_that_go_on_where_the_last_one_ends_are_one_run(count, data, row, planes):
    """A tile of blocks of channels has rows of 32 bytes: four of them are one line, not four."""
    known = data.draw(st.integers(0, count))
    n = count * LINE // 4
    apart = n + LINE // 4
    shares = []
    for inner in ((n,), (n // row, row)):
        cache, x = FirstTouch(), tensor(planes * (count + 1) + 1)
        for plane in range(planes):
            if known:
                cache.share(x, lines_of(x, plane * (count + 1), known))
        strides = (apart, 1) if len(inner) == 1 else (apart, row, 1)
        shares.append(cache.share(x, AccessRegion(x, Affine(0, strides, (planes, *inner)), None, 1))[0])
    assert shares[0] == shares[1]
    if 3 <= planes * known <= planes * count - 3:
        assert shares[0] == pytest.approx(1 - known / count) or shares[0] == 0.0


def test_rows_that_an_access_does_not_have_are_refused():
    x = tensor(8)
    once = np.zeros(1, np.int64)
    with pytest.raises(IndexError, match="tiles up to 2 of access 0, which has 1"):
        FirstTouch(1 << 20).shares(
            [(x, lines_of(x, 0, 2), False)], once.astype(np.int32), once, np.zeros(2, np.int64)
        )


@given(st.integers(1, 8), st.integers(1, 6), st.booleans())
def test_pieces_that_share_a_line_count_once(quads, columns, write):
    """Blocks of 32 bytes, four to a line, met one row of `columns` blocks after the other: all of them come from memory,
    though three of four are in a line that another one brought, and all of them wait that push as many lines out.
    """
    rows = 4 * quads
    lines = quads * columns
    x, cache = tensor(3 * lines), FirstTouch(lines * LINE)
    pieces = AccessRegion(x, Affine(0, (8, rows * 8, 1), (rows, columns, 8)), None, 1)
    if write:
        cache.write(x, lines_of(x, lines, lines))
        cache.share(x, lines_of(x, 2 * lines, lines))
        assert cache.write(x, pieces)
        assert cache.written_lines == lines
    else:
        assert cache.share(x, pieces) == 1.0
        assert cache.read_lines == lines

"""Lines of 512 bytes: what rows shorter than a line cost from memory, past L2 and from L2; rows that start inside of one."""

import math

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
from ascendtile.simulator.timing.costs.transfers import LINE_BYTES, line_requests, traffic

from ..lowering import test_loops as together

NAME = "ascend910b1"
ROWS, TILES = 64, 48


@sim.jit
def tiles_of_rows(x_ptr, wide, tiles, HOW: tl.constexpr, TM: tl.constexpr, TN: tl.constexpr):
    """One core reads `tiles` tiles that lie side by side; what it reads goes nowhere."""
    for j in range(tiles):
        row, column = tl.arange(0, TM), j * TN + tl.arange(0, TN)
        tl.load(x_ptr + row[:, None] * wide + column[None, :], cache_modifier=HOW)


@sim.jit
def tiles_met_again(x_ptr, wide, tiles, width, HOW: tl.constexpr, TM: tl.constexpr, TN: tl.constexpr):
    """Programs read tiles that their neighbours read, too, a part of each new, the last one cut."""
    first = tl.program_id(0) * (TM // 2)
    for j in range(tiles):
        row, column = first + tl.arange(0, TM), j * TN + tl.arange(0, TN)
        tl.load(
            x_ptr + row[:, None] * wide + column[None, :], mask=(column < width)[None, :], cache_modifier=HOW
        )


def each_row(how="", warm=False, columns=64):
    """Cycles for each row of a tile."""
    wide = columns * TILES
    with sim.device(NAME, l2="warm" if warm else "cold"):
        run = tiles_of_rows.time(
            (1,), sim.shape((ROWS, wide), "float16"), wide, TILES, HOW=how, TM=ROWS, TN=columns
        )
    return run.cycles / (ROWS * TILES)


def figures():
    product = sim.load_product(NAME)
    path = "path.gm_to_ub"
    return (product.number(f"{path}.{n}") for n in ("row_cycles", "bytes_per_cycle"))


def test_a_row_past_l2_takes_as_long_as_its_line():
    """48 AIV reading 6 MiB in rows of 128 bytes with L2 off take 11.6 cycles a row (EX data_copy, scenario 8)."""
    _, rate = figures()
    assert each_row(".cv") == pytest.approx(LINE_BYTES / rate, rel=0.03)
    assert each_row(".cv") == pytest.approx(11.6, rel=0.06)
    assert each_row(".cv", columns=256) == pytest.approx(each_row(columns=256), rel=1e-6)


def test_short_rows_share_the_line_that_l2_keeps():
    row, rate = figures()
    quarter = row + (LINE_BYTES / rate - row) / 4
    assert each_row(warm=True) == pytest.approx(row, rel=0.03)
    assert each_row() == pytest.approx(quarter, rel=0.03)
    assert each_row(warm=True) < each_row() < each_row(".cv")


@given(st.sampled_from([8, 16, 32, 64, 128, 256]), st.booleans())
def test_memory_is_never_faster_than_l2_nor_past_l2_faster_than_memory(columns, cut):
    wide = columns * TILES - cut
    times = []
    for how, warm in (("", True), ("", False), (".cv", False)):
        with sim.device(NAME, l2="warm" if warm else "cold"):
            run = tiles_met_again.time(
                (8,), sim.shape((8 * ROWS, wide), "float16"), wide, TILES, wide, HOW=how, TM=ROWS, TN=columns
            )
        times.append(run.cycles)
    assert times == sorted(times)


@given(st.sampled_from([24, 64, 100, 256]), st.sampled_from(["", ".cv"]), st.integers(1, 50))
def test_all_iterations_at_once_are_the_same_records(columns, how, programs):
    def work():
        wide = columns * 9
        x = sim.shape(((programs + 1) * 16, wide), "float16")
        return tiles_met_again.time((programs,), x, wide, 9, wide - 5, HOW=how, TM=16, TN=columns)

    with sim.device(NAME):
        together.assert_same(together.observe(work, True), together.observe(work, False))


def rows(count, length, pitch, base=0):
    """`count` rows of `length` elements, `pitch` apart, as an access to fp16."""
    return Affine(base, (pitch, 1), (count, length))


def region(access):
    n = 1 << 40
    return AccessRegion(Tensor("x", ty.float16, (n,), None, 0, n, True, 0), access, None, 1)


def weight_of(access):
    """Bytes on the way over bytes of its rows, which are whole blocks."""
    return traffic(access, 2, region(access))[0] / (2 * math.prod(access.shape))


@pytest.mark.parametrize(
    ("length", "pitch", "base", "weight"),
    [
        (256, 12288, 0, 1.0),  # rows of a line, at lines
        (256, 12287, 0, 1.99609375),  # EX data_copy: 1.97
        (1024, 12287, 0, 1.2490234375),  # EX data_copy: 1.28
        (256, 8000, 0, 1.75),  # catlass 34: at multiples of 128 bytes
        (64, 8000, 0, 1.0),  # a request of 128 bytes is one request
        (64, 8000, 16, 1.1875),  # starts at multiples of 32 bytes
    ],
)
def test_rows_that_start_inside_of_a_line_touch_one_more(length, pitch, base, weight):
    access = rows(64, length, pitch, base)
    assert weight_of(access) == weight


def test_one_long_burst_shares_its_ends_with_the_next():
    """Blocks of 16 192 elements one after the other: no line is fetched twice."""
    assert weight_of(Affine(16192, (1,), (16192,))) == 1.0
    assert weight_of(Affine(1, (1,), (512,))) > 1.4


@given(st.integers(2, 40), st.integers(1, 2000), st.integers(0, 8), st.integers(0, 999))
def test_line_requests_are_the_lines_on_average_over_all_starts(count, length, grain, gap):
    """Counted one by one over all starts that the largest power of two in the pitch allows."""
    pitch = (-(-length >> grain) + gap + 1 << grain) | 1 << grain  # in elements; no larger power divides it
    access = rows(count, length, pitch)
    starts = np.arange(0, LINE_BYTES, 2 << grain)
    exact = np.mean((starts + 2 * length - 1) // LINE_BYTES + 1) * count
    assert line_requests(access, 2, region(access)) == pytest.approx(exact)

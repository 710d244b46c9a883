"""Rows that end inside of a block of 32 bytes: each takes MTE2 longer than a row of whole blocks."""

import pytest

import ascendtile.simulator as sim
from ascendtile.simulator import language as tl

P = sim.load_product("ascend910b2")
PARTIAL, WHOLE = (P.number(f"path.gm_to_ub.{n}row_cycles") for n in ("partial_", ""))
ROWS = 64


@sim.jit
def rows_of(x_ptr, y_ptr, pitch, ROWS: tl.constexpr, N: tl.constexpr):
    row, column = tl.arange(0, ROWS), tl.arange(0, N)
    x = tl.load(x_ptr + row[:, None] * pitch + column[None, :])
    tl.store(y_ptr + row[:, None] * N + column[None, :], x)


def busy(n: int, pitch: int, rows: int = ROWS) -> float:
    """Cycles of MTE2 for rows of n numbers of FP32 from L2."""
    with sim.device("ascend910b2", l2="warm"):
        run = rows_of.time(
            (1,), sim.shape(rows * pitch, "float32"), sim.shape(rows * n, "float32"), pitch, ROWS=rows, N=n
        )
    return float(run.launches[0].pipes["AIV.MTE2"].busy_cycles)


@pytest.mark.parametrize("n", [3, 9, 25, 33])
def test_rows_that_end_inside_of_a_block_take_their_own_time_each(n):
    assert PARTIAL > WHOLE
    assert busy(n, 256) == pytest.approx(ROWS * PARTIAL, rel=0.05)


@pytest.mark.parametrize("n", [8, 24, 32])
def test_rows_of_whole_blocks_do_not(n):
    assert busy(n, 256) < ROWS * PARTIAL / 2


def test_neighbouring_rows_are_one_burst_whatever_their_length():
    """Rows that follow each other without a gap are read at once."""
    assert busy(25, 25) < ROWS * PARTIAL / 2


def test_one_row_alone_takes_no_longer():
    assert busy(25, 256, rows=1) < 2 * busy(24, 256, rows=1)


@sim.jit
def shorter_rows(x_ptr, y_ptr, CACHE: tl.constexpr, ROWS: tl.constexpr, N: tl.constexpr):
    """Of each program by its number."""
    row, column = tl.arange(0, ROWS), tl.arange(0, N)
    mask = (row < ROWS)[:, None] & (column < N - tl.program_id(0))[None, :]
    x = tl.load(x_ptr + row[:, None] * 2 * N + column[None, :], mask=mask, other=0.0, cache_modifier=CACHE)
    tl.store(y_ptr + tl.program_id(0) * ROWS * N + row[:, None] * N + column[None, :], x)


@pytest.mark.parametrize("cache", ["", ".cv"])
def test_rows_of_programs_are_judged_each_for_itself(cache):
    """Of 8, 7 and 6 numbers: the first program's are whole, those of the others take longer, alone or beside it."""
    with sim.device("ascend910b2", l2="warm"):
        shapes = sim.shape(ROWS * 16, "float32"), sim.shape(3 * ROWS * 8, "float32")
        one, three = (shorter_rows.time((n,), *shapes, CACHE=cache, ROWS=ROWS, N=8) for n in (1, 3))
    busy = [run.launches[0].pipes["AIV.MTE2"].busy_cycles for run in (one, three)]
    assert busy[1] > busy[0] + (0 if cache else ROWS * (PARTIAL - WHOLE) / 2)

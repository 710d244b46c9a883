"""Memory that repeats a small file, and the positions that are looked at."""

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.reports.judging.sampling.positions import drawn_in_runs, drawn_positions
from ascendtile.reports.judging.sampling.repeated import PERIOD, RepeatedMemory, ValueFile
from ascendtile.simulator.errors import UsageError

FLOAT, BYTE = np.dtype(np.float32), np.dtype(np.uint8)


@pytest.fixture(scope="module")
def file():
    return ValueFile(np.random.default_rng(0).random(PERIOD, np.float32))


def test_element_i_is_element_i_of_the_period(file):
    x = RepeatedMemory(3 * PERIOD + 77, FLOAT, file).array()
    at = np.array([0, 5, PERIOD - 1, PERIOD, 2 * PERIOD + 9, 3 * PERIOD + 76])
    assert (x[at] == file.values[at % PERIOD]).all()


@pytest.mark.parametrize("shift", [1, 64, 4096, 393216, 1 << 20, 10**6])
def test_a_round_shift_reads_other_values(file, shift):
    x = RepeatedMemory(4 * PERIOD, FLOAT, file).array()
    some = np.arange(0, PERIOD, 1009)
    assert (x[some] != x[some + shift]).mean() > 0.99


def test_what_is_written_is_the_writers_own(file):
    one, other = (RepeatedMemory(2 * PERIOD, FLOAT, file).array() for _ in range(2))
    one[7] = -1
    assert (one[7], one[7 + PERIOD], other[7]) == (-1, file.values[7], file.values[7])


def test_other_values_come_to_the_same_addresses(file):
    memory = RepeatedMemory(2 * PERIOD, FLOAT, file)
    x = memory.array()
    x[3] = -1
    memory.fill(ValueFile(file.values + 1))
    assert x[3] == file.values[3] + 1
    memory.fill(None)
    assert not x[:100].any()


def test_another_process_sees_the_values_of_a_file(file):
    opened = ValueFile.opened(os.dup(file.descriptor))
    assert (opened.values.view(FLOAT) == file.values).all()
    with open("/dev/null") as other, pytest.raises(UsageError, match="1052672 elements, got 0 bytes"):
        ValueFile.opened(other.fileno())


def test_large_memory_takes_none(file):
    x = RepeatedMemory(1 << 36, BYTE).array()
    x[12345] = 1
    assert (x.size, x[12345], x[-1]) == (1 << 36, 1, 0)


@given(st.lists(st.integers(1, 40), max_size=4), st.integers(0, 1 << 200), st.integers(2, 300))
def test_positions_are_different_elements_of_the_whole_output(shape, seed, count):
    found, size = drawn_positions(tuple(shape), seed, count), int(np.prod(shape))
    assert len(found) == len(set(found.tolist())) <= min(count, size)
    assert found[0] == 0
    assert size - 1 in found[:2]
    assert (found < size).all()
    assert (found == drawn_positions(tuple(shape), seed, count)).all()


def test_positions_differ_by_seed():
    one, other = (set(drawn_positions((1 << 15, 1 << 15), seed).tolist()) for seed in (1, 2))
    assert len(one & other) < 40


def test_an_output_without_elements_has_no_positions():
    assert not len(drawn_positions((3, 0), 1))


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), max_size=5), st.integers(1, 30))
def test_numbers_drawn_out_of_runs_lie_in_them(gaps, count):
    ends = np.cumsum(np.array(gaps, np.int64).reshape(-1)).reshape(-1, 2)
    low, high = ends[:, 0], ends[:, 1]
    found, every = drawn_in_runs(low, high, 3, count), [k for a, b in ends for k in range(a, b)]
    assert set(found.tolist()) <= set(every)
    assert len(found) <= count
    assert len(every) > count or found.tolist() == every

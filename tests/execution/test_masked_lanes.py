"""Masked-out lanes are never read; where Ascend would read them, lanes that point outside are named."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl


@sim.jit
def picked(x, out, keep, n, B: tl.constexpr):
    i = tl.arange(0, B)
    chosen = (tl.load(keep + i) > 0) & (i < n)
    tl.store(out + i, tl.load(x + i * 1000, mask=chosen, other=-1.0))


def test_a_mask_of_elements_over_far_addresses_is_a_warning_with_line_and_element() -> None:
    x, out = np.full(1, 5, np.float32), np.zeros(4, np.float32)
    run = picked[(1,)](x, out, np.array([1, 0, 0, 0], np.int32), 4, B=4)
    assert out.tolist() == [5, -1, -1, -1]
    (words,) = (w for w in run.warnings if "masked-out lanes" in w)
    assert f"test_masked_lanes.py:{picked.source.first_line + 4}: " in words
    assert "outside of 'x' (element 1000)" in words


def test_lanes_that_stay_inside_are_no_warning() -> None:
    x, out = np.arange(4000, dtype=np.float32), np.zeros(4, np.float32)
    run = picked[(1,)](x, out, np.array([1, 0, 1, 0], np.int32), 4, B=4)
    assert out.tolist() == [0, -1, 2000, -1]
    assert not any("masked-out lanes" in w for w in run.warnings)


@sim.jit
def tail(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


def test_a_plain_range_is_no_warning_since_its_tail_is_never_read() -> None:
    x, out = np.ones(5, np.float32), np.zeros(5, np.float32)
    assert tail[(2,)](x, out, 5, B=4).warnings == ()


@sim.jit
def far(x, out, step, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i * step, mask=i < n, other=-1.0))


@sim.jit
def in_front(x, out, by, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i - by, mask=i >= by, other=-1.0))


@sim.jit
def tiles(x, out, rows, columns, pitch, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.program_id(1) * C + tl.arange(0, C)
    at = r[:, None] * pitch + c[None, :]
    m = (r[:, None] < rows) & (c[None, :] < columns)
    tl.store(out + at, tl.load(x + at, mask=m), mask=m)


def told(run: sim.Run) -> list[str]:
    return [w for w in run.warnings if "masked-out lanes" in w]


@pytest.mark.parametrize("time", [False, True])
def test_lanes_of_a_range_far_behind_their_tensor_are_named_and_counted(time: bool) -> None:
    x, out = np.arange(4, dtype=np.float32), np.zeros(8, np.float32)
    with sim.device(time=time):
        run = far[(2,)](x, out, 1_000_000, 1, B=8)
    assert out.tolist() == [0, *[-1] * 7]
    (words,) = told(run)
    assert (
        f"test_masked_lanes.py:{far.source.first_line + 3}: 7 masked-out lanes of a load in program 0"
        in words
    )
    assert "outside of 'x' (element 1000000), up to 6999997 elements beyond its end" in words
    assert "tl.where(mask, offsets, 0)" in words


@given(st.integers(0, 8))
def test_every_lane_in_front_of_a_tensor_is_named(by: int) -> None:
    x, out = np.ones(8, np.float32), np.zeros(8, np.float32)
    found = told(in_front[(1,)](x, out, by, B=8))
    assert bool(found) == (by > 0)
    if by:
        assert f"{by} masked-out lanes" in found[0]
        assert f"up to {by} elements before its start" in found[0]


@given(st.integers(1, 40), st.integers(1, 20), st.integers(0, 9), st.sampled_from([1, 2, 4, 16]))
def test_the_ordinary_tail_of_rows_and_columns_is_no_warning(
    rows: int, columns: int, more: int, block: int
) -> None:
    whole = np.ones((rows, columns + more), np.float32)
    view, out = whole[:, :columns], np.zeros_like(whole)[:, :columns]
    grid = (-(-rows // block), -(-columns // block))
    assert told(tiles[grid](view, out, rows, columns, columns + more, R=block, C=block)) == []


def test_a_program_whose_whole_block_lies_behind_the_tensor_is_named() -> None:
    x, out = np.ones(5, np.float32), np.zeros(5, np.float32)
    assert told(tail[(2,)](x, out, 5, B=4)) == []
    (words,) = told(tail[(4,)](x, out, 5, B=4))
    assert "4 masked-out lanes of a load in program 2" in words
    assert "up to 7 elements beyond its end" in words


def test_the_memory_of_a_view_is_that_of_the_whole_array() -> None:
    whole, out = np.ones(64, np.float32), np.zeros(8, np.float32)
    assert told(far[(1,)](whole[8:10], out, 7, 1, B=8)) == []
    assert told(in_front[(1,)](whole[8:16], out, 5, B=8)) == []
    assert "up to 1 elements before its start" in told(in_front[(1,)](whole[4:12], out, 5, B=8))[0]


@sim.jit
def chosen_stores(out, keep, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i * 1000, i, mask=tl.load(keep + i) > 0)


def test_a_store_under_a_mask_of_elements_reads_and_writes_all_lanes_on_the_device() -> None:
    out = np.zeros(1, np.int32)
    (words,) = told(chosen_stores[(1,)](out, np.array([1, 0, 0, 0], np.int32), B=4))
    assert "3 masked-out lanes of a store (program 0 is the first)" in words
    assert "up to 3000 elements beyond its end" in words

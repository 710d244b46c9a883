"""Masked-out lanes are never read; where Ascend would read them, lanes that point outside are named."""

from __future__ import annotations

import numpy as np

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

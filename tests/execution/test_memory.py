"""Tensors as kernels see them: windows of the caller's own memory."""

from __future__ import annotations

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl


@sim.jit
def double(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr) * 2)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_an_array_of_one_element_is_written_in_place(shape):
    x = np.full(shape, 3, np.float32)
    with sim.device(time=False):
        double[(1,)](x)
    np.testing.assert_array_equal(x, np.full(shape, 6))


def test_a_reversed_view_starts_at_its_own_first_element():
    x = np.arange(4, dtype=np.float32)
    with sim.device(time=False):
        double[(1,)](x[::-1])
    np.testing.assert_array_equal(x, [0, 1, 2, 6])

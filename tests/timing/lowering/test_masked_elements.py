"""Accesses under a mask of elements move whole tiles, as Triton-Ascend makes them: a select takes what the mask says."""

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

N = 4096


@sim.jit
def kernel(x_ptr, y_ptr, out_ptr, n, LOADS: tl.constexpr, STORES: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    keep = x > 0.0
    y = tl.load(y_ptr + at, mask=keep & (at < n), other=0.0) if LOADS else tl.load(y_ptr + at, mask=at < n)
    if STORES:
        tl.store(out_ptr + at, x + y, mask=keep & (at < n))
    else:
        tl.store(out_ptr + at, tl.where(keep, x + y, x), mask=at < n)


def timed(loads, stores, n=4 * N, compiler="triton-ascend"):
    s = sim.shape(n, "float32")
    with sim.device("ascend910b3", compiler=compiler):
        return kernel.time((4,), s, s, s, n, LOADS=loads, STORES=stores, BLOCK=N).launches[0]


@pytest.mark.parametrize(("loads", "stores"), [(True, False), (False, True), (True, True)])
def test_masks_of_elements_cost_selects_and_what_is_there_not_a_transfer_an_element(loads, stores):
    plain, masked = timed(False, False), timed(loads, stores)
    moved = {"MTE2": N * 4 * 4 * (2 + stores), "MTE3": N * 4 * 4}
    assert sum(moved.values()) == pytest.approx(masked.resources["L2"])
    assert masked.time_us < 2 * plain.time_us
    assert masked.pipes["AIV.S"].busy_cycles < N
    assert any("all 4096 move, and a select takes those of the mask" in w for w in masked.warnings)
    by_hand = timed(loads, stores, compiler="ascendc")
    assert by_hand.time_us > 10 * masked.time_us


def test_tiles_that_reach_beyond_their_tensor_are_timed_all_the_same():
    """Elements that the mask leaves out may have no address."""
    assert timed(True, True, n=4 * N - 100).time_us == pytest.approx(timed(True, True).time_us, rel=0.05)
    assert timed(True, True, n=100).time_us <= timed(True, True).time_us * 1.05


def test_values_and_time_know_the_same_transfers():
    x = np.random.default_rng(1).standard_normal(4 * N).astype(np.float32)
    out = np.zeros_like(x)
    with sim.device("ascend910b3"):
        run = kernel[(4,)](x, x, out, 4 * N, LOADS=True, STORES=True, BLOCK=N)
    assert np.array_equal(out, np.where(x > 0, 2 * x, 0))
    assert run.time_us == timed(True, True).time_us

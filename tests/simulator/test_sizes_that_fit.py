"""Sizes that an overflow advises: each was tried, and no size is taken to fit because another one does."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.timing.sizes_that_fit import MOST_TRIED, QUARTERS, sizes_that_fit


@given(st.integers(2, 1 << 20), st.integers(0, 10_000))
def test_every_size_that_is_advised_was_tried_and_fits_whatever_the_others_do(now, seed):
    tried = {}

    def fits(n):
        tried[n] = hash((n, seed)) % 3 == 0
        return tried[n]

    found = sizes_that_fit(now, fits)
    assert all(tried[n] for n in found)
    assert now not in tried
    assert len(tried) <= MOST_TRIED + len(QUARTERS) + 1
    below = [n for n in tried if n < now and n & (n - 1) == 0]
    assert found or not any(tried[n] for n in below)


@given(st.integers(2, 4096), st.integers(1, 4096))
def test_where_only_one_power_of_two_fits_it_is_found_from_either_side(now, other):
    power = 1 << other.bit_length()
    if power < now or power == 1 << now.bit_length():
        assert sizes_that_fit(now, lambda n: n == power) == [power]
    else:
        assert sizes_that_fit(now, lambda n: n == power) == []


@sim.jit
def total_of(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, n, BLOCK):
        total += tl.load(x_ptr + first + cols, mask=first + cols < n, other=0.0)
    tl.store(out_ptr + cols, total)


def run(block, **device):
    with sim.device("ascend910b3", values=False, **device):
        return total_of.time(
            (1,), sim.shape(1 << 20, "float32"), sim.shape(1 << 20, "float32"), 1 << 20, BLOCK=block
        )


@pytest.mark.parametrize("compiler", ["triton-ascend", "ascendc"])
@pytest.mark.parametrize("block", [32_768, 60_000])
def test_the_blocks_in_the_message_of_an_overflow_fit(compiler, block):
    with pytest.raises(sim.RunError, match="ub overflow") as e:
        run(block, compiler=compiler)
    advice = str(e.value).splitlines()[-1]
    sizes = re.search(rf"^Tried, and fits: BLOCK = (\d+)(?: or (\d+))? \(now {block}\)", advice).groups()
    for size in filter(None, sizes):
        assert run(int(size), compiler=compiler).launches[0].buffers["UB"].peak_bytes <= 196_608


def test_a_compiler_that_does_not_try_again_is_told_of_one_that_does():
    """BLOCK 20 000: sum and two copies of a tile are 240 000 bytes, sum and tile 160 000."""
    with pytest.raises(sim.RunError, match=r"compiler_version 9.0 \(then this size fits\)"):
        run(20_000, compiler="triton-ascend", compiler_version="8.5")
    assert run(20_000, compiler="triton-ascend", compiler_version="9.0").time_us > 0

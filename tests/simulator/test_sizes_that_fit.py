"""Sizes that an overflow advises: each was tried, and no size is taken to fit because another one does."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.timing.sizes_that_fit import (
    MOST_TRIED,
    QUARTERS,
    divisors_that_fit,
    sizes_that_fit,
)


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


@given(st.integers(2, 1 << 20), st.integers(1, 1 << 12), st.integers(0, 10_000))
def test_divisors_divide_and_were_tried_and_the_largest_that_fits_is_among_the_first(now, times, seed):
    tried = {}

    def fits(n):
        tried[n] = hash((n, seed)) % 3 == 0
        return tried[n]

    found = divisors_that_fit(now, now * times, fits)
    assert all(now * times % n == 0 and n < now for n in tried)
    assert len(tried) <= MOST_TRIED + 1
    good = [n for n in tried if tried[n]]
    assert found == sorted(set(good))
    assert bool(found) == bool(good)


@sim.jit
def scaled(x_ptr, out_ptr, ROWS: tl.constexpr, D: tl.constexpr):
    at = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]) * D + tl.arange(0, D)[None, :]
    tl.store(out_ptr + at, tl.load(x_ptr + at) * 2.0)


@sim.jit
def scaled_under_a_mask(x_ptr, out_ptr, n, ROWS: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at, inside = rows[:, None] * D + tl.arange(0, D)[None, :], (rows < n)[:, None]
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=inside) * 2.0, mask=inside)


def advised(kernel, *args, **sizes):
    with sim.device("ascend910b3", values=False), pytest.raises(sim.RunError, match="ub overflow") as e:
        kernel.time((4,), *args, **sizes)
    text = str(e.value).splitlines()[-1]
    assert text.startswith("Tried, and fits: ")
    return text


@pytest.mark.parametrize(
    ("rows", "now"), [(1024, 512), (960, 240), (1000, 500), (3072, 1024), (1 << 12, 4096)]
)
def test_without_masks_only_sizes_are_advised_that_divide_what_the_size_divides(rows, now):
    x = sim.shape((rows, 256), "float32")
    text = advised(scaled, x, x, ROWS=now, D=256)
    found = [int(n) for n in re.search(r"ROWS = (\d+)(?: or (\d+))? ", text).groups() if n]
    assert found
    assert all(rows % n == 0 for n in found)


def test_a_length_of_the_data_comes_last_with_a_word():
    x = sim.shape((1000, 256), "float32")
    text = advised(scaled_under_a_mask, x, x, 1000, D=256, ROWS=512)
    others, _, last = text.rpartition("; or ")
    assert re.fullmatch(r"Tried, and fits: ROWS = \d+ or \d+ \(now 512\)", others)
    word = "a length of x_ptr: only if the kernel takes it in parts"
    assert re.fullmatch(rf"D = \d+ or \d+ \(now 256, {word}\)\.", last)


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

"""What slows a kernel has a cure that does something there; what the kernel does already is no cure."""

from __future__ import annotations

import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.timing import cures


@sim.jit
def normalised(x, out, cols, B: tl.constexpr, FILL: tl.constexpr):
    c = tl.arange(0, B)
    there = c < cols
    for row in range(tl.program_id(0), 256, tl.num_programs(0)):
        v = tl.load(x + row * cols + c, mask=there, other=0.0).to(tl.float32)
        if FILL == 2:
            v = v * 2
        if FILL:
            v = tl.where(there, v, -float("inf"))
        v = tl.exp(v - tl.max(v, axis=0))
        tl.store(out + row * cols + c, v.to(tl.float16), mask=there)


@sim.jit
def remainders(x, out, n, B: tl.constexpr, LOOP: tl.constexpr):
    if not LOOP:
        v = tl.load(x + tl.arange(0, B) % 1024)
    for first in range(tl.program_id(0) * B, n, tl.num_programs(0) * B):
        i = first + tl.arange(0, B)
        if LOOP:
            v = tl.load(x + tl.arange(0, B) % 1024)
        tl.store(out + i, v)


@sim.jit
def product(a, b, c, K, ADDED: tl.constexpr):
    r = tl.arange(0, 32)
    acc = tl.zeros((32, 32), tl.float32)
    for k in range(0, K, 32):
        x = tl.load(a + r[:, None] * K + (k + r)[None, :])
        y = tl.load(b + (k + r)[:, None] * 32 + r[None, :])
        acc = tl.dot(x, y, acc) if ADDED else acc * 0.5 + tl.dot(x, y)
    tl.store(c + r[:, None] * 32 + r[None, :], (acc * tl.sigmoid(acc)).to(tl.float16))


def found(kernel, grid, *given, **sizes):
    with sim.device("ascend910b3"):
        return {x.cure for x in kernel.time(grid, *given, **sizes).launches[0].slowing}


def half(*dims):
    return sim.shape(dims, "float16")


@pytest.mark.parametrize(("fill", "expected"), [(0, False), (1, True), (2, False)])
def test_a_select_that_fills_what_a_load_left_out_is_the_load_s_to_fill(fill, expected):
    told = found(normalised, (8,), half(256, 1000), half(256, 1000), 1000, B=1024, FILL=fill)
    assert (cures.OTHER in told) == expected
    assert cures.FORMULA not in told


@pytest.mark.parametrize("loop", [True, False])
def test_only_what_is_in_a_loop_can_be_made_before_it(loop):
    told = found(remainders, (8,), half(1024), half(1 << 16), 1 << 16, B=2048, LOOP=loop)
    assert (cures.FORMULA in told) == loop


@pytest.mark.parametrize("added", [True, False])
def test_a_sum_that_stays_in_l0c_is_not_told_to_stay_there(added):
    told = found(product, (1,), half(32, 256), half(256, 32), half(32, 32), 256, ADDED=added)
    assert (cures.RESULT in told) != added

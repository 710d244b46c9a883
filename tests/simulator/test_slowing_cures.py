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
def product(a, b, c, K, HOW: tl.constexpr):
    r = tl.arange(0, 32)
    acc = tl.zeros((32, 32), tl.float32)
    for k in range(0, K, 32):
        x = tl.load(a + r[:, None] * K + (k + r)[None, :])
        y = tl.load(b + (k + r)[:, None] * 32 + r[None, :])
        if HOW == 0:
            acc = tl.dot(x, y, acc)
        elif HOW == 1:
            acc += tl.dot(x, y) * 0.5
        elif HOW == 2:
            acc = acc * 0.5 + tl.dot(x, y)
        else:
            acc = tl.maximum(acc, tl.dot(x, y))
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


@pytest.mark.parametrize(
    ("how", "expected"), [(0, set()), (1, {cures.RESULT}), (2, {cures.RESCALED}), (3, set())]
)
def test_a_sum_is_told_to_stay_in_l0c_only_where_it_can(how, expected):
    told = found(product, (1,), half(32, 256), half(256, 32), half(32, 32), 256, HOW=how)
    assert told & {cures.RESULT, cures.RESCALED} == expected


@sim.jit
def running(x, out, ROWS: tl.constexpr, COLS: tl.constexpr, TURNED: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLS + tl.arange(0, COLS)[None, :]
    v = tl.load(x + at)
    v = tl.trans(tl.cumsum(tl.trans(v), axis=0)) if TURNED else tl.cumsum(v, axis=1)
    tl.store(out + at, v)


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_a_running_sum_along_the_first_axis_takes_what_its_cure_says(dtype):
    """Of int64 another type comes first."""
    x = sim.shape((64, 64), dtype)
    with sim.device("ascend910b3", compiler="triton-ascend"):
        last, first = (running.time((1,), x, x, ROWS=64, COLS=64, TURNED=turned) for turned in (False, True))
    assert {x.cure for x in last.launches[0].slowing} == {
        cures.INT32 if dtype == "int64" else cures.FIRST_AXIS
    }
    assert (first.time_us < last.time_us / 2) == (dtype != "int64")

"""A kernel that other kernels ran before fetches its code: once for each operation that stands in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile import simulator as sim
from ascendtile.simulator import language as tl
from ascendtile.simulator.products import load_product

P = load_product("ascend910b3")
ONE = P.number("launch.cold_code_us_per_operation")
N = 64


@sim.jit
def chained(x_ptr, y_ptr, iterations, MORE: tl.constexpr):
    at = tl.arange(0, 64)
    for k in range(0, iterations):
        x = tl.load(x_ptr + k * 64 + at)
        for _ in tl.static_range(0, MORE):
            x = x * 1.5
        tl.store(y_ptr + k * 64 + at, x)


@sim.jit
def with_sine(x_ptr, y_ptr, FN: tl.constexpr):
    at = tl.arange(0, 64)
    tl.store(y_ptr + at, FN(tl.load(x_ptr + at)))


@sim.jit
def sine(x):
    return tl.sin(x)


@sim.jit
def root(x):
    return tl.sqrt(x)


def waited_us(kernel, *arguments, **how):
    """What a launch on one core takes longer after another kernel."""
    times = []
    for cold in (False, True):
        with sim.device("ascend910b3", cold_code=cold):
            times.append(kernel.time((1,), *arguments, **how).time_us)
    return times[1] - times[0]


@given(st.integers(1, 12), st.integers(1, 40))
def test_each_operation_beyond_the_first_three_costs_one_fetch_however_often_it_runs(more, iterations):
    x = sim.shape(64 * 40, "float32")
    waited = waited_us(chained, x, x, iterations, MORE=more)
    assert waited == pytest.approx((more + 2 - 3) * ONE, abs=1e-9)


def test_a_function_of_many_instructions_is_more_code_than_one_that_is_an_instruction():
    x = sim.shape(N, "float32")
    assert waited_us(with_sine, x, x, FN=root) == pytest.approx(0.0, abs=1e-9)
    assert waited_us(with_sine, x, x, FN=sine) > 10 * ONE

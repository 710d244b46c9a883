"""What loops and branches carry besides tiles and numbers, and Python of the compile time, mean what Python means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

from .values import output

int32 = np.int32


def check(kernel: Any, meaning: Any, programs: int = 5, **kw: Any) -> None:
    """Each program stores one integer; it must be what `meaning(program)` gives."""
    got = output(kernel, programs, programs=programs, dtype=int32, **kw)
    assert got.tolist() == [meaning(p) for p in range(programs)]


@sim.jit
def tuples(out):
    pid = tl.program_id(0)
    state = (pid, (1, 2))
    for k in range(4):
        a, (b, c) = state
        if a % 2 == 0:
            state = (a + b, (c, b))
        if a % 2 != 0:
            state = (a + 1, (b, c + k))
    tl.store(out + pid, state[0] * 1000 + state[1][0] * 100 + state[1][1])


def test_a_tuple_is_carried_part_by_part() -> None:
    def meaning(p: int) -> int:
        a, b, c = p, 1, 2
        for k in range(4):
            a, b, c = (a + b, c, b) if a % 2 == 0 else (a + 1, b, c + k)
        return a * 1000 + b * 100 + c

    check(tuples, meaning)


@sim.jit
def constants_in_a_loop(out, WITH_BIAS: tl.constexpr, B: tl.constexpr):
    bias = None
    size = B
    kind = "plain"
    total = 0
    for _ in range(3):
        if WITH_BIAS:
            bias = 5
        if bias is not None:
            total += bias
        if kind == "plain":
            total += tl.sum(tl.arange(0, size))
        if WITH_BIAS is None:
            size = B * 2
            kind = "other"
    tl.store(out + tl.program_id(0), total)


def test_none_texts_and_sizes_that_no_iteration_changes_stay_compile_time_values() -> None:
    check(constants_in_a_loop, lambda p: 3 * 28, WITH_BIAS=False, B=8)
    with pytest.raises(sim.UsageError, match="'bias' is NoneType None and is assigned in a loop"):
        check(constants_in_a_loop, lambda p: 0, WITH_BIAS=True, B=8)


@sim.jit
def steps(out, first, last, step):
    total = 0
    for i in tl.range(first, last, step):
        total = total * 10 + i
    for i in range(6, tl.program_id(0), -2):
        total += i * 1000
    tl.store(out + tl.program_id(0), total)


@pytest.mark.parametrize("bounds", [(7, 1, -2), (1, 8, 3), (0, 5, -1), (5, 5, 1)])
def test_ranges_with_negative_and_runtime_steps(bounds: tuple[int, int, int]) -> None:
    def meaning(p: int) -> int:
        total = 0
        for i in range(*bounds):
            total = total * 10 + i
        return total + sum(i * 1000 for i in range(6, p, -2))

    check(steps, meaning, first=bounds[0], last=bounds[1], step=bounds[2])


@sim.jit
def python_of_the_compile_time(out, SIZES: tl.constexpr, NAMES: tl.constexpr):
    total = 0
    for k, (n, name) in enumerate(zip(SIZES, NAMES)):  # noqa: B905
        if f"{name}{k}" == "b1":
            total += 100 * n
        total += n
    even = [n * k for k, n in enumerate(SIZES) if n % 2 == 0]
    for n in reversed(even):
        total = total * 10 + n
    if any(n == 4 for n in SIZES):
        total += 5
    tl.store(out + tl.program_id(0), total + len(even))


def test_zip_enumerate_comprehensions_and_texts() -> None:
    sizes, names = (2, 3, 4), ("a", "b", "c")
    want = (2 + 3 + 4 + 300) * 100 + 8 * 10 + 0 + 5 + 2
    check(python_of_the_compile_time, lambda p: want, SIZES=sizes, NAMES=names)


@sim.jit
def first_of(x, n, COUNT: tl.constexpr):
    for k in tl.static_range(COUNT):
        if tl.load(x + k) > n:
            return k, tl.load(x + k)
    return -1, n


@sim.jit
def search(x, out, n, COUNT: tl.constexpr):
    k, found = first_of(x, n + tl.program_id(0), COUNT)
    tl.store(out + tl.program_id(0), k * 100 + found)


def test_a_return_in_an_unrolled_loop_ends_the_helper() -> None:
    x, out = np.array([1, 3, 2, 7], int32), np.zeros(8, int32)
    with sim.device(time=False):
        search[(8,)](x, out, 0, COUNT=4)
    want = []
    for n in range(8):
        k = next((k for k, v in enumerate(x) if v > n), -1)
        want.append(k * 100 + (x[k] if k >= 0 else n))
    assert out.tolist() == want


@sim.jit
def takes_constexpr(x, SIZE: tl.constexpr):
    return x + SIZE


@sim.jit
def gives_a_value(out):
    tl.store(out + tl.program_id(0), takes_constexpr(1, tl.program_id(0) * 2))


def test_a_helper_may_be_given_a_value_for_its_constexpr() -> None:
    check(gives_a_value, lambda p: 1 + 2 * p)


@sim.jit
def follow(links, out, start):
    pid = tl.program_id(0)
    at = start + pid
    hops = 0
    while (tl.load(links + at) >= 0) & (hops < 10):
        at = tl.load(links + at)
        hops += 1
    tl.store(out + pid, at * 100 + hops)


def test_a_while_on_loaded_data() -> None:
    links, out = np.array([3, 2, -1, 4, 0, 1], int32), np.zeros(6, int32)
    with sim.device(time=False):
        follow[(6,)](links, out, 0)
    want = []
    for at in range(6):
        hops = 0
        while links[at] >= 0 and hops < 10:
            at, hops = int(links[at]), hops + 1
        want.append(at * 100 + hops)
    assert out.tolist() == want


@sim.jit
def calls_itself(x):
    return calls_itself(x) + 1


@sim.jit
def recursive(out):
    tl.store(out, calls_itself(1))


def test_recursion_is_refused_in_words() -> None:
    with pytest.raises(sim.UsageError, match="recursion is not supported"):
        recursive[(1,)](np.zeros(1, int32))

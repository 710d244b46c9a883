"""Control flow of a kernel means what the same Python means, for values that differ between programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

from .values import output

int32 = np.int32


def check(kernel: Any, meaning: Any, programs: int = 7, **kw: Any) -> None:
    """Each program stores one integer; it must be what `meaning(program)` gives."""
    got = output(kernel, programs, programs=programs, dtype=int32, **kw)
    assert got.tolist() == [meaning(p) for p in range(programs)]


@sim.jit
def nested_branches(out):
    pid = tl.program_id(0)
    x = 0
    if pid > 1:
        if pid % 2 == 0:
            x = pid * 10
        else:
            x += 1
        x = x + 1
    elif pid == 1:
        x = -5
    tl.store(out + pid, x)


def test_nested_branches() -> None:
    check(nested_branches, lambda p: 0 if p == 0 else -5 if p == 1 else p * 10 + 1 if p % 2 == 0 else 2)


@sim.jit
def early_return(out):
    pid = tl.program_id(0)
    tl.store(out + pid, 1)
    if pid > 2:
        if pid == 4:
            return
        tl.store(out + pid, 2)
        if pid == 5:
            tl.store(out + pid, 3)
            return
        else:
            tl.store(out + pid, 4)
    elif pid == 1:
        return
    tl.store(out + pid, tl.load(out + pid) + 10)


def test_early_return_also_nested() -> None:
    check(early_return, lambda p: [11, 1, 11, 14, 1, 3, 14][p])


@sim.jit
def constant_return(out, MODE: tl.constexpr):
    pid = tl.program_id(0)
    if MODE == 0:
        tl.store(out + pid, 5)
        return
    if MODE == 1:
        tl.store(out + pid, 6)
    tl.store(out + pid, tl.load(out + pid) + 1)


def test_return_behind_a_compile_time_condition() -> None:
    check(constant_return, lambda p: 5, MODE=0)
    check(constant_return, lambda p: 7, MODE=1)
    check(constant_return, lambda p: -6, MODE=2)


@sim.jit
def sign(x):
    if x > 0:
        return 1
    if x < 0:
        return -1
    return 0


@sim.jit
def pair(x, scale=3, *, shift=None):
    if shift is not None:
        x = x + shift
    return x * scale, x - 1


@sim.jit
def with_helpers(out):
    pid = tl.program_id(0)
    total = 0
    for i in range(3):
        total += sign(pid - 3) * (i + 1)
    a, b = pair(pid)
    c, _ = pair(pid, shift=100, scale=2)
    tl.store(out + pid, total + 10 * a + 1000 * b + 100000 * c)


def test_helpers_with_early_returns_defaults_keywords_tuples_and_none() -> None:
    check(
        with_helpers,
        lambda p: 6 * int(np.sign(p - 3)) + 30 * p + 1000 * (p - 1) + 100000 * 2 * (p + 100),
    )


@sim.jit
def loops(out, N: tl.constexpr):
    pid = tl.program_id(0)
    total = 0
    for i in range(pid):
        for j in range(i, N, 2):
            total += i * j
            if j == 3:
                total -= 1
    for i in range(5, -1, -2):
        total = total * 2 + i
    for i in tl.static_range(1, 4):
        total += i
    for i in (10, 20):
        total += i
    for i in tl.range(2, 4, num_stages=1):
        total += i
    for _ in range(3, 3):
        total = 0
    tl.store(out + pid, total)


def loops_meaning(pid: int) -> int:
    total = 0
    for i in range(pid):
        for j in range(i, 6, 2):
            total += i * j - (j == 3)
    for i in range(5, -1, -2):
        total = total * 2 + i
    return total + 6 + 30 + 5


def test_nested_loops_steps_and_kinds_of_range() -> None:
    check(loops, loops_meaning, N=6)


@sim.jit
def collatz(out):
    pid = tl.program_id(0)
    x = pid + 1
    n = 0
    while x != 1 and n < 200:
        if x % 2 == 0:  # noqa: SIM108
            x = x // 2
        else:
            x = 3 * x + 1
        n += 1
    tl.store(out + pid, n)


def test_while_loops_of_different_lengths() -> None:
    def steps(p: int) -> int:
        x, n = p + 1, 0
        while x != 1:
            x, n = (x // 2 if x % 2 == 0 else 3 * x + 1), n + 1
        return n

    check(collatz, steps, programs=30)


@sim.jit
def ternaries(out, FLAG: tl.constexpr):
    pid = tl.program_id(0)
    a = pid if pid > 3 else -pid
    b = a + (5 if FLAG else 6)
    tl.store(out + pid, b) if pid != 2 else tl.store(out + pid, 99)


def test_conditional_expressions_also_for_their_effect() -> None:
    check(ternaries, lambda p: 99 if p == 2 else (p if p > 3 else -p) + 5, FLAG=True)


@sim.jit
def logic(out, OPTION: tl.constexpr):
    pid = tl.program_id(0)
    a = 1 < pid < 5
    b = (pid == 0 or pid == 6) and not a
    c = OPTION is not None and OPTION > 3
    d = OPTION is None or pid > 2
    tl.store(out + pid, a.to(tl.int32) + 2 * b.to(tl.int32) + (4 if c else 0) + (8 if d else 0))


@pytest.mark.parametrize("option", [None, 3, 4])
def test_chained_comparison_and_logic_with_none(option: int | None) -> None:
    def meaning(p: int) -> int:
        a = 1 < p < 5
        b = p in (0, 6) and not a
        return a + 2 * b + 4 * (option is not None and option > 3) + 8 * (option is None or p > 2)

    check(logic, meaning, OPTION=option)


@sim.jit
def moving_pointer(out, x):
    pid = tl.program_id(0)
    ptr = x + pid
    total = 0
    for _ in range(3):
        total += tl.load(ptr)
        ptr += 7
    ptr -= 14
    tl.store(out + pid, total * 100 + tl.load(ptr))


def test_augmented_assignment_moves_a_pointer_through_a_loop() -> None:
    x = np.arange(21, dtype=int32)
    check(moving_pointer, lambda p: (3 * p + 21) * 100 + p + 7, x=x)


@sim.jit
def scalars(out):
    pid = tl.program_id(0)
    low = min(pid, 3)
    high = max(pid, 2, 4)
    tl.store(out + pid, tl.cdiv(pid, 3) + 10 * low + 100 * high + 1000 * abs(low - 2) + 10000 * (~pid))


def test_min_max_abs_cdiv_and_invert_of_scalars() -> None:
    check(
        scalars,
        lambda p: -(-p // 3) + 10 * min(p, 3) + 100 * max(p, 4) + 1000 * abs(min(p, 3) - 2) + 10000 * ~p,
    )


@sim.jit
def swap(out):
    pid = tl.program_id(0)
    a, b = 1, 1
    for _ in range(pid):
        a, b = b, a + b
    tl.store(out + pid, a)


def test_tuple_assignment_swaps_carried_values() -> None:
    fibonacci = [1, 1, 2, 3, 5, 8, 13]
    check(swap, lambda p: fibonacci[p])


@sim.jit
def twice(x, f: tl.constexpr):
    return f(f(x))


@sim.jit
def plus_one(x):
    return x + 1


@sim.jit
def functions_as_values(out):
    pid = tl.program_id(0)
    tl.store(out + pid, twice(pid, plus_one))


def test_a_helper_may_be_an_argument() -> None:
    check(functions_as_values, lambda p: p + 2)

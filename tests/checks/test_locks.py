"""Locks in opposite orders are told where two programs may hold one each; and a plain load that waits for an atomic."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
import ascendtile.simulator.language.extra.cann.extension as al


def ints(n: int = 1) -> np.ndarray:
    return np.zeros(n, np.int32)


def told(kernel: Any, grid: Any, *args: Any, kind: str = "fault", **kw: Any) -> list[str]:
    """What a launch over values says."""
    with sim.device("ascend910b3", time=False):
        run = kernel[grid](*args, **kw)
    return [w for w in run.warnings if w.kind == kind]


@sim.jit
def lock(at):
    while tl.atomic_cas(at, 0, 1) == 1:
        pass


@sim.jit
def unlock(at):
    tl.atomic_xchg(at, 0)


@sim.jit
def two_tensors(locks, more, x, WRONG: tl.constexpr):
    if tl.program_id(0) % 2 == 0 or not WRONG:
        lock(locks)
        lock(more)
        tl.store(x, tl.load(x) + 1)
        unlock(more)
        unlock(locks)
    else:
        lock(more)
        lock(locks)
        tl.store(x, tl.load(x) + 1)
        unlock(locks)
        unlock(more)


@sim.jit
def forks(locks, more, x, WRONG: tl.constexpr):
    """Each program takes its own and the next one."""
    p = tl.program_id(0)
    a, b = p, (p + 1) % tl.num_programs(0)
    if not WRONG:
        a, b = tl.minimum(a, b), tl.maximum(a, b)
    lock(locks + a)
    lock(locks + b)
    tl.store(x + p, 1)
    unlock(locks + b)
    unlock(locks + a)


@sim.jit
def pairs_of_data(locks, pairs, x, WRONG: tl.constexpr):
    """Exchanges as locks, in a loop, at places that are data."""
    p = tl.program_id(0)
    for k in range(2):
        a, b = tl.load(pairs + 4 * p + 2 * k), tl.load(pairs + 4 * p + 2 * k + 1)
        if not WRONG:
            a, b = tl.minimum(a, b), tl.maximum(a, b)
        while tl.atomic_xchg(locks + a, 1) == 1:
            pass
        while tl.atomic_xchg(locks + b, 1) == 1:
            pass
        tl.store(x + a, tl.load(x + a) - 1)
        tl.store(x + b, tl.load(x + b) + 1)
        tl.atomic_xchg(locks + a, 0)
        tl.atomic_xchg(locks + b, 0)


@sim.jit
def under_a_third(locks, more, x, WRONG: tl.constexpr):
    a = tl.program_id(0) % 2
    if not WRONG:
        lock(more)
    lock(locks + a)
    lock(locks + 1 - a)
    tl.store(x, tl.load(x) + 1)
    unlock(locks)
    unlock(locks + 1)
    if not WRONG:
        unlock(more)


@sim.jit
def in_two_phases(locks, more, x, WRONG: tl.constexpr):
    """A barrier made of an atomic in the tensor of the locks lies between them."""
    lock(locks)
    lock(locks + 1)
    tl.store(x, tl.load(x) + 1)
    unlock(locks + 1)
    unlock(locks)
    if not WRONG:
        tl.atomic_add(locks + 7, 1)
        while tl.atomic_add(locks + 7, 0) < tl.num_programs(0):
            pass
    lock(locks + 1)
    lock(locks)
    tl.store(x, tl.load(x) + 1)
    unlock(locks)
    unlock(locks + 1)


@sim.jit
def with_a_barrier_between(locks, more, x, WRONG: tl.constexpr):
    p = tl.program_id(0)
    if p == 0:
        lock(locks)
        lock(locks + 1)
        unlock(locks + 1)
        unlock(locks)
    if not WRONG:
        al.sync_block_all("all_vector", 0)
    if p == 1:
        lock(locks + 1)
        lock(locks)
        unlock(locks)
        unlock(locks + 1)


@sim.jit
def one_at_a_time(locks, more, x, WRONG: tl.constexpr):
    a = tl.program_id(0) % 2
    lock(locks + a)
    tl.store(x + a, tl.load(x + a) + 1)
    if not WRONG:
        unlock(locks + a)
    lock(locks + 1 - a)
    tl.store(x + 1 - a, tl.load(x + 1 - a) + 1)
    unlock(locks + 1 - a)
    if WRONG:
        unlock(locks + a)


@sim.jit
def both_orders(locks, more, x, WRONG: tl.constexpr):
    """Of one program, or of all."""
    if tl.program_id(0) == 0 or WRONG:
        lock(locks)
        lock(locks + 1)
        unlock(locks + 1)
        unlock(locks)
        lock(locks + 1)
        lock(locks)
        unlock(locks)
        unlock(locks + 1)


@sim.jit
def tries_the_second(locks, more, x, WRONG: tl.constexpr):
    """And gives the first one back where it fails."""
    a, done = tl.program_id(0) % 2, 0
    while done == 0:
        lock(locks + a)
        if WRONG:
            lock(locks + 1 - a)
            unlock(locks + 1 - a)
            done = 1
        else:
            if tl.atomic_cas(locks + 1 - a, 0, 1) == 0:
                unlock(locks + 1 - a)
                done = 1
        unlock(locks + a)


@sim.jit
def locks_of_pairs(locks, more, x, WRONG: tl.constexpr):
    """Two programs share two locks, or each has its own."""
    p = tl.program_id(0)
    first, a = (p // 2 if WRONG else p) * 2, p % 2
    lock(locks + first + a)
    lock(locks + first + 1 - a)
    unlock(locks + first + 1 - a)
    unlock(locks + first + a)


KERNELS = [
    two_tensors,
    forks,
    pairs_of_data,
    under_a_third,
    in_two_phases,
    with_a_barrier_between,
    one_at_a_time,
    both_orders,
    tries_the_second,
    locks_of_pairs,
]


@pytest.mark.parametrize("programs", [2, 3, 6])
@pytest.mark.parametrize("kernel", KERNELS)
def test_locks_in_opposite_orders_are_told_where_two_programs_may_hold_one_each(kernel, programs):
    pairs = np.array([0, 1, 2, 3, 1, 0, 2, 3, 3, 0, 2, 1] * 2, np.int32)
    more = pairs if kernel is pairs_of_data else ints()
    right, wrong = (told(kernel, (programs,), ints(16), more, ints(16), WRONG=w) for w in (False, True))
    assert not right
    assert wrong
    assert all("takes the lock element" in m and "none can go on" in m for m in wrong)


def test_the_message_has_programs_locks_and_the_lines_of_the_kernel():
    (message,) = told(two_tensors, (4,), ints(), ints(), ints(), WRONG=True)
    lines = [int(n) for n in re.findall(r"\(line (\d+)\)", message)]
    assert lines[1] == lines[0] + 1
    assert lines[3] == lines[2] + 1
    assert lines[0] < lines[2]
    assert message.programs == (0, 1)
    for name in ("element 0 of 'locks'", "element 0 of 'more'"):
        assert message.count(name) == 2
    (message,) = told(forks, (5,), ints(5), ints(), ints(5), WRONG=True)
    assert "in a ring of 5" in message


@sim.jit
def takes_what_others_give(full, empty, buf, out):
    """Semaphores: who takes one does not give it back."""
    if tl.program_id(0) == 0:
        for k in range(2):
            while tl.atomic_cas(empty + k, 1, 0) != 1:
                pass
        tl.store(buf, 1)
        for k in range(2):
            tl.atomic_xchg(full + k, 1)
    else:
        for k in range(2):
            while tl.atomic_cas(full + 1 - k, 1, 0) != 1:
                pass
        tl.store(out, tl.load(buf))


def test_semaphores_are_no_locks():
    assert not told(takes_what_others_give, (2,), ints(2), np.ones(2, np.int32), ints(), ints())


@sim.jit
def polls(data, flag, out, HOW: tl.constexpr, SETS: tl.constexpr):
    if tl.program_id(0) == SETS:
        tl.store(data, 1)
        tl.atomic_xchg(flag, 1)
    else:
        if HOW == "plain":
            while tl.load(flag) == 0:
                pass
        elif HOW == "carried":
            seen = tl.load(flag)
            while seen != 1:
                seen = tl.load(flag)
        elif HOW == "volatile":
            while tl.load(flag, volatile=True) == 0:
                pass
        elif HOW == ".cv":
            while tl.load(flag, cache_modifier=".cv") == 0:
                pass
        else:
            while tl.atomic_add(flag, 0) == 0:
                pass
        tl.store(out, tl.load(data))


@pytest.mark.parametrize("sets", [0, 1])
def test_a_plain_load_that_waits_for_an_atomic_is_told(sets):
    for how in ("plain", "carried", "volatile", ".cv", "atomic"):
        out = ints()
        notes = told(polls, (2,), ints(), ints(), out, HOW=how, SETS=sets, kind="note")
        found = [m for m in notes if "waits with a plain load" in m]
        assert bool(found) == (how in ("plain", "carried")), how
        assert all(f"program {1 - sets} waits" in m and "'flag'" in m for m in found)
        assert out[0] == 1
        assert not told(polls, (2,), ints(), ints(), ints(), HOW=how, SETS=sets)

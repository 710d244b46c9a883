"""Programs wait for programs with a higher number: as many as there are cores run side by side, and no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
import ascendtile.simulator.language.extra.cann.extension as al

CUBES, VECTORS = 20, 40  # cores of the product, of each kind


def ints(n: int = 1) -> np.ndarray:
    return np.zeros(n, np.int32)


def floats(n: int) -> np.ndarray:
    return np.zeros(n, np.float32)


def faults(kernel: Any, grid: Any, *args: Any, **kw: Any) -> str:
    """What a launch with all checks says, error or fault; "" for nothing."""
    with sim.device("ascend910b3", check=True):
        try:
            run = kernel[grid](*args, **kw)
        except sim.RunError as e:
            return str(e)
    return "\n".join(run.faults)


@sim.jit
def arrive_and_wait(count, n):
    tl.atomic_add(count, 1)
    while tl.atomic_add(count, 0) < n:
        pass


@sim.jit
def meets_twice(count, x, y, out, SECOND: tl.constexpr, B: tl.constexpr):
    p, n, at = tl.program_id(0), tl.num_programs(0), tl.arange(0, B)
    tl.store(x + p * B + at, p + 1.0)
    arrive_and_wait(count, n)
    tl.store(y + p * B + at, tl.load(x + (n - 1 - p) * B + at) * 2)
    arrive_and_wait(count + SECOND, n)
    tl.store(out + p * B + at, tl.load(y + ((p + 1) % n) * B + at))


@pytest.mark.drawn(1)
@pytest.mark.parametrize("n", [2, 5, VECTORS])
def test_a_barrier_made_of_atomics_is_passed_by_all_programs_together(n):
    x, y, out = (floats(8 * n) for _ in range(3))
    assert not faults(meets_twice, (n,), ints(2), x, y, out, SECOND=1, B=8)
    assert out.reshape(n, 8).tolist() == [[2.0 * (n - (p + 1) % n)] * 8 for p in range(n)]


def test_the_same_count_again_does_not_wait_and_more_programs_than_cores_hang():
    few, more = ([floats(8 * n) for _ in range(3)] for n in (5, VECTORS + 1))
    found = faults(meets_twice, (5,), ints(2), *few, SECOND=0, B=8)
    assert "of 'y'" in found
    assert "nothing says which comes first" in found
    found = faults(meets_twice, (VECTORS + 1,), ints(2), *more, SECOND=1, B=8)
    assert f"element 0 of 'count', which is {VECTORS}, and no core is free" in found
    assert "1 have not" in found


@sim.jit
def goes_round(count, x, rounds, WAITS: tl.constexpr, B: tl.constexpr):
    p, n, at = tl.program_id(0), tl.num_programs(0), tl.arange(0, B)
    for k in range(rounds):
        seen = tl.load(x + (k % 2) * n * B + (p + 1) % n * B + at)
        tl.store(x + ((k + 1) % 2) * n * B + p * B + at, seen + 1)
        tl.atomic_add(count, 1)
        if WAITS:
            while tl.atomic_add(count, 0) < n * (k + 1):
                pass


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("n", "rounds"), [(2, 9), (3, 4), (6, 3)])
def test_programs_that_meet_each_round_see_what_the_others_made_in_the_last_one(n, rounds):
    x = np.concatenate([np.repeat(np.arange(n, dtype=np.float32), 4), floats(4 * n)])
    assert not faults(goes_round, (n,), ints(), x, rounds, WAITS=True, B=4)
    got = x.reshape(2, n, 4)[rounds % 2]
    assert got.tolist() == [[(p + rounds) % n + rounds] * 4 for p in range(n)]


def test_rounds_without_a_wait_race():
    assert "nothing says which comes first" in faults(
        goes_round, (3,), ints(), floats(24), 3, WAITS=False, B=4
    )


@sim.jit
def sums_from_the_right(flag, out, SET_BEFORE: tl.constexpr, B: tl.constexpr):
    p, at = tl.program_id(0), tl.arange(0, B)
    total = tl.full((B,), 1, tl.float32)
    if p + 1 < tl.num_programs(0):
        while tl.load(flag + p + 1, volatile=True) == 0:
            pass
        total += tl.load(out + (p + 1) * B + at)
    if SET_BEFORE:
        tl.atomic_xchg(flag + p, 1)
    tl.store(out + p * B + at, total)
    if not SET_BEFORE:
        tl.atomic_xchg(flag + p, 1)


@pytest.mark.parametrize("seed", [None, 3])
def test_a_chain_from_the_last_program_to_the_first_runs_in_any_order_of_atomics(seed):
    out = floats(8 * 9)
    with sim.device("ascend910b3", atomic_seed=seed):
        assert not sums_from_the_right[(9,)](ints(9), out, SET_BEFORE=False, B=8).faults
    assert out[::8].tolist() == list(range(9, 0, -1))
    assert "of 'out'" in faults(sums_from_the_right, (9,), ints(9), floats(72), SET_BEFORE=True, B=8)


@sim.jit
def served_in_turn(serving, x, order, STEP: tl.constexpr):
    p, n = tl.program_id(0), tl.num_programs(0)
    while tl.atomic_add(serving, 0) != n - 1 - p:
        pass
    k = tl.load(x)
    tl.store(order + k, p)
    tl.store(x, k + 1)
    tl.atomic_add(serving, STEP)


def test_tickets_are_served_from_the_last_program_to_the_first():
    order = ints(6)
    assert not faults(served_in_turn, (6,), ints(), ints(), order, STEP=1)
    assert order.tolist() == [5, 4, 3, 2, 1, 0]
    found = faults(served_in_turn, (6,), ints(), ints(), ints(6), STEP=2)
    assert "element 0 of 'serving', which is 6" in found
    assert "the programs that could store to it wait, too" in found
    assert "program 2 and 1 other wait here" in found


@sim.jit
def hands_over(full, buf, out, n, WAITS: tl.constexpr, B: tl.constexpr):
    """Program 0 takes what program 1 makes, one after another, from one place."""
    p, at = tl.program_id(0), tl.arange(0, B)
    for k in range(n):
        if p == 0:
            while tl.atomic_add(full, 0) == 0:
                pass
            tl.store(out + k * B + at, tl.load(buf + at))
            tl.atomic_xchg(full, 0)
        else:
            if WAITS:
                while tl.atomic_add(full, 0) == 1:
                    pass
            tl.store(buf + at, k + 1.0)
            tl.atomic_xchg(full, 1)


def test_two_programs_hand_over_one_slot_again_and_again():
    out = floats(8 * 5)
    assert not faults(hands_over, (2,), ints(), floats(8), out, 5, WAITS=True, B=8)
    assert out[::8].tolist() == [1, 2, 3, 4, 5]
    found = faults(hands_over, (2,), ints(), floats(8), out, 5, WAITS=False, B=8)
    assert "and no program is left that could store to it" in found


@sim.jit
def counts_its_tries(flag, tries, out, AT: tl.constexpr):
    if tl.program_id(0) == 0:
        while tl.atomic_add(flag, 0) == 0:
            tl.atomic_add(tries, 1)
        tl.store(out, 1.0)
    else:
        tl.atomic_xchg(flag + AT, 1)


@sim.jit
def carries_what_it_saw(flag, tries, out, AT: tl.constexpr):
    if tl.program_id(0) == 0:
        seen = tl.load(flag, volatile=True)
        while seen == 0:
            seen = tl.load(flag, volatile=True)
        tl.store(out, 1.0)
    else:
        tl.atomic_xchg(flag + AT, 1)


@pytest.mark.parametrize("kernel", [counts_its_tries, carries_what_it_saw])
def test_what_a_wait_counts_or_carries_does_not_hide_it(kernel):
    out = floats(1)
    assert not faults(kernel, (2,), ints(2), ints(), out, AT=0)
    assert out[0] == 1
    assert "hang in program 0" in faults(kernel, (2,), ints(2), ints(), out, AT=1)


@sim.jit
def multiplies_and_meets(x, c, count, out, M: tl.constexpr):
    p, n = tl.program_id(0), tl.num_programs(0)
    at = tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :]
    a = tl.load(x + at)
    tl.store(c + p * M * M + at, tl.dot(a, a))
    arrive_and_wait(count, n)
    tl.store(out + p * M * M + at, tl.load(c + (p + 1) % n * M * M + at) + p)


def test_a_program_with_products_has_as_many_neighbours_as_there_are_cubes():
    x, c, out = np.ones(256, np.float16), floats(256 * 21), floats(256 * 21)
    assert not faults(multiplies_and_meets, (CUBES,), x, c, ints(), out, M=16)
    assert (out.reshape(-1, 256)[:CUBES] == 16 + np.arange(CUBES)[:, None]).all()
    assert "no core is free" in faults(multiplies_and_meets, (CUBES + 1,), x, c, ints(), out, M=16)


@sim.jit
def cores_and_programs_wait(x, mid, flag, out, LAST: tl.constexpr, M: tl.constexpr):
    """The Vector part stands first in the source; and programs wait for the next one."""
    p, n = tl.program_id(0), tl.num_programs(0)
    at = p * M * M + tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :]
    with al.scope(core_mode="vector"):
        al.sync_block_wait("cube", "vector", 1)
        tl.store(out + at, tl.load(mid + at) + 1.0)
        if p + 1 < n:
            while tl.atomic_add(flag + p + 1, 0) == 0:
                pass
        if p < n - 1 or LAST:
            tl.atomic_xchg(flag + p, 1)
    with al.scope(core_mode="cube"):
        a = tl.load(x + at)
        tl.store(mid + at, tl.dot(a, a))
        al.sync_block_set("cube", "vector", 1)


def test_cores_wait_for_each_other_by_flags_while_programs_wait_by_atomics():
    x, mid, out = np.ones(1024, np.float16), floats(1024), floats(1024)
    assert not faults(cores_and_programs_wait, (4,), x, mid, ints(4), out, LAST=True, M=16)
    assert (out == 17).all()
    found = faults(cores_and_programs_wait, (4,), x, mid, ints(4), out, LAST=False, M=16)
    assert "hang in program 0" in found
    assert "program 1 and 1 other wait here" in found


@sim.jit
def waits_and_fails(flag, x, out, n):
    if tl.program_id(0) == 0:
        while tl.atomic_add(flag, 0) == 0:
            pass
    else:
        tl.store(out, tl.load(x + n))


def test_an_error_of_a_program_that_runs_meanwhile_is_that_of_the_launch():
    assert "out of bounds" in faults(waits_and_fails, (3,), ints(), floats(4), floats(1), 4)


def test_time_of_programs_that_wait_is_the_same_each_time():
    cycles = set()
    for _ in range(3):
        with sim.device("ascend910b3"):
            x, y, out = (floats(8 * 6) for _ in range(3))
            cycles.add(meets_twice[(6,)](ints(2), x, y, out, SECOND=1, B=8).launches[0].cycles)
    assert len(cycles) == 1

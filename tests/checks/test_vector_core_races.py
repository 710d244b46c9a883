"""Both Vector cores of a program at one address, without an order between them: each kernel with the fault, and its twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.language.extra.cann import extension as al

from .pairs import Pair, faults

B, M = 16, 16
PIPE = al.PIPE
# Messages below name lines of the first two kernels.


@sim.jit
def halves(x, out, STEP: tl.constexpr, B: tl.constexpr):
    """Each takes B of the rows of a program, STEP apart."""
    i, j = tl.arange(0, B)[:, None], tl.arange(0, 8)[None, :]
    at = (tl.program_id(0) * 2 * B + al.sub_vec_id() * STEP + i) * 8 + j
    tl.store(out + at, tl.load(x + at) * 2.0)


@sim.jit
def ring(x, out, count, BEFORE: tl.constexpr, BEHIND: tl.constexpr, B: tl.constexpr):
    """Each loads what the other one has stored, turn by turn."""
    s = al.sub_vec_id()
    mine = x + (tl.program_id(0) * 2 + s) * B + tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for t in range(count):
        tl.store(mine, total + t)
        if BEFORE:
            al.sync_block_all(BEFORE, 0)
        total += tl.load(mine + (1 - 2 * s) * B)
        if BEHIND:
            al.sync_block_all("all_sub_vector", 1)
    tl.store(out + (tl.program_id(0) * 2 + s) * B + tl.arange(0, B), total)


@sim.jit
def by_the_cube(
    a, x, out, mid, SETS: tl.constexpr, WAITS: tl.constexpr, ANSWERS: tl.constexpr, M: tl.constexpr
):
    """The Cube core waits for both Vector cores and answers, so each knows of the other one."""
    i, j, s = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :], al.sub_vec_id()
    with al.scope(core_mode="vector"):
        tl.store(x + s * M + tl.arange(0, M), 1.0 + s)
        al.sync_block_set("vector", "cube", 1, SETS, WAITS)
    with al.scope(core_mode="cube"):
        if ANSWERS == "at once":
            al.sync_block_set("cube", "vector", 0)
        al.sync_block_wait("vector", "cube", 1, SETS, WAITS)
        y = tl.load(a + i * M + j)
        tl.store(mid + i * M + j, tl.dot(y, y))
        if ANSWERS == "behind":
            al.sync_block_set("cube", "vector", 0)
    with al.scope(core_mode="vector"):
        al.sync_block_wait("cube", "vector", 0)
        tl.store(out + s * M + tl.arange(0, M), tl.load(x + (1 - s) * M + tl.arange(0, M)))


@sim.jit
def by_the_compiler(a, x, out, mid, EARLY: tl.constexpr, M: tl.constexpr):
    """No flags: the compiler's go from both Vector cores to the Cube core, and back with the product."""
    i, j, s = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :], al.sub_vec_id()
    mine = (tl.arange(0, M // 2)[:, None] + s * (M // 2)) * M + j
    other = (tl.arange(0, M // 2)[:, None] + (1 - s) * (M // 2)) * M + j
    tl.store(x + mine, tl.load(a + mine) * 2.0)
    if EARLY:
        tl.store(out + mine, tl.load(x + other))
    y = tl.load(x + i * M + j)
    tl.store(mid + i * M + j, tl.dot(y, y))
    if not EARLY:
        tl.store(out + mine, tl.load(mid + other) + tl.load(x + other))


@sim.jit
def total_of(x, out, total, OWN: tl.constexpr, B: tl.constexpr):
    """A store that both make: of the same value without harm."""
    s = al.sub_vec_id()
    y = tl.load(x + tl.arange(0, B))
    tl.store(out + s * B + tl.arange(0, B), y + s)
    tl.store(total, tl.sum(y) + s if OWN else tl.sum(y))


@sim.jit
def in_place(x, OWN: tl.constexpr, B: tl.constexpr):
    """Updated by both; what each makes is the same, but one may load what the other one has stored."""
    s = al.sub_vec_id()
    at = tl.arange(0, B) + (s * B if OWN else 0)
    tl.store(x + at, tl.load(x + at) + 1.0)


@sim.jit
def last_adds(x, part, out, count, FIRST: tl.constexpr, SEM: tl.constexpr, B: tl.constexpr):
    """The Vector core that counts last adds what both have stored."""
    p, s = tl.program_id(0), al.sub_vec_id()
    here = part + p * 2 * B + tl.arange(0, B)
    y = tl.load(x + s * B + tl.arange(0, B))
    if FIRST == "count":
        before = tl.atomic_add(count + p, 1, sem=SEM)
    tl.store(here + s * B, y)
    if FIRST == "store":
        before = tl.atomic_add(count + p, 1, sem=SEM)
    if before == 1:
        tl.store(out + p * B + tl.arange(0, B), tl.load(here) + tl.load(here + B))


@sim.jit
def scalar(x, out, BARRIER: tl.constexpr):
    s = al.sub_vec_id()
    if s == 1:
        tl.store(x, 3.0)
    if BARRIER:
        al.sync_block_all("all_sub_vector", 0)
    if s == 0:
        tl.store(out, tl.load(x) * 2.0)


@sim.jit
def store_tile(pointers, value):
    tl.store(pointers, value)


@sim.jit
def helper(x, out, places, B: tl.constexpr):
    """Where each stores is data, and the store stands in a function of its own."""
    at = al.sub_vec_id() * B + tl.arange(0, B)
    store_tile(out + tl.load(places + at), tl.load(x + at))


@sim.jit
def zeroed(x, total, BARRIER: tl.constexpr, B: tl.constexpr):
    """Both store zeros, without harm to each other, but who is late undoes what the other one has added."""
    at = tl.arange(0, B)
    tl.store(total + at, tl.zeros((B,), tl.float32))
    if BARRIER:
        al.sync_block_all("all_sub_vector", 0)
    tl.atomic_add(total + at, tl.load(x + at) + al.sub_vec_id())


@sim.jit
def three_load(x, out, mid, BARRIER: tl.constexpr, M: tl.constexpr):
    """The Cube core and both Vector cores load what one of these changes then."""
    i, j, s = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :], al.sub_vec_id()
    at = i * M + j
    with al.scope(core_mode="cube"):
        y = tl.load(x + at)
        tl.store(mid + at, tl.dot(y, y))
        al.sync_block_set("cube", "vector", 0)
    with al.scope(core_mode="vector"):
        z = tl.load(x + at)
        al.sync_block_wait("cube", "vector", 0)
        tl.store(out + s * M * M + at, z)
        if BARRIER:
            al.sync_block_all("all_sub_vector", 1)
        if s == 1:
            tl.store(x + at, z + 1.0)


@sim.jit
def next_rows(x, out, BARRIER: tl.constexpr, B: tl.constexpr):
    """Each program takes what the next one has stored."""
    p, s = tl.program_id(0), al.sub_vec_id()
    at = s * B + tl.arange(0, B)
    tl.store(x + p * 2 * B + at, 1.0 * at)
    al.sync_block_all(BARRIER, 0)
    tl.store(out + p * 2 * B + at, tl.load(x + (p + 1) % tl.num_programs(0) * 2 * B + at))


def floats(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def ringing(programs: int, count: int, before: str, behind: bool) -> Any:
    return ring[(programs,)](floats(programs, 2 * B), floats(programs, 2 * B), count, before, behind, B=B)


def through_the_cube(sets: al.PIPE, answers: str, waits: al.PIPE = PIPE.PIPE_MTE2) -> Any:
    return by_the_cube[(1,)](
        floats(M, M), floats(2, M), floats(2, M), floats(M, M), sets, waits, answers, M=M
    )


def without_flags(early: bool) -> Any:
    return by_the_compiler[(1,)](*(floats(M, M) for _ in range(4)), EARLY=early, M=M)


def counting(first: str, sem: str, programs: int = 3) -> Any:
    count = np.zeros(programs, np.int32)
    return last_adds[(programs,)](
        floats(2 * B), floats(programs, 2 * B), floats(programs, B), count, first, sem, B=B
    )


def placing(twice: bool) -> Any:
    places = np.arange(2 * B, dtype=np.int32)[::-1].copy()
    places[B + 3] = places[2] if twice else places[B + 3]
    return helper[(1,)](floats(2 * B), floats(2 * B), places, B=B)


PAIRS = {
    "halves overlap": Pair(
        lambda: halves[(3,)](floats(96, 8), floats(96, 8), STEP=B - 1, B=B),
        lambda: halves[(3,)](floats(96, 8), floats(96, 8), STEP=B, B=B),
        "vector cores 0 and 1 both store to element 120 of 'out' (line 26), in program 0",
    ),
    "no barrier": Pair(
        lambda: ringing(1, 1, "", behind=False),
        lambda: ringing(1, 1, "all_sub_vector", behind=False),
        "vector core 0 loads element 16 of 'x' and vector core 1 stores to it (lines 39 and 36), in program 0",
    ),
    "no barrier behind the loads": Pair(
        lambda: ringing(3, 2, "all_sub_vector", behind=False),
        lambda: ringing(3, 2, "all_sub_vector", behind=True),
        "without a barrier between them",
    ),
    "a set before the store": Pair(
        lambda: through_the_cube(PIPE.PIPE_MTE3, "at once"),
        lambda: through_the_cube(PIPE.PIPE_MTE3, "behind"),
        "of 'x' and vector core 1 stores to it",
    ),
    "a set of another pipe": Pair(
        lambda: through_the_cube(PIPE.PIPE_MTE2, "behind"),
        lambda: through_the_cube(PIPE.PIPE_ALL, "behind", PIPE.PIPE_FIX),
        "of 'x' and vector core 1 stores to it",
    ),
    "before the compiler's flags": Pair(
        lambda: without_flags(early=True),
        lambda: without_flags(early=False),
        "of 'x' and vector core 1 stores to it",
    ),
    "values of their own": Pair(
        lambda: total_of[(1,)](floats(B), floats(2 * B), floats(1), OWN=True, B=B),
        lambda: total_of[(1,)](floats(B), floats(2 * B), floats(1), OWN=False, B=B),
        "vector cores 0 and 1 both store to element 0 of 'total'",
    ),
    "both in place": Pair(
        lambda: in_place[(1,)](floats(2 * B), OWN=False, B=B),
        lambda: in_place[(1,)](floats(2 * B), OWN=True, B=B),
        "the load may give the value before or after",
    ),
    "counted too early": Pair(
        lambda: counting("count", "acq_rel"), lambda: counting("store", "acq_rel"), "of 'part'"
    ),
    "counted without an order": Pair(
        lambda: counting("store", "relaxed"), lambda: counting("store", "acq_rel", 1), "of 'part'"
    ),
    "zeroed by both": Pair(
        lambda: zeroed[(1,)](floats(B), floats(B), BARRIER=False, B=B),
        lambda: zeroed[(1,)](floats(B), floats(B), BARRIER=True, B=B),
        "of 'total'",
    ),
    "loaded by three": Pair(
        lambda: three_load[(1,)](floats(M, M), floats(2, M, M), floats(M, M), BARRIER=False, M=M),
        lambda: three_load[(1,)](floats(M, M), floats(2, M, M), floats(M, M), BARRIER=True, M=M),
        "vector core 0 loads element 0 of 'x' and vector core 1 stores to it",
    ),
    "a barrier of one program": Pair(
        lambda: next_rows[(3,)](floats(3, 2 * B), floats(3, 2 * B), "all_sub_vector", B=B),
        lambda: next_rows[(3,)](floats(3, 2 * B), floats(3, 2 * B), "all_vector", B=B),
        "program 0 loads element 32 of 'x' and program 1 stores to it",
    ),
    "a scalar": Pair(
        lambda: scalar[(1,)](floats(1), floats(1), BARRIER=False),
        lambda: scalar[(1,)](floats(1), floats(1), BARRIER=True),
        "vector core 0 loads element 0 of 'x' and vector core 1 stores to it",
    ),
    "places from data, in a helper": Pair(
        lambda: placing(twice=True),
        lambda: placing(twice=False),
        "vector cores 0 and 1 both store to element 29 of 'out'",
    ),
}


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("name", PAIRS)
def test_the_fault_is_told_and_its_twin_is_silent(name: str, check: bool) -> None:
    assert all(w.place and w.programs for w in PAIRS[name].told(check))


@pytest.mark.parametrize("before", ["all_sub_vector", "all_vector", "all"])
def test_each_barrier_with_vector_cores_orders_them(before: str) -> None:
    assert not faults(lambda: ringing(3, 3, before, behind=True))

"""Cube core and Vector core at one address without a flag between them: each kernel with the fault, and its twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.language.extra.cann import extension as al

from .pairs import Pair, faults

M = 16


@sim.jit
def hop(a, out, mid, SETS: tl.constexpr, WAITS: tl.constexpr, SCOPES: tl.constexpr, M: tl.constexpr):
    """The product goes through memory to the Vector core."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    at = i * M + j
    here = tl.program_id(0) * M * M + at
    if SCOPES:
        with al.scope(core_mode="cube"):
            x = tl.load(a + at)
            tl.store(mid + here, tl.dot(x, x))
            if SETS:
                al.sync_block_set("cube", "vector", 0)
        with al.scope(core_mode="vector"):
            if WAITS:
                al.sync_block_wait("cube", "vector", 0)
            tl.store(out + here, tl.load(mid + here) * 2.0)
    else:
        x = tl.load(a + at)
        tl.store(mid + here, tl.dot(x, x))
        if SETS:
            al.sync_block_set("cube", "vector", 0)
        if WAITS:
            al.sync_block_wait("cube", "vector", 0)
        tl.store(out + here, tl.load(mid + here) * 2.0)


@sim.jit
def hop_then_branch(a, out, mid, taken, WAITS: tl.constexpr, M: tl.constexpr):
    """A branch that depends on data, so that the values are computed along with the time."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    at = i * M + j
    with al.scope(core_mode="cube"):
        x = tl.load(a + at)
        tl.store(mid + at, tl.dot(x, x))
        al.sync_block_set("cube", "vector", 0)
    with al.scope(core_mode="vector"):
        if WAITS:
            al.sync_block_wait("cube", "vector", 0)
        y = tl.load(mid + at)
        if tl.load(taken) > 0:
            tl.store(out + at, y)


@sim.jit
def take_turns(a, out, mid, count, SLOTS: tl.constexpr, CREDITS: tl.constexpr, M: tl.constexpr):
    """The Cube uses its slots of memory again, once the Vector core says that it has read them."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    at = i * M + j
    with al.scope(core_mode="cube"):
        x = tl.load(a + at)
        for t in range(count):
            if CREDITS:
                al.sync_block_wait("vector", "cube", 1)
            tl.store(mid + t % SLOTS * M * M + at, tl.dot(x, x))
            al.sync_block_set("cube", "vector", 0)
    with al.scope(core_mode="vector"):
        for _ in range(CREDITS):
            al.sync_block_set("vector", "cube", 1)
        for t in range(count):
            al.sync_block_wait("cube", "vector", 0)
            tl.store(out + t * M * M + at, tl.load(mid + t % SLOTS * M * M + at) + 1.0)
            if CREDITS and t < count - CREDITS:
                al.sync_block_set("vector", "cube", 1)


@sim.jit
def pipes(a, out, mid, SETS: tl.constexpr, WAITS: tl.constexpr, BACK: tl.constexpr, M: tl.constexpr):
    """One slot; flags of given pipes there and back, the one back before what is loaded is stored."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    at = i * M + j
    with al.scope(core_mode="cube"):
        x = tl.load(a + at)
        for t in range(3):
            if t > 0:
                al.sync_block_wait("vector", "cube", 1, BACK, al.PIPE.PIPE_FIX)
            tl.store(mid + at, tl.dot(x, x))
            al.sync_block_set("cube", "vector", 0, SETS, WAITS)
    with al.scope(core_mode="vector"):
        for t in range(3):
            al.sync_block_wait("cube", "vector", 0, SETS, WAITS)
            y = tl.load(mid + at)
            if t < 2:
                al.sync_block_set("vector", "cube", 1, BACK, al.PIPE.PIPE_FIX)
            tl.store(out + t * M * M + at, y)


@sim.jit
def two_slots(a, out, mid, SECOND: tl.constexpr, M: tl.constexpr):
    """Two slots of memory; the Vector core takes the second one first."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    at = i * M + j
    with al.scope(core_mode="cube"):
        x = tl.load(a + at)
        tl.store(mid + at, tl.dot(x, x))
        al.sync_block_set("cube", "vector", 0)
        tl.store(mid + M * M + at, tl.dot(x, x))
        al.sync_block_set("cube", "vector", SECOND)
    with al.scope(core_mode="vector"):
        al.sync_block_wait("cube", "vector", SECOND)
        tl.store(out + at, tl.load(mid + M * M + at) + 1.0)
        al.sync_block_wait("cube", "vector", 0)
        tl.store(out + M * M + at, tl.load(mid + at) + 1.0)


@sim.jit
def early_wait(a, out, mid, EARLY: tl.constexpr, M: tl.constexpr):
    """Two flags; one is waited for before the load of what the other one says."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    at = i * M + j
    with al.scope(core_mode="cube"):
        x = tl.load(a + at)
        al.sync_block_set("cube", "vector", 1)
        tl.store(mid + at, tl.dot(x, x))
        al.sync_block_set("cube", "vector", 2)
    with al.scope(core_mode="vector"):
        al.sync_block_wait("cube", "vector", 1 if EARLY else 2)
        tl.store(out + at, tl.load(mid + at) + 1.0)
        al.sync_block_wait("cube", "vector", 2 if EARLY else 1)


@sim.jit
def met_in_a_barrier(a, out, mid, MEETS: tl.constexpr, M: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    at = tl.program_id(0) * M * M + i * M + j
    next_one = (tl.program_id(0) + 1) % tl.num_programs(0) * M * M + i * M + j
    with al.scope(core_mode="cube"):
        x = tl.load(a + i * M + j)
        tl.store(mid + at, tl.dot(x, x))
    al.sync_block_all("all" if MEETS else "all_vector", 3)
    with al.scope(core_mode="vector"):
        tl.store(out + at, tl.load(mid + next_one) * 2.0)


@sim.jit
def next_product(a, out, mid, BARRIER: tl.constexpr, WAITS: tl.constexpr, M: tl.constexpr):
    """The Vector core takes what the Cube of the next program has made."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    at = i * M + j
    next_one = (tl.program_id(0) + 1) % tl.num_programs(0)
    with al.scope(core_mode="cube"):
        x = tl.load(a + at)
        tl.store(mid + tl.program_id(0) * M * M + at, tl.dot(x, x))
        if WAITS:
            al.sync_block_set("cube", "vector", 0)
    if WAITS == "before":
        with al.scope(core_mode="vector"):
            al.sync_block_wait("cube", "vector", 0)
    al.sync_block_all(BARRIER, 3)
    with al.scope(core_mode="vector"):
        if WAITS == "behind":
            al.sync_block_wait("cube", "vector", 0)
        tl.store(out + tl.program_id(0) * M * M + at, tl.load(mid + next_one * M * M + at) * 2.0)


@sim.jit
def next_sum(a, out, mid, BARRIER: tl.constexpr, M: tl.constexpr):
    """The Vector core makes something of a product, and takes that of the next program."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    at = i * M + j
    next_one = (tl.program_id(0) + 1) % tl.num_programs(0)
    x = tl.load(a + at)
    tl.store(mid + tl.program_id(0) * M * M + at, tl.exp(tl.dot(x, x)))
    al.sync_block_all(BARRIER, 3)
    tl.store(out + tl.program_id(0) * M * M + at, tl.load(mid + next_one * M * M + at) * 2.0)


@sim.jit
def tile_beside(a, out, mid, BEFORE: tl.constexpr, M: tl.constexpr):
    """A tile that passes orders what the Cube did before it."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    at = i * M + j
    with al.scope(core_mode="cube"):
        x = tl.load(a + at)
        tl.store(mid + at, tl.dot(x, x))
        product = tl.dot(x, x)
    with al.scope(core_mode="vector"):
        if BEFORE:
            early = tl.load(mid + at)
            tl.store(out + at, tl.exp(product) + early)
        else:
            y = tl.exp(product)
            tl.store(out + at, y + tl.load(mid + at))


@sim.jit
def plain(a, out, M: tl.constexpr):
    """What passes here passes with flags of the compiler's own."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    at = tl.program_id(0) * M * M + i * M + j
    x = tl.load(a + i * M + j)
    y = tl.exp(tl.dot(x, x))
    tl.store(out + at, tl.dot(y, x) + y)


def floats(n: int = 1) -> np.ndarray:
    return np.zeros((n, M, M), np.float32)


def hopping(**sync: bool) -> Any:
    return hop[(2,)](floats(), floats(2), floats(2), **sync, M=M)


def reusing(slots: int, credits: int) -> Any:
    return take_turns[(1,)](floats(), floats(5), floats(slots), 5, SLOTS=slots, CREDITS=credits, M=M)


PAIRS = {
    "no flag": Pair(
        lambda: hopping(SETS=False, WAITS=False, SCOPES=True),
        lambda: hopping(SETS=True, WAITS=True, SCOPES=True),
        "the cube core stores to element 0 of 'mid'",
    ),
    "no wait": Pair(
        lambda: hopping(SETS=True, WAITS=False, SCOPES=True),
        lambda: hopping(SETS=True, WAITS=True, SCOPES=True),
        "and the vector core loads it",
    ),
    "no wait, no scope": Pair(
        lambda: hopping(SETS=True, WAITS=False, SCOPES=False),
        lambda: hopping(SETS=True, WAITS=True, SCOPES=False),
        "and the vector core loads it",
    ),
    "one set too many": Pair(
        lambda: hopping(SETS=True, WAITS=False, SCOPES=True),
        lambda: hopping(SETS=True, WAITS=True, SCOPES=True),
        "the cube core sets event 0 once more often than the vector core waits for it, in program 0",
    ),
    "overwritten while it is read": Pair(
        lambda: reusing(slots=1, credits=0),
        lambda: reusing(slots=1, credits=1),
        "overwritten while it is still to be read",
    ),
    "two slots overwritten": Pair(
        lambda: reusing(slots=2, credits=0),
        lambda: reusing(slots=2, credits=2),
        "wait for a flag back from the vector core before it stores there again",
    ),
    "a flag back one turn late": Pair(
        lambda: reusing(slots=2, credits=3),
        lambda: reusing(slots=3, credits=3),
        "overwritten while it is still to be read",
    ),
    "one event for two slots": Pair(
        lambda: two_slots[(1,)](floats(), floats(2), floats(2), SECOND=0, M=M),
        lambda: two_slots[(1,)](floats(), floats(2), floats(2), SECOND=1, M=M),
        f"the cube core stores to element {M * M} of 'mid'",
    ),
    "waits in another order": Pair(
        lambda: early_wait[(1,)](floats(), floats(), floats(), EARLY=True, M=M),
        lambda: early_wait[(1,)](floats(), floats(), floats(), EARLY=False, M=M),
        "without a flag between them",
    ),
    "another barrier": Pair(
        lambda: met_in_a_barrier[(1,)](floats(), floats(), floats(), MEETS=False, M=M),
        lambda: met_in_a_barrier[(1,)](floats(), floats(), floats(), MEETS=True, M=M),
        "without a flag between them",
    ),
    "before the tile comes": Pair(
        lambda: tile_beside[(1,)](floats(), floats(), floats(), BEFORE=True, M=M),
        lambda: tile_beside[(1,)](floats(), floats(), floats(), BEFORE=False, M=M),
        "without a flag between them",
    ),
}


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("name", PAIRS)
def test_the_fault_is_told_and_its_twin_is_silent(name: str, check: bool) -> None:
    assert all(w.place and w.programs for w in PAIRS[name].told(check))


@pytest.mark.parametrize("time", [False, True])
def test_flags_order_where_time_depends_on_data(time: bool) -> None:
    def launch(waits: bool) -> list[str]:
        with sim.device("ascend910b3", time=time):
            run = hop_then_branch[(1,)](floats(), floats(), floats(), np.ones(1, np.int32), WAITS=waits, M=M)
        return [w for w in run.warnings if w.kind == "fault"]

    assert not launch(waits=True)
    assert any("without a flag between them" in w for w in launch(waits=False))


PIPE = al.PIPE


@pytest.mark.parametrize("back", [PIPE.PIPE_MTE2, PIPE.PIPE_V, PIPE.PIPE_ALL, PIPE.PIPE_MTE3])
@pytest.mark.parametrize("waits", [PIPE.PIPE_MTE2, PIPE.PIPE_ALL, PIPE.PIPE_V, PIPE.PIPE_MTE3])
@pytest.mark.parametrize("sets", [PIPE.PIPE_FIX, PIPE.PIPE_ALL, PIPE.PIPE_MTE2, PIPE.PIPE_M])
def test_a_flag_orders_what_its_pipes_do(sets: al.PIPE, waits: al.PIPE, back: al.PIPE) -> None:
    there = sets in (PIPE.PIPE_FIX, PIPE.PIPE_ALL) and waits in (PIPE.PIPE_MTE2, PIPE.PIPE_ALL)
    found = faults(lambda: pipes[(1,)](floats(), floats(3), floats(), sets, waits, back, M=M))
    assert bool(found) != (there and back is not PIPE.PIPE_MTE3)
    assert there or "by a pipe that does not do it" in found[0]


def test_programs_of_a_barrier_read_each_other() -> None:
    assert not faults(lambda: met_in_a_barrier[(3,)](floats(), floats(3), floats(3), MEETS=True, M=M))


@pytest.mark.parametrize(
    ("barrier", "waits", "ordered"),
    [
        ("all", False, True),
        ("all_vector", "before", True),
        ("all_vector", "behind", False),
        ("all_cube", "before", False),
    ],
)
def test_a_barrier_orders_what_its_cores_did_and_had_heard_of(
    barrier: str, waits: str, ordered: bool
) -> None:
    def launch() -> Any:
        return next_product[(3,)](floats(), floats(3), floats(3), barrier, waits, M=M)

    found = faults(launch)
    assert bool(found) != ordered
    assert ordered or ("of 'mid'" in found[0] and "mode 'all'" in found[0])


def test_a_barrier_of_vector_cores_orders_what_they_did() -> None:
    assert not faults(lambda: next_sum[(3,)](floats(), floats(3), floats(3), "all_vector", M=M))
    assert faults(lambda: next_sum[(3,)](floats(), floats(3), floats(3), "all_cube", M=M))


def test_what_the_compiler_orders_is_no_fault() -> None:
    assert not faults(lambda: plain[(3,)](floats(), floats(3), M=M))
    with sim.device("ascend910b3", time=False):
        (told,) = hopping(SETS=False, WAITS=False, SCOPES=False).warnings
    assert told.kind == "note"
    assert "disable_auto_inject_block_sync" in told

"""Cube core and Vector core at one address without a flag between them: each kernel with the fault, and its twin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.language.extra.cann import extension as al

M = 16


def faults(launch: Callable[[], Any], **options: Any) -> list[Any]:
    """What a launch says is wrong."""
    with sim.device("ascend910b3", time=False, **options):
        return [w for w in launch().warnings if w.kind == "fault"]


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
def one_slot(a, out, mid, count, BACK: tl.constexpr, M: tl.constexpr):
    """The Cube uses its slot of memory again, once the Vector core says that it has read it."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    at = i * M + j
    with al.scope(core_mode="cube"):
        x = tl.load(a + at)
        for _ in range(count):
            if BACK:
                al.sync_block_wait("vector", "cube", 1)
            tl.store(mid + at, tl.dot(x, x))
            al.sync_block_set("cube", "vector", 0)
    with al.scope(core_mode="vector"):
        if BACK:
            al.sync_block_set("vector", "cube", 1)
        for t in range(count):
            al.sync_block_wait("cube", "vector", 0)
            tl.store(out + t * M * M + at, tl.load(mid + at) + 1.0)
            if BACK and t < count - 1:
                al.sync_block_set("vector", "cube", 1)


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


class Pair(NamedTuple):
    """says: what the message of the wrong one must contain."""

    wrong: Callable[[], Any]
    right: Callable[[], Any]
    says: str


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
        lambda: one_slot[(1,)](floats(), floats(3), floats(), 3, BACK=False, M=M),
        lambda: one_slot[(1,)](floats(), floats(3), floats(), 3, BACK=True, M=M),
        "a flag back from the vector core",
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
    pair = PAIRS[name]
    found = faults(pair.wrong, check=check)
    assert any(pair.says in w for w in found), found
    assert all(w.place and w.programs for w in found)
    assert not faults(pair.right, check=check)


@pytest.mark.parametrize("time", [False, True])
def test_flags_order_where_time_depends_on_data(time: bool) -> None:
    def launch(waits: bool) -> list[str]:
        with sim.device("ascend910b3", time=time):
            run = hop_then_branch[(1,)](floats(), floats(), floats(), np.ones(1, np.int32), WAITS=waits, M=M)
        return [w for w in run.warnings if w.kind == "fault"]

    assert not launch(waits=True)
    assert any("without a flag between them" in w for w in launch(waits=False))


def test_programs_of_a_barrier_read_each_other() -> None:
    assert not faults(lambda: met_in_a_barrier[(3,)](floats(), floats(3), floats(3), MEETS=True, M=M))


def test_what_the_compiler_orders_is_no_fault() -> None:
    assert not faults(lambda: plain[(3,)](floats(), floats(3), M=M))
    with sim.device("ascend910b3", time=False):
        (told,) = hopping(SETS=False, WAITS=False, SCOPES=False).warnings
    assert told.kind == "note"
    assert "disable_auto_inject_block_sync" in told

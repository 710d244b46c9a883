"""Two programs at one address without an order between them: each kernel with the fault and its twin without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import CompileError

from .pairs import Pair, faults


@sim.jit
def stencil(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    left = tl.load(x + i - 1, mask=(i > 0) & (i < n), other=0.0)
    tl.store(out + i, left + tl.load(x + i, mask=i < n), mask=i < n)


@sim.jit
def chain(out, BACK: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    before = tl.load(out + i - BACK, mask=i >= BACK, other=0.0)
    tl.store(out + i, before + 1.0)


@sim.jit
def next_block(out, STEP: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + STEP + i, tl.load(out + i) + 1.0)


@sim.jit
def sum_then_load(total, out, x, LOADS: tl.constexpr, B: tl.constexpr):
    p = tl.program_id(0)
    tl.atomic_add(total, tl.sum(tl.load(x + p * B + tl.arange(0, B)), axis=0))
    if LOADS:
        tl.store(out + p, tl.load(total))


@sim.jit
def last_of_all(total, out, x, LAST: tl.constexpr):
    p = tl.program_id(0)
    tl.atomic_add(total, tl.load(x + p))
    if p == LAST:
        tl.store(out, tl.load(total))


@sim.jit
def last_block_sum(x, part, count, out, EARLY: tl.constexpr, B: tl.constexpr, P: tl.constexpr):
    p = tl.program_id(0)
    s = tl.sum(tl.load(x + p * B + tl.arange(0, B)), axis=0)
    if EARLY:
        t = tl.atomic_add(count, 1)
        tl.store(part + p, s)
    else:
        tl.store(part + p, s)
        t = tl.atomic_add(count, 1)
    if t == P - 1:
        tl.store(out, tl.sum(tl.load(part + tl.arange(0, P)), axis=0))


@sim.jit
def semantics(lock, out, TAKES: tl.constexpr, GIVES: tl.constexpr):
    while tl.atomic_cas(lock, 0, 1, sem=TAKES) == 1:
        pass
    tl.store(out, tl.load(out) + 1.0)
    tl.atomic_xchg(lock, 0, sem=GIVES)


@sim.jit
def guarded(lock, out, EARLY: tl.constexpr):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    v = tl.load(out)
    if EARLY:
        tl.atomic_xchg(lock, 0)
        tl.store(out, v + 1.0)
    else:
        tl.store(out, v + 1.0)
        tl.atomic_xchg(lock, 0)


@sim.jit
def two_locks(locks, out, SAME: tl.constexpr):
    """Each program takes the lock of its half; only one lock for all guards one element for all."""
    p = tl.program_id(0)
    lock = locks + (0 if SAME else p % 2)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out, tl.load(out) + 1.0)
    tl.atomic_xchg(lock, 0)


@sim.jit
def ticket(counter, out, STEP: tl.constexpr):
    t = tl.atomic_add(counter, 1)
    tl.store(out + tl.program_id(0) * STEP + tl.arange(0, 8), t.to(tl.float32))


@sim.jit
def flag_chain(flags, out, WAITS: tl.constexpr):
    """Program p goes on from what p - 1 stored, once its flag says so."""
    p = tl.program_id(0)
    v = 0.0
    if p > 0:
        if WAITS:
            while tl.load(flags + p - 1) == 0:
                pass
        v = tl.load(out + p - 1)
    tl.store(out + p, v + 1.0)
    tl.atomic_xchg(flags + p, 1)


@sim.jit
def scatter(out, table, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + tl.load(table + i, mask=i < n), i, mask=i < n)


@sim.jit
def stored_and_added(out, STORES: tl.constexpr):
    if STORES and tl.program_id(0) == 0:
        tl.store(out, 0.0)
    tl.atomic_add(out, 1.0)


def floats(n: int) -> np.ndarray:
    return np.arange(n, dtype=np.float32)


def ints(n: int) -> np.ndarray:
    return np.zeros(n, np.int32)


def views(shift: int) -> tuple[np.ndarray, np.ndarray]:
    whole = floats(200)
    return whole[:64], whole[shift : 64 + shift]


def _stencil(shift: int, apart: bool = False) -> Any:
    x, out = views(shift)
    return stencil[(4,)](x, out.copy() if apart else out, 64, B=16)


PAIRS = {
    "stencil in place": Pair(
        lambda: _stencil(0),
        lambda: _stencil(0, apart=True),
        "program 0 stores to element 15 of 'x' (which shares memory with 'out') and program 1 loads it",
    ),
    "overlapping views": Pair(
        lambda: _stencil(20),
        lambda: _stencil(64),
        "program 0 stores to element 20 of 'x' (which shares memory with 'out') and program 1 loads it",
    ),
    "chain": Pair(
        lambda: chain[(4,)](floats(32), BACK=1, B=8),
        lambda: chain[(4,)](floats(32), BACK=0, B=8),
        "program 0 stores to element 7 of 'out' and program 1 loads it",
    ),
    "next block": Pair(
        lambda: next_block[(4,)](floats(80), STEP=8, B=8),
        lambda: next_block[(4,)](floats(80), STEP=32, B=8),
        "program 0 stores to element 8 of 'out' and program 1 loads it",
    ),
    "load of an atomic sum": Pair(
        lambda: sum_then_load[(4,)](floats(1), floats(4), floats(32), LOADS=True, B=8),
        lambda: sum_then_load[(4,)](floats(1), floats(4), floats(32), LOADS=False, B=8),
        "program 0 loads element 0 of 'total' and program 1 updates (atomic_add) it",
    ),
    "load by the last program": Pair(
        lambda: last_of_all[(4,)](floats(1), floats(1), floats(4), LAST=3),
        lambda: last_of_all[(4,)](floats(1), floats(1), floats(4), LAST=4),
        "program 0 updates (atomic_add) element 0 of 'total' and program 3 loads it",
    ),
    "counts before it stores": Pair(
        lambda: last_block_sum[(4,)](floats(32), floats(4), ints(1), floats(1), EARLY=True, B=8, P=4),
        lambda: last_block_sum[(4,)](floats(32), floats(4), ints(1), floats(1), EARLY=False, B=8, P=4),
        "program 0 stores to element 0 of 'part' and program 3 loads it",
    ),
    "lock given back too early": Pair(
        lambda: guarded[(4,)](ints(1), floats(1), EARLY=True),
        lambda: guarded[(4,)](ints(1), floats(1), EARLY=False),
        "program 0 stores to element 0 of 'out' and program 1 loads it",
    ),
    "another lock": Pair(
        lambda: two_locks[(4,)](ints(2), floats(1), SAME=False),
        lambda: two_locks[(4,)](ints(2), floats(1), SAME=True),
        "program 0 stores to element 0 of 'out' and program 1 loads it",
    ),
    "ticket and overlap": Pair(
        lambda: ticket[(4,)](ints(1), floats(40), STEP=7),
        lambda: ticket[(4,)](ints(1), floats(40), STEP=8),
        "programs 0 and 1 both store to element 7 of 'out'",
    ),
    "no wait for the flag": Pair(
        lambda: flag_chain[(4,)](ints(4), floats(4), WAITS=False),
        lambda: flag_chain[(4,)](ints(4), floats(4), WAITS=True),
        "program 0 stores to element 0 of 'out' and program 1 loads it",
    ),
    "store beside additions": Pair(
        lambda: stored_and_added[(3,)](floats(1), STORES=True),
        lambda: stored_and_added[(3,)](floats(1), STORES=False),
        "program 0 stores to element 0 of 'out' and program 1 updates (atomic_add) it",
    ),
}


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("name", PAIRS)
def test_the_fault_is_told_and_its_twin_is_silent(name: str, check: bool) -> None:
    assert all(w.place and len(w.programs) == 2 for w in PAIRS[name].told(check))


@pytest.mark.parametrize("gives", [None, "acquire", "release", "acq_rel", "relaxed"])
@pytest.mark.parametrize("takes", [None, "acquire", "release", "acq_rel", "relaxed"])
def test_a_lock_guards_if_it_is_taken_with_acquire_and_given_back_with_release(
    takes: str | None, gives: str | None
) -> None:
    guards = takes in (None, "acquire", "acq_rel") and gives in (None, "release", "acq_rel")
    found = faults(lambda: semantics[(3,)](ints(1), floats(1), TAKES=takes, GIVES=gives))
    assert bool(found) != guards
    assert guards or "of sem='acq_rel'" in found[0]


def test_another_sem_is_refused() -> None:
    with pytest.raises(CompileError, match="sem is 'none', it must be one of"):
        semantics[(1,)](ints(1), floats(1), TAKES="none", GIVES=None)


@sim.jit
def scoped(lock, out, SCOPE: tl.constexpr):
    while tl.atomic_cas(lock, 0, 1, scope=SCOPE) == 1:
        pass
    tl.store(out, tl.load(out) + 1.0)
    tl.atomic_xchg(lock, 0, scope=SCOPE)


@pytest.mark.parametrize(("scope", "guards"), [(None, True), ("gpu", True), ("sys", True), ("cta", False)])
def test_a_lock_of_scope_cta_guards_against_no_other_program(scope: str | None, guards: bool) -> None:
    found = faults(lambda: scoped[(3,)](ints(1), floats(1), SCOPE=scope))
    assert bool(found) != guards
    assert guards or "nor one of scope='cta' other programs" in found[0]


def test_another_scope_is_refused() -> None:
    with pytest.raises(CompileError, match="scope is 'warp', it must be one of 'gpu', 'cta', 'sys'"):
        scoped[(1,)](ints(1), floats(1), SCOPE="warp")


def test_a_message_names_both_lines() -> None:
    first = guarded.source.first_line
    found = faults(PAIRS["lock given back too early"].wrong)
    assert any(f"lines {first + 7} and {first + 4}" in w for w in found)


@pytest.mark.parametrize("programs", [3, 600])
def test_scatters_of_any_size_are_looked_at(programs: int) -> None:
    """Beyond what is noted every store is looked up at once; the first and the last program meet."""
    block = 4096
    table = np.arange(programs * block, dtype=np.int32)
    assert not faults(lambda: scatter[(programs,)](ints(len(table)), table, len(table), B=block))
    table[-1] = 5
    (found,) = faults(lambda: scatter[(programs,)](ints(len(table)), table, len(table), B=block))
    assert f"programs 0 and {programs - 1} both store to element 5 of 'out'" in found


@sim.jit
def halved(out, B: tl.constexpr, DIVIDED: tl.constexpr):
    """Two elements of the tile go to one element of memory."""
    i = tl.arange(0, B)
    tl.store(out + tl.program_id(0) * B + i // 2, i // 2 if DIVIDED else i)


@sim.jit
def rows_on_rows(out, STEP: tl.constexpr, B: tl.constexpr):
    i, j = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    tl.store(out + i * STEP + j, i * B + j)


@pytest.mark.parametrize(
    ("wrong", "right", "says"),
    [
        (
            lambda: halved[(2,)](ints(32), B=8, DIVIDED=False),
            lambda: halved[(2,)](ints(32), B=8, DIVIDED=True),
            "elements [0] and [1] of the tile both go to element 0 of 'out', as 0 and 1, in one store of program 0",
        ),
        (
            lambda: rows_on_rows[(1,)](ints(64), STEP=3, B=4),
            lambda: rows_on_rows[(1,)](ints(64), STEP=4, B=4),
            "elements [0, 3] and [1, 0] of the tile both go to element 3 of 'out', as 3 and 4",
        ),
    ],
)
def test_elements_of_one_store_that_fall_together_differ_or_are_silent(
    wrong: Any, right: Any, says: str
) -> None:
    (found,) = faults(wrong, check=True)
    assert says in found
    assert not faults(right, check=True)


@sim.jit
def counted(hist, x, HOW: tl.constexpr, LAST: tl.constexpr, B: tl.constexpr):
    """Counts how often x names each element, or does what looks alike; clamped where LAST is less than B - 1."""
    o = tl.minimum(tl.arange(0, B), LAST)
    i = tl.load(x + o)
    if HOW == "add":
        tl.store(hist + i, tl.load(hist + i) + 1)
    elif HOW == "under a mask":
        known = tl.load(hist + i, mask=i < 4, other=0)
        tl.store(hist + i, tl.where(known > 5, known, known + 1), mask=i < 4)
    elif HOW == "atomic":
        tl.atomic_add(hist + i, tl.full((B,), 1, hist.dtype.element_ty))
    elif HOW == "maximum":
        tl.store(hist + i, tl.maximum(tl.load(hist + i), 1))
    elif HOW == "nothing added":
        tl.store(hist + i, tl.load(hist + i) + 0)
    elif HOW == "another place":
        tl.store(hist + i, tl.load(hist + i + 8) + 1)
    elif HOW == "no load":
        tl.store(hist + i, tl.full((B,), 1, hist.dtype.element_ty))
    elif HOW == "tail of its own":
        tl.store(hist + o, tl.load(hist + o) + 1)


def counting(how: str, data: list[int], last: int = 7, dtype: Any = np.int32) -> list[Any]:
    table = np.array(data, np.int32)
    return faults(lambda: counted[(1,)](np.zeros(16, dtype), table, HOW=how, LAST=last, B=8), check=True)


REPEATED = [0, 1, 2, 3, 4, 5, 6, 1]


@pytest.mark.parametrize("dtype", [np.int32, np.float16, np.float32])
@pytest.mark.parametrize("how", ["add", "under a mask"])
def test_equal_updates_of_one_element_are_lost_and_told(how: str, dtype: Any) -> None:
    (found,) = counting(how, REPEATED, dtype=dtype)
    assert (
        "elements [1] and [7] of the tile both go to element 1 of 'hist', each made of what it loaded"
        in found
    )
    assert not counting(how, list(range(8)), dtype=dtype)


@pytest.mark.parametrize("how", ["atomic", "maximum", "nothing added", "another place", "no load"])
def test_equal_values_that_lose_no_update_are_silent(how: str) -> None:
    assert not counting(how, REPEATED)


@pytest.mark.parametrize("how", ["add", "tail of its own"])
def test_a_clamped_tail_that_is_updated_where_it_lies_is_silent(how: str) -> None:
    assert not counting(how, list(range(8)), last=4)


@given(data=st.lists(st.integers(0, 7), min_size=8, max_size=8))
def test_updates_are_lost_exactly_where_an_element_is_named_twice(data: list[int]) -> None:
    assert bool(counting("add", data)) == (len(set(data)) < len(data))


def test_what_is_too_large_to_be_looked_at_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    from ascendtile.simulator.checks import clocks, memory_map

    monkeypatch.setattr(clocks, "MOST_PROGRAMS", 3)
    monkeypatch.setattr(memory_map, "MOST_UNITS", 31)
    with sim.device(time=False):
        lock, large = (
            next(w for w in PAIRS[name].wrong().warnings if "not looked for" in w)
            for name in ("lock given back too early", "chain")
        )
    assert lock.kind == large.kind == "note"
    assert "races between the 4 programs were not looked for" in lock
    assert "races in 'out' were not looked for: it has 32 elements" in large


@given(
    stores=st.lists(st.integers(0, 11), min_size=4, max_size=4),
    loads=st.lists(st.integers(0, 11), min_size=4, max_size=4),
)
def test_a_fault_is_told_exactly_where_programs_touch_what_another_one_stores(
    stores: list[int], loads: list[int]
) -> None:
    table = np.array([loads, stores], np.int32)
    meets = any(
        p != q and (stores[p] == stores[q] or stores[p] == loads[q]) for p in range(4) for q in range(4)
    )
    assert bool(faults(lambda: moved[(4,)](floats(12), table, 4))) == meets


@sim.jit
def moved(x, table, n):
    p = tl.program_id(0)
    tl.store(x + tl.load(table + n + p), tl.load(x + tl.load(table + p)) + 1.0 + p)


@sim.jit
def first_one_begins(counter, out, head, STEP: tl.constexpr):
    """Only the first program makes the first access, all of them at once make the others."""
    p = tl.program_id(0)
    if p == 0:
        tl.store(head, 1.0)
    t = tl.atomic_add(counter, 1)
    tl.store(out + p * STEP + tl.arange(0, 8), t.to(tl.float32))


def test_programs_that_run_at_once_are_so_where_one_of_them_makes_the_first_access() -> None:
    (found,) = faults(lambda: first_one_begins[(40,)](ints(1), floats(400), floats(1), STEP=7))
    assert "programs 0 and 1 both store to element 7 of 'out'" in found
    assert not faults(lambda: first_one_begins[(40,)](ints(1), floats(400), floats(1), STEP=8))


@sim.jit
def kernel_by_address(x_ptr, address, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.load(x_ptr + o)
    tl.store(x_ptr + o, v)
    tl.store(address.to(tl.pointer_type(tl.float32)) + o, v)


def test_an_address_leads_to_an_array_that_is_longer_than_the_argument_which_begins_it():
    x = np.zeros(1 << 22, np.float32)
    with sim.device(check=True, time=False):
        run = kernel_by_address[(2,)](x[:16], x.ctypes.data + x.nbytes // 2, B=16)
    both = [f for f in run.faults if "both store" in f]
    assert any(f"element {len(x) // 2} of" in f for f in both)
    assert all("shares memory with" in f for f in both)

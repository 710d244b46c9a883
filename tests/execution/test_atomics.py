"""Atomics combine one element after another, in the order of programs and lanes, and give what memory held before each."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

from .runs import launch, one_by_one

INTEGERS = (np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64)
FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32)
MEANING: dict[str, Any] = {
    "add": lambda old, x: old + x,
    "max": max,
    "min": min,
    "and": lambda old, x: old & x,
    "or": lambda old, x: old | x,
    "xor": lambda old, x: old ^ x,
    "xchg": lambda old, x: x,
}


@sim.jit
def combine(out, old, at, x, n, WHAT: tl.constexpr, B: tl.constexpr):
    lane = tl.program_id(0) * B + tl.arange(0, B)
    mask = lane < n
    p = out + tl.load(at + lane, mask=mask)
    v = tl.load(x + lane, mask=mask)
    if WHAT == "add":
        before = tl.atomic_add(p, v, mask=mask, sem="relaxed")
    elif WHAT == "max":
        before = tl.atomic_max(p, v, mask=mask)
    elif WHAT == "min":
        before = tl.atomic_min(p, v, mask=mask)
    elif WHAT == "and":
        before = tl.atomic_and(p, v, mask=mask)
    elif WHAT == "or":
        before = tl.atomic_or(p, v, mask=mask)
    elif WHAT == "xor":
        before = tl.atomic_xor(p, v, mask=mask, scope="gpu")
    else:
        before = tl.atomic_xchg(p, v, mask=mask)
    tl.store(old + lane, before, mask=mask)


@given(st.sampled_from(sorted(MEANING)), st.sampled_from((*INTEGERS, *FLOATS)), st.integers(0, 2**32 - 1))
def test_one_after_another_with_repeated_addresses(name: str, dtype: Any, seed: int) -> None:
    if name in ("and", "or", "xor") and dtype in FLOATS:
        return  # refused: bits of floats
    rng = np.random.default_rng(seed)
    n, cells = int(rng.integers(1, 40)), int(rng.integers(1, 6))
    at = rng.integers(0, cells, n).astype(np.int32)
    low = 0 if np.dtype(dtype).kind == "u" else -9
    x, out = (rng.integers(low, 9, k).astype(dtype) for k in (n, cells))
    want, before = out.copy(), np.zeros(n, dtype)
    for i in range(n):
        before[i] = want[at[i]]
        want[at[i]] = np.asarray(MEANING[name](want[at[i]], x[i])).astype(dtype)
    old = np.zeros(n, dtype)
    launch(combine, (-(-n // 8),), out, old, at, x, n, WHAT=name, B=8)
    assert np.array_equal(out, want)
    assert np.array_equal(old, before)


@sim.jit
def swap(out, old, want, x, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(old + i, tl.atomic_cas(out + i % 2, tl.load(want + i), tl.load(x + i)))


def test_compare_and_swap_compares_bits() -> None:
    zero, nan = np.float32(0), np.float32(np.nan)
    out = np.array([0.0, nan], np.float32)
    want, x = np.array([-zero, nan, zero, 5], np.float32), np.array([1, 2, 3, 4], np.float32)
    old = np.empty(4, np.float32)
    launch(swap, (1,), out, old, want, x, B=4)
    assert out.tolist() == [3.0, 2.0]  # -0.0 is not 0.0; a NaN is itself
    assert np.array_equal(old, np.array([0, nan, 0, 2], np.float32), equal_nan=True)


@sim.jit
def critical(lock, total, seen, iterations):
    for _ in range(iterations):
        while tl.atomic_cas(lock, 0, 1) == 1:
            pass
        now = tl.load(total)
        tl.store(seen + now, tl.program_id(0))
        tl.store(total, now + 1)
        tl.atomic_xchg(lock, 0)


def test_a_spin_lock_ends_and_guards_what_is_inside() -> None:
    lock, total, seen = np.zeros(1, np.int32), np.zeros(1, np.int32), np.full(12, -1, np.int32)
    launch(critical, (6,), lock, total, seen, 2)
    assert total[0] == 12
    assert lock[0] == 0
    assert seen.tolist() == [p for p in range(6) for _ in range(2)]


@sim.jit
def wait_forever(flag):
    while tl.atomic_add(flag, 0) == 0:
        pass


def test_a_wait_that_nobody_ends_is_a_hang_long_before_the_step_limit() -> None:
    says = "hang in program 0: .* element 0 of 'flag', which is 0, and no program .* outside of the loop"
    with sim.device(step_limit=50), pytest.raises(sim.RunError, match=says) as e:
        wait_forever[(2,)](np.zeros(1, np.int32))
    assert "test_atomics.py" in str(e.value)


@sim.jit
def float_bits(out):
    tl.atomic_or(out, 1)


def test_bits_of_floats_are_refused() -> None:
    with pytest.raises(sim.UsageError, match="atomic_or needs a pointer to integers"):
        float_bits[(1,)](np.zeros(1, np.float32))


@sim.jit
def slots(counter, out, x, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    first = tl.atomic_add(counter, B)
    tl.store(out + first + tl.arange(0, B), tl.load(x + i))


def test_one_ticket_per_program_needs_no_run_in_order() -> None:
    x, out, counter = np.arange(20, dtype=np.float32), np.zeros(20, np.float32), np.zeros(1, np.int32)
    assert not one_by_one(slots, (5,), counter, out, x, B=4)
    launch(slots, (5,), counter, out, x, B=4)
    assert np.array_equal(out, x)
    assert counter[0] == 20


@sim.jit
def counts(out, x, WHAT: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    if WHAT == "add":
        tl.atomic_add(out + i, v)
    else:
        tl.atomic_or(out + i, v)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_integers_of_64_bits_are_loaded_combined_one_by_one_and_stored(dtype: str) -> None:
    """As their addition costs anywhere (spec of the compiler, 11.1): memory itself takes 32 bits at most."""
    runs = {}
    for t in ("int32", dtype):
        x = sim.shape(512, t)
        for author in ("triton-ascend", "ascendc"):
            runs[t, author] = counts.time((4,), x, x, WHAT="add", N=512, compiler=author)
    for author in ("triton-ascend", "ascendc"):
        wide, narrow = runs[dtype, author], runs["int32", author]
        added = wide.pipes["AIV.S"].busy_cycles - narrow.pipes["AIV.S"].busy_cycles
        assert added > 512
        assert wide.buffers["UB"].peak_bytes == 3 * 512 * 8  # what is given, what is there, their sum
        assert narrow.buffers["UB"].peak_bytes == 512 * 4
        assert any("under a lock" in str(w) for w in wide.warnings)
        assert not narrow.warnings
    bits = counts.time((4,), x, x, WHAT="or", N=512)
    assert bits.buffers["UB"].peak_bytes == 512 * 8


@sim.jit
def ticket(counter, seen):
    tl.store(seen + tl.program_id(0), tl.atomic_add(counter, 2**40))


def test_scalars_of_64_bits_give_their_old_values() -> None:
    counter, seen = np.zeros(1, np.int64), np.zeros(5, np.int64)
    run = ticket[(5,)](counter, seen)
    assert seen.tolist() == [k << 40 for k in range(5)]
    assert counter[0] == 5 << 40
    assert run.cycles > 0

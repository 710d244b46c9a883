"""Programs that draw their work by an atomic: tiles of two numbers that overlap, and the twins that do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

from .pairs import faults


def zeros(n: int) -> np.ndarray:
    return np.zeros(n, np.float32)


def floats(n: int) -> np.ndarray:
    return np.arange(1, n + 1).astype(np.float32)


def ints(n: int) -> np.ndarray:
    return np.zeros(n, np.int32)


@sim.jit
def stores(x, c, n, S: tl.constexpr, B: tl.constexpr):
    t = tl.atomic_add(c, 1)
    while t < n:
        tl.store(x + t * S + tl.arange(0, B), tl.full((B,), 1.0, tl.float32) * t)
        t = tl.atomic_add(c, 1)


@sim.jit
def in_a_for(x, y, c, n, S: tl.constexpr, B: tl.constexpr):
    for _k in range(n):
        t = tl.atomic_add(c, 1)
        if t < n:
            i = t * S + tl.arange(0, B)
            tl.store(y + i, tl.load(x + i) + t)


@sim.jit
def stencil(x, y, c, n, B: tl.constexpr):
    t = tl.atomic_add(c, 1)
    while t < n:
        i = t * B + tl.arange(0, B)
        v = tl.load(x + i) + tl.load(x + i - 1, mask=i > 0, other=0.0)
        tl.store(y + i, v)
        t = tl.atomic_add(c, 1)


@sim.jit
def tiles(x, c, n, W: tl.constexpr, S: tl.constexpr, B: tl.constexpr):
    t = tl.atomic_add(c, 1)
    while t < n:
        i = (t // 4) * S + tl.arange(0, B)[:, None]
        j = (t % 4) * B + tl.arange(0, B)[None, :]
        tl.store(x + i * W + j, (i + j * t).to(tl.float32))
        t = tl.atomic_add(c, 1)


@sim.jit
def block_pointers(x, c, n, S: tl.constexpr, B: tl.constexpr):
    t = tl.atomic_add(c, 1)
    while t < n:
        bp = tl.make_block_ptr(x, (256,), (1,), (t * S,), (B,), (0,))
        tl.store(bp, tl.load(bp, boundary_check=(0,)) + 1, boundary_check=(0,))
        t = tl.atomic_add(c, 1)


@sim.jit
def work(x, t, S: tl.constexpr, B: tl.constexpr):
    i = t * S + tl.arange(0, B)
    tl.store(x + i, tl.load(x + i) + 1)


@sim.jit
def drawn(c):
    return tl.atomic_add(c, 1)


@sim.jit
def by_helpers(x, c, n, S: tl.constexpr, B: tl.constexpr):
    t = drawn(c)
    while t < n:
        work(x, t, S, B)
        t = drawn(c)


@sim.jit
def by_table(x, order, c, n, B: tl.constexpr):
    t = tl.atomic_add(c, 1)
    while t < n:
        at = tl.load(order + t) * B + tl.arange(0, B)
        tl.store(x + at, tl.load(x + at) + 1)
        t = tl.atomic_add(c, 1)


@sim.jit
def total(x, out, c, n, BAD: tl.constexpr, B: tl.constexpr):
    t = tl.atomic_add(c, 1)
    while t < n:
        s = tl.sum(tl.load(x + t * B + tl.arange(0, B)), axis=0)
        if BAD:
            tl.store(out, tl.load(out) + s)
        else:
            tl.atomic_add(out, s)
        t = tl.atomic_add(c, 1)


@sim.jit
def chunks(x, c, n, S: tl.constexpr, C: tl.constexpr, B: tl.constexpr):
    t = tl.atomic_add(c, C)
    while t < n:
        for k in range(C):
            i = (t + k) * S + tl.arange(0, B)
            tl.store(x + i, tl.load(x + i) + 1)
        t = tl.atomic_add(c, C)


@sim.jit
def from_before(x, c, n, BAD: tl.constexpr, B: tl.constexpr):
    t = tl.atomic_add(c, 1)
    while t < n:
        o = tl.arange(0, B)
        v = tl.load(x + (t if BAD else t + 20) * B + o)
        tl.store(x + (t + 1) * B + o, v + 1)
        t = tl.atomic_add(c, 1)


@sim.jit
def scratch_of_the_program(x, tmp, out, c, n, B: tl.constexpr):
    """Scratch by program."""
    p = tl.program_id(0)
    o = tl.arange(0, B)
    t = tl.atomic_add(c, 1)
    while t < n:
        tl.store(tmp + p * B + o, tl.load(x + t * B + o) * 2)
        tl.store(out + t * B + o, tl.load(tmp + p * B + (B - 1 - o)))
        t = tl.atomic_add(c, 1)


@sim.jit
def under_a_lock(x, out, lock, c, n, B: tl.constexpr):
    o = tl.arange(0, B)
    t = tl.atomic_add(c, 1)
    while t < n:
        v = tl.load(x + t * B + o)
        while tl.atomic_cas(lock, 0, 1) == 1:
            pass
        tl.store(out + o, tl.load(out + o) + v)
        tl.atomic_xchg(lock, 0)
        t = tl.atomic_add(c, 1)


@sim.jit
def last_of_all(x, part, out, c, n, P: tl.constexpr, N: tl.constexpr, B: tl.constexpr):
    """The program that draws last adds up and resets."""
    o = tl.arange(0, B)
    t = tl.atomic_add(c, 1)
    while t < n:
        tl.store(part + t, tl.sum(tl.load(x + t * B + o), axis=0))
        t = tl.atomic_add(c, 1)
    if t == n + P - 1:
        tl.store(out, tl.sum(tl.load(part + tl.arange(0, N)), axis=0))
        tl.store(c, 0)


@sim.jit
def last_of_a_group(x, part, out, c, g, n, G: tl.constexpr, B: tl.constexpr):
    """Groups of tiles; the last of each group adds up."""
    o = tl.arange(0, B)
    t = tl.atomic_add(c, 1)
    while t < n:
        tl.store(part + t, tl.sum(tl.load(x + t * B + o), axis=0))
        k = tl.atomic_add(g + t // G, 1)
        if k == G - 1:
            tl.store(out + t // G, tl.sum(tl.load(part + (t // G) * G + tl.arange(0, G)), axis=0))
        t = tl.atomic_add(c, 1)


@sim.jit
def waits_for_the_one_before(x, f, c, n, B: tl.constexpr):
    """Ticket t waits for ticket t - 1."""
    o = tl.arange(0, B)
    t = tl.atomic_add(c, 1)
    while t < n:
        v = tl.full((B,), 1.0, tl.float32)
        if t > 0:
            while tl.atomic_add(f + t - 1, 0) == 0:
                pass
            v += tl.load(x + (t - 1) * B + o)
        tl.store(x + t * B + o, v)
        tl.atomic_xchg(f + t, 1)
        t = tl.atomic_add(c, 1)


@sim.jit
def compaction(x, y, out, c, n, B: tl.constexpr):
    """Not a queue: what is found is counted in a loop, in place of own elements."""
    p = tl.program_id(0)
    for k in range(n):
        v = tl.load(x + p * n + k)
        if v > 3:
            s = tl.atomic_add(c, 1)
            tl.store(out + s, v)
        tl.store(x + p * n + k, v + 1)


@sim.jit
def slot_drawn_once(x, tmp, out, c, n, B: tl.constexpr):
    """Scratch by a number that is drawn once."""
    o = tl.arange(0, B)
    slot = tl.atomic_add(c + 1, 1)
    t = tl.atomic_add(c, 1)
    while t < n:
        tl.store(tmp + slot * B + o, tl.load(x + t * B + o) * 2)
        tl.store(out + t * B + o, tl.load(tmp + slot * B + (B - 1 - o)))
        t = tl.atomic_add(c, 1)


@sim.jit
def drawn_early(x, c, n, B: tl.constexpr):
    """Draws the next number before the work is done."""
    t = tl.atomic_add(c, 1)
    while t < n:
        i = t * B + tl.arange(0, B)
        v = tl.load(x + i)
        u = tl.atomic_add(c, 1)
        tl.store(x + i, v + 1)
        t = u


@sim.jit
def drawn_first(x, c, n, B: tl.constexpr):
    t = tl.atomic_add(c, 1)
    while t < n:
        u = tl.atomic_add(c, 1)
        i = t * B + tl.arange(0, B)
        tl.store(x + i, tl.load(x + i) + 1)
        tl.store(x + i, tl.load(x + i) + 1)
        t = u


@sim.jit
def prepared(x, y, c, f, n, B: tl.constexpr):
    """Program 0 prepares, the others wait for its flag, then all draw."""
    p = tl.program_id(0)
    o = tl.arange(0, B)
    if p == 0:
        tl.store(y + o, o * 2.0)
        tl.atomic_xchg(f, 1)
    else:
        while tl.atomic_add(f, 0) == 0:
            pass
    t = tl.atomic_add(c, 1)
    while t < n:
        tl.store(x + t * B + o, tl.load(y + o) + t)
        t = tl.atomic_add(c, 1)


@sim.jit
def two_queues(x, y, c, d, f, n, P: tl.constexpr, B: tl.constexpr):
    """A second queue behind the last of the first: all work of the first is counted."""
    o = tl.arange(0, B)
    t = tl.atomic_add(c, 1)
    while t < n:
        tl.store(x + t * B + o, o * 1.0 + t)
        tl.atomic_add(d, 1)
        t = tl.atomic_add(c, 1)
    while tl.atomic_add(d, 0) < n:
        pass
    t = tl.atomic_add(f, 1)
    while t < n:
        tl.store(y + t * B + o, tl.load(x + (n - 1 - t) * B + o))
        t = tl.atomic_add(f, 1)


def _table(twice: bool) -> np.ndarray:
    order = np.arange(12, dtype=np.int32)[::-1].copy()
    order[3] = order[7] if twice else order[3]
    return order


def _stencil(wrong: bool) -> Any:
    x = floats(256)
    return stencil[(4,)](x, x if wrong else zeros(256), ints(1), 12, B=16)


PAIRS = {
    "stores": lambda wrong: stores[(4,)](zeros(256), ints(1), 12, S=16 - wrong, B=16),
    "in a for": lambda wrong: in_a_for[(4,)](floats(256), zeros(256), ints(1), 12, S=16 - wrong, B=16),
    "stencil": _stencil,
    "tiles": lambda wrong: tiles[(4,)](zeros(1024), ints(1), 12, W=32, S=8 - wrong, B=8),
    "block pointers": lambda wrong: block_pointers[(4,)](zeros(256), ints(1), 12, S=16 - wrong, B=16),
    "by helpers": lambda wrong: by_helpers[(4,)](zeros(256), ints(1), 12, S=16 - wrong, B=16),
    "by a table": lambda wrong: by_table[(4,)](zeros(256), _table(wrong), ints(1), 12, B=16),
    "total": lambda wrong: total[(4,)](floats(256), zeros(1), ints(1), 12, BAD=wrong, B=16),
    "chunks": lambda wrong: chunks[(4,)](zeros(256), ints(1), 12, S=16 - wrong, C=3, B=16),
    "from before": lambda wrong: from_before[(4,)](zeros(1024), ints(1), 12, BAD=wrong, B=16),
}

LEGAL = {
    "scratch of the program": lambda: scratch_of_the_program[(4,)](
        floats(256), zeros(64), zeros(256), ints(1), 12, B=16
    ),
    "under a lock": lambda: under_a_lock[(4,)](floats(256), zeros(16), ints(1), ints(1), 12, B=16),
    "last of all": lambda: last_of_all[(4,)](floats(256), zeros(16), zeros(1), ints(1), 12, P=4, N=16, B=16),
    "last of a group": lambda: last_of_a_group[(4,)](
        floats(256), zeros(16), zeros(4), ints(1), ints(4), 12, G=4, B=16
    ),
    "waits for the one before": lambda: waits_for_the_one_before[(4,)](
        zeros(256), ints(16), ints(1), 12, B=16
    ),
    "compaction": lambda: compaction[(4,)](floats(64), zeros(64), zeros(64), ints(1), 16, B=16),
    "slot drawn once": lambda: slot_drawn_once[(4,)](floats(256), zeros(64), zeros(256), ints(2), 12, B=16),
    "drawn early": lambda: drawn_early[(4,)](floats(256), ints(1), 12, B=16),
    "drawn first": lambda: drawn_first[(4,)](floats(256), ints(1), 12, B=16),
    "prepared": lambda: prepared[(4,)](zeros(256), zeros(16), ints(1), ints(1), 12, B=16),
    "two queues": lambda: two_queues[(4,)](zeros(256), zeros(256), ints(1), ints(1), ints(1), 12, P=4, B=16),
}


@pytest.mark.parametrize("name", PAIRS)
def test_numbers_that_one_program_drew_may_be_drawn_by_two(name: str) -> None:
    found = faults(lambda: PAIRS[name](True))
    assert found
    assert all(w.place and w.programs for w in found)
    assert not faults(lambda: PAIRS[name](False))


def test_the_message_says_that_another_program_may_draw_the_number() -> None:
    (found,) = faults(lambda: PAIRS["stores"](True))
    first = stores.source.first_line
    assert (
        "program 0 stores to element 15 of 'x' and stores to it with another number that an atomic handed out "
        f"(line {first + 4}), which another program may draw"
    ) in found
    assert found.programs == (0,)


@pytest.mark.parametrize("name", LEGAL)
def test_work_that_is_apart_or_ordered_is_silent(name: str) -> None:
    assert not faults(LEGAL[name])

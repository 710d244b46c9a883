"""Old values of a masked atomic: lanes that the mask hides have none; each use of them and its twin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl


def faults(launch: Callable[[], Any]) -> list[Any]:
    with sim.device(time=False, check=True):
        return [w for w in launch().warnings if w.kind == "fault"]


def ints(n: int) -> np.ndarray:
    return np.zeros(n, np.int32)


@sim.jit
def summed(c, out, n, BAD: tl.constexpr, B: tl.constexpr):
    o = tl.arange(0, B)
    old = tl.atomic_add(c + o, 1, mask=o < n)
    if BAD == 0:
        old = tl.where(o < n, old, 0)
    tl.store(out, tl.sum(old, axis=0))


@sim.jit
def stored(c, out, n, BAD: tl.constexpr, B: tl.constexpr):
    o = tl.arange(0, B)
    old = tl.atomic_max(c + o, o, mask=o < n)
    if BAD:
        tl.store(out + o, old)
    else:
        tl.store(out + o, old, mask=o < n)


@sim.jit
def addresses(c, out, n, BAD: tl.constexpr, B: tl.constexpr):
    o = tl.arange(0, B)
    keep = o % 3 == 0
    slot = tl.atomic_add(c + o * 0, 1, mask=keep)
    if BAD:
        tl.store(out + slot, o)
    else:
        tl.store(out + slot, o, mask=keep)


@sim.jit
def scalar(c, out, BAD: tl.constexpr):
    p = tl.program_id(0)
    t = tl.atomic_add(c, 1, mask=p == 0)
    if BAD:
        tl.store(out + p, t)
    else:
        tl.store(out + p, t, mask=p == 0)


@sim.jit
def full_or_not(c, out, n, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(out + o, tl.atomic_xchg(c + o, o, mask=o < n))


@sim.jit
def decided(c, out, BAD: tl.constexpr):
    p = tl.program_id(0)
    t = tl.atomic_add(c, 1, mask=p < 2)
    if BAD:
        if t == 3:
            tl.store(out, p)
    else:
        t = tl.where(p < 2, t, -1)
        if t == 1:
            tl.store(out, p)


@sim.jit
def unused(c, out, n, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.atomic_add(c + o, 1, mask=o < n)
    tl.store(out + o, o)


@sim.jit
def in_a_loop(c, x, out, n, BAD: tl.constexpr, B: tl.constexpr):
    o = tl.arange(0, B)
    acc = tl.zeros((B,), tl.int32)
    for k in range(3):
        m = k * B + o < n
        old = tl.atomic_add(c + k * B + o, 1, mask=m)
        acc += old if BAD else tl.where(m, old, 0)
    tl.store(out + o, acc)


PAIRS = {
    "sum": (lambda bad: summed[(1,)](ints(16), ints(1), 5, BAD=bad, B=16), "stores what the sum at line"),
    "store": (
        lambda bad: stored[(1,)](ints(16), ints(16), 5, BAD=bad, B=16),
        "stores them to element 5 of 'out'",
    ),
    "address": (
        lambda bad: addresses[(1,)](ints(16), ints(16), 5, BAD=bad, B=16),
        "stores at addresses made of them",
    ),
    "scalar": (
        lambda bad: scalar[(4,)](ints(16), ints(16), BAD=bad),
        "program 1 stores them to element 1 of 'out'",
    ),
    "mask": (
        lambda bad: full_or_not[(1,)](ints(16), ints(16), 16 - bad, B=16),
        "stores them to element 15 of 'out'",
    ),
    "branch": (lambda bad: decided[(4,)](ints(16), ints(16), BAD=bad), "program 2 decides by them in `if`"),
    "loop": (
        lambda bad: in_a_loop[(1,)](ints(48), ints(48), ints(16), 37, BAD=bad, B=16),
        "stores them to element 5",
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_the_use_of_an_old_value_that_is_none_is_told(name: str) -> None:
    launch, says = PAIRS[name]
    found = [w for w in faults(lambda: launch(True)) if "give no old value" in w]
    assert len(found) == 1
    assert says in found[0]
    assert not faults(lambda: launch(False))


def test_an_atomic_whose_old_values_are_not_used_is_silent() -> None:
    assert not faults(lambda: unused[(1,)](ints(16), ints(16), 5, B=16))

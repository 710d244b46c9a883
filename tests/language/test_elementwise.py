"""`tl.map_elementwise`: functions written for one element, with conditions on it and several elements a call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import CompileError

from .values import output


@sim.jit
def order(x, y):
    if x < y:
        return -1
    elif x == y:
        return 0
    else:
        return 1


@sim.jit
def assigning(x, y):
    more = x > y
    less = y > x
    out = 0
    if more:
        out = 1
    elif less:
        out = -1
    return out


@sim.jit
def in_an_expression(x, y):
    return 1 if x > y else (-1 if x < y else 0)


@sim.jit
def compared(out, x, y, FN: tl.constexpr):
    at = tl.arange(0, 16)
    tl.store(out + at, tl.map_elementwise(FN, tl.load(x + at), tl.load(y + at)))


@pytest.mark.parametrize("fn", [order, assigning, in_an_expression])
def test_a_condition_holds_for_its_own_element(fn: Any) -> None:
    x, y = (a.reshape(-1).astype(np.int32) for a in np.mgrid[-2:2, -2:2])
    np.testing.assert_array_equal(output(compared, 16, x, y, fn, dtype=np.int32), np.sign(x - y))


@sim.jit
def both(a0, a1, b0, b1):
    return a0 // b0, a1 // b1, a0 % b0, a1 % b1


@sim.jit
def packed(out, a, b):
    at = tl.arange(0, 4)[:, None] * 2 + tl.arange(0, 2)[None, :]
    c, d = tl.map_elementwise(both, tl.load(a + at), tl.load(b + at), pack=2)
    tl.static_assert(c.shape == (4, 2))
    tl.store(out + at, c)
    tl.store(out + 8 + at, d)


def test_packed_elements_come_back_to_their_places() -> None:
    a, b = np.arange(100, 108, dtype=np.uint32), np.arange(3, 11, dtype=np.uint32)
    got = output(packed, 16, a, b, dtype=np.uint32)
    np.testing.assert_array_equal(got, np.concatenate((a // b, a % b)))


@sim.jit
def loading(x, p):
    if x > 0:
        return tl.load(p)
    return x


@sim.jit
def half(x):
    return x


@sim.jit
def refused(out, x, WHAT: tl.constexpr):
    v = tl.load(x + tl.arange(0, 8))
    if WHAT == "load":
        tl.map_elementwise(loading, v, v.to(tl.int64).to(tl.pointer_type(tl.float32)))
    elif WHAT == "pack":
        tl.map_elementwise(order, v, v, pack=3)
    elif WHAT == "pack 0":
        tl.map_elementwise(order, v, v, pack=0)
    elif WHAT == "results":
        tl.map_elementwise(half, v, pack=1 + 1)
    elif v > 0:
        tl.store(out, 1.0)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("load", "load under a condition on an element is not supported"),
        ("pack", "pack 3 does not divide the 8 elements"),
        ("pack 0", "pack must be a positive"),
        ("results", "half"),
        ("if", "a condition must be one truth value per program"),
    ],
)
def test_what_is_refused(what: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        refused[(1,)](np.zeros(8, np.float32), np.ones(8, np.float32), what)


@sim.jit
def one_element(out, x):
    if tl.load(x + tl.arange(0, 1)) > 2:
        tl.store(out, 5.0)


@pytest.mark.parametrize(("x", "stored"), [(1, -7), (3, 5)])
def test_a_tile_of_one_element_is_a_condition(x: float, stored: float) -> None:
    assert output(one_element, 1, np.full(1, x, np.float32)).tolist() == [stored]
